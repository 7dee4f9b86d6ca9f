//! What clients ask of the machine: additions to counters with all sorts of names, answers of all sizes, pushes, and
//! what must be refused.

use kernel::Keys;
use kv::Writer;
use session::Command;
use testkit::random::Random;

use super::machine::{Act, BOOK, Deed, TooLong};
use crate::model::clients::some_session;
use crate::model::drawn::{Drawn, MachineFence};
use crate::model::places::{GROUPS, SPACES};
use crate::model::reference::Reference;

/// Draws commands for the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deeds {
    /// Bytes of a long push.
    push_bytes: u64,
}

impl Deeds {
    pub(crate) fn draw(random: &mut Random) -> Self {
        Self { push_bytes: random.pick(&[20, 600]) }
    }

    /// Something to do to the machine's state in some group.
    pub(crate) fn command(&self, ticket: Option<(u64, u64)>, reference: &Reference, random: &mut Random) -> Drawn {
        let (space, group) = (random.pick(&SPACES).0, random.pick(&GROUPS).to_owned());
        let fence = random.one_in(6).then(|| fence(space, &group, reference, random)).flatten();
        Drawn::machine(space, group, fence, self.body(ticket, reference, random))
    }

    fn body(&self, ticket: Option<(u64, u64)>, reference: &Reference, random: &mut Random) -> Vec<u8> {
        let deed = match random.below(100) {
            0..=79 => Deed::Add {
                counter: name(reference, random),
                by: i64::try_from(random.below(2_000)).expect("small") - 500,
                answer_bytes: answer_bytes(random),
                pushes: self.pushes(ticket, reference, random),
            },
            80..=85 => Deed::Remove { counter: name(reference, random) },
            86..=93 => {
                let mut prefix = name(reference, random);
                prefix.truncate(random.index(prefix.len() + 1));
                Deed::Sum { prefix }
            }
            94..=96 => Deed::TooLong {
                counter: name(reference, random),
                what: random.pick(&[TooLong::Key, TooLong::Value]),
                push_to: any_session(ticket, reference, random),
            },
            // Nothing that the machine can read.
            _ => {
                let length = random.index(40);
                return random.bytes(length);
            }
        };
        let mut writer = Writer::new();
        Act { ticket, deed }.encode(&mut writer);
        writer.finish()
    }

    fn pushes(&self, ticket: Option<(u64, u64)>, reference: &Reference, random: &mut Random) -> Vec<(u64, u32)> {
        let count = random.pick(&[0, 0, 0, 0, 1, 1, 2, 5]);
        let push = |random: &mut Random| {
            let bytes = random.below(self.push_bytes);
            (any_session(ticket, reference, random), u32::try_from(bytes).expect("small"))
        };
        (0..count).map(|_| push(random)).collect()
    }
}

/// Names as people give them, and names that are made like the keys of sessions and of what they own.
fn name(reference: &Reference, random: &mut Random) -> Vec<u8> {
    match random.below(8) {
        0..=3 => format!("counter {}", random.below(40)).into_bytes(),
        4 => Vec::new(),
        5 => vec![random.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 0xff]); 1 + random.index(2)],
        6 => Keys::new(1, kernel::BucketRange::ALL).owned_prefix(0, some_session(reference, random)).to_vec(),
        _ => {
            let mut name = if random.one_in(2) {
                Keys::new(1, kernel::BucketRange::ALL).sessions().prefix().to_vec()
            } else {
                Vec::new()
            };
            name.push(random.pick(&[1, 2, 3, 4, 5, 6]));
            name.extend(some_session(reference, random).to_be_bytes());
            if random.one_in(2) {
                name.extend(random.below(3).to_be_bytes());
            }
            assert_ne!(name.first(), Some(&BOOK), "the machine's own");
            name
        }
    }
}

/// The attempt of some record in the group, live or not; none if none is found soon.
fn fence(space: u32, group: &str, reference: &Reference, random: &mut Random) -> Option<MachineFence> {
    let skipped = random.index(reference.records.len().max(1));
    let near = reference.records.iter().skip(skipped).take(500);
    let (id, kept) = near.into_iter().find(|(id, _)| id.space == space && id.home() == group && id.name != group)?;
    let attempt = if random.one_in(4) { kept.attempt + 1 } else { kept.attempt };
    Some(MachineFence { branch: id.branch, record: id.name.clone(), attempt })
}

/// Mostly a few bytes; now and then more than a head holds.
fn answer_bytes(random: &mut Random) -> u32 {
    let most = random.pick(&[10, 10, 100, 1_000, 3_000, 10_240]);
    u32::try_from(random.below(most)).expect("small")
}

/// The sender, another session, or one that does not exist.
fn any_session(ticket: Option<(u64, u64)>, reference: &Reference, random: &mut Random) -> u64 {
    match (random.below(10), ticket) {
        (0..=3, Some((session, _))) => session,
        (4, _) => random.pick(&[0, u64::MAX, reference.commit + 1]),
        _ => some_session(reference, random),
    }
}
