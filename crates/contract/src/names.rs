//! The rules for names of cells, groups, spaces and branches; and names with their groups.

use std::fmt;

use crate::error::Rejection;
use crate::limits::NAME_BYTES_MAX;

/// The name of a cell, a record or a run, with its group: listings return it for each row, and as the start of the next
/// page. Ordered by name, then by group.
///
/// ```
/// use statehouse_contract::NameInGroup;
/// let alone = NameInGroup::new("paid", None);
/// let grouped = NameInGroup::new("paid", Some("order-7".to_owned()));
/// assert!(alone < grouped && grouped < NameInGroup::new("paid2", None));
/// assert_eq!(grouped.to_string(), "paid in group order-7");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameInGroup {
    /// The name.
    pub name: String,
    /// The group, or none if the thing has no group.
    pub group: Option<String>,
}

impl NameInGroup {
    /// A name in a group, or without one.
    pub fn new(name: impl Into<String>, group: Option<String>) -> Self {
        Self { name: name.into(), group }
    }

    /// Both as one text, for clients that continue a listing. [`from_cursor`](Self::from_cursor) reads it.
    ///
    /// ```
    /// use statehouse_contract::NameInGroup;
    /// let last = NameInGroup::new("a#1", Some("order-7".to_owned()));
    /// assert_eq!(last.to_cursor(), "a%231#order-7");
    /// assert_eq!(NameInGroup::from_cursor("a%231#order-7"), Some(last));
    /// assert_eq!(NameInGroup::from_cursor("a"), Some(NameInGroup::new("a", None)));
    /// assert_eq!(NameInGroup::from_cursor("a%20"), None);
    /// ```
    pub fn to_cursor(&self) -> String {
        let mut cursor = String::with_capacity(self.name.len());
        push_escaped(&mut cursor, &self.name);
        if let Some(group) = &self.group {
            cursor.push('#');
            push_escaped(&mut cursor, group);
        }
        cursor
    }

    /// Reads [`to_cursor`](Self::to_cursor); none if the text is not a cursor.
    pub fn from_cursor(cursor: &str) -> Option<Self> {
        let (name, group) = match cursor.split_once('#') {
            None => (cursor, None),
            Some((name, group)) => (name, Some(unescaped(group)?)),
        };
        Some(Self { name: unescaped(name)?, group })
    }
}

impl fmt::Display for NameInGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            None => f.write_str(&self.name),
            Some(group) => write!(f, "{} in group {group}", self.name),
        }
    }
}

/// Parts two names in a text.
const PART: char = '#';

/// Appends a name so that `#` can part two names.
pub(crate) fn push_escaped(text: &mut String, name: &str) {
    escape(text, name, &[PART]);
}

/// Reads a name written by [`push_escaped`]; none if it is empty or malformed.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    if text.is_empty() || text.contains(PART) { None } else { unescape(text, &[PART]) }
}

/// Appends a name with `%` and these marks, which are ASCII, written as in a URL: `#` as `%23`.
pub(crate) fn escape(text: &mut String, name: &str, marks: &[char]) {
    let mut rest = name;
    while let Some(place) = rest.find(|letter| letter == '%' || marks.contains(&letter)) {
        let (before, behind) = rest.split_at(place);
        text.push_str(before);
        text.push_str(&escaped(behind.as_bytes()[0]));
        rest = &behind[1..];
    }
    text.push_str(rest);
}

/// Reads a name that was written with these marks escaped; none for any other escape.
pub(crate) fn unescape(text: &str, marks: &[char]) -> Option<String> {
    let mut parts = text.split('%');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let is_of = |mark: &&char| part.starts_with(&escaped(**mark as u8)[1..]);
        name.push(*[&'%'].into_iter().chain(marks).find(is_of)?);
        name.push_str(&part[2..]);
    }
    Some(name)
}

fn escaped(mark: u8) -> String {
    format!("%{mark:02X}")
}

/// Cell names with these prefixes are reserved for the system.
pub const RESERVED_PREFIXES: [&str; 2] = ["_strata", "_statehouse"];

/// Checks a cell's name: not empty, no NUL, not reserved, at most 1,024 bytes.
///
/// ```
/// use statehouse_contract::names::check_cell;
/// assert!(check_cell("order-7/state").is_ok());
/// assert!(check_cell("").is_err() && check_cell("a\0b").is_err() && check_cell("_strata.x").is_err());
/// assert!(check_cell(&"x".repeat(1024)).is_ok() && check_cell(&"x".repeat(1025)).is_err());
/// ```
pub fn check_cell(name: &str) -> Result<(), Rejection> {
    check(name, "a cell's name")
}

/// Checks a record's name, by the same rules.
pub fn check_record(name: &str) -> Result<(), Rejection> {
    check(name, "a record's name")
}

/// Checks a run's name, by the same rules.
pub fn check_run(name: &str) -> Result<(), Rejection> {
    check(name, "a run's name")
}

/// Checks a map's name, by the same rules.
pub fn check_map(name: &str) -> Result<(), Rejection> {
    check(name, "a map's name")
}

/// Checks a key of a map: any bytes, at least one and at most 1,024.
pub fn check_key(key: &[u8]) -> Result<(), Rejection> {
    if key.is_empty() {
        return Err(Rejection::InvalidName { what: "a key", reason: "it is empty" });
    }
    Rejection::check_limit("name_bytes_max", NAME_BYTES_MAX, key.len())
}

/// Checks the name of an input, by the same rules as a cell's.
pub fn check_input(name: &str) -> Result<(), Rejection> {
    check(name, "an input's name")
}

/// Checks the name of a broker's queue, by the same rules.
pub fn check_topic(name: &str) -> Result<(), Rejection> {
    check(name, "a queue's name")
}

/// Checks a group's name, by the same rules as a cell's.
pub fn check_group(name: &str) -> Result<(), Rejection> {
    check(name, "a group's name")
}

/// Checks the name of a space, by the same rules.
pub fn check_space(name: &str) -> Result<(), Rejection> {
    check(name, "a space's name")
}

/// Checks the name of a branch, by the same rules.
pub fn check_branch(name: &str) -> Result<(), Rejection> {
    check(name, "a branch's name")
}

fn check(name: &str, what: &'static str) -> Result<(), Rejection> {
    let invalid = |reason| Err(Rejection::InvalidName { what, reason });
    if name.is_empty() {
        return invalid("it is empty");
    }
    if name.contains('\0') {
        return invalid("it contains a NUL byte");
    }
    if RESERVED_PREFIXES.iter().any(|reserved| name.starts_with(reserved)) {
        return invalid("it starts with a prefix reserved for the system");
    }
    Rejection::check_limit("name_bytes_max", NAME_BYTES_MAX, name.len())
}
