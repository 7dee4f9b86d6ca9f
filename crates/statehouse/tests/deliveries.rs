//! Deliveries to a session, and when they stop.

mod held;

use std::time::Duration;

use held::house;
use statehouse::sessions::{Deliveries, Delivery};

/// The number of the next push, if there is one.
fn next(deliveries: &mut Deliveries) -> Option<u64> {
    match deliveries.next(Duration::ZERO).expect("a delivery") {
        Some(Delivery::Push { number, .. }) => Some(number),
        None => None,
        other => panic!("{other:?} was not subscribed to"),
    }
}

#[test]
fn what_was_acknowledged_while_it_is_sent_again_is_not_delivered() {
    let (_directory, clock, house) = house();
    let session = house.sessions().open().expect("a session");
    for number in 0..100 {
        house.group("room").commit().push(session.id(), format!("{number}")).run().expect("a push");
    }
    let resend = Duration::from_secs(1);
    let mut deliveries = session.deliveries().resend_after(resend);
    let delivered: Vec<u64> = (0..90).filter_map(|_| next(&mut deliveries)).collect();
    assert_eq!(delivered, (1..=90).collect::<Vec<_>>());
    clock.advance(resend);
    assert_eq!((next(&mut deliveries), next(&mut deliveries)), (Some(1), Some(2)), "nothing was acknowledged");
    deliveries.acknowledge(4).expect("an acknowledgement");
    assert_eq!(next(&mut deliveries), Some(5), "3 and 4 were read already, and are acknowledged since");
    deliveries.acknowledge(80).expect("an acknowledgement");
    assert_eq!(next(&mut deliveries), Some(81), "more than was read at once when it was sent again");
    clock.advance(resend);
    assert_eq!(next(&mut deliveries), Some(81));
    deliveries.acknowledge(100).expect("an acknowledgement");
    assert_eq!(next(&mut deliveries), None);
    clock.advance(resend);
    assert_eq!(next(&mut deliveries), None, "nothing is left to be sent again");
}
