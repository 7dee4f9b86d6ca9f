//! Runs through the library: sequences, duplicates, projections, tails, lists, forks and ends, with a clock that the test
//! holds.

mod held;

use std::time::Duration;

use held::{eventually, house};
use statehouse::runs::{AppendOptions, NewEvent, RunList, RunStatus, StepStatus};
use statehouse::{Error, Json, Rejection, RunRejection, Runs, Statehouse};

const AT: &str = "2026-02-11T10:00:00Z";

fn event(event_type: &str, key: &str) -> NewEvent {
    NewEvent::new(event_type, key, AT, Json::new(format!("{{\"of\":{key:?}}}")).expect("JSON"))
}

fn keys(runs: &Runs, run: &str) -> Vec<String> {
    let fetched = runs.fetch(run, 0, 1_000).expect("events");
    assert!(fetched.events.windows(2).all(|pair| pair[1].prev_seq == pair[0].run_seq), "L1: the chain");
    assert_eq!(fetched.events.last().map_or(0, |last| last.run_seq), fetched.stable_seq);
    fetched.events.into_iter().map(|event| event.event.idempotency_key).collect()
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.expect_err("refused").code()
}

#[test]
fn a_duplicate_gets_the_first_sequence_and_never_fails() {
    let (_directory, _, house) = house();
    let runs = house.runs();
    let first = runs.append("r", &event("A", "k1")).expect("append");
    assert_eq!((first.run_seq, first.idempotent, first.persisted), (1, false, true));
    runs.append("r", &event("B", "k2")).expect("append");
    let again = runs.append("r", &event("A", "k1")).expect("a retry");
    assert_eq!((again.run_seq, again.idempotent, again.persisted, again.payload_mismatch), (1, true, false, false));
    let mut other = event("A", "k1");
    other.data = Json::new("7").expect("JSON");
    assert!(runs.append("r", &other).expect("still no failure").payload_mismatch, "L2: but it is told");
    let strict = runs.append_with("r", &other, &AppendOptions::default().strict());
    assert_eq!(strict.expect_err("strict"), Rejection::Run(RunRejection::KeyReused { run: "r".into(), seq: 1 }).into());
    let id = "0190c4d0-7a3b-7def-8000-1234567890ab";
    assert_eq!(runs.append("r", &event("C", "k3").with_id(id)).expect("append").run_seq, 3);
    let same_id = runs.append("r", &event("C", "k4").with_id(id)).expect("the same id");
    assert_eq!((same_id.run_seq, same_id.idempotent, same_id.payload_mismatch), (3, true, true));
    assert_eq!(keys(&runs, "r"), ["k1", "k2", "k3"]);
    assert_eq!(runs.fetch("r", 1, 1).expect("events").events[0].event, event("B", "k2"));
}

