//! Who sends requests: a person, a service, a fleet of workers.

use std::fmt;
use std::time::Duration;

use super::token::TokenDigest;
use super::{AccessRejection, Grant, Need};
use crate::error::Rejection;
use crate::limits::{
    GRANTS_MAX, IDENTITIES_MAX, NAME_BYTES_MAX, PRINCIPAL_NAME_BYTES_MAX, TOKEN_AGE_MAX, TOKEN_AGE_MIN, TOKENS_LIVE_MAX,
};
use crate::reason::RefusalReason;

/// Who sends requests, with what it was granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Principal {
    /// Its name.
    pub name: String,
    /// What it may do: the union of these.
    pub grants: Vec<Grant>,
    /// How it is known besides by its tokens.
    pub identities: Vec<Identity>,
    /// Requests that it may send in a second, if they are limited.
    pub requests_per_second_max: Option<u32>,
    /// Its tokens, the oldest first.
    pub tokens: Vec<IssuedToken>,
}

/// How a principal is known without a token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Identity {
    /// A client certificate has exactly this URI among its subject alternative names.
    Uri(String),
    /// The number of a user of this machine, who comes over a unix socket.
    User(u32),
}

/// What a store knows of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedToken {
    /// Its public part.
    pub id: String,
    /// What is kept of its secret.
    pub digest: TokenDigest,
    /// When it was issued, µs since 1970 in UTC.
    pub issued_us: u64,
    /// Until when it is good, µs since 1970 in UTC.
    pub expires_us: u64,
}

impl IssuedToken {
    /// Whether it is good at a time.
    pub fn is_live(&self, now_us: u64) -> bool {
        now_us < self.expires_us
    }
}

impl Principal {
    /// A principal that may do nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The principal with one more grant.
    pub fn granted(mut self, grant: Grant) -> Self {
        self.grants.push(grant);
        self
    }

    /// The principal with one more identity.
    pub fn known_as(mut self, identity: Identity) -> Self {
        self.identities.push(identity);
        self
    }

    /// Whether it may do what a request needs.
    pub fn may(&self, need: &Need<'_>) -> bool {
        self.grants.iter().any(|grant| grant.covers(need))
    }

    /// Its tokens that are good at a time.
    pub fn live_tokens(&self, now_us: u64) -> impl Iterator<Item = &IssuedToken> {
        self.tokens.iter().filter(move |token| token.is_live(now_us))
    }

    /// Refuses a principal that is against the rules. Its tokens are checked when they are issued.
    pub fn check(&self) -> Result<(), Rejection> {
        check_principal(&self.name)?;
        Rejection::check_limit("grants_max", GRANTS_MAX, self.grants.len())?;
        self.grants.iter().try_for_each(Grant::check)?;
        Rejection::check_limit("identities_max", IDENTITIES_MAX, self.identities.len())?;
        for (place, identity) in self.identities.iter().enumerate() {
            identity.check()?;
            if self.identities[..place].contains(identity) {
                return Err(self.invalid(RefusalReason::IdentityTwice));
            }
        }
        if self.requests_per_second_max == Some(0) {
            return Err(self.invalid(RefusalReason::RateOfZero));
        }
        Ok(())
    }

    /// Refuses one token more than may be good at a time.
    pub fn check_room_for_token(&self, now_us: u64) -> Result<(), AccessRejection> {
        match self.live_tokens(now_us).count() {
            live if live < TOKENS_LIVE_MAX => Ok(()),
            _ => Err(AccessRejection::TokensInUse { principal: self.name.clone(), max: TOKENS_LIVE_MAX as u64 }),
        }
    }

    fn invalid(&self, reason: RefusalReason) -> Rejection {
        invalid(&self.name, reason)
    }
}

fn invalid(principal: &str, reason: RefusalReason) -> Rejection {
    Rejection::InvalidDeclaration { what: format!("principal {principal:?}"), reason }
}

/// Refuses a token of a principal that would be good for too long, or for too short a time to be of use.
pub fn check_token_age(principal: &str, age: Duration) -> Result<(), Rejection> {
    match (TOKEN_AGE_MIN..=TOKEN_AGE_MAX).contains(&age) {
        true => Ok(()),
        false => Err(invalid(principal, RefusalReason::TokenAge)),
    }
}

