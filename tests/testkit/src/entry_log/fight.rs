//! Appenders that all want to append to one shard.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use journal::{Append, Ends, EntryKind, EntryLog, JournalError, Position, ShardId};

const READ_BYTES: usize = 1 << 20;
/// All appenders continue one history.
const HISTORY: u64 = 5;
/// Attempts at the entry that ends a fight. Only late entries, and answers that are lost, can make them fail.
const LAST_ATTEMPTS_MAX: u64 = 1_000;
/// Attempts for each appender and each round. An append comes too late only if another one did not, so one is enough but
/// for answers that are lost; a log that refuses everybody must not let the fight go on forever.
const ATTEMPTS_PER_ROUND_MAX: u64 = 10;

/// How a fight went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fought {
    /// Entries that are in the log.
    pub entries: u64,
    /// Appends that came too late.
    pub refused: u64,
    /// Appends of which the log did not say whether they succeeded.
    pub unknown: u64,
}

/// What an appender knows of one of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It is in the log, here.
    Appended(Position),
    /// It is not, and never will be.
    Refused,
    Unknown,
}

impl Known {
    pub(super) fn from_answer(answer: &Result<Position, JournalError>) -> Self {
        match answer {
            Ok(position) => Self::Appended(*position),
            Err(error) if error.may_be_appended() => Self::Unknown,
            Err(JournalError::Deposed { .. }) => Self::Refused,
            Err(error) => panic!("an append of a fight: {error}"),
        }
    }
}

/// Lets `appenders` threads append to an empty shard until together they have done so `rounds` times: each reads where the
/// shard ends and appends behind that. Afterwards the log must be one chain with every acknowledged entry once, in its
/// place, and none that was refused.
///
/// # Panics
/// If the log breaks a duty.
pub fn fight(log: &Arc<dyn EntryLog>, shard: ShardId, appenders: u64, rounds: u64) -> Fought {
    let (rounds_left, attempts_left) =
        (AtomicU64::new(rounds), AtomicU64::new(rounds * appenders * ATTEMPTS_PER_ROUND_MAX));
    let known: Vec<BTreeMap<Vec<u8>, Known>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..appenders)
            .map(|appender| {
                let (rounds_left, attempts_left) = (&rounds_left, &attempts_left);
                scope.spawn(move || append_until_done(log, shard, appender, rounds_left, attempts_left))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("an appender")).collect()
    });
    let mut known: BTreeMap<Vec<u8>, Known> = known.into_iter().flatten().collect();
    let count = |wanted: fn(&Known) -> bool, known: &BTreeMap<Vec<u8>, Known>| {
        known.values().filter(|one| wanted(one)).count() as u64
    };
    append_last(&**log, shard, &mut known);
    let refused = count(|one| *one == Known::Refused, &known);
    let unknown = count(|one| *one == Known::Unknown, &known);
    let entries = check_chain(&**log, shard, &mut known);
    let lost = known.iter().find(|(_, one)| matches!(one, Known::Appended(_)));
    assert_eq!(lost, None, "J1: an acknowledged entry is not in the log");
    Fought { entries, refused, unknown }
}

fn append_until_done(
    log: &Arc<dyn EntryLog>,
    shard: ShardId,
    appender: u64,
    rounds_left: &AtomicU64,
    attempts_left: &AtomicU64,
) -> BTreeMap<Vec<u8>, Known> {
    let mut known = BTreeMap::new();
    let mut number = 0_u64;
    while rounds_left.load(Ordering::Relaxed) > 0 {
        assert!(count_down(attempts_left), "J6: of all appenders that want to append, none can");
        let after = log.ends(shard).expect("the ends of a shard").last;
        number += 1;
        let payload = [appender.to_le_bytes(), number.to_le_bytes()].concat();
        let answer = log.append_behind(&[append(shard, after, appender + 1, &payload)]).remove(0);
        let outcome = Known::from_answer(&answer);
        if let Known::Appended(position) = outcome {
            assert_eq!(position.index, after.index + 1, "J6: behind the entry that was named");
            count_down(rounds_left);
        }
        known.insert(payload, outcome);
    }
    known
}

pub(super) fn append(shard: ShardId, after: Position, term: u64, payload: &[u8]) -> Append<'_> {
    Append { shard, after, kind: EntryKind::COMMANDS, term, node: term, history: HISTORY, payload }
}

/// False if nothing was left.
fn count_down(left: &AtomicU64) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

/// Appends until the log says that it has: nothing can arrive late after that.
pub(super) fn append_last(log: &dyn EntryLog, shard: ShardId, known: &mut BTreeMap<Vec<u8>, Known>) {
    for number in 0..LAST_ATTEMPTS_MAX {
        let after = log.ends(shard).expect("the ends of a shard").last;
        let payload = [u64::MAX.to_le_bytes(), number.to_le_bytes()].concat();
        let answer = log.append_behind(&[append(shard, after, 1, &payload)]).remove(0);
        known.insert(payload, Known::from_answer(&answer));
        if answer.is_ok() {
            return;
        }
    }
    panic!("none of {LAST_ATTEMPTS_MAX} appends succeeded, though nobody else appended");
}

/// Reads the whole shard. Takes every entry that is found out of `known`; returns how many there are.
pub(super) fn check_chain(log: &dyn EntryLog, shard: ShardId, known: &mut BTreeMap<Vec<u8>, Known>) -> u64 {
    let Ends { last, .. } = log.ends(shard).expect("the ends of a shard");
    let mut before = Position::START;
    while before.index < last.index {
        let read = log.read(shard, before.index + 1, READ_BYTES).expect("entries");
        assert!(!read.is_empty(), "J2: nothing is behind {before}, and the last entry is {last}");
        for (entry, position) in read {
            assert_eq!((entry.index, entry.previous_hash), (before.index + 1, before.hash), "J6: one chain");
            match known.remove(&entry.payload) {
                Some(Known::Appended(place)) => assert_eq!(place, position, "J2: where it was said to be"),
                Some(Known::Unknown) => {}
                Some(Known::Refused) => panic!("J7: entry {position} was refused, and is in the log"),
                None => panic!("J2: entry {position} is in the log twice, or nobody appended it"),
            }
            before = position;
        }
    }
    assert_eq!(before, last, "J2: the last entry");
    last.index
}
