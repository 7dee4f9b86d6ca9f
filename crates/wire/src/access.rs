//! Who may do what: `principals.*`, `tokens.*`, `access.*`.

use std::fmt;

use contract::access::Token;

use crate::schema::{left_out, object};
use crate::values::{DurationText, UserJson};

/// The text of a token, which proves who sends a request. It is printed by nothing but its own serialization.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenText(String);

impl TokenText {
    /// The text of a token.
    pub fn new(token: &Token) -> Self {
        Self(token.to_text())
    }

    /// The text, to send it or to store it.
    pub fn to_text(&self) -> String {
        self.0.clone()
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenText(hidden)")
    }
}

impl serde::Serialize for TokenText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for TokenText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // The refusal does not repeat what is malformed: it may be most of a secret.
        Token::parse(&text).map(|token| Self::new(&token)).ok_or_else(|| serde::de::Error::custom("this is no token"))
    }
}

impl crate::schema::Described for TokenText {
    fn schema(_: &mut crate::schema::Schemas) -> serde_json::Value {
        serde_json::json!({ "type": "string", "pattern": "^sht_[0-9A-Za-z]{10}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$" })
    }
}

object! {
    /// Selects principals to list.
    request ListPrincipals {
        /// Only those after this one, in the order of their names.
        after: Option<String>,
        /// Maximum number of principals.
        limit: Option<u64>,
    }

    /// Sets what a principal may do and how it is known, or creates it.
    request SetPrincipal {
        /// What it may do, each as `VERBS@SPACE/AREA/PREFIX`: `worker@default/records/jobs.`
        grants: Vec<String>,
        /// How it is known besides by its tokens: the URI of a client certificate, or `uid:` and the number of a user of this machine.
        identities: Option<Vec<String>>,
        /// Requests that it may send in a second.
        requests_per_second_max: Option<u32>,
    }

    /// A principal.
    answer ShownPrincipal {
        /// Its name.
        principal: String,
        /// What it may do.
        grants: Vec<String>,
        /// How it is known besides by its tokens.
        identities: Vec<String>,
        /// Requests that it may send in a second; null if they are not limited.
        requests_per_second_max: Option<u32>,
        /// Its tokens, without their secrets, the oldest first.
        tokens: Vec<ShownToken>,
    }

    /// A token, without its secret.
    answer ShownToken {
        /// Its public part.
        token: String,
        /// When it was issued.
        issued_at: String,
        /// Until when it is good.
        expires_at: String,
        /// Whether that is over.
        expired: bool,
    }

    /// Principals, by name.
    answer PrincipalList {
        /// The principals.
        principals: Vec<ShownPrincipal>,
        /// Where the next page starts, if there is one.
        next_after: Option<String>,
    }

    /// Issues a token.
    request IssueToken {
        /// How long it is good: from a minute to 90 days, the default.
        expires_in: Option<DurationText>,
    }

    /// An issued token. Its secret is shown here, and never again.
    answer IssuedToken {
        /// Whose it is.
        principal: String,
        /// Its public part.
        id: String,
        /// The token: keep it where only its principal can read it.
        token: TokenText,
        /// Until when it is good.
        expires_at: String,
    }

    /// Who sends this request.
    answer Whoami {
        /// The principal; null if the server asks nobody.
        principal: Option<String>,
        /// What it may do; everything, if the server asks nobody.
        grants: Vec<String>,
        /// The token that was shown; null if it is known otherwise.
        token: Option<ShownToken>,
    }

    /// Selects events of the audit.
    request ReadAudit {
        /// Only those after this number; all of them if it is left out.
        after: Option<u64>,
        /// Maximum number of events.
        limit: Option<u64>,
    }

    /// Events of the audit, in the order of their numbers.
    answer AuditPage {
        /// The events, each as it was recorded, byte for byte.
        events: Vec<UserJson>,
        /// Where the audit ends.
        head: ShownAuditHead,
    }

    /// Where the audit ends.
    answer ShownAuditHead {
        /// The number of the last event; 0 if there is none.
        number: u64,
        /// SHA-256 of it, as hexadecimal digits; zeros if there is none.
        digest: String,
    }

    /// Asks whether somebody may do something.
    request CheckAccess {
        /// Who; the sender, if it is left out.
        principal: Option<String>,
        /// What would be done: `write`.
        verb: String,
        /// To what: `records`.
        area: String,
        /// In which space; `default` if it is left out, `*` for what is of every space.
        space: Option<String>,
        /// The group of the thing.
        group: Option<String>,
        /// Its name.
        name: Option<String>,
        /// A prefix of names, instead of a name.
        prefix: Option<String>,
    }

    /// Whether somebody may do something, and why.
    answer AccessAnswer {
        /// Who.
        principal: String,
        /// What would be done, in full.
        need: String,
        /// Whether it is permitted.
        allowed: bool,
        /// The first grant that permits it.
        grant: Option<String>,
    }
}

left_out! {
    ReadAudit { after, limit }
    ListPrincipals { after, limit }
    IssueToken { expires_in }
}
