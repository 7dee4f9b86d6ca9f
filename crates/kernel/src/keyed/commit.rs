//! Numbered commits: updates, input positions and a seal at once, and the first answer to whoever sends one again.
//!
//! Touches: what updates touch, input positions, and the answer of the last commit. Keeps: D2 (a numbered commit is applied
//! once, and numbers rise by one) and D3 (positions never go back).

use contract::keyed::limits::KEYED_POSITIONS_MAX;
use contract::keyed::{InputPosition, LogicalTime};
use contract::limits::SEALED_UPDATES_MAX;
use contract::{KeyedRejection, Rejection};
use kv::{DecodeError, Reader, Writer};
use session::{CommandDigest, Halt};

use super::changed_map::{ChangedMap, read_head};
use super::command::Commit;
use super::entry::{decode_position, encode_position};
use super::head::MapHead;
use super::ordered::apply_sealed;
use super::update::update;
use crate::answer::{Answer, OpOutcome};
use crate::changes::Reason;
use crate::context::Applying;
use crate::contract::Outcome;
use crate::held::Was;
use crate::keys::ThingId;

const ANSWER_FORMAT: u8 = 1;

/// Applies a commit. Whether it was applied before is known already.
pub(super) fn commit(applying: &mut Applying<'_>, map: &ThingId<'_>, commit: &Commit<'_>) -> Outcome {
    let Commit { number, positions, seal, updates } = commit;
    let mut changed = ChangedMap::open(applying, map)?;
    if let Err(rejection) = check_next(map, changed.head.content.last_number, *number) {
        return Ok(Err(rejection));
    }
    if let Err(rejection) = Rejection::check_limit("keyed_positions_max", KEYED_POSITIONS_MAX, positions.len()) {
        return Ok(Err(rejection));
    }
    for (input, position) in positions {
        if let Err(rejection) = advance(applying, &changed, input, *position)? {
            return Ok(Err(rejection.into()));
        }
    }
    let updated = match update(applying, &mut changed, updates, true)? {
        Ok(updated) => updated,
        Err(rejection) => return Ok(Err(rejection)),
    };
    changed.head.content.last_number = *number;
    if let Some(seal) = seal {
        raise_seal(applying, &mut changed, *seal)?;
    }
    changed.store(applying, Reason::Written);
    Ok(Ok(OpOutcome::Updated(updated)))
}

fn check_next(map: &ThingId<'_>, last: u64, number: u64) -> Result<(), Rejection> {
    let next = last.saturating_add(1);
    match number == next {
        true => Ok(()),
        false => Err(KeyedRejection::CommitOutOfOrder { map: map.name.to_owned(), number, next }.into()),
    }
}

fn advance(
    applying: &mut Applying<'_>,
    changed: &ChangedMap<'_>,
    input: &str,
    position: u64,
) -> Result<Result<(), KeyedRejection>, Halt> {
    let key = applying.keys.input_position(changed.map, changed.head.content.number, input);
    let row = applying.state.get(&key)?;
    let before = row.as_deref().map(decode_position).transpose()?;
    if let Some(current) = before.map(|before| before.position).filter(|current| position < *current) {
        let (map, input) = (changed.map.name.to_owned(), input.to_owned());
        return Ok(Err(KeyedRejection::PositionBehind { map, input, current, given: position }));
    }
    let was = row.map(|row| Was::part(row.len()));
    let after = InputPosition::new(position, applying.call.commit, applying.call.stamp.wall_us);
    applying.held().put(key, was, false, |writer| encode_position(writer, &after));
    Ok(Ok(()))
}

/// Raises the seal; a lower one changes nothing. Returns whether it changed something.
pub(super) fn raise_seal(
    applying: &mut Applying<'_>,
    changed: &mut ChangedMap<'_>,
    seal: LogicalTime,
) -> Result<bool, Halt> {
    let content = &mut changed.head.content;
    if content.seals(seal) {
        return Ok(false);
    }
    content.seal = Some(seal);
    let deletes = content.deleted > 0;
    let mut left = SEALED_UPDATES_MAX;
    apply_sealed(applying, changed, &mut left)?;
    if deletes || left == 0 {
        changed.schedule_sweep(applying);
    }
    Ok(true)
}

/// The answer to a commit that was applied before; none if it is the next one.
pub(super) fn answered(
    applying: &Applying<'_>,
    map: &ThingId<'_>,
    number: u64,
    digest: &CommandDigest,
) -> Result<Result<Option<Vec<u8>>, Rejection>, Halt> {
    let Some(head) = read_head(applying, map)?.filter(|head| !head.deleted) else {
        return Ok(check_next(map, 0, number).map(|()| None));
    };
    if number == 0 || number != head.content.last_number {
        return Ok(check_next(map, head.content.last_number, number).map(|()| None));
    }
    let row = applying.state.get(&applying.keys.keyed_answer(map, head.content.number))?;
    let row = row.ok_or_else(|| Halt::Inconsistent(format!("D2: commit {number} of {map:?} has no answer")))?;
    let (known, answer) = read_answer(&row)?;
    Ok(match known == *digest {
        true => Ok(Some(answer.to_vec())),
        false => Err(KeyedRejection::CommitReused { map: map.name.to_owned(), number }.into()),
    })
}

/// Keeps the answer to the last commit.
pub(super) fn keep_answer(
    applying: &mut Applying<'_>,
    map: &ThingId<'_>,
    number: u64,
    digest: &CommandDigest,
    answer: &[u8],
) -> Result<(), Halt> {
    // Operations after the commit may have deleted the map, and made a new one, which has had no commit; or restored it, with
    // the answer to another one.
    let has_commit = |head: &MapHead| !head.deleted && head.content.last_number == number;
    let Some(head) = read_head(applying, map)?.filter(has_commit) else { return Ok(()) };
    let key = applying.keys.keyed_answer(map, head.content.number);
    applying.state.put_encoded(key, |writer| encode_answer(writer, digest, answer));
    Ok(())
}

/// Appends the row of an answer.
pub(super) fn encode_answer(writer: &mut Writer, digest: &CommandDigest, answer: &[u8]) {
    writer.u8(ANSWER_FORMAT).raw(digest).raw(answer);
}

/// Checks a row of an answer that comes from elsewhere: whoever repeats the commit is answered with it.
pub(super) fn check_answer(row: &[u8]) -> Result<(), Halt> {
    let (_, answer) = read_answer(row)?;
    match Answer::decode(answer)? {
        Answer::Done { .. } => Ok(()),
        Answer::Rejected(_) => Err(Halt::Inconsistent("D2: a commit that was applied was refused".into())),
    }
}

/// Reads the row of an answer: the digest of what it answers, and the answer.
pub(super) fn read_answer(row: &[u8]) -> Result<(CommandDigest, &[u8]), Halt> {
    let read = || {
        let mut reader = Reader::new(row);
        reader.format(ANSWER_FORMAT)?;
        let digest = reader.raw(size_of::<CommandDigest>())?.try_into().expect("its length was asked for");
        Ok((digest, reader.rest()))
    };
    read().map_err(|error: DecodeError| Halt::Undecodable { what: "the last answer of a map", error })
}