#[test]
fn an_expected_sequence_and_a_batch_are_all_or_nothing() {
    let (_directory, _, house) = house();
    let runs = house.runs();
    let at = |last| AppendOptions::default().expecting(last);
    runs.append_all("r", &[event("A", "a"), event("B", "b")], &at(0)).expect("a new run");
    let refused = runs.append_with("r", &event("C", "c"), &at(1));
    assert_eq!(
        refused,
        Err(Rejection::Run(RunRejection::SequenceConflict { run: "r".into(), expected: 1, last: 2 }).into())
    );
    let retried = runs.append_with("r", &event("B", "b"), &at(1)).expect("it is there: no conflict");
    assert!(retried.idempotent);
    let batch = [event("C", "c"), event("", "d")];
    assert_eq!(code(runs.append_all("r", &batch, &at(2))), "SH-3001");
    let strict = AppendOptions::default().strict();
    let mut other = event("B", "b");
    other.data = Json::new("1").expect("JSON");
    assert_eq!(code(runs.append_all("r", &[event("C", "c"), other], &strict)), "SH-3004");
    assert_eq!(keys(&runs, "r"), ["a", "b"], "K7: none of it");
    let results = runs.append_all("r", &[event("B", "b"), event("C", "c")], &at(2)).expect("one is new");
    assert_eq!(results.iter().map(|result| result.run_seq).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn the_projection_is_in_the_same_commit_and_equals_a_replay() {
    let (_directory, _, house) = house();
    let runs = house.runs();
    let steps = ["RunStarted", "StepStarted", "StepCompleted", "Unknown", "RunPaused", "RunResumed"];
    for (place, event_type) in steps.iter().enumerate() {
        let event = event(event_type, &place.to_string());
        let event = if event_type.starts_with("Step") { event.of_step("load", "1") } else { event };
        runs.append("r", &event).expect("append");
        let verified = runs.verify("r").expect("a run");
        assert_eq!((verified.upto, verified.difference), (place as u64 + 1, None), "L3: after {event_type}");
    }
    let snapshot = runs.snapshot("r").expect("a run").expect("it exists");
    assert_eq!((snapshot.status, snapshot.last_event_seq), (RunStatus::Running, 6));
    assert_eq!(snapshot.steps[0].status, StepStatus::Success);
    assert_eq!(runs.project("r").expect("a replay"), snapshot);
    assert_eq!(runs.snapshot("none").expect("a view"), None);
    assert_eq!(code(runs.project("none")), "SH-3002");
}

#[test]
fn all_runs_are_verified_in_the_background() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = statehouse::Options::default().verify_runs_every(Duration::from_millis(10));
    let house = options.open(directory.path().join("house")).expect("a house");
    for run in ["a", "b"] {
        house.runs().append(run, &event("RunStarted", "s")).expect("append");
    }
    house.group("g").runs().append("c", &event("RunStarted", "s")).expect("append");
    eventually("each was looked at", || house.status().expect("a status").runs_verified >= 3);
    assert_eq!(house.status().expect("a status").run_differences, 0);
}

#[test]
fn a_read_model_is_written_in_the_same_commit() {
    let (_directory, _, house) = house();
    let order = house.group("order-7");
    let add = |key: &str, total: i64, last: u64| {
        let options = AppendOptions::default().expecting(last);
        order.commit().append("order-7", &event("Added", key), options).set_cell("total", total).run()
    };
    add("a", 10, 0).expect("commit");
    add("b", 25, 1).expect("commit");
    assert_eq!(code(add("c", 99, 1)), "SH-3003");
    assert_eq!(code(add("b", 99, 1)), "SH-3004", "a retry of what was done is not done again");
    assert_eq!(order.cells().get("total").expect("get"), Some(25.into()), "the refused one left nothing");
    assert_eq!(keys(&order.runs(), "order-7"), ["a", "b"]);
    assert_eq!(keys(&house.runs(), "order-7"), ["a", "b"], "a run of its own name is in that group");
}

#[test]
fn models_of_many_writers_are_exact() {
    let (_directory, _, house) = house();
    let group = house.group("g");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let group = &group;
            scope.spawn(move || {
                for n in 0..25 {
                    // Every second event is sent by two writers.
                    let key = if n % 2 == 0 { format!("shared-{n}") } else { format!("{writer}-{n}") };
                    let appended = group.append_with_model("run", &event("Added", &key), |commit| {
                        let count = group.cells().get("count")?.and_then(|count| count.as_integer()).unwrap_or(0);
                        Ok(commit.set_cell("count", count + 1))
                    });
                    appended.expect("append");
                }
            });
        }
    });
    let events = keys(&group.runs(), "run").len();
    assert_eq!(events, 13 + 4 * 12);
    assert_eq!(group.cells().get("count").expect("get"), Some(i64::try_from(events).expect("few").into()));
}

#[test]
fn a_tail_waits_and_misses_nothing() {
    let (_directory, _, house) = house();
    let runs = house.runs();
    let reader = {
        let mut tail = runs.tail("r", 0);
        std::thread::spawn(move || {
            let mut seen = Vec::new();
            while seen.len() < 200 {
                let fetched = tail.next(7, Duration::from_secs(20)).expect("events");
                seen.extend(fetched.events.into_iter().map(|event| event.run_seq));
            }
            seen
        })
    };
    for n in 0..200 {
        runs.append("r", &event("A", &n.to_string())).expect("append");
    }
    assert_eq!(reader.join().expect("no panic"), (1..=200).collect::<Vec<_>>());
    assert!(runs.tail("r", 200).next(7, Duration::ZERO).expect("in time").events.is_empty());
}

/// The cursor is from another history, such as that of a store that was restored since: what comes next would be missed.
#[test]
fn a_tail_beyond_the_end_is_refused_instead_of_waiting() {
    let (_directory, _, house) = house();
    house.runs().append("r", &event("A", "k1")).expect("append");
    let waited =
        |after| house.runs().tail("r", after).next(10, Duration::from_secs(60)).map(|fetched| fetched.events.len());
    assert_eq!(waited(0).expect("one"), 1);
    let conflict = Rejection::Run(RunRejection::SequenceConflict { run: "r".into(), expected: 2, last: 1 });
    assert_eq!(waited(2), Err(Error::Rejected(conflict)));
    assert!(house.runs().tail("r", 2).read(10).expect("a page").events.is_empty(), "a page there is empty");
}

