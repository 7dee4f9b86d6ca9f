//! Why a rejection refuses, where its code alone does not tell. Each reason has a stored number and a text.

use std::fmt;

/// An enum whose variants have a stored number, in the order of the list, and a text for people.
macro_rules! numbered_texts {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* #[doc = concat!("\"", $text, "\"")] $variant,)+
        }

        impl $name {
            /// All variants, in the order of their numbers. Append only: the numbers are stored.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The text for people.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The stored number.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// The variant with this number.
            pub fn numbered(number: u8) -> Option<Self> {
                Self::ALL.get(usize::from(number)).copied()
            }

            /// The variant with this text.
            pub fn saying(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.text() == text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.text())
            }
        }
    };
}

numbered_texts! {
    /// Why a state or a declaration does not allow something.
    RefusalReason {
        Finished = "it is finished and stays finished",
        NotHeld = "nobody has claimed it, or its claim is over",
        NotHeldToComplete = "nobody has claimed it, or its claim is over; it cannot be completed",
        NotReady = "it is not ready to be claimed",
        Pausing = "its pause after a failure is not over yet",
        HeldByWorker = "a worker holds it; write its fields instead, or wait",
        FinishedBeforePut = "it is finished; delete it before putting it again",
        FailureFinishes = "a failed attempt cannot finish it by writing fields",
        NoTransaction = "its body is not a transaction",
        NoGroup = "it must be sent from a group",
        EmptyName = "its name or the name of its state field is empty",
        TooManyStates = "it has more than 32 states or 16 indexes",
        RepeatedState = "two of its states have the same name",
        FirstStateNotReady = "its first state is not a ready state",
        NoHeldState = "it has no held state",
        EndNotTerminal = "its completed or failed state is not one of its terminal states",
        NoLease = "its lease or its number of attempts is zero",
        OnlyAddedTo = "existing states and indexes cannot change, only new ones can be added",
        IndexOnLease = "an index on the end of a lease would change with time",
        BadName = "it is not a valid name",
        LongName = "one of its names is too long",
        NoSession = "it is written outside a session",
        ReservedNumber = "its number is below 256, which is reserved for the store's own machines",
        NewerRegistered = "a newer version of it is already registered",
        OtherStore = "it is for another store",
        BadTimeout = "it is below 100 ms or above a day",
        HeldKeepsType = "a worker holds it; its type cannot change",
        FieldsMoveIt = "the fields written with it move it to another state",
        NoBroker = "the store has no broker, so messages for one would wait forever",
        RepeatedIndex = "two of its indexes are on the same field",
        ForeignNumber = "its number is not one of the bucket that its group is in",
        OwnerIsClaimed = "it owns its group, so it is claimed, extended and released, and nothing else",
        OpenOwner = "one of its open names would open the record that owns a group",
        RepeatedName = "two of its names are the same",
        BuiltIn = "the store itself has a type with this name",
        NeverEnds = "its type has no end; release it instead",
        TwoNumbers = "two of its operations have numbers of commits",
        OlderLevel = "the store is still at the level of an older release",
        NoVerbs = "it permits nothing",
        IdentityTwice = "two of its identities are the same",
        RateOfZero = "its rate is zero, so it could send nothing; revoke its tokens instead",
        TokenAge = "its token would be good for less than a minute, or for more than 90 days",
    }
}

numbered_texts! {
    /// The kind of value that a field needs to hold.
    WantedKind {
        Integer = "an integer",
        Addable = "an integer that can be incremented by this amount",
        State = "the name of a state",
        OwnState = "the name of a state of its type",
        Milliseconds = "a time in ms",
        Worker = "the name of a worker",
        Kept = "a number that callers may change; the store maintains it",
        Text = "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_found_by_its_number_and_its_text() {
        for (number, reason) in (0..).zip(RefusalReason::ALL) {
            assert_eq!(reason.number(), number);
            assert_eq!(
                (RefusalReason::numbered(number), RefusalReason::saying(reason.text())),
                (Some(*reason), Some(*reason))
            );
        }
        for (number, kind) in (0..).zip(WantedKind::ALL) {
            assert_eq!((WantedKind::numbered(number), WantedKind::saying(kind.text())), (Some(*kind), Some(*kind)));
        }
        assert_eq!((RefusalReason::numbered(255), WantedKind::saying("")), (None, None));
    }
}
