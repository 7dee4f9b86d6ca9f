//! The feed as a reader meets it: in order (F1), without what was refused (K7), kept by retention.

use std::sync::Arc;

use contract::{Change, ChangesPage, Followed, Limits, Reason, Subject};
use kv::{MemoryStore, Order, Store, View, Writer};
use session::{Envelope, Stamp};

use super::{CHANGES_LOOKED_AT_MAX, Filter, changes_after};
use crate::catalogue::CatalogueChange;
use crate::command::{CellAct, MACHINE};
use crate::names::InGroup;
use crate::{Body, Buckets, EntryHeader, EntryPlace, Kernel, Keys, Op, Transact, ValueRef};

/// A kernel with its store.
struct Shard {
    store: MemoryStore,
    kernel: Kernel,
    /// Whether the kernel is loaded anew before every entry.
    forgetful: bool,
}

const KEYS: fn() -> Keys = || Keys::new(1, crate::BucketRange::ALL);

const EVERYTHING: Filter<'_> = Filter { space: 1, branch: 1, subject: None, group: InGroup::Any, prefix: "" };

fn set(group: Option<&'static str>, names: &[&'static str]) -> Body<'static> {
    let ops = names.iter().map(|name| Op::Cell(name, CellAct::Set(ValueRef::Integer(1)))).collect();
    Body::Transact(Transact { space: 1, branch: 1, group, fences: Vec::new(), force: false, guards: Vec::new(), ops })
}

/// Writes a cell and then fails: nothing is left.
fn refused(name: &'static str) -> Body<'static> {
    let ops =
        vec![Op::Cell(name, CellAct::Set(ValueRef::Null)), Op::Cell(name, CellAct::Cas(Some(99), ValueRef::Null))];
    Body::Transact(Transact {
        space: 1,
        branch: 1,
        group: Some("g"),
        fences: Vec::new(),
        force: false,
        guards: Vec::new(),
        ops,
    })
}

fn keep(commits: u64, age_us: u64) -> Body<'static> {
    let mut limits = Limits::default();
    limits.changes_commits_max = commits;
    limits.changes_age_us_max = age_us;
    Body::Catalogue(CatalogueChange::SetLimits(limits))
}

impl Shard {
    fn new() -> Self {
        let store = MemoryStore::new();
        store.commit(Kernel::genesis(store.view().unwrap(), KEYS(), Buckets::new(4).unwrap())).unwrap();
        let kernel = Kernel::load(&*store.view().unwrap(), KEYS()).unwrap().unwrap();
        Self { store, kernel, forgetful: false }
    }

    fn view(&self) -> Arc<dyn View> {
        self.store.view().unwrap()
    }

