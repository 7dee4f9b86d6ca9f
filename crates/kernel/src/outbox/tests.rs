//! R6 across shards: two shards of half the buckets each, and the messages between them.

#![allow(clippy::unwrap_used)]

mod dead_letters;
mod random;
mod shard;

use contract::{Reason, RefusalReason, Rejection};
use kv::Writer;

use self::shard::{Shard, halves, in_group, letter};
use super::*;
use crate::catalogue::CatalogueChange;
use crate::command::{Body, CellAct, CellGuard, Guard, Op, Transact};
use crate::outbox::command::Target;
use crate::value::ValueRef;
use crate::{Answer, Deliver, Delivered};

fn set<'bytes>(cell: &'bytes str, number: i64) -> Op<'bytes> {
    Op::Cell(cell, CellAct::Set(ValueRef::Integer(number)))
}

fn send(body: &[u8]) -> Op<'_> {
    Op::Send(Send { target: Target::Transact(body), after_us: None })
}

/// A group of each half, by the buckets of the first space.
fn groups(shards: &[Shard; 2]) -> [String; 2] {
    [0, 1].map(|half: usize| (0..).map(|n| format!("g{n}")).find(|group| shards[half].owns(group)).unwrap())
}

#[test]
fn a_message_to_another_shard_is_outgoing_until_it_is_received_and_is_applied_there_once() {
    let mut shards = halves();
    let [here, there] = groups(&shards);
    let inner = in_group(&there, vec![set("got", 7)]);
    shards[0].done(1, &in_group(&here, vec![send(&inner)]));
    shards[0].done(2, &letter(&Body::Tick));
    let rows = shards[0].outgoing();
    let [(bucket, number, row)] = rows.as_slice() else { panic!("one message is outgoing: {rows:?}") };
    assert_eq!((*bucket, *number), (shards[0].bucket(&here), 2), "one number when it was sent, and one when released");
    let counts = shards[0].counts();
    assert_eq!(counts, crate::MessageCounts { outgoing: 1, ..Default::default() });
    let listed = shards[0].waiting();
    assert_eq!(listed.iter().map(|message| message.state.word()).collect::<Vec<_>>(), ["outgoing"]);
    assert_eq!((listed[0].source.as_str(), listed[0].number, listed[0].state.due_us()), (&*here, 2, None));

    let deliver =
        |number| Body::Deliver(Deliver { source_bucket: *bucket, number, message: Stored::decode(row).unwrap() });
    let refused = shards[0].propose(3, &letter(&deliver(2)));
    assert_eq!(refused, Answer::Rejected(Rejection::NotHere { bucket: shards[1].bucket(&there) }));
    for (at_us, number) in [(4, 2), (5, 2), (6, 1)] {
        shards[1].done(at_us, &letter(&deliver(number)));
        assert_eq!(shards[1].values(&there, "got"), [7], "R6: once");
    }
    assert_eq!((shards[1].changes(Reason::Delivered), shards[1].changes(Reason::Refused)), (1, 0));
    shards[1].done(7, &letter(&deliver(9)));
    assert_eq!(shards[1].values(&there, "got"), [7, 7], "a number above the last one is another message");

    let delivered = letter(&Body::Delivered(Delivered { bucket: *bucket, numbers: vec![1, 2, 3] }));
    assert!(matches!(shards[1].propose(8, &delivered), Answer::Rejected(Rejection::NotHere { .. })));
    for at_us in [9, 10] {
        shards[0].done(at_us, &delivered);
        assert_eq!(shards[0].counts(), crate::MessageCounts::default());
    }
}

#[test]
fn a_message_that_is_refused_was_delivered_and_leaves_nothing() {
    let mut shards = halves();
    let [here, there] = groups(&shards);
    let refused = Transact {
        guards: vec![Guard::Cell(CellGuard::Exists("never"))],
        ..Transact::new(1, 1, Some(&there), vec![set("got", 1)])
    };
    let message = letter(&Body::Transact(refused));
    let stored = Stored {
        space: 1,
        branch: 1,
        source: &here,
        send: Send { target: Target::Transact(&message), after_us: None },
    };
    let deliver = Deliver { source_bucket: shards[0].bucket(&here), number: 3, message: stored };
    shards[1].done(1, &letter(&Body::Deliver(deliver)));
    shards[1].done(2, &letter(&Body::Deliver(deliver)));
    assert_eq!((shards[1].changes(Reason::Delivered), shards[1].changes(Reason::Refused)), (0, 1));
    assert!(shards[1].values(&there, "got").is_empty());
}

