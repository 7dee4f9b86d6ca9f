//! Opens what is left after power loss and compares it with what was promised.
//!
//! - The store below, opened alone, is exactly what one of the entries left, row by row, and not before the last flush.
//! - The directory opens, with its identity if it was ever open before.
//! - Everything that was answered is there, nothing that was not intended is, and versions have no gaps.
//! - The journal, opened alone, is whole.
//! - It can be written to, closed and opened again, and still all of this is so.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use journal::{EntryLog, SegmentFiles};
use kernel::{Applied, Kernel};
use kv::Store;
use statehouse::{Cells, HistoryPage, ListPage, Statehouse};
use storage::TreeStore;

use super::facts::{CellFacts, Facts};
use super::operation::identity_in;
use super::records::{Cell, Token};
use super::reference::{Rows, State, States, keys};
use super::sites::HOUSE;
use super::workload::{COUNT, SHARED_GROUP, options};
use crate::directories::copy_directory;

/// How many commands are written after everything was found in order.
const WRITES_AFTER: i64 = 5;

/// Checks the directory in `root`, and changes it.
pub(super) fn check(root: &Path, facts: &Facts, states: &BTreeMap<u64, States>) -> Result<(), String> {
    let path = root.join(HOUSE);
    let identity = std::fs::read(path.join("IDENTITY")).ok().map(|bytes| identity_in(&bytes));
    if facts.identity.is_some() && identity != Some(facts.identity) {
        return Err(format!("it was open as {:?} and is {identity:?} now", facts.identity));
    }
    let states = identity.flatten().and_then(|identity| states.get(&identity));
    if identity.is_some() {
        let copy = root.join("store-alone");
        copy_directory(&path.join("store"), &copy).map_err(|error| format!("no store: {error}"))?;
        let applied = check_store(&copy, states).map_err(|wrong| format!("the store alone: {wrong}"))?;
        if applied.index < facts.flushed_min {
            let (index, flushed) = (applied.index, facts.flushed_min);
            return Err(format!("the store alone: it is at entry {index}, entry {flushed} was flushed"));
        }
        let copy = root.join("journal-alone");
        copy_directory(&path.join("journal"), &copy).map_err(|error| format!("no journal: {error}"))?;
        let id = identity.flatten().ok_or("an identity file without an identity")?;
        let journal = SegmentFiles::open(&copy, id, &options().journal_files);
        let verified = journal.and_then(|journal| journal.verify());
        verified.map_err(|error| format!("the journal alone: {error}"))?;
    }

    let house = opened(&path, "as it was found")?;
    let status = house.status().map_err(text)?;
    let (index, hash) = (status.applied_index, status.effects_hash);
    if index < facts.index_min {
        return Err(format!("it is at entry {index}, the effect of {} was seen", facts.index_min));
    }
    let expected = match states {
        Some(states) => state_at(states, index)?.applied.hash,
        None => Applied::default().hash,
    };
    if hash != expected {
        return Err(format!("entry {index} left the hash {hash}, it was {expected}"));
    }
    let newest = check_cells(&house, facts)?;
    house.close().map_err(|error| format!("closing: {error}"))?;
    drop(house);
    let applied = check_store(&path.join("store"), states).map_err(|wrong| format!("closed: {wrong}"))?;
    if applied.index != index {
        return Err(format!("closed at entry {index}, but the store is at {}", applied.index));
    }

    let house = opened(&path, "after it was closed")?;
    for number in 1..=WRITES_AFTER {
        let after = house.group("after");
        after.transact(|transaction| transaction.set("number", number)).map_err(text)?;
        house.cells().set("after", number).map_err(text)?;
    }
    house.flush().map_err(text)?;
    house.cells().delete("after").map_err(text)?;
    house.close().map_err(text)?;
    drop(house);

    let house = opened(&path, "after it was written to")?;
    if check_cells(&house, facts)? != newest {
        return Err("cells have changed that nobody wrote".into());
    }
    let number = house.group("after").cells().get("number").map_err(text)?;
    let deleted = house.cells().history("after", HistoryPage::default()).map_err(text)?.versions;
    let deleted = deleted.first().map(|past| (past.version, past.value.clone()));
    let count = WRITES_AFTER.unsigned_abs();
    if number != Some(WRITES_AFTER.into()) || deleted != Some((count + 1, None)) {
        return Err(format!("what was written after it is {number:?} and {deleted:?}"));
    }
    house.verify_journal().map_err(text)?;
    house.close().map_err(text)
}

fn opened(path: &Path, when: &str) -> Result<Statehouse, String> {
    options().open(path).map_err(|error| format!("it does not open {when}: {error}"))
}

