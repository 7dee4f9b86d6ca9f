//! Dead letters: `letters.*`.

use crate::schema::{left_out, object};
use crate::values::PageCursor;

object! {
    /// Selects messages that were refused.
    request ListLetters {
        /// Maximum number of letters.
        limit: Option<u64>,
        /// The cursor of the previous page.
        cursor: Option<PageCursor>,
    }

    /// A message that its group refused.
    answer DeadLetter {
        /// The group.
        group: String,
        /// Its number in the group.
        number: u64,
        /// The group that sent it.
        source: String,
        /// When it was refused.
        at: String,
        /// When it will be dropped.
        until: String,
        /// The code of the refusal.
        code: String,
        /// The refusal.
        detail: String,
        /// What its operations are on, in order; empty for those on nothing.
        names: Vec<String>,
    }

    /// A page of dead letters.
    answer LetterList {
        /// The letters, those of a group by their numbers.
        letters: Vec<DeadLetter>,
        /// The cursor of the next page; null if there is none.
        cursor: Option<PageCursor>,
    }

    /// Names a letter of the group.
    request ChooseLetter {
        /// Its number.
        number: u64,
    }

    /// A letter that was sent again or dropped.
    answer LetterDone {
        /// Its number.
        number: u64,
        /// The commit.
        commit: u64,
    }
}

left_out! {
    ListLetters { limit, cursor }
}
