//! The change feed as a user meets it: following, waiting, gaps, view then tail (F1), reopening.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use statehouse::{ChangesPage, Error, FailureKind, Followed, Reason, Rejection, Statehouse, Subject, Watch};

/// Longer than any test: a follower that is not woken misses the test's deadline.
const LONG: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(20);

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Runs something on its own thread.
fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(work()));
    receiver
}

fn page(followed: Result<Followed, Error>) -> ChangesPage {
    match followed.expect("it reads") {
        Followed::Page(page) => page,
        gap @ Followed::Gap { .. } => panic!("{gap:?}"),
    }
}

fn names(page: &ChangesPage) -> Vec<(u64, &str)> {
    page.changes.iter().map(|change| (change.commit, change.name.as_str())).collect()
}

#[test]
fn a_follower_sleeps_until_what_it_follows_changes() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let changes = house.changes().with_prefix("b");
    assert_eq!(page(changes.follow(0, 10, SHORT)).next, 0, "time is over");
    let follower = {
        let changes = changes.clone();
        apart(move || changes.follow(0, 10, LONG))
    };
    std::thread::sleep(SHORT);
    for number in 0..20 {
        house.cells().set("a", number).expect("set");
    }
    assert!(follower.try_recv().is_err(), "what is filtered out does not end it");
    house.cells().set("b", 1).expect("set");
    let found = page(follower.recv_timeout(SOON).expect("it is woken"));
    assert_eq!((names(&found), found.next), (vec![(21, "b")], 21));
    house.cells().set("a", 1).expect("set");
    let nothing = page(changes.follow(21, 10, SHORT));
    assert_eq!((nothing.changes.len(), nothing.next, nothing.more), (0, 22, false), "the cursor moves nevertheless");
}

#[test]
fn a_follower_hears_of_the_end() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let changes = house.changes();
    let follower = apart(move || changes.follow(0, 10, LONG));
    std::thread::sleep(SHORT);
    house.close().expect("close");
    let Err(Error::Failed(failure)) = follower.recv_timeout(SOON).expect("it is woken") else { panic!("it is closed") };
    assert_eq!(failure.kind, FailureKind::Closed);
}

#[test]
fn a_feed_is_of_a_branch_a_group_or_cells() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let tenant = house.create_space("tenant").expect("a space");
    let draft = tenant.create_branch("draft").expect("a branch");
    let group = house.group("g");
    house.cells().set("a", 1).expect("set");
    tenant.cells().set("b", 1).expect("set");
    draft.cells().set("c", 1).expect("set");
    group.cells().set("d", 1).expect("set");
    group
        .transact(|transaction| {
            transaction.set("e", 1)?;
            transaction.set("f", 1)
        })
        .expect("committed");
    group.cells().set("g", 1).expect("set");
    let found = |changes: statehouse::Changes| page(changes.read(0, 100)).changes.into_iter().map(|change| change.name);
    assert!(found(house.changes()).eq(["a", "d", "e", "f", "g"]));
    assert!(found(tenant.changes()).eq(["b"]));
    assert!(found(draft.changes()).eq(["c"]));
    assert!(found(group.changes()).eq(["d", "e", "f", "g"]));
    assert!(found(group.cells().changes()).eq(["d", "e", "f", "g"]));
    assert!(found(house.cells().changes()).eq(["a", "d", "e", "f", "g"]));
    assert!(found(house.changes().in_group("a")).eq(["a"]), "a cell without a group is a group of its name");
    assert!(found(house.changes().of(Subject::Record)).eq([""; 0]));
    let one = page(group.changes().read(0, 2));
    assert_eq!((names(&one), one.more), (vec![(6, "d"), (7, "e"), (7, "f")], true), "a command is never split");
    assert_eq!(one.changes[0].group.as_deref(), Some("g"));
    assert!(matches!(
        house.space("nowhere").changes().follow(0, 1, LONG),
        Err(Error::Rejected(Rejection::NoSuchSpace { .. }))
    ));
    assert!(house.changes().read(0, 1_001).is_err(), "a page has a limit");
}

#[test]
fn a_cursor_behind_retention_gets_a_gap() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let mut watch = house.cells().watch("").expect("a watch");
    let mut limits = house.limits().expect("limits");
    limits.changes_commits_max = 5;
    house.set_limits(limits).expect("limits are catalogue state");
    for number in 0..20 {
        house.cells().set("a", number).expect("set");
    }
    let gap = Followed::Gap { oldest: 16, newest: 21 };
    assert_eq!(house.changes().read(15, 10).expect("an answer"), gap);
    assert_eq!(watch.follow(10, LONG).expect("an answer"), gap, "without waiting");
    assert_eq!(watch.cursor(), 0);
    assert_eq!(house.changes().follow(22, 10, LONG).expect("an answer"), gap, "a cursor of another history");
    assert_eq!(page(house.changes().read(16, 10)).changes.len(), 5);
}

