//! Which entries wake whom.

use std::time::Duration;

use waiting::Waited;

use super::*;

const HERE: Place = (1, 1);

fn ready(queue: &str) -> ReadyQueue {
    ReadyQueue { space: HERE.0, branch: HERE.1, name: queue.to_owned() }
}

fn entry(commit: u64, readied: &[ReadyQueue]) -> Arrived<'_> {
    Arrived { commits: (commit, commit), changes: None, readied, freed: &[], catalogue_changed: false }
}

fn heard(first_commit: u64) -> Waited {
    Waited::Arrived { first_commit: Some(first_commit) }
}

#[test]
fn each_is_woken_by_its_own_topic_and_by_the_catalogue() {
    let arrivals = Arrivals::default();
    let (jobs, mails) = (Topic::queue(HERE, "jobs."), Topic::queue(HERE, "mails."));
    let (of_jobs, of_mails) = (arrivals.listen(vec![jobs]), arrivals.listen(vec![mails]));
    arrived(&arrivals, &entry(5, &[ready("jobs.")]));
    assert_eq!(of_jobs.wait(Duration::ZERO), heard(5));
    assert_eq!(of_mails.wait(Duration::ZERO), Waited::TimeOver);
    arrived(&arrivals, &Arrived { catalogue_changed: true, ..entry(7, &[]) });
    assert_eq!((of_jobs.wait(Duration::ZERO), of_mails.wait(Duration::ZERO)), (heard(7), heard(7)));
}

#[test]
fn a_row_that_cannot_be_read_wakes_everybody() {
    let arrivals = Arrivals::default();
    let listener = arrivals.listen(vec![Topic::branch(HERE)]);
    arrived(&arrivals, &Arrived { changes: Some(Bytes::from([0xff])), ..entry(3, &[]) });
    assert_eq!(listener.wait(Duration::ZERO), heard(3));
}
