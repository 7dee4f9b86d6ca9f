//! The log of a run: append events once, read them back in order, see how the run is doing, and follow it.
//!
//! Run with `cargo run --example run_log -p statehouse`.

use std::time::Duration;

use statehouse::runs::{AppendOptions, IdempotencyKey, NewEvent, RunList, RunStatus};
use statehouse::{Error, Json, Statehouse};

const RUN: &str = "nightly-2026-02-11";
const PLAN: &str = "plan-7";

fn event(event_type: &str, step: Option<&str>, at: &str, data: &str) -> NewEvent {
    let key = IdempotencyKey::new(RUN, event_type, PLAN);
    let key = step.map_or(key.clone(), |step| key.step(step, "1")).to_string();
    let event = NewEvent::new(event_type, key, at, Json::new(data).expect("JSON"));
    step.map_or(event.clone(), |step| event.of_step(step, "1"))
}

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("statehouse-example-run-log-{}", std::process::id()));
    let house = Statehouse::open(&path)?;
    let runs = house.runs();

    // Somebody watches. A tail waits for the run, and misses nothing.
    let mut tail = runs.tail(RUN, 0);
    let watcher = std::thread::spawn(move || {
        let mut seen = Vec::new();
        while !seen.iter().any(|event_type| event_type == "RunCompleted") {
            let fetched = tail.next(100, Duration::from_secs(10)).expect("events");
            seen.extend(fetched.events.into_iter().map(|event| event.event.event_type));
        }
        seen
    });

    let etl = AppendOptions::run_type("etl");
    runs.append_with(RUN, &event("RunStarted", None, "2026-02-11T01:00:00Z", "{}"), &etl)?;
    let load = event("StepStarted", Some("load"), "2026-02-11T01:00:01Z", "{}");
    let first = runs.append(RUN, &load)?;
    let again = runs.append(RUN, &load)?; // the answer was lost, so it is sent again
    assert_eq!((again.run_seq, again.idempotent), (first.run_seq, true));
    println!("running: {:?}", runs.list(&RunList::with_status(RunStatus::Running).of_type("etl"))?.runs[0].name);

    let artifact = r#"{"artifactRefs":[{"uri":"s3://bucket/orders","kind":"table"}]}"#;
    runs.append(RUN, &event("StepCompleted", Some("load"), "2026-02-11T01:00:09Z", artifact))?;
    runs.append(RUN, &event("RunCompleted", None, "2026-02-11T01:00:10Z", "{}"))?;

    // The projection was written with the last event. Replaying all events gives the same.
    let snapshot = runs.snapshot(RUN)?.expect("the run exists");
    assert_eq!((snapshot.status, snapshot.total_duration_ms), (RunStatus::Completed, Some(10_000)));
    assert_eq!(runs.project(RUN)?, snapshot);
    println!("{}", snapshot.to_json());
    println!("seen by the watcher: {:?}", watcher.join().expect("no panic"));
    println!("{}", runs.fetch(RUN, 1, 1)?.events[0].to_json());

    drop(runs);
    house.close()?;
    std::fs::remove_dir_all(&path).expect("the example's directory is removed");
    Ok(())
}