#[test]
fn a_cursor_is_good_after_reopening() {
    let directory = directory();
    let path = directory.path().join("house");
    for flushed in [false, true] {
        let house = Statehouse::open(&path).expect("open");
        let cursor = house.changes().newest().expect("a cursor");
        for name in ["a", "b", "c"] {
            house.cells().set(name, 1).expect("set");
        }
        house.cells().delete("b").expect("delete");
        let before = page(house.changes().read(cursor, 2));
        if flushed {
            house.flush().expect("flush");
        }
        drop(house);
        let house = Statehouse::open(&path).expect("open");
        assert_eq!(page(house.changes().read(cursor, 2)), before);
        let rest = page(house.changes().follow(before.next, 10, LONG));
        assert_eq!(names(&rest), [(cursor + 3, "c"), (cursor + 4, "b")]);
        assert_eq!(rest.changes[1].reason, Reason::Deleted);
        assert_eq!(rest.next, cursor + 4);
    }
}

/// A watcher's belief: the version of every cell.
struct Believed {
    watch: Watch<statehouse::Versioned>,
    versions: BTreeMap<String, u64>,
    last_commit: u64,
}

impl Believed {
    fn begin(house: &Statehouse) -> Self {
        let mut watch = house.cells().watch("").expect("a watch");
        let last_commit = watch.cursor();
        let mut versions = BTreeMap::new();
        loop {
            let cells = watch.list(7).expect("a list");
            if cells.is_empty() {
                return Self { watch, versions, last_commit };
            }
            for (name, versioned) in cells {
                assert!(versioned.commit <= last_commit, "F1: the list is of the cursor's moment");
                assert_eq!(versions.insert(name.name, versioned.version), None, "F1: nothing is listed twice");
            }
        }
    }

    /// Versions count writes, so a missed or repeated change does not fit the previous version.
    fn follow(&mut self, limit: usize, timeout: Duration) -> usize {
        let page = page(self.watch.follow(limit, timeout));
        for change in &page.changes {
            assert!(change.commit >= self.last_commit, "F1: in commit order");
            self.last_commit = change.commit;
            let before = self.versions.insert(change.name.clone(), change.version).unwrap_or(0);
            assert_eq!(change.version, before + 1, "F1: of {:?}", change.name);
        }
        page.changes.len()
    }
}

/// Counts down on drop, also after a failed assertion, so that the writers end.
struct CountsDown<'count>(&'count AtomicUsize);

impl Drop for CountsDown<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How often every watcher starts, and how many changes it follows each time, before the writers may end.
const BEGINNINGS: usize = 150;
const FOLLOWED_MIN: usize = 40;

#[test]
fn view_then_tail_misses_nothing_and_repeats_nothing_under_concurrent_writers() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let (following, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (house, following, done) = (&house, &following, &done);
    std::thread::scope(|scope| {
        let watch = |limit: usize| {
            following.fetch_add(1, Ordering::SeqCst);
            let followed_enough = CountsDown(following);
            scope.spawn(move || {
                let mut believed = Believed::begin(house);
                for _ in 0..BEGINNINGS {
                    believed = Believed::begin(house);
                    let mut followed = 0;
                    while followed < FOLLOWED_MIN {
                        followed += believed.follow(limit, SOON);
                    }
                }
                drop(followed_enough);
                while believed.follow(limit, SHORT) > 0 || !done.load(Ordering::SeqCst) {}
                while believed.follow(limit, Duration::ZERO) > 0 {}
                believed.versions
            })
        };
        let watchers = [watch(1), watch(3), watch(100)];
        let write = |writer: u64| {
            scope.spawn(move || {
                for round in (0..).take_while(|_| following.load(Ordering::SeqCst) > 0) {
                    let names = (0..1 + (round * 7 + writer) % 5).map(|n| (round * 13 + n * 5 + writer) % 20);
                    let pending: Vec<_> =
                        names.map(|name| house.cells().set_later(&format!("cell-{name}"), true)).collect();
                    for answer in pending {
                        answer.wait().expect("set");
                    }
                }
            })
        };
        for writer in [write(0), write(1), write(2)] {
            writer.join().expect("no panic");
        }
        done.store(true, Ordering::SeqCst);
        let truth = Believed::begin(house).versions;
        for watcher in watchers {
            assert_eq!(watcher.join().expect("no panic"), truth, "F1: nothing is missing at the end");
        }
    });
}

/// It sleeps while the feed gives up what it has not looked at, because none of that is for it.
#[test]
fn a_follower_of_a_quiet_branch_meets_no_gap() {
    let directory = directory();
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let draft = house.space("default").create_branch("draft").expect("a branch");
    let mut limits = house.limits().expect("limits");
    limits.changes_commits_max = 5;
    house.set_limits(limits).expect("limits are catalogue state");
    let (of_branch, of_group) = (draft.changes(), house.group("quiet").changes());
    let cursor = of_branch.newest().expect("a cursor");
    let mut in_branch = pin!(of_branch.follow_async(cursor, 10));
    let mut in_group = pin!(of_group.follow_async(cursor, 10));
    let mut context = Context::from_waker(Waker::noop());
    assert!(in_branch.as_mut().poll(&mut context).is_pending() && in_group.as_mut().poll(&mut context).is_pending());
    for number in 0..100 {
        house.cells().set("elsewhere", number).expect("set");
    }
    draft.cells().set("here", 1).expect("set");
    house.group("quiet").cells().set("a", 1).expect("set");
    let Poll::Ready(found) = in_branch.poll(&mut context) else { panic!("it has heard nothing") };
    assert_eq!(names(&page(found)), [(cursor + 101, "here")]);
    let Poll::Ready(found) = in_group.poll(&mut context) else { panic!("it has heard nothing") };
    assert_eq!(names(&page(found)), [(cursor + 102, "a")]);
}
