//! Who is woken by what, who is forgotten, and that nobody sleeps through an entry.

use std::sync::mpsc::{Receiver, channel};

use super::*;

/// Longer than any test: a waiter that is not woken misses the test's deadline.
const LONG: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_secs(20);

const HERE: Place = (1, 1);

fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(work()));
    receiver
}

fn ready(queue: &str) -> ReadyQueue {
    ReadyQueue { space: HERE.0, branch: HERE.1, name: queue.to_owned() }
}

fn entry(commit: u64, readied: &[ReadyQueue]) -> Arrived<'_> {
    Arrived { commits: (commit, commit), changes: None, readied, catalogue_changed: false }
}

fn heard(first_commit: u64) -> Waited {
    Waited::Arrived { first_commit: Some(first_commit) }
}

#[test]
fn each_is_woken_by_its_own_topic_by_the_catalogue_and_by_the_end() {
    let arrivals = Arrivals::default();
    let (jobs, mails) = (Topic::queue(HERE, "jobs."), Topic::queue(HERE, "mails."));
    let (of_jobs, of_mails) = (arrivals.listen(vec![jobs]), arrivals.listen(vec![mails]));
    arrivals.arrived(&entry(5, &[ready("jobs.")]));
    arrivals.arrived(&entry(6, &[ready("jobs.")]));
    assert_eq!(of_jobs.wait(LONG), heard(5), "the first of two entries");
    assert_eq!(of_jobs.wait(Duration::ZERO), Waited::TimeOver);
    assert_eq!(of_mails.wait(Duration::ZERO), Waited::TimeOver);
    arrivals.arrived(&Arrived { catalogue_changed: true, ..entry(7, &[]) });
    assert_eq!((of_jobs.wait(LONG), of_mails.wait(LONG)), (heard(7), heard(7)));
    arrivals.arrived(&entry(8, &[ready("mails.")]));
    arrivals.stop();
    assert_eq!(of_mails.wait(LONG), heard(8), "what has come is still said after the end");
    assert_eq!(of_mails.wait(LONG), Waited::Stopped);
    assert_eq!(arrivals.listen(vec![jobs]).wait(LONG), Waited::Stopped);
}

#[test]
fn who_waits_no_longer_is_forgotten() {
    let arrivals = Arrivals::default();
    for number in 0..1_000 {
        let topics = vec![Topic::branch(HERE), Topic::group(HERE, &number.to_string())];
        drop(arrivals.listen(topics));
    }
    assert_eq!((arrivals.lock().len(), arrivals.listening.load(Ordering::SeqCst)), (0, 0));
}

#[test]
fn nobody_sleeps_through_an_entry() {
    const ENTRIES: u64 = 20_000;
    let arrivals = Arc::new(Arrivals::default());
    let visible = Arc::new(Mutex::new(0));
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let (arrivals, visible) = (arrivals.clone(), visible.clone());
            apart(move || {
                let mut seen = 0;
                while seen < ENTRIES {
                    let listener = arrivals.listen(vec![Topic::queue(HERE, "jobs.")]);
                    let now = *visible.lock().unwrap();
                    if now == seen {
                        listener.wait(LONG);
                    }
                    seen = now;
                }
            })
        })
        .collect();
    for commit in 1..=ENTRIES {
        *visible.lock().unwrap() = commit;
        arrivals.arrived(&entry(commit, &[ready("jobs.")]));
    }
    for waiter in waiters {
        assert_eq!(waiter.recv_timeout(SOON), Ok(()));
    }
}
