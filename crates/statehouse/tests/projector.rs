//! A projector: asynchronous, durable, and honest about what it cannot trust.

mod held;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use held::house;
use statehouse::runs::{
    AppendResult, NewEvent, ProjectionStatus, Projector, RunSnapshot, RunStateStore, Runs, StoredEvent,
};
use statehouse::{Error, Json, Statehouse};

fn event(key: u64) -> NewEvent {
    NewEvent::new("Added", key.to_string(), "2026-02-11T10:00:00Z", Json::new(key.to_string()).expect("JSON"))
}

/// The state: the sum of all data, and how many there were.
fn sum(_: &str, state: Option<Vec<u8>>, events: &[StoredEvent]) -> Vec<u8> {
    let (mut sum, mut count) = state.map_or((0, 0), |state| read(&state));
    for event in events {
        sum += event.event.data.as_str().parse::<u64>().expect("a number");
        count += 1;
    }
    [sum.to_le_bytes(), count.to_le_bytes()].concat()
}

fn read(state: &[u8]) -> (u64, u64) {
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    (number(&state[..8]), number(&state[8..]))
}

fn append(house: &Statehouse, run: &str, keys: std::ops::RangeInclusive<u64>) {
    for key in keys {
        house.runs().append(run, &event(key)).expect("append");
    }
}

#[test]
fn it_goes_on_where_it_was() {
    let (_directory, _, house) = house();
    append(&house, "a", 1..=3);
    append(&house, "b", 10..=10);
    Projector::new(&house, "sums", sum).catch_up().expect("projected");
    append(&house, "a", 4..=4);
    let mut again = Projector::new(&house, "sums", sum);
    again.catch_up().expect("projected");
    let a = again.projection("a").expect("a view").expect("it was met");
    assert_eq!((a.status, a.position, read(&a.state)), (ProjectionStatus::Live, 4, (10, 4)));
    assert_eq!(read(&again.projection("b").expect("a view").expect("it was met").state), (10, 1));
    assert!(!again.step(Duration::ZERO).expect("nothing"), "and there is nothing more");
    let before = house.status().expect("a status").commit;
    for _ in 0..3 {
        assert!(!again.step(Duration::ZERO).expect("nothing"));
    }
    assert_eq!(house.status().expect("a status").commit, before, "an idle projector writes nothing");
    assert_eq!(again.projection("c").expect("a view"), None);
}

#[test]
fn it_hears_of_events_as_they_come() {
    let (_directory, _, house) = house();
    let worker = {
        let house = house.clone();
        std::thread::spawn(move || {
            let mut projector = Projector::new(&house, "sums", sum);
            while projector.projection("a").expect("a view").is_none_or(|projection| projection.position < 50) {
                projector.step(Duration::from_secs(20)).expect("projected");
            }
            read(&projector.projection("a").expect("a view").expect("it was met").state)
        })
    };
    append(&house, "a", 1..=50);
    assert_eq!(worker.join().expect("no panic"), (50 * 51 / 2, 50));
}

/// Loses the second event while it is faulty.
struct Faulty {
    runs: Runs,
    faulty: Arc<AtomicBool>,
}

impl RunStateStore for Faulty {
    fn append_event(&self, run: &str, event: &NewEvent) -> Result<AppendResult, Error> {
        self.runs.append_event(run, event)
    }
    fn fetch_events(&self, run: &str, after: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        let mut events = self.runs.fetch_events(run, after, limit)?;
        if self.faulty.load(Ordering::SeqCst) {
            events.retain(|event| event.run_seq != 2);
        }
        Ok(events)
    }
    fn get_snapshot(&self, run: &str) -> Result<Option<RunSnapshot>, Error> {
        self.runs.get_snapshot(run)
    }
    fn project_snapshot(&self, run: &str) -> Result<RunSnapshot, Error> {
        self.runs.project_snapshot(run)
    }
}

