//! Guarded groups: only their owner writes them.
//!
//! A guard is declared for a prefix of group names. In a group whose name begins with it, a write must carry the fence of
//! the attempt that owns the group; whoever forgot it is refused, and so is whoever lost it. The owner is a record that the
//! store makes in the group, [`OWNER_RECORD`], of the built-in type [`OWNER`].

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use crate::catalogue::{DEFAULT_SPACE, FIRST_BRANCH_NUMBER, MAIN_BRANCH};
use crate::error::Rejection;
use crate::limits::{GUARD_OPEN_NAMES_MAX, NAME_BYTES_MAX};
use crate::names;
use crate::reason::RefusalReason;

/// The name of the built-in type of owners: a lease, no end of attempts, no terminal state.
pub const OWNER: &str = "owner";

/// The record in a group whose live attempt owns it. Nobody can give a record this name.
pub const OWNER_RECORD: &str = "_statehouse.owner";

/// How refusals name the group itself, where they are about its owner.
pub const THE_GROUP: &str = "the group";

/// The attempt that owns a group, in one history of the store: after a restore the same number is another attempt.
///
/// Its text is visible ASCII, so that it fits into a header: what else is in a name is escaped as in a URL. It has the space, the
/// branch and the branch's number unless they are `default`, `main` and 1. A branch that was deleted and created again has
/// another number, so nobody owns there what they owned before.
///
/// ```
/// use statehouse_contract::guards::OwnerToken;
/// let token = OwnerToken::new("default", "main", 1, "agents.7", 3, 0xab);
/// assert_eq!(token.to_string(), "agents.7#3#h00000000000000ab");
/// assert_eq!(OwnerToken::parse("agents.7#3#h00000000000000ab"), Some(token));
/// for text in ["", "agents.7#3", "agents.7#3#hab", "agents.7#03#h00000000000000ab", "#3#h00000000000000ab"] {
///     assert_eq!(OwnerToken::parse(text), None, "{text}");
/// }
/// let odd = OwnerToken::new("default", "try", 4, "é #%", 1, 1);
/// assert_eq!(odd.to_string(), "%C3%A9%20%23%25#1#h0000000000000001#default#try#4");
/// assert_eq!(OwnerToken::parse(&odd.to_string()), Some(odd));
/// for other in ["#default#main#1", "#default#try", "#default#try#04"] {
///     assert_eq!(OwnerToken::parse(&format!("agents.7#3#h00000000000000ab{other}")), None, "another spelling");
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerToken {
    /// The space of the group.
    pub space: String,
    /// The branch of the group.
    pub branch: String,
    /// The number of the branch, which no other branch of this history ever has.
    pub branch_number: u32,
    /// The group.
    pub group: String,
    /// The attempt.
    pub attempt: u64,
    /// The history of the store in which it owns the group.
    pub history: u64,
}

impl OwnerToken {
    /// The attempt that owns a group of a branch.
    pub fn new(space: &str, branch: &str, branch_number: u32, group: &str, attempt: u64, history: u64) -> Self {
        let [space, branch, group] = [space, branch, group].map(str::to_owned);
        Self { space, branch, branch_number, group, attempt, history }
    }

    /// Reads what a store issued; none if the text is anything else, or the same in another spelling.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('#');
        let (group, attempt, history) = (parts.next()?, parts.next()?, parts.next()?.strip_prefix('h')?);
        let (group, attempt) = (unescaped(group)?, attempt.parse().ok()?);
        let (space, branch, branch_number) = match parts.next() {
            None => (DEFAULT_SPACE.to_owned(), MAIN_BRANCH.to_owned(), FIRST_BRANCH_NUMBER),
            Some(space) => (unescaped(space)?, unescaped(parts.next()?)?, parts.next()?.parse().ok()?),
        };
        let history = u64::from_str_radix(history, 16).ok()?;
        let token = Self { space, branch, branch_number, group, attempt, history };
        (!token.group.is_empty() && token.to_string() == text).then_some(token)
    }
}

