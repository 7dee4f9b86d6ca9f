//! Who is chosen, compared with a look at everybody.

use super::*;

const HERE: Scope = (1, 1);

fn wanted(prefix: &str) -> Wanted {
    Wanted { scope: HERE, prefix: prefix.to_owned() }
}

/// Whether it is chosen by now.
fn chosen(place: &mut Place<'_>) -> bool {
    place.is_chosen(Waker::noop())
}

#[test]
fn the_longest_waiting_worker_whose_prefix_covers_the_queue_is_woken() {
    let waiters = Waiters::default();
    let mut mail = waiters.join(wanted("jobs.mail.")).expect("open");
    let mut any = waiters.join(wanted("jobs.")).expect("open");
    let mut again = waiters.join(wanted("jobs.mail.")).expect("open");
    waiters.ready([(HERE, "jobs.print."), (HERE, "jobs.mail."), ((1, 2), "jobs.mail.")]);
    assert!(chosen(&mut any) && chosen(&mut mail));
    assert!(!chosen(&mut again), "one record, one worker");
    let mut next = waiters.join(wanted("jobs.mail.")).expect("open");
    waiters.ready([(HERE, "jobs.mail.")]);
    drop(again);
    assert!(chosen(&mut next), "who leaves without having heard passes it on");
    let mut later = waiters.join(wanted("jobs.mail.")).expect("open");
    next.pass_on();
    assert!(chosen(&mut later), "who has heard, and could not take it, passes it on if it says so");
    let mut again = waiters.join(wanted("jobs.")).expect("open");
    waiters.close();
    assert!(chosen(&mut again));
    assert!(waiters.join(wanted("")).is_none());
}

/// Every name of up to four of these letters, one of which takes two bytes.
fn names() -> Vec<String> {
    let mut names = vec![String::new()];
    let mut last = names.clone();
    for _ in 0..4 {
        last = last.iter().flat_map(|name| ['a', 'é', '.'].map(|letter| format!("{name}{letter}"))).collect();
        names.extend(last.iter().cloned());
    }
    names
}

#[test]
fn the_same_one_is_chosen_as_by_a_look_at_everybody() {
    let names = names();
    for step in 1..12 {
        for queue in &names {
            for instead in [false, true] {
                let waiters = Waiters::default();
                // In an order that is not that of the prefixes.
                let order = names.iter().cycle().skip(queue.len() * 7).step_by(step * 2 + 1).take(names.len() / step);
                let mut places: Vec<_> = order.map(|prefix| waiters.join(wanted(prefix)).expect("open")).collect();
                let meets = |prefix: &str| queue.starts_with(prefix) || (instead && prefix.starts_with(queue.as_str()));
                let expected = places.iter().position(|place| meets(&place.wanted.prefix));
                let mut state = lock(&waiters.state);
                match instead {
                    true => state.choose_instead_of(&wanted(queue)),
                    false => state.choose(HERE, queue),
                };
                drop(state);
                let found: Vec<_> = (0..places.len()).filter(|&index| chosen(&mut places[index])).collect();
                assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "queue {queue:?}, {instead}, {step}");
                assert_eq!(waiters.count(), places.len() - found.len());
            }
        }
    }
}

#[test]
fn who_waits_no_longer_is_forgotten() {
    let waiters = Waiters::default();
    for number in 0..1_000 {
        let mut place = waiters.join(wanted(&format!("jobs.{number}."))).expect("open");
        assert!(!chosen(&mut place));
    }
    assert!(lock(&waiters.state).waiting.is_empty());
}
