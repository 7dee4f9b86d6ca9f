//! The token of an attempt, as text that a worker keeps and sends back.

use std::fmt;

use contract::records::AttemptToken as Attempt;

use crate::opaque::opaque;

/// The attempt of a claim: workers keep it, and send it back unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptToken(pub Attempt);

impl AttemptToken {
    /// Reads what a server issued.
    pub fn parse(text: &str) -> Option<Self> {
        Attempt::parse(text).map(Self)
    }
}

impl fmt::Display for AttemptToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

opaque! {
    AttemptToken: "token", "^[^#]+#([^#]+#)?[0-9]{1,20}#h[0-9a-f]{16}(#[0-9]{1,10})?$",
}
