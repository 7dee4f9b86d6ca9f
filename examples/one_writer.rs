//! One writer: a worker is paused in the middle of its work, another takes over, and what the first writes later is refused.
//!
//! Run with `cargo run --example one_writer -p statehouse`.

use std::time::Duration;

use statehouse::guards::GroupGuard;
use statehouse::records::ClaimOptions;
use statehouse::{Error, RecordRejection, Rejection, Statehouse};

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("statehouse-example-one-writer-{}", std::process::id()));
    let house = Statehouse::open(&path)?;
    // From now on, groups like `agents.7` are written by their owner only; anybody may leave a message in its inbox.
    house.space("default").set_guard("agents.", GroupGuard::new().open("inbox"))?;
    let agent = house.group("agents.7");

    let first = agent.own(&ClaimOptions::worker("ann").lease(Duration::from_millis(300)))?;
    first.cells().set("step", 1)?;
    let beside = agent.cells().set("step", 99);
    assert!(matches!(beside, Err(Error::Rejected(Rejection::Unfenced { .. }))), "{beside:?}");
    agent.cells().set("inbox.1", "please hurry")?;

    // Ann is paused and does not extend her lease. Bob waits for it to end, and goes on from where she was.
    let second = agent.own(&ClaimOptions::worker("bob").wait(Duration::from_secs(30)))?;
    let step = second.cells().get("step")?.and_then(|value| value.as_integer()).unwrap_or(0);
    second.cells().set("step", step + 1)?;

    // She wakes up and writes what she had worked out.
    match first.cells().set("step", step + 1) {
        Err(Error::Rejected(Rejection::Record(RecordRejection::Fenced { holder, .. }))) => {
            println!("ann was refused: the group belongs to {}", holder.as_deref().unwrap_or("nobody"));
        }
        other => panic!("her write must be refused: {other:?}"),
    }
    println!("step {:?}", agent.cells().get("step")?);
    house.close()?;
    std::fs::remove_dir_all(&path).ok();
    Ok(())
}
