//! Reading the feed: a page of what changed after a cursor.
//!
//! Touches: nothing. Keeps: F1. A page ends between two commands, never inside one, so its cursor, a commit number,
//! states exactly what was seen.

use contract::{Change, ChangesPage, Followed};
use kv::{KeyRange, KvError, Order, View};
use session::Halt;

use super::low_end::floor;
use super::row::RowReader;
use super::{Noted, Subject};
use crate::applied::Applied;
use crate::keys::Keys;
use crate::names::InGroup;

/// Changes that one read looks at, whether or not they pass the filter; the last command's may be more.
pub const CHANGES_LOOKED_AT_MAX: usize = 10_000;

/// Whose changes.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'name> {
    /// Of this space.
    pub space: u32,
    /// Of this branch.
    pub branch: u32,
    /// Of one kind of thing, or of all.
    pub subject: Option<Subject>,
    /// Of which groups.
    pub group: InGroup<'name>,
    /// Only names with this prefix.
    pub prefix: &'name str,
}

impl Filter<'_> {
    fn passes(&self, change: &Noted<'_>) -> bool {
        (change.space, change.branch) == (self.space, self.branch)
            && self.subject.is_none_or(|subject| subject == change.subject)
            && self.group.has(change.group, change.name)
            && change.name.starts_with(self.prefix)
    }
}

/// The changes after the commit `cursor`, command by command until there are `limit` changes. A page contains all
/// changes of a command or none.
pub fn changes_after(
    view: &dyn View,
    keys: &Keys,
    cursor: u64,
    filter: &Filter<'_>,
    limit: usize,
) -> Result<Followed, Halt> {
    let applied = view.get(&keys.applied())?;
    let applied = applied.ok_or_else(|| Halt::Inconsistent("the store holds no state".into()))?;
    let applied = Applied::decode(&applied)?;
    let oldest = floor(view, keys, &applied)?;
    if cursor < oldest || cursor > applied.commit {
        return Ok(Followed::Gap { oldest, newest: applied.commit });
    }
    let mut page = ChangesPage::begin(cursor);
    let mut looked_at = 0;
    for row in view.scan(&keys.changes_from(cursor + 1), Order::Ascending) {
        let (key, row) = match row {
            Err(KvError::Damaged(damaged)) => {
                let known_from = known_from(view, keys, &damaged.range, &applied)?;
                if page.next >= known_from {
                    continue; // What is lost was before.
                }
                if page.next > cursor {
                    page.more = true;
                    return Ok(Followed::Page(page));
                }
                return Ok(Followed::Gap { oldest: known_from, newest: applied.commit });
            }
            row => row?,
        };
        let last = commit_of(keys, &key)?;
        let mut changes = RowReader::open(&row, last)?;
        while let Some((commit, change)) = changes.next()? {
            if commit <= cursor {
                continue; // The cursor is inside this entry.
            }
            if commit < page.next || commit > last || last > applied.commit {
                return Err(Halt::Inconsistent(format!("F1: a change of commit {commit} in the row {last}")));
            }
            if commit > page.next && (page.changes.len() >= limit.max(1) || looked_at >= CHANGES_LOOKED_AT_MAX) {
                page.more = true;
                return Ok(Followed::Page(page));
            }
            page.next = commit;
            looked_at += 1;
            if filter.passes(&change) {
                page.changes.push(owned(commit, changes.wall_us(), &change));
            }
        }
    }
    // After the last row there are only commands that changed nothing.
    page.next = applied.commit;
    Ok(Followed::Page(page))
}

/// Visits the changes in the row of the entry whose last command has this number.
pub fn for_each_change(row: &[u8], last_commit: u64, mut visit: impl FnMut(&Noted<'_>)) -> Result<(), Halt> {
    let mut changes = RowReader::open(row, last_commit)?;
    while let Some((_, change)) = changes.next()? {
        visit(&change);
    }
    Ok(())
}

/// The cursor from which on nothing is lost in a damaged range. Rows that are readable in it are newer than all lost ones,
/// and it may reach far beyond those: up to rows of other kinds.
fn known_from(view: &dyn View, keys: &Keys, damaged: &KeyRange, applied: &Applied) -> Result<u64, Halt> {
    let feed = keys.changes_from(0);
    let start = damaged.start.clone().max(feed.start);
    let mut rows = view.scan(&KeyRange { start, end: feed.end }, Order::Ascending);
    let readable = rows.find(|row| !matches!(row, Err(KvError::Damaged(_))));
    let Some((key, row)) = readable.transpose()? else { return Ok(applied.commit) };
    let last = commit_of(keys, &key)?;
    let first = RowReader::open(&row, last)?.next()?.map_or(last, |(commit, _)| commit);
    Ok(first - 1)
}

fn commit_of(keys: &Keys, key: &[u8]) -> Result<u64, Halt> {
    keys.commit_of_changes(key).ok_or_else(|| Halt::Inconsistent("a foreign key among changes".into()))
}

fn owned(commit: u64, wall_us: u64, change: &Noted<'_>) -> Change {
    let Noted { subject, reason, name, version, .. } = *change;
    let group = change.group.map(str::to_owned);
    Change::new(commit, wall_us, subject, reason, name.to_owned(), version).in_group(group)
}