impl fmt::Display for OwnerToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { space, branch, branch_number, group, attempt, history } = self;
        write_escaped(group, formatter)?;
        write!(formatter, "#{attempt}#h{history:016x}")?;
        if (space.as_str(), branch.as_str(), *branch_number) != (DEFAULT_SPACE, MAIN_BRANCH, FIRST_BRANCH_NUMBER) {
            for name in [space, branch] {
                formatter.write_char('#')?;
                write_escaped(name, formatter)?;
            }
            write!(formatter, "#{branch_number}")?;
        }
        Ok(())
    }
}

fn write_escaped(name: &str, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    for byte in name.bytes() {
        match byte {
            b'#' | b'%' => write!(formatter, "%{byte:02X}")?,
            byte if byte.is_ascii_graphic() => formatter.write_char(byte.into())?,
            byte => write!(formatter, "%{byte:02X}")?,
        }
    }
    Ok(())
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'%' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &rest[2..];
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

/// What is declared for a prefix of group names.
///
/// ```
/// use statehouse_contract::guards::GroupGuard;
/// let guard = GroupGuard::new().open("inbox");
/// assert!(guard.is_open("inbox") && guard.is_open("inbox.7") && !guard.is_open("outbox"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupGuard {
    /// Whoever creates a thing whose name begins with one of these, or appends to it, needs no fence.
    pub open: Vec<String>,
}

impl GroupGuard {
    /// A guard without open names.
    pub fn new() -> Self {
        Self::default()
    }

    /// The guard with one more open name, which is also a prefix of open names.
    pub fn open(mut self, name: impl Into<String>) -> Self {
        self.open.push(name.into());
        self
    }

    /// Whether anybody may create a thing with this name, and append to it.
    pub fn is_open(&self, name: &str) -> bool {
        self.open.iter().any(|open| name.starts_with(open.as_str()))
    }

    /// Refuses a guard that cannot be declared for this prefix.
    pub fn check(&self, prefix: &str) -> Result<(), Rejection> {
        let invalid = |reason| Err(Rejection::InvalidDeclaration { what: format!("guard {prefix:?}"), reason });
        if names::check_group(prefix).is_err() {
            return invalid(RefusalReason::BadName);
        }
        Rejection::check_limit("guard_open_names_max", GUARD_OPEN_NAMES_MAX, self.open.len())?;
        if self.open.iter().any(|name| name.is_empty() || name.contains('\0') || name.len() > NAME_BYTES_MAX) {
            return invalid(RefusalReason::BadName);
        }
        if self.open.iter().any(|name| OWNER_RECORD.starts_with(name.as_str())) {
            return invalid(RefusalReason::OpenOwner);
        }
        match self.open.iter().collect::<BTreeSet<_>>().len() == self.open.len() {
            true => Ok(()),
            false => invalid(RefusalReason::RepeatedName),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_makes_no_sense_is_refused() {
        let many = |count: usize| GroupGuard { open: (0..count).map(|number| format!("open-{number}")).collect() };
        assert_eq!(many(GUARD_OPEN_NAMES_MAX).check("agents."), Ok(()));
        let refused = many(GUARD_OPEN_NAMES_MAX + 1).check("agents.");
        assert_eq!(refused, Err(Rejection::too_large("guard_open_names_max", 64, 65)));
        for (prefix, guard) in [
            ("", GroupGuard::new()),
            ("_statehouse", GroupGuard::new()),
            ("agents.", many(GUARD_OPEN_NAMES_MAX + 1)),
            ("agents.", GroupGuard::new().open("")),
            ("agents.", GroupGuard::new().open("a\0")),
            ("agents.", GroupGuard::new().open("_state")),
            ("agents.", GroupGuard::new().open("inbox").open("inbox")),
        ] {
            assert!(guard.check(prefix).is_err(), "{prefix:?} {guard:?}");
        }
    }
}
