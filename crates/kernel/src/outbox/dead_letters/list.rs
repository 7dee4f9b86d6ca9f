//! Lists of dead letters: of a branch, or of a group in it.
//!
//! Touches: nothing.

use contract::Rejection;
use contract::limits::PAGE_BYTES_MAX;
use kv::{KeyRange, Order, View};
use session::Halt;

use super::{DeadLetter, foreign};
use crate::catalogue::Catalogue;
use crate::keys::messages::read_dead_letter_key;
use crate::keys::{Keys, Kind};

/// Which dead letters: of a branch, or of one group in it.
#[derive(Clone, Copy, Debug)]
pub struct DeadLetterPage<'page> {
    /// The space.
    pub space: u32,
    /// The branch.
    pub branch: u32,
    /// The group.
    pub group: Option<&'page str>,
    /// Only letters after this one, by bucket and number.
    pub after: Option<(u16, u64)>,
    /// The maximum number of letters.
    pub limit: usize,
    /// The maximum number of rows to look at.
    pub rows_max: usize,
}

/// A dead letter, as a list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDeadLetter {
    /// The group that refused it.
    pub group: String,
    /// Its number, by which that group knows it.
    pub number: u64,
    /// The group that sent it.
    pub source: String,
    /// When it was refused, µs since 1970 in UTC.
    pub refused_us: u64,
    /// When it will be dropped.
    pub until_us: u64,
    /// Why it was refused.
    pub refusal: Rejection,
    /// What its operations are on, in order; empty names for those on nothing.
    pub names: Vec<String>,
}

impl ListedDeadLetter {
    /// The bytes of what a list shows, without numbers and times.
    fn shown_bytes(&self) -> usize {
        let names: usize = self.names.iter().map(|name| size_of::<String>() + name.len()).sum();
        self.group.len() + self.source.len() + self.refusal.to_string().len() + names
    }
}

/// A page of dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedDeadLetters {
    /// The letters, in the order of buckets and numbers.
    pub letters: Vec<ListedDeadLetter>,
    /// Where the next page starts, if there may be more: behind this bucket and number.
    pub next: Option<(u16, u64)>,
}

/// Dead letters of a branch or a group. A page ends with the letter that reaches its limit of letters, rows or bytes.
pub fn list(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    page: &DeadLetterPage<'_>,
) -> Result<ListedDeadLetters, Halt> {
    // What is left of a deleted branch is nobody's.
    if !catalogue.space(page.space).is_ok_and(|space| space.live_branch(page.branch).is_ok()) {
        return Ok(ListedDeadLetters::default());
    }
    let buckets: Vec<u16> = match (page.group, catalogue.space(page.space)) {
        (Some(group), Ok(space)) => vec![catalogue.buckets.of_group(space.name.as_bytes(), group.as_bytes())],
        _ => catalogue.buckets_here().collect(),
    };
    let (mut found, mut rows, mut bytes) = (ListedDeadLetters::default(), 0, 0);
    for bucket in buckets {
        let mut range = keys.rows_of_branch(Kind::DeadLetter, bucket, page.space, page.branch);
        match page.after {
            Some((after, _)) if after > bucket => continue,
            Some((after, number)) if after == bucket => {
                range = range.after(&keys.dead_letter(bucket, page.space, page.branch, number));
            }
            _ => {}
        }
        for row in view.scan(&range, Order::Ascending) {
            let (key, row) = row?;
            let (_, number) = read_dead_letter_key(&key).ok_or_else(foreign)?;
            let letter = DeadLetter::decode(&row)?;
            rows += 1;
            bytes += key.len() + row.len();
            if page.group.is_none_or(|group| group == letter.group) {
                let letter = listed(&letter, number)?;
                bytes += letter.shown_bytes();
                found.letters.push(letter);
            }
            if found.letters.len() >= page.limit || rows >= page.rows_max || bytes >= PAGE_BYTES_MAX {
                found.next = Some((bucket, number));
                return Ok(found);
            }
        }
    }
    Ok(found)
}

fn listed(letter: &DeadLetter<'_>, number: u64) -> Result<ListedDeadLetter, Halt> {
    let names = letter.transact()?.ops.iter().map(|op| op.name().unwrap_or_default().to_owned()).collect();
    Ok(ListedDeadLetter {
        group: letter.group.to_owned(),
        number,
        source: letter.message.source.to_owned(),
        refused_us: letter.refused_us,
        until_us: letter.until_us(),
        refusal: letter.refusal.clone(),
        names,
    })
}

/// The rows of a bucket among which [`first_place`] looks for one of a branch that was not deleted.
const LOOKED_AT_MAX: usize = 64;

/// The space and the branch of one dead letter, if any is found in a branch that was not deleted.
pub fn first_place(view: &dyn View, keys: &Keys, catalogue: &Catalogue) -> Result<Option<(u32, u32)>, Halt> {
    for bucket in catalogue.buckets_here() {
        let range = KeyRange::prefix(&keys.dead_letter_prefix(bucket));
        for row in view.scan(&range, Order::Ascending).take(LOOKED_AT_MAX) {
            let (_, row) = row?;
            let DeadLetter { space, branch, .. } = DeadLetter::decode(&row)?;
            if catalogue.space(space).is_ok_and(|space| space.live_branch(branch).is_ok()) {
                return Ok(Some((space, branch)));
            }
        }
    }
    Ok(None)
}
