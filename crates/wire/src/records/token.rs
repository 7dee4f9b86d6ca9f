//! The token of an attempt, as text that a worker keeps and sends back.

use std::fmt;

use crate::opaque::opaque;

/// The attempt of a claim: workers keep it, and send it back unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptToken {
    /// The record's group, or none if it has none.
    pub group: Option<String>,
    /// The record.
    pub record: String,
    /// The attempt.
    pub attempt: u64,
}

impl AttemptToken {
    /// Reads what a server issued.
    pub fn parse(text: &str) -> Option<Self> {
        let (group, record, attempt) = contract::records::parse_token(text)?;
        Some(Self { group, record, attempt })
    }
}

impl fmt::Display for AttemptToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&contract::records::token(self.group.as_deref(), &self.record, self.attempt))
    }
}

opaque! {
    AttemptToken: "token", "^[^#]+#([^#]+#)?[0-9]{1,19}$",
}
