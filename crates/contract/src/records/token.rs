//! The token of an attempt: text that means this attempt and no other.

use std::fmt;

use crate::attempt_place::AttemptPlace;
use crate::catalogue::FIRST_BRANCH_NUMBER;
use crate::names::{push_escaped, unescaped};

/// An attempt of a record, as text: the group, if it differs from the name, the record's name, the attempt and its place. `#`
/// and `%` in a name are written as `%23` and `%25`. The branch's number is left out for `main` of the space `default`.
///
/// ```
/// use statehouse_contract::records::AttemptToken;
/// for text in [
///     "jobs.email.42#1#h00000000000000ab",
///     "order-7#charge#2#h00000000000000ab#4",
///     "order-7%23charge#2#h00000000000000ab",
/// ] {
///     assert_eq!(AttemptToken::parse(text).expect("a token").to_string(), text);
/// }
/// let place = "#h00000000000000ab";
/// for names in ["", "jobs", "jobs#", "jobs#x", "#1", "a#b#c#1", "jobs#01", "a%2#1"] {
///     assert_eq!(AttemptToken::parse(&format!("{names}{place}")), None, "{names}");
/// }
/// for place in ["", "#hab", "#h00000000000000AB", "#h00000000000000ab#1", "#h00000000000000ab#04"] {
///     assert_eq!(AttemptToken::parse(&format!("jobs#1{place}")), None, "{place}");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptToken {
    /// The record's group, or none if it has none.
    pub group: Option<String>,
    /// The record.
    pub record: String,
    /// The attempt.
    pub attempt: u64,
    /// Where the number means this attempt.
    pub place: AttemptPlace,
}

impl AttemptToken {
    /// Reads what a store issued; none if the text is anything else, or the same in another spelling.
    pub fn parse(text: &str) -> Option<Self> {
        let (numbered, place) = text.rsplit_once("#h")?;
        let (history, branch) = match place.split_once('#') {
            None => (place, FIRST_BRANCH_NUMBER),
            Some((history, branch)) => (history, branch.parse().ok()?),
        };
        let place = AttemptPlace { history: u64::from_str_radix(history, 16).ok()?, branch };
        let (names, attempt) = numbered.rsplit_once('#')?;
        let (group, record) = match names.split_once('#') {
            Some((group, record)) => (Some(unescaped(group)?), unescaped(record)?),
            None => (None, unescaped(names)?),
        };
        let token = Self { group, record, attempt: attempt.parse().ok()?, place };
        (token.to_string() == text).then_some(token)
    }
}

impl fmt::Display for AttemptToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, record, attempt, place: AttemptPlace { history, branch } } = self;
        formatter.write_str(&numbered(group.as_deref(), record, *attempt))?;
        write!(formatter, "#h{history:016x}")?;
        match *branch {
            FIRST_BRANCH_NUMBER => Ok(()),
            other => write!(formatter, "#{other}"),
        }
    }
}

/// The names and the number of an attempt: a token without its place, unique in one branch of one history.
pub(super) fn numbered(group: Option<&str>, record: &str, attempt: u64) -> String {
    let attempt = attempt.to_string();
    let bytes = group.map_or(0, |group| group.len() + 1) + record.len() + 1 + attempt.len();
    let mut text = String::with_capacity(bytes);
    for name in group.into_iter().chain([record]) {
        push_escaped(&mut text, name);
        text.push('#');
    }
    text + &attempt
}
