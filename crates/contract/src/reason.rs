//! Why a rejection refuses, where its code alone does not say. Each reason has a number, which is stored, and a text.

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
            /// All of them, each at the place of its number. Only added to: the numbers are stored.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// What it says to a person.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// Its number.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// The one with this number.
            pub fn numbered(number: u8) -> Option<Self> {
                Self::ALL.get(usize::from(number)).copied()
            }

            /// The one that says this.
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
        Finished = "it is finished, and stays so",
        NotHeld = "nobody has claimed it, or its claim is over",
        NotHeldToComplete = "nobody has claimed it, or its claim is over; it cannot be completed",
        NotReady = "it is not ready to be claimed",
        Pausing = "it is not to be tried again yet",
        HeldByWorker = "a worker holds it; write fields of it, or wait",
        FinishedBeforePut = "it is finished; delete it before it is put again",
        FailureFinishes = "an attempt that failed cannot finish it with its fields",
        NoTransaction = "its body is not a transaction",
        NoGroup = "it is sent from a group, and there is none",
        EmptyName = "its name or the name of its state field is empty",
        TooManyStates = "it has more than 32 states or 16 indexes",
        RepeatedState = "two of its states have one name",
        FirstStateNotReady = "its first state is not one that waits to be claimed",
        NoHeldState = "it has no state that is held by a worker",
        EndNotTerminal = "its completed or its failed state is not a terminal state of it",
        NoLease = "its lease or its number of attempts is zero",
        OnlyAddedTo = "the states or indexes that it has already can only be added to",
        IndexOnLease = "an index on the end of a lease would change with time",
        BadName = "it is not a name that a thing can have",
        LongName = "a name in it is longer than allowed",
        NoSession = "it is written in no session",
        ReservedNumber = "its number is below 256 and kept for the store's own machines",
        NewerRegistered = "a newer version of it was registered here before",
        OtherStore = "it is for another store",
        BadTimeout = "it is below 100 ms or above a day",
    }
}

numbered_texts! {
    /// What a field would have to hold.
    WantedKind {
        Integer = "an integer",
        Addable = "an integer that this can be added to",
        State = "the name of a state",
        OwnState = "the name of a state of its type",
        Milliseconds = "a time in ms",
        Worker = "the name of a worker",
        Kept = "a number of its own; the store keeps it",
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
