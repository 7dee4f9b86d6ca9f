//! A projector: a read model maintained asynchronously, which survives being killed and reports when it cannot be
//! trusted.
//!
//! Run with `cargo run --example projector -p statehouse`.

use std::time::Duration;

use statehouse::runs::{NewEvent, ProjectionStatus, Projector, StoredEvent};
use statehouse::{Error, Json, Statehouse};

/// The state of a run: how many words its events had.
fn words(_run: &str, state: Option<Vec<u8>>, events: &[StoredEvent]) -> Vec<u8> {
    let before = state.map_or(0, |state| u64::from_le_bytes(state.try_into().expect("eight bytes")));
    let counted: usize = events.iter().map(|event| event.event.data.as_str().split_whitespace().count()).sum();
    (before + counted as u64).to_le_bytes().to_vec()
}

fn said(run: &str, n: u32) -> NewEvent {
    let text = Json::new(format!("\"{run} says it {n} times\"")).expect("JSON");
    NewEvent::new("Said", format!("{run}-{n}"), "2026-02-11T10:00:00Z", text)
}

fn projector(house: &Statehouse) -> Projector<impl statehouse::runs::Reduce> {
    Projector::new(house, "words", words).on_alert(|alert| println!("{}: {alert:?}", alert.name()))
}

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("statehouse-example-projector-{}", std::process::id()));
    let house = Statehouse::open(&path)?;

    for n in 0..3 {
        house.runs().append("ann", &said("ann", n))?;
    }
    projector(&house).catch_up()?; // and then its process is gone

    for n in 3..5 {
        house.runs().append("ann", &said("ann", n))?;
        house.runs().append("bob", &said("bob", n))?;
    }

    // Another projector with the same name resumes where the first one was, and waits for more.
    let mut projector = projector(&house);
    while projector.step(Duration::from_millis(50))? {}
    for (run, events) in [("ann", 5), ("bob", 2)] {
        let projection = projector.projection(run)?.expect("it has met the run");
        let words = u64::from_le_bytes(projection.state.clone().try_into().expect("eight bytes"));
        println!("{run}: {words} words at event {}", projection.position);
        assert_eq!((words, projection.position), (events * 5, events));
        assert_eq!(projection.status, ProjectionStatus::Live);
    }

    drop(projector);
    house.close()?;
    std::fs::remove_dir_all(&path).expect("the example's directory is removed");
    Ok(())
}