    fn apply(&mut self, wall_us: u64, commands: &[Body<'_>]) {
        if self.forgetful {
            self.kernel = Kernel::load(&*self.view(), KEYS()).unwrap().unwrap();
        }
        let envelopes: Vec<Vec<u8>> = commands.iter().map(envelope).collect();
        let entry = EntryHeader::new(Stamp { wall_us, cluster_us: 0 }).encode(envelopes.iter().map(Vec::as_slice));
        let index = self.kernel.applied().index + 1;
        let effects = self.kernel.apply(self.view(), &EntryPlace::without_log(index), &entry).unwrap();
        self.store.commit(effects.batch).unwrap();
    }

    fn read(&self, cursor: u64, filter: &Filter<'_>, limit: usize) -> Followed {
        changes_after(&*self.view(), &KEYS(), cursor, filter, limit).unwrap()
    }

    fn page(&self, cursor: u64, filter: &Filter<'_>, limit: usize) -> ChangesPage {
        match self.read(cursor, filter, limit) {
            Followed::Page(page) => page,
            gap => panic!("{gap:?}"),
        }
    }

    /// The rows of changes, by their numbers.
    fn rows(&self) -> Vec<u64> {
        let rows = self.view().scan(&KEYS().changes_from(0), Order::Ascending).collect::<Vec<_>>();
        rows.into_iter().map(|row| KEYS().commit_of_changes(&row.unwrap().0).unwrap()).collect()
    }
}

fn envelope(body: &Body<'_>) -> Vec<u8> {
    let (mut encoded, mut envelope) = (Writer::new(), Writer::new());
    body.encode(&mut encoded);
    Envelope::without_session(MACHINE, 1, encoded.as_slice()).encode(&mut envelope);
    envelope.finish()
}

fn names(page: &ChangesPage) -> Vec<(u64, &str)> {
    page.changes.iter().map(|change| (change.commit, change.name.as_str())).collect()
}

#[test]
fn a_change_says_what_changed_and_why() {
    let mut shard = Shard::new();
    let delete = Transact {
        space: 1,
        branch: 1,
        group: None,
        fences: Vec::new(),
        force: false,
        guards: Vec::new(),
        ops: vec![Op::Cell("a", CellAct::Delete)],
    };
    shard.apply(1_000, &[set(None, &["a"]), set(Some("g"), &["a", "g"])]);
    shard.apply(2_000, &[Body::Transact(delete.clone()), Body::Transact(delete)]);
    let page = shard.page(0, &EVERYTHING, 100);
    let cell = |commit, at, reason, name: &str, version| {
        Change::new(commit, at, Subject::Cell, reason, name.to_owned(), version)
    };
    let expected = [
        cell(1, 1_000, Reason::Written, "a", 1),
        cell(2, 1_000, Reason::Written, "a", 1).in_group(Some("g".into())),
        cell(2, 1_000, Reason::Written, "g", 1),
        cell(3, 2_000, Reason::Deleted, "a", 2),
    ];
    assert_eq!(page.changes, expected);
    assert_eq!((page.next, page.more), (4, false), "the second deletion changed nothing, but is behind the cursor");
}

#[test]
fn a_refused_command_leaves_no_change_and_an_entry_without_changes_no_row() {
    let mut shard = Shard::new();
    shard.apply(1, &[set(None, &["a"]), refused("b"), set(None, &["c"])]);
    assert_eq!(names(&shard.page(0, &EVERYTHING, 100)), [(1, "a"), (3, "c")]);
    shard.apply(2, &[refused("b")]);
    assert_eq!(shard.rows(), [3]);
    assert_eq!(shard.page(3, &EVERYTHING, 100).next, 4);
}

#[test]
fn a_page_never_splits_a_command_and_goes_on_inside_an_entry() {
    let mut shard = Shard::new();
    shard.apply(1, &[set(None, &["a"]), set(Some("g"), &["b", "c", "d"]), set(Some("g"), &["e", "f"])]);
    shard.apply(2, &[set(None, &["h"]), refused("i")]);
    for limit in 0..8 {
        let (mut cursor, mut seen, mut pages) = (0, Vec::new(), 0);
        loop {
            let page = shard.page(cursor, &EVERYTHING, limit);
            let last = page.changes.last().map_or(cursor, |change| change.commit);
            assert!(page.changes.iter().filter(|change| change.commit < last).count() < limit.max(1), "{page:?}");
            seen.extend(page.changes.iter().map(|change| (change.commit, change.name.clone())));
            pages += 1;
            assert!(page.next > cursor, "a page moves on: {page:?}");
            cursor = page.next;
            if !page.more {
                break;
            }
        }
        let seen: Vec<_> = seen.iter().map(|(commit, name)| (*commit, name.as_str())).collect();
        assert_eq!(seen, [(1, "a"), (2, "b"), (2, "c"), (2, "d"), (3, "e"), (3, "f"), (4, "h")], "limit {limit}");
        assert_eq!((cursor, pages), (5, [4, 4, 3, 2, 2, 2, 2, 1][limit]), "limit {limit}");
    }
}

#[test]
fn a_filter_hides_changes_but_not_the_way() {
    let mut shard = Shard::new();
    shard.apply(1, &[set(None, &["a1"]), set(Some("g"), &["a2", "b", "g"]), set(Some("h"), &["a3"])]);
    let with = |filter| names(&shard.page(0, &filter, 100)).into_iter().map(|(_, name)| name.to_owned()).collect();
    let found: Vec<Vec<String>> = vec![
        with(Filter { prefix: "a", ..EVERYTHING }),
        with(Filter { group: InGroup::Own, ..EVERYTHING }),
        with(Filter { group: InGroup::Named("g"), ..EVERYTHING }),
        with(Filter { group: InGroup::Named("g"), prefix: "a", ..EVERYTHING }),
        with(Filter { subject: Some(Subject::Record), ..EVERYTHING }),
        with(Filter { branch: 2, ..EVERYTHING }),
        with(Filter { space: 2, ..EVERYTHING }),
    ];
    let expected: [&[&str]; 7] = [&["a1", "a2", "a3"], &["a1", "g"], &["a2", "b", "g"], &["a2"], &[], &[], &[]];
    assert_eq!(found, expected);
    assert_eq!(shard.page(0, &Filter { branch: 2, ..EVERYTHING }, 1).next, 3);
}

#[test]
fn a_read_looks_at_a_bounded_number_and_says_that_there_is_more() {
    let mut shard = Shard::new();
    let many: Vec<_> = (0..=CHANGES_LOOKED_AT_MAX).map(|_| set(None, &["a"])).collect();
    shard.apply(1, &many);
    let nothing = Filter { prefix: "b", ..EVERYTHING };
    let page = shard.page(0, &nothing, 10);
    assert_eq!((page.changes.len(), page.next, page.more), (0, CHANGES_LOOKED_AT_MAX as u64, true));
    let page = shard.page(page.next, &nothing, 10);
    assert_eq!((page.changes.len(), page.next, page.more), (0, CHANGES_LOOKED_AT_MAX as u64 + 1, false));
}

#[test]
fn a_cursor_below_what_is_kept_or_ahead_of_all_gets_a_gap() {
    let mut shard = Shard::new();
    assert_eq!(shard.read(0, &EVERYTHING, 10), Followed::Page(ChangesPage::begin(0)));
    shard.apply(1, &[keep(3, u64::MAX)]);
    for time in 2..=9 {
        shard.apply(time, &[set(None, &["a"])]);
    }
    assert_eq!(shard.rows(), [7, 8, 9], "the last three commits");
    for cursor in [0, 5, 10, u64::MAX] {
        assert_eq!(shard.read(cursor, &EVERYTHING, 10), Followed::Gap { oldest: 6, newest: 9 }, "{cursor}");
    }
    assert_eq!(names(&shard.page(6, &EVERYTHING, 10)), [(7, "a"), (8, "a"), (9, "a")]);
    assert_eq!(shard.page(9, &EVERYTHING, 10), ChangesPage::begin(9));
}

#[test]
fn age_gives_up_a_bounded_number_for_each_row_that_is_added() {
    let mut shard = Shard::new();
    shard.apply(1, &[keep(u64::MAX, 100)]);
    for time in 2..=7 {
        shard.apply(time, &[set(None, &["a"])]);
    }
    shard.apply(104, &[set(None, &["a"])]);
    assert_eq!(shard.rows(), [4, 5, 6, 7, 8], "what is exactly 100 old stays");
    shard.apply(500, &[keep(u64::MAX, 100)]);
    assert_eq!(shard.rows(), [4, 5, 6, 7, 8], "without a change nothing is given up");
    shard.apply(501, &[set(None, &["a"])]);
    assert_eq!(shard.rows(), [6, 7, 8, 10]);
    shard.apply(502, &[set(None, &["a"])]);
    assert_eq!(shard.rows(), [8, 10, 11]);
    assert_eq!(shard.read(6, &EVERYTHING, 10), Followed::Gap { oldest: 7, newest: 11 });
}

#[test]
fn a_feed_that_keeps_nothing_leaves_no_row_and_no_silence() {
    let mut shard = Shard::new();
    shard.apply(1, &[keep(0, 0)]);
    for time in 2..=4 {
        shard.apply(time, &[set(None, &["a"])]);
        assert_eq!(shard.rows(), [0; 0]);
    }
    assert_eq!(shard.read(3, &EVERYTHING, 10), Followed::Gap { oldest: 4, newest: 4 });
    assert_eq!(shard.page(4, &EVERYTHING, 10).next, 4);
}

#[test]
fn a_shard_from_before_the_feed_has_a_gap_up_to_where_it_began() {
    let mut shard = Shard::new();
    shard.apply(1, &[set(None, &["a"]), set(None, &["a"])]);
    let old = kv::Batch::new().delete(KEYS().changes_floor()).delete(KEYS().changes(2));
    shard.store.commit(old).unwrap();
    shard.kernel = Kernel::load(&*shard.view(), KEYS()).unwrap().unwrap();
    assert_eq!(shard.read(1, &EVERYTHING, 10), Followed::Gap { oldest: 2, newest: 2 });
    shard.apply(2, &[keep(10, 10)]);
    assert_eq!(shard.read(2, &EVERYTHING, 10), Followed::Gap { oldest: 3, newest: 3 }, "nothing says otherwise yet");
    shard.apply(3, &[set(None, &["b"])]);
    assert_eq!(shard.read(2, &EVERYTHING, 10), Followed::Gap { oldest: 3, newest: 4 });
    assert_eq!(names(&shard.page(3, &EVERYTHING, 10)), [(4, "b")]);
}

/// What is known in memory of the oldest rows decides nothing: a kernel that is loaded anew before every entry, or before
/// some, comes to the same hash. Retention goes up and down, with more rows than are known at once.
#[test]
fn a_restart_changes_nothing_that_is_applied() {
    let mut shards = [Shard::new(), Shard::new(), Shard::new()];
    shards[1].forgetful = true;
    let mut random = 7_u64;
    let mut next = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let (mut wall_us, mut rows_seen) = (0, 0);
    for round in 0..1_500 {
        wall_us += next(20);
        let mut commands: Vec<_> = (0..=next(3))
            .map(|_| match next(7) {
                0 => refused("r"),
                _ => set(Some("g"), &["a", "b"][..=usize::from(next(2) == 0)]),
            })
            .collect();
        match round {
            0 | 700 => commands.push(keep(1_000, 100_000)),
            300 => commands.push(keep(5, u64::MAX)),
            650 => commands.insert(0, keep(0, 0)),
            1_100 => commands.push(keep(u64::MAX, 50)),
            _ => {}
        }
        shards[2].forgetful = next(10) == 0;
        for shard in &mut shards {
            shard.apply(wall_us, &commands);
        }
        let [kept, forgetful, mixed] = &shards;
        assert_eq!(kept.kernel.applied(), forgetful.kernel.applied());
        assert_eq!(kept.kernel.applied(), mixed.kernel.applied());
        rows_seen = rows_seen.max(kept.rows().len());
    }
    assert!(rows_seen > 2 * super::low_end::KNOWN_ROWS_MAX, "more rows than are known at once: {rows_seen}");
}
