//! A worker: claim a job, work on it, crash, be rescued, and let another finish. The late one is fenced.
//!
//! Run with `cargo run --example worker -p statehouse`.

use std::time::Duration;

use statehouse::records::{ClaimOptions, Claimed, Put, RecordType};
use statehouse::{Error, RecordRejection, Records, Rejection, Statehouse};

const QUEUE: &str = "jobs.email.";
const LEASE: Duration = Duration::from_secs(1);

struct Worker {
    name: &'static str,
    records: Records,
}

impl Worker {
    fn new(house: &Statehouse, name: &'static str) -> Self {
        Self { name, records: house.records() }
    }

    /// Claims the next job, as soon as there is one.
    fn take(&self) -> Result<Claimed, Error> {
        loop {
            if let Some(job) = self.records.claim_next(QUEUE, 1, &ClaimOptions::worker(self.name))?.pop() {
                println!("{} has {}, attempt {}", self.name, job.name, job.attempt);
                return Ok(job);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("statehouse-example-worker-{}", std::process::id()));
    let house = Statehouse::open(&path)?;
    let mail = RecordType::task().named("mail").lease(LEASE).backoff(LEASE / 10, LEASE);
    house.space("default").declare_type(QUEUE, mail)?;
    house.records().put("jobs.email.42", [("to", "ann@example.org")], Put::default())?;

    // The first worker claims the job, reports its progress, and dies.
    let first = Worker::new(&house, "first");
    let lost = first.take()?;
    first.records.step(&lost, [("state", "running"), ("current_step", "1")])?;
    assert!(first.records.claim("jobs.email.42", &ClaimOptions::default()).is_err(), "one holds it at a time");
    drop(first);

    // Its lease ends, the store takes the job back, and after a short pause the second worker gets it.
    let second = Worker::new(&house, "second");
    let job = second.take()?;
    assert_eq!((lost.attempt, job.attempt), (1, 2));
    assert_eq!(job.record.value("current_step"), Some(&"1".into()), "it goes on where the first one was");

    // The first one was only slow. It cannot touch the job any more, and learns why.
    match house.records().step(&lost, [("current_step", "2")]) {
        Err(Error::Rejected(Rejection::Record(RecordRejection::Fenced { attempt, holder, .. }))) => {
            println!("first is fenced: attempt {attempt} is held by {holder:?}")
        }
        other => panic!("a write of an attempt that is over was answered {other:?}"),
    }

    // Effects outside carry the token, which is the same for every call of this attempt and of no other.
    println!("second sends the mail with the key {}", job.token);
    second.records.extend(&job, None)?;
    second.records.complete(&job, [("result", "sent")])?;
    assert_eq!(house.records().counts(QUEUE)?.of("completed"), 1);

    drop(second);
    house.close()?;
    std::fs::remove_dir_all(&path).expect("the example's directory is removed");
    Ok(())
}