/// The store without the journal: what it says it has applied, if its rows are exactly that.
fn check_store(path: &Path, states: Option<&States>) -> Result<Applied, String> {
    let store = TreeStore::open(path, &options().storage).map_err(text)?;
    let view = store.view().map_err(text)?;
    let kernel = Kernel::load(&*view, keys()).map_err(text)?.ok_or("it holds no state")?;
    let applied = *kernel.applied();
    if let Some(states) = states {
        let rows = Rows::of(&*view)?;
        let expected = state_at(states, applied.index)?;
        if *expected != (State { applied, rows }) {
            return Err(format!("it has {applied:?} and {rows:?}, entry {} left {expected:?}", applied.index));
        }
    }
    Ok(applied)
}

/// Whether the store in a directory can be opened, which may change it.
pub(super) fn opens_store(path: &Path) -> bool {
    TreeStore::open(path, &options().storage).is_ok()
}

fn state_at(states: &States, index: u64) -> Result<&State, String> {
    states.get(&index).ok_or_else(|| format!("it is at entry {index}, which nobody wrote"))
}

/// Compares every cell; gives the newest version of each.
fn check_cells(house: &Statehouse, facts: &Facts) -> Result<BTreeMap<Cell, u64>, String> {
    let mut newest = BTreeMap::new();
    for (cell, known) in &facts.cells {
        let version = check_cell(&cells_of(house, cell.group.as_deref()), &cell.name, known)
            .map_err(|wrong| format!("cell {cell}: {wrong}"))?;
        newest.insert(cell.clone(), version);
    }
    let mut groups: Vec<_> = facts.cells.keys().map(|cell| cell.group.clone()).collect();
    groups.sort();
    groups.dedup();
    for group in groups {
        check_names(house, group.as_deref(), &newest)?;
        let version = |name: &str| {
            let cell = Cell { group: group.clone(), name: name.into() };
            newest.get(&cell).copied().unwrap_or(0)
        };
        if group.as_ref().is_some_and(|group| group.starts_with("pair")) && version("left") != version("right") {
            return Err(format!("half of a transaction: {group:?}: {} and {}", version("left"), version("right")));
        }
    }
    let counted = newest.iter().filter(|(cell, _)| cell.group.as_deref() == Some(SHARED_GROUP));
    let counted: u64 = counted.map(|(_, version)| version).sum();
    let count = house.group(SHARED_GROUP).cells().get_versioned(COUNT).map_err(text)?;
    let count = count.map_or((0, Some(0)), |count| (count.version, count.value.as_integer()));
    if count != (counted, i64::try_from(counted).ok()) {
        return Err(format!("{counted} transactions have counted to {count:?}"));
    }
    Ok(newest)
}

/// Every kept version is what was intended, without a gap; gives the newest.
fn check_cell(cells: &Cells, name: &str, known: &CellFacts) -> Result<u64, String> {
    let mut page = HistoryPage::default();
    let mut newest = None;
    let mut next = None;
    loop {
        let history = cells.history(name, page).map_err(text)?;
        for past in history.versions {
            newest.get_or_insert(past.version);
            if next.is_some_and(|next| next != past.version) {
                return Err(format!("version {} where {next:?} is due", past.version));
            }
            next = past.version.checked_sub(1);
            let intended = known.intended.get(&past.version);
            let intended = intended.ok_or_else(|| format!("version {}, which nobody wrote", past.version))?;
            if past.value != intended.map(Token::value) {
                return Err(format!("version {} is not {intended:?}", past.version));
            }
        }
        match history.next_before {
            None => break,
            before => page.before = before,
        }
    }
    let newest = newest.unwrap_or(0);
    if newest < known.answered {
        return Err(format!("version {} was answered, the newest is {newest}", known.answered));
    }
    let exists = cells.get(name).map_err(text)?.is_some();
    let intended = known.intended.get(&newest).is_some_and(Option::is_some);
    if exists != intended {
        return Err(format!("exists: {exists}, at version {newest}"));
    }
    Ok(newest)
}

/// No cell has a name that nobody wrote.
fn check_names(house: &Statehouse, group: Option<&str>, known: &BTreeMap<Cell, u64>) -> Result<(), String> {
    let mut page = ListPage::default();
    loop {
        let listed = cells_of(house, group).list("", page.clone()).map_err(text)?;
        for (name, _) in listed.cells {
            let cell = Cell { group: name.group.or(group.map(str::to_owned)), name: name.name };
            // A list without a group is of all groups, so it has what this check has written, too.
            let is_ours = match cell.group.as_deref() {
                None => cell.name == "after",
                Some(group) => group == "after" || cell.name == COUNT,
            };
            if !is_ours && !known.contains_key(&cell) {
                return Err(format!("cell {cell}, which nobody wrote"));
            }
        }
        match listed.next_after {
            None => return Ok(()),
            after => page.after = after,
        }
    }
}

fn cells_of(house: &Statehouse, group: Option<&str>) -> Cells {
    group.map_or_else(|| house.cells(), |group| house.group(group).cells())
}

fn text(error: impl Display) -> String {
    error.to_string()
}
