//! Who is woken by what, who is forgotten, and that nobody sleeps through a change.

use std::sync::mpsc::{Receiver, channel};

use super::*;

/// Longer than any test: a waiter that is not woken misses the test's deadline.
const LONG: Duration = Duration::from_secs(3_600);
const SOON: Duration = Duration::from_secs(20);

fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(work()));
    receiver
}

fn change(bells: &Bells<&'static str>, commit: u64, topic: &'static str) {
    if let Some(mut ringing) = bells.ringing() {
        ringing.add(&topic);
        ringing.ring_for(Some(commit));
    }
}

fn heard(first_commit: u64) -> Waited {
    Waited::Arrived { first_commit: Some(first_commit) }
}

#[test]
fn each_is_woken_by_its_own_topic_and_by_the_end() {
    let bells = Bells::default();
    let (of_jobs, of_mails) = (bells.listen(vec!["jobs"]), bells.listen(vec!["mails"]));
    change(&bells, 5, "jobs");
    change(&bells, 6, "jobs");
    assert_eq!(of_jobs.wait(LONG), heard(5), "the first of two");
    assert_eq!(of_jobs.wait(Duration::ZERO), Waited::TimeOver);
    assert_eq!(of_mails.wait(Duration::ZERO), Waited::TimeOver);
    change(&bells, 8, "mails");
    bells.stop();
    assert_eq!(of_mails.wait(LONG), heard(8), "what has come is still said after the end");
    assert_eq!(of_mails.wait(LONG), Waited::Stopped);
    assert_eq!(bells.listen(vec!["jobs"]).wait(LONG), Waited::Stopped);
}

#[test]
fn who_waits_no_longer_is_forgotten() {
    let bells = Bells::default();
    for number in 0..1_000 {
        drop(bells.listen(vec![String::from("all"), number.to_string()]));
    }
    assert_eq!((bells.topics(), bells.listening.load(Ordering::SeqCst)), (0, 0));
}

#[test]
fn nobody_sleeps_through_a_change() {
    const CHANGES: u64 = 20_000;
    let bells = Arc::new(Bells::default());
    let visible = Arc::new(Mutex::new(0));
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let (bells, visible) = (bells.clone(), visible.clone());
            apart(move || {
                let mut seen = 0;
                while seen < CHANGES {
                    let listener = bells.listen(vec!["jobs"]);
                    let now = *lock(&visible);
                    if now == seen {
                        listener.wait(LONG);
                    }
                    seen = now;
                }
            })
        })
        .collect();
    for commit in 1..=CHANGES {
        *lock(&visible) = commit;
        change(&bells, commit, "jobs");
    }
    for waiter in waiters {
        assert_eq!(waiter.recv_timeout(SOON), Ok(()));
    }
}
