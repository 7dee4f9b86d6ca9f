//! Numbers that are kept for later releases; `docs/formats/kept.md`. Nothing may use one, and what uses one is refused.

#![allow(clippy::unwrap_used)]

use kv::Writer;
use session::Envelope;

use crate::command::MACHINE;
use crate::keys::due::{DueOf, read_due_suffix};
use crate::keys::{Keys, ThingId};
use crate::records::row::{Row, decode_numbers};
use crate::{Body, CellAct, Op, Transact, ValueRef};

const KINDS: std::ops::RangeInclusive<u8> = 0x20..=0x2f;
const DUE: std::ops::RangeInclusive<u8> = 0x10..=0x1f;
const VALUE_IN_PIECES: u8 = 6;
const RECORD_WITH_MEMBERS: u8 = 1 << 7;
const ENVELOPE_WITH_KEY: u8 = 1 << 2;

const THING: ThingId<'static> = ThingId { bucket: 5, space: 1, branch: 2, group: None, name: "n" };

fn body_of(op: Op<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    Body::Transact(Transact::new(1, 2, None, vec![op])).encode(&mut writer);
    writer.finish()
}

#[test]
fn no_row_is_of_a_kind_that_is_kept() {
    for (kind, words) in crate::keys::Kind::WORDS {
        assert!(!KINDS.contains(&(kind as u8)) || kind == crate::keys::Kind::DeadLetter, "{words}");
    }
    // A dead letter whose time is over has one since level 3.
    for what in DUE.filter(|what| *what != 0x12) {
        assert!(DueOf::ALL.iter().all(|of| *of as u8 != what));
        let mut suffix = Keys::due_suffix(3, DueOf::Expiry, &THING).to_vec();
        assert!(read_due_suffix(&suffix).is_some());
        suffix[8] = what;
        assert_eq!(read_due_suffix(&suffix), None, "{what:02x}");
    }
}

#[test]
fn commands_of_a_kind_that_is_kept_are_refused() {
    let body = body_of(Op::Cell("n", CellAct::Set(ValueRef::Text("v"))));
    assert!(Body::decode(&body).is_ok());
    let operation = body.len() - 1 - (4 + 1) - (4 + 2);
    assert_eq!(body[operation], 2, "a set");
    for kind in KINDS {
        for at in [0, operation] {
            let mut changed = body.clone();
            changed[at] = kind;
            assert!(Body::decode(&changed).is_err(), "{kind:02x} at {at}");
        }
    }
    let mut value = body.clone();
    value[operation + 1 + (4 + 1) + 4] = VALUE_IN_PIECES;
    assert!(Body::decode(&value).is_err(), "a value in pieces");
    let mut envelope = Writer::new();
    Envelope::without_session(MACHINE, 1, &body).encode(&mut envelope);
    let mut envelope = envelope.finish();
    assert!(Envelope::decode(&envelope).is_ok());
    envelope[4] |= ENVELOPE_WITH_KEY;
    assert!(Envelope::decode(&envelope).is_err(), "an idempotency key");
}

#[test]
fn rows_with_what_is_kept_are_refused() {
    assert!(ValueRef::decode(VALUE_IN_PIECES, &[0; 37]).is_err());
    let mut row = Row::fresh(3, 2);
    row.set("a", Some(ValueRef::Text("x")), 3);
    let mut bytes = Writer::new();
    row.encode(&mut bytes);
    let bytes = bytes.finish();
    assert!(Row::decode(&bytes).is_ok());
    let mut with_members = bytes.clone();
    with_members[1] |= RECORD_WITH_MEMBERS;
    assert!(decode_numbers(&with_members).is_err());
    let mut in_pieces = bytes.clone();
    // The field: name (4 + 1), version (8), then how it is stored.
    let field = in_pieces.len() - (1 + 4 + 2);
    assert_eq!(in_pieces[field], 0, "inline");
    in_pieces[field] = 2;
    assert!(Row::decode(&in_pieces).is_err());
}