#[test]
fn what_is_not_a_message_to_this_shard_is_refused_and_changes_nothing() {
    let mut shards = halves();
    let [here, there] = groups(&shards);
    let good = in_group(&there, vec![set("got", 1)]);
    let nobody = letter(&Body::Transact(Transact::new(1, 1, None, Vec::new())));
    let tick = letter(&Body::Tick);
    let source_bucket = shards[0].bucket(&here);
    let to = |body| Target::Transact(body);
    let topic = Target::Topic { topic: "t", payload: b"p" };
    let invalid = |reason| Rejection::InvalidDeclaration { what: "a message".into(), reason };
    let no_space = |space: u32| Rejection::NoSuchSpace { space: format!("#{space}") };
    let cases = [
        (source_bucket, 1, 1, topic, invalid(RefusalReason::NoTransaction)),
        (source_bucket, 1, 1, to(b"nonsense"), invalid(RefusalReason::NoTransaction)),
        (source_bucket, 1, 1, to(&tick), invalid(RefusalReason::NoTransaction)),
        (source_bucket, 1, 1, to(&nobody), invalid(RefusalReason::NoGroup)),
        (source_bucket + 1, 1, 1, to(&good), invalid(RefusalReason::ForeignNumber)),
        (source_bucket, 0, 1, to(&good), invalid(RefusalReason::ForeignNumber)),
        (source_bucket, 1, 9, to(&good), no_space(9)),
    ];
    for (at_us, (source_bucket, number, space, target, refused)) in (1..).zip(cases) {
        let message = Stored { space, branch: 1, source: &here, send: Send { target, after_us: None } };
        let deliver = letter(&Body::Deliver(Deliver { source_bucket, number, message }));
        let rows = shards[1].rows();
        assert_eq!(shards[1].propose(at_us, &deliver), Answer::Rejected(refused));
        assert_eq!(shards[1].rows(), rows, "K7");
    }
}

#[test]
fn messages_to_other_shards_are_among_those_that_may_wait() {
    let mut shards = halves();
    let [here, there] = groups(&shards);
    let mut limits = contract::Limits::default();
    limits.messages_waiting_max = 2;
    shards[0].done(1, &letter(&Body::Catalogue(CatalogueChange::SetLimits(limits))));
    let inner = in_group(&there, vec![set("got", 1)]);
    let sending = in_group(&here, vec![send(&inner), send(&inner)]);
    shards[0].done(2, &sending);
    shards[0].done(3, &letter(&Body::Tick));
    assert_eq!(shards[0].counts().outgoing, 2);
    let one_more = shards[0].propose(4, &in_group(&here, vec![send(&inner)]));
    assert_eq!(one_more, Answer::Rejected(Rejection::too_large("messages_waiting_max", 2, 3)));
}

#[test]
fn a_damaged_number_is_read_from_its_copy_and_without_one_only_its_bucket_stands_still() {
    let mut shards = halves();
    let [here, _] = groups(&shards);
    let shard = &mut shards[0];
    let other =
        (0..).map(|n| format!("h{n}")).find(|other| shard.owns(other) && shard.bucket(other) != shard.bucket(&here));
    let (other, publish) =
        (other.unwrap(), Op::Send(Send { target: Target::Topic { topic: "t", payload: b"p" }, after_us: None }));
    let numbers = shard.keys().message_numbers(shard.bucket(&here));
    shard.done(1, &in_group(&here, vec![publish.clone(), publish.clone()]));
    shard.damage(&numbers);
    shard.done(2, &in_group(&here, vec![publish.clone()]));
    assert_eq!(shard.last_number(shard.bucket(&here)), 3, "it goes on where it was");
    shard.damage(&numbers);
    shard.damage(&crate::Keys::copy_of(&numbers));
    let refused = shard.propose(3, &in_group(&here, vec![publish.clone()]));
    assert!(matches!(refused, Answer::Rejected(Rejection::Damaged { .. })), "{refused:?}");
    shard.done(4, &in_group(&here, vec![set("a", 1)]));
    shard.done(5, &in_group(&other, vec![publish]));
    assert_eq!(shard.counts().publish, 4);
}

#[test]
fn messages_go_on_without_their_count_and_new_ones_are_refused() {
    let mut shards = halves();
    let [here, _] = groups(&shards);
    let shard = &mut shards[0];
    let publish = |after_us| Op::Send(Send { target: Target::Topic { topic: "t", payload: b"p" }, after_us });
    let (inner, later) = (in_group(&here, vec![set("a", 1)]), in_group(&here, vec![set("b", 1)]));
    shard.done(1, &in_group(&here, vec![send(&inner), publish(Some(5)), publish(None), send(&later)]));
    shard.damage(&shard.keys().message_counts());
    shard.done(9, &letter(&Body::Tick));
    assert_eq!((shard.values(&here, "a"), shard.values(&here, "b")), (vec![1], vec![1]));
    let waiting = shard.to_publish().len();
    assert_eq!((waiting, shard.waiting().len()), (2, 2));
    let published = (1..=shard.last_number(shard.bucket(&here))).map(|number| (shard.bucket(&here), number)).collect();
    shard.done(10, &letter(&Body::Published(published)));
    assert_eq!(shard.to_publish(), []);
    let refused = shard.propose(11, &in_group(&here, vec![publish(None)]));
    assert!(matches!(refused, Answer::Rejected(Rejection::Damaged { .. })), "{refused:?}");
    shard.done(12, &in_group(&here, vec![set("a", 2)]));
}