#[test]
fn a_tail_can_be_awaited() {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};
    struct Woken(std::thread::Thread);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let (_directory, _, house) = house();
    let mut tail = house.runs().tail("r", 0);
    let mut next = pin!(tail.next_async(10));
    let waker = Waker::from(Arc::new(Woken(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    assert!(next.as_mut().poll(&mut context).is_pending());
    let writer = house.clone();
    let writing = std::thread::spawn(move || writer.runs().append("r", &event("A", "a")).expect("append"));
    let fetched = loop {
        match next.as_mut().poll(&mut context) {
            Poll::Ready(fetched) => break fetched.expect("events"),
            Poll::Pending => std::thread::park_timeout(Duration::from_secs(20)),
        }
    };
    assert_eq!(fetched.events[0].run_seq, 1);
    writing.join().expect("no panic");
}

#[test]
fn events_are_found_by_time() {
    let (_directory, clock, house) = house();
    let runs = house.runs();
    let mut times = Vec::new();
    for n in 0..20 {
        clock.advance(Duration::from_secs(1));
        runs.append("r", &event("A", &n.to_string())).expect("append");
        times.push(runs.fetch("r", n, 1).expect("events").events[0].persisted_at);
    }
    for (before, at) in (0..).zip(&times) {
        assert_eq!(runs.seq_before("r", *at), Ok(before));
        assert_eq!(runs.seq_before("r", at + 1), Ok(before + 1));
    }
}

#[test]
fn runs_are_listed_by_status_type_and_quiet() {
    let (_directory, clock, house) = house();
    let runs = house.runs();
    let etl = AppendOptions::run_type("etl");
    for run in ["a", "b", "c"] {
        runs.append_with(run, &event("RunStarted", "s"), &etl).expect("append");
        clock.advance(Duration::from_secs(1));
    }
    runs.append("plain", &event("RunApproved", "s")).expect("append");
    clock.advance(Duration::from_secs(600));
    runs.append("b", &event("Progress", "p")).expect("append");
    runs.append("c", &event("RunCompleted", "p")).expect("append");
    let names = |list: &RunList| -> Vec<String> {
        runs.list(list).expect("a list").runs.into_iter().map(|run| run.name).collect()
    };
    let running = RunList::with_status(RunStatus::Running);
    assert_eq!(names(&running), ["a", "b"], "L4");
    assert_eq!(names(&running.clone().quiet_for(Duration::from_secs(300))), ["a"]);
    assert_eq!(names(&running.clone().of_type("etl")), ["a", "b"]);
    assert_eq!(names(&running.of_type("other")), [] as [&str; 0]);
    assert_eq!(names(&RunList::default()), ["a", "b", "c", "plain"], "by name");
    let counts = runs.counts().expect("counts");
    assert_eq!(counts[&("etl".to_owned(), RunStatus::Running)], 2);
    assert_eq!(counts[&("etl".to_owned(), RunStatus::Completed)], 1);
    assert_eq!(counts[&(String::new(), RunStatus::Approved)], 1);
    runs.delete("a").expect("deleted");
    assert_eq!(runs.counts().expect("counts")[&("etl".to_owned(), RunStatus::Running)], 1);
}

#[test]
fn a_fork_shares_what_was_and_goes_on_by_itself() {
    let (_directory, _, house) = house();
    let runs = house.group("g").runs();
    for (key, event_type) in [("a", "RunStarted"), ("b", "StepStarted"), ("c", "RunCompleted")] {
        runs.append("one", &event(event_type, key).of_step("s", "1")).expect("append");
    }
    assert_eq!(runs.fork("one", 2, "two"), Ok(2));
    assert_eq!(runs.snapshot("two").expect("a run").expect("it exists").status, RunStatus::Running, "as it was then");
    assert_eq!(runs.append("two", &event("X", "b")).expect("known").run_seq, 2, "a shared key is known");
    assert_eq!(runs.append("two", &event("X", "c")).expect("new").run_seq, 3, "one behind the fork is not");
    runs.append("two", &event("StepFailed", "d").of_step("s", "2")).expect("append");
    assert_eq!(runs.fork("two", 4, "three"), Ok(4));
    runs.append("three", &event("X", "e")).expect("append");
    assert_eq!(keys(&runs, "one"), ["a", "b", "c"]);
    assert_eq!(keys(&runs, "two"), ["a", "b", "c", "d"]);
    assert_eq!(keys(&runs, "three"), ["a", "b", "c", "d", "e"]);
    for run in ["one", "two", "three"] {
        assert_eq!(runs.verify(run).expect("a run").difference, None, "L3");
    }
    assert_eq!(runs.fetch("three", 1, 2).expect("events").events.len(), 2, "a page over the seam");
    assert_eq!(code(runs.fork("one", 4, "four")), "SH-3003");
    assert_eq!(code(runs.fork("none", 1, "four")), "SH-3002");
    assert_eq!(code(runs.fork("one", 1, "two")), "SH-1007");
    // Shared events remain as long as anybody needs them.
    runs.delete("two").expect("deleted");
    runs.delete("one").expect("deleted");
    assert_eq!(keys(&runs, "three"), ["a", "b", "c", "d", "e"]);
    runs.delete("three").expect("deleted");
    eventually("all rows go", || rows(&house) == 3);
}

#[test]
fn a_fork_knows_shared_events_by_key_first_and_by_id_in_any_case() {
    let (_directory, _, house) = house();
    let runs = house.group("g").runs();
    let id = |last: u8| format!("0190c4d0-7a3b-7def-8000-0000000000{last:02}");
    runs.append("one", &event("A", "a").with_id(id(1))).expect("append");
    runs.append("one", &event("B", "b")).expect("append");
    runs.fork("one", 2, "two").expect("a fork");
    runs.append("one", &event("C", "c")).expect("behind the fork");
    let known = runs.append("two", &event("A", "c").with_id(id(1))).expect("known");
    assert_eq!((known.run_seq, known.idempotent), (1, true), "L2: by its id, though the parent has used the key since");
    runs.append("two", &event("D", "d").with_id(id(2))).expect("append");
    let known = runs.append("two", &event("B", "b").with_id(id(2))).expect("known");
    assert_eq!(known.run_seq, 2, "L2: a key is answered the same, whatever id comes with it");
}

/// The rows of runs in the store, by an image.
fn rows(house: &Statehouse) -> usize {
    let mut image = Vec::new();
    house.write_image(&mut image).expect("an image");
    // The kinds of runs' rows follow two bytes of a bucket below 64, before space 1 and branch 1.
    let place = [0, 0, 0, 1, 0, 0, 0, 1];
    image.windows(9).filter(|window| (0x0f..=0x14).contains(&window[0]) && window[1..] == place).count()
}

#[test]
fn a_deleted_run_has_no_second_life() {
    let (_directory, _, house) = house();
    let runs = house.runs();
    for n in 0..300 {
        runs.append("r", &event("A", &n.to_string())).expect("append");
    }
    assert!(rows(&house) > 600);
    assert_eq!(runs.close("r"), Ok(300));
    assert_eq!(runs.append("r", &event("A", "7")).expect("known").run_seq, 8, "a closed run answers what it has");
    assert_eq!(code(runs.append("r", &event("A", "new"))), "SH-3005");
    assert_eq!(runs.delete("r"), Ok(300));
    let archived = Rejection::Run(RunRejection::Archived { run: "r".into(), last: 300 });
    assert_eq!(runs.append("r", &event("A", "7")).expect_err("archived"), archived.clone().into());
    assert_eq!(runs.fetch("r", 0, 1).expect_err("archived"), archived.into());
    assert_eq!(code(runs.delete("r")), "SH-3006");
    eventually("its rows go in steps", || rows(&house) == 1);
    assert_eq!(code(runs.append("r", &event("A", "8"))), "SH-3006");
}

#[test]
fn a_deleted_branch_takes_its_runs() {
    let (_directory, _, house) = house();
    let space = house.create_space("tenant").expect("a space");
    let draft = space.create_branch("draft").expect("a branch");
    for n in 0..100 {
        draft.runs().append("r", &event("RunStarted", &n.to_string())).expect("append");
    }
    draft.runs().delete("r").expect("deleted");
    space.delete_branch("draft").expect("deleted");
    eventually("the branch is forgotten", || {
        house.walk_retention();
        space.create_branch("draft").is_ok_and(|draft| draft.runs().snapshot("r").is_ok_and(|run| run.is_none()))
    });
    house.cells().set("still", true).expect("it goes on");
}
