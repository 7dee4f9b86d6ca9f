//! A claim of one record that waits: for its creation, for its release, for the end of its pause. It looks again only when
//! it is woken.

mod held;

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use held::{blocked_on, eventually, house};
use statehouse::records::{ClaimOptions, Claimed, Put, Records, Retry};

/// Counts its wakes.
#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Claims a record that cannot be claimed yet, lets it go, and polls the claim only when it is woken. Changes elsewhere must
/// not wake it.
fn claimed_after(records: &Records, elsewhere: &dyn Fn(), let_go: &dyn Fn()) -> Claimed {
    let (woken, options) = (Arc::new(Woken::default()), ClaimOptions::worker("w"));
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    let mut claim = pin!(records.claim_until("jobs.1", &options, pending()));
    assert!(claim.as_mut().poll(&mut context).is_pending());
    elsewhere();
    assert_eq!(woken.0.load(Ordering::SeqCst), 0, "woken by what does not concern it");
    let_go();
    let mut seen = 0;
    let mut answer = None;
    eventually("it is woken, and claims", || {
        let wakes = woken.0.load(Ordering::SeqCst);
        if wakes == seen {
            return false;
        }
        seen = wakes;
        match claim.as_mut().poll(&mut context) {
            Poll::Ready(claimed) => answer = Some(claimed.expect("claim")),
            Poll::Pending => {}
        }
        answer.is_some()
    });
    answer.expect("claimed")
}

#[test]
fn a_claim_waits_until_the_record_is_there_is_let_go_and_has_paused() {
    let (_directory, clock, house) = house();
    let group = house.group("g");
    for records in [house.records(), group.records()] {
        let elsewhere = || {
            for number in 0..20 {
                house.cells().set("jobs.1", number).expect("set");
                house.group("h").records().put("jobs.1", [("n", number)], Put::default()).expect("put");
            }
        };
        let first = claimed_after(&records, &elsewhere, &|| {
            records.put("jobs.1", [("n", 1)], Put::typed("task")).expect("put");
        });
        let second = claimed_after(&records, &elsewhere, &|| {
            records.release(&first).expect("release");
        });
        assert_eq!(records.fail(&second, "oops").expect("fail"), Retry::After(Duration::from_secs(1)));
        let third = claimed_after(&records, &elsewhere, &|| clock.advance(Duration::from_secs(2)));
        assert_eq!((first.attempt, second.attempt, third.attempt), (1, 2, 3));
        records.complete(&third, [("done", true)]).expect("complete");
    }
}

#[test]
fn those_who_wait_for_one_record_all_get_it_however_many_are_faster() {
    const ROUNDS: usize = 20;
    let (_directory, _, house) = house();
    house.records().put("jobs.1", [("n", 1)], Put::typed("task")).expect("put");
    let held = house.records().claim("jobs.1", &ClaimOptions::worker("first")).expect("claim");
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let records = house.records();
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let options = ClaimOptions::worker(format!("w{worker}"));
                    let claimed = blocked_on(records.claim_until("jobs.1", &options, pending())).expect("its turn");
                    records.release(&claimed).expect("release");
                }
            });
        }
        house.records().release(&held).expect("release");
    });
    let left = house.records().get("jobs.1").expect("get").expect("a record");
    assert_eq!((left.attempt, left.holder), (1 + 8 * ROUNDS as u64, None));
}
