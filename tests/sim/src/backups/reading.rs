//! What is read from the store, from the restored one and from the imported one, compared thing by thing.

use std::collections::BTreeMap;
use std::fmt::Debug;

use statehouse::records::{Filter, Record, ScanOptions};
use statehouse::runs::RunList;
use statehouse::{HistoryPage, ListPage, NameInGroup, Space, Statehouse};

use super::scene::Scene;

const PAGE: usize = 1_000;
/// By how much what is left of a time may differ between two stores that are opened one after the other.
const SECONDS_APART_MAX: u64 = 120;

/// How much was compared.
#[derive(Debug, Default)]
pub(super) struct Counts {
    cells: usize,
    versions: usize,
    records: usize,
    expiring: usize,
    held: usize,
    runs: usize,
    events: usize,
}

impl Counts {
    pub(super) fn total(&self) -> usize {
        self.versions + self.records + self.events
    }
}

pub(super) fn compare(scene: &Scene) -> Result<Counts, String> {
    let open = |name: &str| Statehouse::open(scene.path(name)).map_err(text);
    let house = open("house")?;
    let mut counts = Counts::default();
    for copy in ["last-restored", "last-imported"] {
        let other = open(copy)?;
        counts = Counts::default();
        for space in ["default", "shop"] {
            let (one, other) = (house.space(space), other.space(space));
            compare_cells(&one, &other, &mut counts).map_err(|what| format!("{copy}, {space}: {what}"))?;
            compare_records(&one, &other, &mut counts).map_err(|what| format!("{copy}, {space}: {what}"))?;
            compare_runs(&one, &other, &mut counts).map_err(|what| format!("{copy}, {space}: {what}"))?;
        }
    }
    match counts.versions > counts.cells && counts.expiring > 0 && counts.held > 0 && counts.events > 0 {
        true => Ok(counts),
        false => Err(format!("there is not something of everything to compare: {counts:?}")),
    }
}

fn compare_cells(one: &Space, other: &Space, counts: &mut Counts) -> Result<(), String> {
    let page = || ListPage { after: None, limit: PAGE };
    let cells = one.cells().list("", page()).map_err(text)?.cells;
    same("cells", &cells, &other.cells().list("", page()).map_err(text)?.cells)?;
    for (NameInGroup { name, group }, _) in &cells {
        let page = HistoryPage { before: None, limit: PAGE };
        let history = |space: &Space| match group {
            Some(group) => space.group(group).cells().history(name, page),
            None => space.cells().history(name, page),
        };
        let kept = history(one).map_err(text)?;
        same(name, &kept, &history(other).map_err(text)?)?;
        counts.versions += kept.versions.len();
    }
    counts.cells += cells.len();
    Ok(())
}

fn compare_records(one: &Space, other: &Space, counts: &mut Counts) -> Result<(), String> {
    let (records, others) = (all_records(one)?, all_records(other)?);
    same("names of records", &records.keys().collect::<Vec<_>>(), &others.keys().collect())?;
    for (name, record) in &records {
        let copy = &others[name];
        same(&name.to_string(), &exact(record), &exact(copy))?;
        let seconds = |record: &Record| record.ttl.map(|left| left.as_secs());
        let lease = |record: &Record| record.holder.as_ref().map(|holder| holder.lease_left.as_secs());
        for (left, in_copy) in [(seconds(record), seconds(copy)), (lease(record), lease(copy))] {
            let apart = left.unwrap_or(0).abs_diff(in_copy.unwrap_or(0));
            if left.is_some() != in_copy.is_some() || apart > SECONDS_APART_MAX {
                return Err(format!("what is left of record {name}: {left:?} s and {in_copy:?} s"));
            }
        }
        counts.expiring += usize::from(record.ttl.is_some());
        counts.held += usize::from(record.holder.is_some());
    }
    counts.records += records.len();
    let by_state = |space: &Space| space.records().counts("").map_err(text);
    same("counts of records", &by_state(one)?, &by_state(other)?)
}

/// A record without what depends on when it is read.
fn exact(record: &Record) -> impl Debug + PartialEq {
    let Record { version, commit, created_at, updated_at, attempt, failures, .. } = *record;
    let mut fields = record.fields.clone();
    fields.remove("timeout_at");
    let worker = record.holder.as_ref().map(|holder| holder.worker.clone());
    ((version, commit, created_at, updated_at, attempt, failures), record.record_type.clone(), worker, fields)
}

fn all_records(space: &Space) -> Result<BTreeMap<NameInGroup, Record>, String> {
    let mut found = BTreeMap::new();
    let mut cursor = None;
    loop {
        let page = ScanOptions::default().limit(PAGE).after(cursor);
        let scanned = space.records().scan("", &Filter::all(), &page).map_err(text)?;
        found.extend(scanned.records);
        cursor = match scanned.cursor {
            Some(cursor) => Some(cursor),
            None => return Ok(found),
        };
    }
}

fn compare_runs(one: &Space, other: &Space, counts: &mut Counts) -> Result<(), String> {
    let list = RunList::default().limit(PAGE);
    let runs = one.runs().list(&list).map_err(text)?;
    same("runs", &runs, &other.runs().list(&list).map_err(text)?)?;
    let runs = runs.runs;
    same("counts of runs", &one.runs().counts().map_err(text)?, &other.runs().counts().map_err(text)?)?;
    for run in &runs {
        let of = |space: &Space| match &run.group {
            Some(group) => space.group(group).runs(),
            None => space.runs(),
        };
        let mut after = 0;
        loop {
            let events = of(one).fetch(&run.name, after, PAGE).map_err(text)?;
            same(&run.name, &events, &of(other).fetch(&run.name, after, PAGE).map_err(text)?)?;
            counts.events += events.events.len();
            after = match events.events.last() {
                Some(last) => last.run_seq,
                None => break,
            };
        }
        let snapshot = |space: &Space| of(space).snapshot(&run.name).map_err(text);
        same(&run.name, &snapshot(one)?, &snapshot(other)?)?;
        if of(other).verify(&run.name).map_err(text)?.difference.is_some() {
            return Err(format!("the projection of {} is not what its events give", run.name));
        }
    }
    counts.runs += runs.len();
    Ok(())
}

fn same<T: Debug + PartialEq>(what: &str, one: &T, other: &T) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("{what} differs: {one:?} and {other:?}")) }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
