//! Guarded groups: only their owner writes them.
//!
//! A guard is declared for a prefix of group names. In a group whose name begins with it, a write must carry the fence of
//! the attempt that owns the group; whoever forgot it is refused, and so is whoever lost it. The owner is a record that the
//! store makes in the group, [`OWNER_RECORD`], of the built-in type [`OWNER`].

use std::collections::BTreeSet;

use crate::error::Rejection;
use crate::limits::{GUARD_OPEN_NAMES_MAX, NAME_BYTES_MAX};
use crate::names;
use crate::reason::RefusalReason;

/// The name of the built-in type of owners: a lease, no end of attempts, no terminal state.
pub const OWNER: &str = "owner";

/// The record in a group whose live attempt owns it. Nobody can give a record this name.
pub const OWNER_RECORD: &str = "_statehouse.owner";

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