#[test]
fn a_broken_chain_makes_a_run_stale_until_it_is_whole() {
    let (_directory, _, house) = house();
    let faulty = Arc::new(AtomicBool::new(true));
    let alerts = Arc::new(Mutex::new(Vec::new()));
    let mut projector = {
        let (source, alerts) = (Faulty { runs: house.runs(), faulty: faulty.clone() }, alerts.clone());
        Projector::reading(&house, "sums", sum, source)
            .on_alert(move |alert| alerts.lock().expect("no panic").push(alert.name()))
    };
    append(&house, "a", 1..=1);
    projector.catch_up().expect("projected");
    append(&house, "a", 2..=3);
    projector.catch_up().expect("projected");
    let stale = projector.projection("a").expect("a view").expect("it was met");
    assert_eq!(stale.status, ProjectionStatus::Stale, "nothing is made up for what is missing");
    assert!(alerts.lock().expect("no panic").contains(&"PROJECTOR_NON_CONTIGUOUS_FETCH_DETECTED"));
    faulty.store(false, Ordering::SeqCst);
    projector.catch_up().expect("projected, without a new event");
    let live = projector.projection("a").expect("a view").expect("it was met");
    assert_eq!((live.status, live.position, read(&live.state)), (ProjectionStatus::Live, 3, (6, 3)));
    assert_eq!(alerts.lock().expect("no panic").last(), Some(&"PROJECTOR_RESYNCED"));
    // And by one that has not seen it break.
    faulty.store(true, Ordering::SeqCst);
    append(&house, "b", 1..=3);
    projector.catch_up().expect("projected");
    assert_eq!(projector.projection("b").expect("a view").expect("met").status, ProjectionStatus::Stale);
    let mut another = Projector::new(&house, "sums", sum);
    another.catch_up().expect("projected");
    assert_eq!(read(&another.projection("b").expect("a view").expect("met").state), (6, 3));
}

#[test]
fn lag_is_told_and_a_run_far_behind_is_made_anew() {
    let (_directory, clock, house) = house();
    let alerts = Arc::new(Mutex::new(Vec::new()));
    let told = alerts.clone();
    let mut projector =
        Projector::new(&house, "sums", sum).on_alert(move |alert| told.lock().expect("no panic").push(alert.name()));
    append(&house, "a", 1..=2);
    projector.catch_up().expect("projected");
    let take = || std::mem::take(&mut *alerts.lock().expect("no panic"));
    assert_eq!(take(), [] as [&str; 0]);
    append(&house, "a", 3..=3);
    clock.advance(Duration::from_secs(6));
    projector.catch_up().expect("projected");
    assert_eq!(take(), ["PROJECTOR_LAG_HIGH"]);
    append(&house, "a", 4..=4);
    clock.advance(Duration::from_secs(11));
    projector.catch_up().expect("projected");
    assert_eq!(take(), ["PROJECTOR_LAG_HIGH", "PROJECTOR_RESYNCED"]);
    assert_eq!(read(&projector.projection("a").expect("a view").expect("it was met").state), (10, 4));
}

#[test]
fn a_run_that_is_trusted_again_was_not_read_again_from_its_first_event() {
    let (_directory, clock, house) = house();
    let reduced = Arc::new(Mutex::new(Vec::new()));
    let faulty = Arc::new(AtomicBool::new(false));
    let source = Faulty { runs: house.runs(), faulty: faulty.clone() };
    let seen = reduced.clone();
    let reducer = move |run: &str, state: Option<Vec<u8>>, events: &[StoredEvent]| {
        seen.lock().expect("no panic").extend(events.iter().map(|event| event.run_seq));
        sum(run, state, events)
    };
    let mut projector = Projector::reading(&house, "sums", reducer, source);
    let take = || std::mem::take(&mut *reduced.lock().expect("no panic"));
    append(&house, "a", 1..=1);
    projector.catch_up().expect("projected");
    assert_eq!(take(), [1]);
    faulty.store(true, Ordering::SeqCst);
    append(&house, "a", 2..=3);
    projector.catch_up().expect("not projected");
    let stale = projector.projection("a").expect("a view").expect("met");
    assert_eq!((stale.status, stale.position, read(&stale.state)), (ProjectionStatus::Stale, 1, (1, 1)), "kept");
    faulty.store(false, Ordering::SeqCst);
    projector.catch_up().expect("projected");
    assert_eq!(take(), [2, 3], "after a broken chain");
    append(&house, "a", 4..=5);
    clock.advance(Duration::from_secs(11));
    projector.catch_up().expect("projected");
    assert_eq!(take(), [4, 5], "after a lag");
    let live = projector.projection("a").expect("a view").expect("met");
    assert_eq!((live.status, live.position, read(&live.state)), (ProjectionStatus::Live, 5, (15, 5)));
}

/// Has another history than the store: one event less, and others from the second one on.
struct Restored(Runs);