#[test]
fn a_message_that_cannot_be_released_because_of_damage_is_not_counted_either() {
    let mut shards = halves();
    let [here, _] = groups(&shards);
    let shard = &mut shards[0];
    let send = Send { target: Target::Topic { topic: "t", payload: b"p" }, after_us: Some(5) };
    shard.done(1, &in_group(&here, vec![Op::Send(send)]));
    assert_eq!(shard.counts().due, 1);
    let numbers = shard.keys().message_numbers(shard.bucket(&here));
    shard.damage(&numbers);
    shard.damage(&crate::Keys::copy_of(&numbers));
    shard.done(9, &letter(&Body::Tick));
    assert_eq!(shard.counts(), crate::MessageCounts::default(), "R6: no row, and none is counted");
}

#[test]
fn a_damaged_floor_is_read_from_its_copy_and_without_one_nothing_is_applied_twice() {
    let mut shards = halves();
    let [here, there] = groups(&shards);
    let (source_bucket, bucket) = (shards[0].bucket(&here), shards[1].bucket(&there));
    let inner = in_group(&there, vec![set("got", 1)]);
    let message =
        Stored { space: 1, branch: 1, source: &here, send: Send { target: Target::Transact(&inner), after_us: None } };
    let deliver = |number| letter(&Body::Deliver(Deliver { source_bucket, number, message }));
    let shard = &mut shards[1];
    let floor = shard.keys().received(bucket, source_bucket);
    shard.done(1, &deliver(1));
    shard.damage(&floor);
    shard.done(2, &deliver(1));
    assert_eq!(shard.values(&there, "got"), [1]);
    shard.damage(&crate::Keys::copy_of(&floor));
    let refused = shard.propose(3, &deliver(2));
    assert!(matches!(refused, Answer::Rejected(Rejection::Damaged { .. })), "{refused:?}");
    assert_eq!(shard.values(&there, "got"), [1]);
}

#[test]
fn a_message_that_cannot_be_applied_because_of_damage_waits_no_longer() {
    let mut shards = halves();
    let [here, there] = groups(&shards);
    let shard = &mut shards[0];
    let inner = in_group(&here, vec![set("a", 1)]);
    shard.done(1, &in_group(&here, vec![send(&inner)]));
    shard.damage(&shard.cell_key(&here, "a"));
    shard.done(2, &letter(&Body::Tick));
    let kept = crate::MessageCounts { dead: 1, ..crate::MessageCounts::default() };
    assert_eq!(shard.counts(), kept, "R6: no row waits, and what was refused is kept");
    // One from another shard stays there: the command is refused, as any other.
    let message =
        Stored { space: 1, branch: 1, source: &there, send: Send { target: Target::Transact(&inner), after_us: None } };
    let source_bucket = shard.bucket(&there);
    let deliver = letter(&Body::Deliver(Deliver { source_bucket, number: 1, message }));
    let refused = shard.propose(3, &deliver);
    assert!(matches!(refused, Answer::Rejected(Rejection::Damaged { .. })), "{refused:?}");
    assert_eq!(shard.received(), []);
}

/// Part of the stored format; `docs/formats/entry.md` and `docs/formats/records.md`.
#[test]
fn golden_messages_between_shards() {
    let send = Send { target: Target::Transact(&[5]), after_us: Some(258) };
    let message = Stored { space: 1, branch: 2, source: "g", send };
    let mut row = Writer::new();
    message.encode(&mut row);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let stored = "01".to_owned() + "01000000" + "02000000" + "0100000067" + "010201000000000000" + "01" + "0100000005";
    assert_eq!(hex(row.as_slice()), stored);
    assert_eq!(Stored::decode(row.as_slice()).unwrap(), message);
    let deliver = letter(&Body::Deliver(Deliver { source_bucket: 5, number: 258, message }));
    assert_eq!(hex(&deliver), format!("08{}{}{}{stored}", "0500", "0201000000000000", "1d000000"));
    let delivered = letter(&Body::Delivered(Delivered { bucket: 5, numbers: vec![1, 258] }));
    assert_eq!(hex(&delivered), "09".to_owned() + "0500" + "02000000" + "0100000000000000" + "0201000000000000");
    for bytes in [deliver, delivered] {
        let body = Body::decode(&bytes).unwrap();
        assert_eq!(letter(&body), bytes);
        assert!(Body::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
