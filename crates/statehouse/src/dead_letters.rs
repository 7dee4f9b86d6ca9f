//! Dead letters: messages that their group refused. They are kept for a week, with the reason, until somebody sends them again
//! or drops them.

use std::fmt;
use std::str::FromStr;

use contract::limits::{DEAD_LETTERS_OF_SPACE_MAX, SCAN_ROWS_MAX};
use contract::{Error, names};
use kernel::outbox::dead_letters::{self, DeadLetterPage};
use kernel::outbox::waiting::dead_letters_of_spaces;
use kernel::{Answer, Body, Catalogue, DeadLetterAct, DeadLetterCommand, Keys};
use kv::View;
use node::error::from_halt;
use node::pending::Pending;

/// A dead letter.
pub use kernel::outbox::dead_letters::ListedDeadLetter as DeadLetter;

use crate::admission::Scope;
use crate::group::Group;
use crate::house::Space;
use crate::paging::check_page;

/// Where a page of dead letters ended. Its text is for programs that keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterCursor {
    bucket: u16,
    number: u64,
}

impl fmt::Display for DeadLetterCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{}", self.bucket, self.number)
    }
}

/// Text that is no cursor of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of dead letters")]
pub struct InvalidDeadLetterCursor;

impl FromStr for DeadLetterCursor {
    type Err = InvalidDeadLetterCursor;

    fn from_str(text: &str) -> Result<Self, InvalidDeadLetterCursor> {
        let (bucket, number) = text.split_once('-').ok_or(InvalidDeadLetterCursor)?;
        let parsed = (bucket.parse().ok()).zip(number.parse().ok()).map(|(bucket, number)| Self { bucket, number });
        parsed.filter(|parsed| parsed.to_string() == text).ok_or(InvalidDeadLetterCursor)
    }
}

/// A page of dead letters.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DeadLetters {
    /// The letters, those of a group by their numbers.
    pub letters: Vec<DeadLetter>,
    /// Where the next page starts, if there may be more.
    pub next: Option<DeadLetterCursor>,
}

/// What is to be known of all dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetterOverview {
    /// Spaces that have as many as they may: one more message that is refused there is lost.
    pub full_spaces: Vec<String>,
    /// The space and the branch of one of them.
    pub first: Option<(String, String)>,
}

impl DeadLetterOverview {
    pub(crate) fn read(view: &dyn View, keys: &Keys, catalogue: &Catalogue) -> Result<Self, Error> {
        let counts = dead_letters_of_spaces(view, keys).map_err(|halt| from_halt(&halt))?;
        let full = counts.into_iter().filter(|(_, count)| *count >= u64::from(DEAD_LETTERS_OF_SPACE_MAX));
        let names = full.filter_map(|(space, _)| Some(catalogue.space(space).ok()?.name.clone()));
        let first = dead_letters::first_place(view, keys, catalogue).map_err(|halt| from_halt(&halt))?;
        let first = first.and_then(|(space, branch)| {
            let space = catalogue.space(space).ok()?;
            Some((space.name.clone(), space.live_branch(branch).ok()?.name.clone()))
        });
        Ok(Self { full_spaces: names.collect(), first })
    }
}

impl Space {
    /// Messages that groups of this branch refused, at most `limit` (1 to 1,000) after a cursor.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// let space = house.space("default");
    /// assert!(space.dead_letters(None, 100)?.letters.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dead_letters(&self, after: Option<DeadLetterCursor>, limit: usize) -> Result<DeadLetters, Error> {
        list(&self.scope, None, after, limit)
    }
}