impl RunStateStore for Restored {
    fn append_event(&self, run: &str, event: &NewEvent) -> Result<AppendResult, Error> {
        self.0.append_event(run, event)
    }
    fn fetch_events(&self, _: &str, after: u64, limit: usize) -> Result<Vec<StoredEvent>, Error> {
        let events = self.0.fetch_events("restored", 0, limit)?;
        Ok(events.into_iter().filter(|event| event.run_seq > after || after > 3).collect())
    }
    fn get_snapshot(&self, run: &str) -> Result<Option<RunSnapshot>, Error> {
        self.0.get_snapshot(run)
    }
    fn project_snapshot(&self, run: &str) -> Result<RunSnapshot, Error> {
        self.0.project_snapshot(run)
    }
}

#[test]
fn what_is_stored_is_given_up_if_it_is_no_beginning_of_what_is_there() {
    let (_directory, _, house) = house();
    append(&house, "a", 1..=4);
    Projector::new(&house, "sums", sum).catch_up().expect("projected");
    append(&house, "restored", 10..=12);
    append(&house, "a", 5..=5);
    let mut projector = Projector::reading(&house, "sums", sum, Restored(house.runs()));
    projector.catch_up().expect("projected");
    let live = projector.projection("a").expect("a view").expect("met");
    assert_eq!((live.status, live.position, read(&live.state)), (ProjectionStatus::Live, 3, (33, 3)));
}

#[test]
fn the_store_knows_how_far_a_dead_projector_is_behind() {
    let (_directory, clock, house) = house();
    let lags = || {
        let lags = house.projector_lags().expect("lags").into_iter();
        // Times of commits differ by microseconds, whatever the clock says.
        lags.map(|lag| (lag.name, (lag.lag + Duration::from_millis(1)).as_secs())).collect::<Vec<_>>()
    };
    assert_eq!(lags(), []);
    append(&house, "a", 1..=1);
    let mut alive = Projector::new(&house, "alive", sum);
    alive.catch_up().expect("projected");
    Projector::new(&house, "dead.one", sum).catch_up().expect("projected");
    let expect = |seconds: u64| assert_eq!(lags(), [("alive".to_owned(), 0), ("dead.one".to_owned(), seconds)]);
    clock.advance(Duration::from_secs(60));
    expect(0);
    // What is no run, or is in a group, does not concern it.
    for n in 0..50_u64 {
        house.cells().set("other", n.cast_signed()).expect("set");
        house.group("g").runs().append("grouped", &event(n)).expect("append");
    }
    expect(0);
    append(&house, "a", 2..=2);
    clock.advance(Duration::from_secs(30));
    append(&house, "a", 3..=3);
    alive.catch_up().expect("projected");
    expect(30);
    let mut limits = house.limits().expect("limits");
    limits.changes_commits_max = 5;
    house.set_limits(limits).expect("set");
    clock.advance(Duration::from_secs(10));
    for n in 0..200 {
        house.cells().set("other", n).expect("set");
    }
    alive.catch_up().expect("projected");
    clock.advance(Duration::from_secs(7));
    let (name, lag) = lags().remove(1);
    assert_eq!((name.as_str(), lag), ("dead.one", 7), "as old as the oldest change that is there");
}

#[test]
fn a_gap_in_the_feed_makes_it_look_at_every_run() {
    let (_directory, _, house) = house();
    let mut limits = house.limits().expect("limits");
    limits.changes_commits_max = 5;
    house.set_limits(limits).expect("set");
    for run in 0..30 {
        append(&house, &format!("run-{run}"), 1..=2);
    }
    let mut projector = Projector::new(&house, "sums", sum);
    projector.catch_up().expect("projected");
    for run in 0..30 {
        let projection = projector.projection(&format!("run-{run}")).expect("a view").expect("it was met");
        assert_eq!(read(&projection.state), (3, 2));
    }
}

#[test]
fn catching_up_goes_past_pages_that_hold_nothing_for_it() {
    let (_directory, _, house) = house();
    let grouped = house.group("g").runs();
    for key in 0..300 {
        grouped.append("of-a-group", &event(key)).expect("append");
    }
    append(&house, "a", 1..=2);
    let mut projector = Projector::new(&house, "sums", sum);
    projector.catch_up().expect("projected");
    let projection = projector.projection("a").expect("a view").expect("it was met");
    assert_eq!(read(&projection.state), (3, 2));
}