impl Identity {
    /// Reads a text: a URI, or `uid:` and a number.
    ///
    /// ```
    /// use statehouse_contract::access::Identity;
    /// assert_eq!(Identity::parse("uid:1000"), Ok(Identity::User(1000)));
    /// let uri = "spiffe://example.org/worker";
    /// assert_eq!(Identity::parse(uri).unwrap().to_string(), uri);
    /// assert!(Identity::parse("worker").is_err() && Identity::parse("uid:01").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, Rejection> {
        let identity = match text.strip_prefix("uid:") {
            Some(number) => {
                let user = number.parse().ok().map(Self::User).filter(|user| user.to_string() == text);
                let reason = "uid: is not followed by the number of a user";
                user.ok_or(Rejection::InvalidName { what: "an identity", reason })?
            }
            None => Self::Uri(text.to_owned()),
        };
        identity.check().map(|()| identity)
    }

    fn check(&self) -> Result<(), Rejection> {
        let invalid = |reason| Err(Rejection::InvalidName { what: "an identity", reason });
        let Self::Uri(uri) = self else { return Ok(()) };
        let scheme = uri.split_once("://").map(|(scheme, _)| scheme);
        if !scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
            return invalid("it is neither a URI with :// nor uid: and a number");
        }
        if !uri.bytes().all(|byte| byte.is_ascii_graphic()) {
            return invalid("it has characters that a URI cannot have");
        }
        Rejection::check_limit("name_bytes_max", NAME_BYTES_MAX, uri.len())
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uri(uri) => formatter.write_str(uri),
            Self::User(number) => write!(formatter, "uid:{number}"),
        }
    }
}

/// Checks the name of a principal: letters, digits and `.`, `-`, `_`, `@`, so that it can stand in any log line and any shell.
pub fn check_principal(name: &str) -> Result<(), Rejection> {
    let invalid = |reason| Err(Rejection::InvalidName { what: "a principal's name", reason });
    if name.is_empty() {
        return invalid("it is empty");
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_@".contains(&byte);
    if !name.bytes().all(allowed) || !name.as_bytes()[0].is_ascii_alphanumeric() {
        return invalid("it is not letters, digits and . - _ @, with a letter or a digit first");
    }
    Rejection::check_limit("principal_name_bytes_max", PRINCIPAL_NAME_BYTES_MAX, name.len())
}

#[cfg(test)]
mod tests {
    use super::super::token::Token;
    use super::*;

    const DAY_US: u64 = 24 * 3_600 * 1_000_000;

    fn token(id: u64, issued_us: u64, days: u64) -> IssuedToken {
        let token = Token::of(id, [0; 32]);
        let expires_us = issued_us + days * DAY_US;
        IssuedToken { id: token.id().to_owned(), digest: token.digest(), issued_us, expires_us }
    }

    #[test]
    fn two_tokens_are_live_at_most_and_each_for_90_days() {
        let seconds = Duration::from_secs;
        for (age, fine) in [(59, false), (60, true), (90 * 86_400, true), (90 * 86_400 + 1, false)] {
            assert_eq!(check_token_age("worker", seconds(age)).is_ok(), fine, "{age}");
        }
        let mut worker = Principal::new("worker");
        for id in [1, 2] {
            assert_eq!(worker.check_room_for_token(5), Ok(()));
            worker.tokens.push(token(id, 5, 90 - id));
        }
        // The second one expires first.
        let later = worker.tokens[1].expires_us;
        assert_eq!(worker.check_room_for_token(later), Ok(()));
        let refused = worker.check_room_for_token(later - 1).expect_err("both are live");
        assert_eq!(refused.facts().code, "SH-6005");
    }

    #[test]
    fn what_is_against_the_rules_is_refused() {
        let fine = Principal::new("ci@example.org").granted(Grant::everything()).known_as(Identity::User(0));
        assert_eq!(fine.check(), Ok(()));
        let long = "x".repeat(PRINCIPAL_NAME_BYTES_MAX + 1);
        for name in ["", "a b", "a/b", "é", "a\n", "-x", ".x", "$(x)", &long] {
            assert!(Principal { name: name.to_owned(), ..fine.clone() }.check().is_err(), "{name:?}");
        }
        assert!(fine.clone().known_as(Identity::User(0)).check().is_err(), "twice");
        assert!(Principal { requests_per_second_max: Some(0), ..fine.clone() }.check().is_err());
        for uri in ["", "worker", "://x", "a://b c", "a://é", "uid:", "uid:x", "uid:+1", "a b://c"] {
            assert!(Identity::parse(uri).is_err(), "{uri:?}");
        }
    }
    #[test]
    fn there_is_a_limit_to_what_a_principal_has() {
        let named = |bytes| Principal::new("x".repeat(bytes)).check();
        assert_eq!(named(PRINCIPAL_NAME_BYTES_MAX), Ok(()));
        let (max, more) = (PRINCIPAL_NAME_BYTES_MAX, PRINCIPAL_NAME_BYTES_MAX + 1);
        assert_eq!(named(more), Err(Rejection::too_large("principal_name_bytes_max", max, more)));
        let granted = |count| Principal { grants: vec![Grant::everything(); count], ..Principal::new("a") }.check();
        assert_eq!(granted(GRANTS_MAX), Ok(()));
        assert_eq!(granted(GRANTS_MAX + 1), Err(Rejection::too_large("grants_max", GRANTS_MAX, GRANTS_MAX + 1)));
        let known = |count: usize| {
            let identities = (0..).map(Identity::User).take(count).collect();
            Principal { identities, ..Principal::new("a") }.check()
        };
        assert_eq!(known(IDENTITIES_MAX), Ok(()));
        let (max, more) = (IDENTITIES_MAX, IDENTITIES_MAX + 1);
        assert_eq!(known(more), Err(Rejection::too_large("identities_max", max, more)));
    }
}