impl Group {
    /// Messages that this group refused, by number, at most `limit` (1 to 1,000) after a cursor.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// # use std::time::{Duration, Instant};
    /// let (order, stock) = (house.group("order-7"), house.group("stock"));
    /// // The message expects something that is not there yet.
    /// order.commit().send(stock.commit().if_cell_exists("open").set_cell("reserved", 1)).run()?;
    /// # let until = Instant::now() + Duration::from_secs(30);
    /// let letters = loop {
    ///     let letters = stock.dead_letters(None, 10)?.letters;
    ///     if !letters.is_empty() {
    ///         break letters;
    ///     }
    ///     # assert!(Instant::now() < until);
    ///     std::thread::sleep(Duration::from_millis(5));
    /// };
    /// assert_eq!((letters[0].source.as_str(), letters[0].refusal.code()), ("order-7", "SH-1003"));
    /// stock.cells().set("open", true)?;
    /// stock.retry_dead_letter(letters[0].number)?;
    /// assert_eq!(stock.cells().get("reserved")?, Some(1.into()));
    /// assert_eq!(stock.drop_dead_letter(letters[0].number).unwrap_err().code(), "SH-1023"); // it is gone
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dead_letters(&self, after: Option<DeadLetterCursor>, limit: usize) -> Result<DeadLetters, Error> {
        list(&self.scope, Some(&self.name), after, limit)
    }

    /// Sends a dead letter again: it is applied now, with its own conditions and fences, and gone, or refused and stays. The commit
    /// number, if it was applied. The letters of a guarded group are its owner's, who adds the fence to them, or of whoever
    /// [forces](Self::forced) it.
    pub fn retry_dead_letter(&self, number: u64) -> Result<u64, Error> {
        self.retry_dead_letter_later(number).wait()
    }

    /// [`retry_dead_letter`](Self::retry_dead_letter), answered later.
    pub fn retry_dead_letter_later(&self, number: u64) -> Pending<u64> {
        self.dead_letter(number, DeadLetterAct::Retry)
    }

    /// Drops a dead letter. The commit number.
    pub fn drop_dead_letter(&self, number: u64) -> Result<u64, Error> {
        self.drop_dead_letter_later(number).wait()
    }

    /// [`drop_dead_letter`](Self::drop_dead_letter), answered later.
    pub fn drop_dead_letter_later(&self, number: u64) -> Pending<u64> {
        self.dead_letter(number, DeadLetterAct::Drop)
    }

    fn dead_letter(&self, number: u64, act: DeadLetterAct) -> Pending<u64> {
        let (catalogue, ids) =
            match names::check_group(&self.name).map_err(Error::from).and_then(|()| self.scope.current()) {
                Ok(current) => current,
                Err(error) => return Pending::refused(error),
            };
        let (space, branch) = (ids.space, ids.branch);
        let (fences, force) = (Vec::new(), false);
        let command = DeadLetterCommand { space, branch, group: &self.name, fences, force, number, act };
        self.scope.propose(&catalogue, &Body::DeadLetter(command), commit_of)
    }
}

fn commit_of(answer: Answer) -> Result<u64, Error> {
    match answer {
        Answer::Done { commit, .. } => Ok(commit),
        Answer::Rejected(rejection) => Err(rejection.into()),
    }
}

fn list(
    scope: &Scope,
    group: Option<&str>,
    after: Option<DeadLetterCursor>,
    limit: usize,
) -> Result<DeadLetters, Error> {
    check_page(limit)?;
    group.map_or(Ok(()), names::check_group)?;
    let (view, catalogue, ids) = scope.view()?;
    let after = after.map(|DeadLetterCursor { bucket, number }| (bucket, number));
    let (space, branch) = (ids.space, ids.branch);
    let page = DeadLetterPage { space, branch, group, after, limit, rows_max: SCAN_ROWS_MAX };
    let found = dead_letters::list(&*view, &ids.keys, &catalogue, &page).map_err(|halt| from_halt(&halt))?;
    let next = found.next.map(|(bucket, number)| DeadLetterCursor { bucket, number });
    Ok(DeadLetters { letters: found.letters, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_shown() {
        let cursor = DeadLetterCursor { bucket: 3, number: u64::MAX };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", "-", "3", "3-", "-3", "3--1", "+3-1", "3-01", "65536-1", "3-1-1"] {
            assert_eq!(text.parse::<DeadLetterCursor>(), Err(InvalidDeadLetterCursor), "{text:?}");
        }
    }
}
