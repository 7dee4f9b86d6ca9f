//! A page of large things is cut before it is too large, and the next one continues: nothing is left out, nothing is
//! repeated.

use contract::limits::PAGE_BYTES_MAX;
use statehouse::records::{Filter, Put, ScanOptions};
use statehouse::runs::NewEvent;
use statehouse::{HistoryPage, Json, ListPage, Statehouse};

const THINGS: usize = 12;
const BYTES: usize = 1 << 20;

fn value(n: usize) -> String {
    format!("{n:02}{}", "x".repeat(BYTES - 2))
}

/// Reads pages until they end; each must be short enough.
fn all<T, C>(mut next: impl FnMut(Option<C>) -> (Vec<T>, Option<C>)) -> Vec<T> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let (page, more) = next(cursor);
        assert!(page.len() * BYTES <= PAGE_BYTES_MAX + 2 * BYTES, "{} of a MiB in one page", page.len());
        found.extend(page);
        cursor = match more {
            Some(more) => Some(more),
            None => return found,
        };
    }
}

#[test]
fn pages_end_with_the_row_that_reaches_their_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("a house");
    let names: Vec<_> = (0..THINGS).map(|n| format!("c{n:02}")).collect();
    for (n, name) in names.iter().enumerate() {
        house.cells().set(name, value(n)).expect("set");
        house.cells().set("one", value(n)).expect("set");
        house.group("g").cells().set(name, value(n)).expect("set");
        house.records().put(name, [("v", value(n))], Put::default()).expect("put");
        let data = Json::new(format!("\"{}\"", "x".repeat(BYTES - 100))).expect("JSON");
        house.runs().append("run", &NewEvent::new("Note", name, "2026-02-11T10:00:00Z", data)).expect("append");
    }
    let twice: Vec<_> = names.iter().flat_map(|name| [name.clone(), name.clone()]).collect();
    for (cells, expected) in [(house.cells(), &twice), (house.group("g").cells(), &names)] {
        let listed = all(|after| {
            let page = cells.list("c", ListPage { after, limit: 1_000 }).expect("list");
            (page.cells.into_iter().map(|(cell, _)| cell.name).collect(), page.next_after)
        });
        assert_eq!(listed, *expected);
    }
    let versions = all(|before| {
        let page = house.cells().history("one", HistoryPage { before, limit: 1_000 }).expect("history");
        (page.versions.iter().map(|past| past.version).collect(), page.next_before)
    });
    assert_eq!(versions, (1..=THINGS as u64).rev().collect::<Vec<_>>());
    let scanned = all(|cursor| {
        let options = ScanOptions::default().limit(1_000).after(cursor);
        let page = house.records().scan("c", &Filter::all(), &options).expect("scan");
        (page.records.into_iter().map(|(record, _)| record.name).collect(), page.cursor)
    });
    assert_eq!(scanned, names);
    house.runs().fork("run", 10, "fork").expect("fork");
    let data = Json::new("{}").expect("JSON");
    let last = NewEvent::new("Note", "last", "2026-02-11T10:00:00Z", data);
    house.group("run").runs().append("fork", &last).expect("append");
    for (runs, run, events) in [(house.runs(), "run", 12), (house.group("run").runs(), "fork", 11)] {
        let seqs = all(|after| {
            let page = runs.fetch(run, after.unwrap_or(0), 1_000).expect("fetch");
            let seqs: Vec<_> = page.events.iter().map(|event| event.run_seq).collect();
            let more = seqs.last().copied().filter(|last| *last < page.stable_seq);
            (seqs, more)
        });
        assert_eq!(seqs, (1..=events).collect::<Vec<_>>(), "{run}");
    }
}
