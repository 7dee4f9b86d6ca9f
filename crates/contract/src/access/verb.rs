//! What can be done, and the roles, which are sets of verbs.

use std::fmt;

/// An enum of words. Each has a stored number, in the order of the list.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $says:literal])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[doc = $says])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of their numbers. Append only: the numbers are stored.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its word.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The one with this word.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.word() == word)
            }

            /// What it means, in one line.
            pub const fn says(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($says),*),)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.word())
            }
        }
    };
}

words! {
    /// What can be done.
    Verb {
        /// Reads a thing by its name. A condition on a thing needs it too, since a refusal tells what is there.
        Read = "read",
        /// Lists names.
        List = "list",
        /// Follows changes.
        Watch = "watch",
        /// Writes and deletes, whatever was there.
        Write = "write",
        /// Writes only on the condition that nothing is there, or what the request names.
        Cas = "cas",
        /// Adds an event to a run.
        Append = "append",
        /// Claims records, and acts as the worker that holds them.
        Claim = "claim",
        /// Opens sessions, and acts as them.
        Session = "session",
        /// Writes where only an owner may, or takes what another owns.
        Force = "force",
        /// Changes the types, guards, branches and retention of a space, and deals with its dead letters and the sessions of others.
        Operate = "operate",
        /// Takes backups and exports, and whatever else state can be restored from.
        Snapshot = "snapshot",
        /// Replaces state by what was there at some time before.
        Restore = "restore",
        /// Reads the audit.
        Audit = "audit",
        /// Changes principals, tokens, spaces and limits.
        Administer = "administer",
    }
}

/// A set of verbs.
///
/// ```
/// use statehouse_contract::access::{Role, Verb, Verbs};
/// let verbs = Verbs::parse("read,write").unwrap();
/// assert!(verbs.has(Verb::Read) && !verbs.has(Verb::List));
/// assert!(verbs.has(Verb::Cas), "who may write anyway may write on a condition");
/// assert_eq!(verbs.to_string(), "read,write");
/// assert_eq!(Verbs::parse("worker"), Ok(Role::Worker.verbs()));
/// assert_eq!(Role::Worker.verbs().to_string(), "worker");
/// assert_eq!(Verbs::parse("reed"), Err("reed"));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Verbs(u16);

impl Verbs {
    /// None.
    pub const NONE: Self = Self(0);

    /// These.
    pub const fn of(verbs: &[Verb]) -> Self {
        let mut set = 0;
        let mut at = 0;
        while at < verbs.len() {
            set |= 1 << verbs[at] as u8;
            if matches!(verbs[at], Verb::Write) {
                set |= 1 << Verb::Cas as u8;
            }
            at += 1;
        }
        Self(set)
    }

    /// Those of either.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether one is among them.
    pub const fn has(self, verb: Verb) -> bool {
        self.0 & (1 << verb as u8) != 0
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Reads verbs and roles, separated by commas. The error is the word that is neither.
    pub fn parse(text: &str) -> Result<Self, &str> {
        text.split(',').try_fold(Self::NONE, |verbs, word| {
            let found = match (Verb::named(word), Role::named(word)) {
                (Some(verb), _) => Self::of(&[verb]),
                (None, Some(role)) => role.verbs(),
                (None, None) => return Err(word),
            };
            Ok(verbs.and(found))
        })
    }

    /// The stored number.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The set with this number; none if it has a verb that this release does not know.
    pub fn from_bits(bits: u16) -> Option<Self> {
        let known = Verb::ALL.iter().fold(0, |known, verb| known | 1 << *verb as u8);
        (bits & !known == 0).then_some(Self(bits))
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Verb> {
        Verb::ALL.iter().copied().filter(move |verb| self.has(*verb))
    }
}

/// A role, if they are exactly those of one; otherwise each verb that does not follow from another.
impl fmt::Display for Verbs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(role) = Role::ALL.iter().find(|role| role.verbs() == *self) {
            return formatter.write_str(role.word());
        }
        let follows = |verb: &Verb| *verb == Verb::Cas && self.has(Verb::Write);
        for (place, verb) in self.iter().filter(|verb| !follows(verb)).enumerate() {
            let separator = if place == 0 { "" } else { "," };
            write!(formatter, "{separator}{verb}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Verbs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Verbs({self})")
    }
}

words! {
    /// Verbs that are often granted together.
    Role {
        /// Reads, lists and watches.
        Reader = "reader",
        /// What readers do; writes, appends, and opens sessions.
        Writer = "writer",
        /// What writers do, and claims records.
        Worker = "worker",
        /// What readers do, and what keeps a space in order: its catalogue, its dead letters, the sessions of others, forced writes, backups, restores, the audit.
        Operator = "operator",
        /// Everything.
        Admin = "admin",
    }
}

impl Role {
    /// Its verbs.
    pub const fn verbs(self) -> Verbs {
        const READER: Verbs = Verbs::of(&[Verb::Read, Verb::List, Verb::Watch]);
        const WRITER: Verbs = READER.and(Verbs::of(&[Verb::Write, Verb::Append, Verb::Session]));
        const WORKER: Verbs = WRITER.and(Verbs::of(&[Verb::Claim]));
        const OPERATOR: Verbs = READER.and(Verbs::of(&[
            Verb::Session,
            Verb::Force,
            Verb::Operate,
            Verb::Snapshot,
            Verb::Restore,
            Verb::Audit,
        ]));
        match self {
            Role::Reader => READER,
            Role::Writer => WRITER,
            Role::Worker => WORKER,
            Role::Operator => OPERATOR,
            Role::Admin => Verbs::of(Verb::ALL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verbs_of_a_role_are_read_as_they_are_written() {
        for role in Role::ALL {
            assert_eq!(Verbs::parse(role.word()), Ok(role.verbs()));
            assert_eq!(Verbs::parse(&role.verbs().to_string()), Ok(role.verbs()));
        }
        for bits in 1..1_u16 << Verb::ALL.len() {
            let verbs = Verbs::from_bits(bits).expect("known verbs");
            let whole = if verbs.has(Verb::Write) { verbs.and(Verbs::of(&[Verb::Write])) } else { verbs };
            assert_eq!(Verbs::parse(&verbs.to_string()), Ok(whole), "{verbs}");
        }
    }

    #[test]
    fn a_verb_of_a_later_release_is_not_taken_for_a_known_one() {
        assert_eq!(Verbs::from_bits(1 << Verb::ALL.len()), None);
        assert_eq!(Verbs::from_bits(u16::MAX), None);
        assert_eq!(Verbs::from_bits(0), Some(Verbs::NONE));
        assert_eq!(Verbs::parse(""), Err(""));
        assert_eq!(Verbs::parse("read,"), Err(""));
        assert_eq!(Verbs::parse("Read"), Err("Read"));
    }

    #[test]
    fn no_verb_is_named_like_a_role() {
        for role in Role::ALL {
            assert_eq!(Verb::named(role.word()), None, "{role}");
        }
    }
}
