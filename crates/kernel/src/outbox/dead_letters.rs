//! Dead letters: messages that their group refused. They are kept there for a time, until somebody sends them again or drops
//! them.
//!
//! A letter has a number of the bucket of the group that refused it. As many are kept as the limits of the space and of the
//! shard say; one more is lost, since a message was delivered whatever becomes of it. Those of a deleted branch go with
//! it, in bounded steps.
//!
//! Touches: `DeadLetter` rows, the schedule, and what a message changes that is sent again. Keeps: R6 (sent again, a
//! message is applied once, and its letter is gone).

mod list;

use contract::limits::{DEAD_LETTER_AGE_US, DEAD_LETTERS_MAX, DEAD_LETTERS_OF_SPACE_MAX};
use contract::{Reason, Rejection};
use kv::{DecodeError, Order, Reader, Writer};
use session::Halt;

use super::Stored;
use super::command::{DeadLetterAct, DeadLetterCommand, Target};
use super::deliver::{attempt, note};
use super::send::counted_before;
use crate::LEVEL_OF_DEAD_LETTERS;
use crate::answer::Answer;
use crate::answer::rejection::{decode_rejection, encode_rejection};
use crate::command::{Body, Transact};
use crate::context::Applying;
use crate::contract::ERASED_MAX;
use crate::counts::decode_dead_letters;
use crate::keys::due::DueClock;
use crate::keys::messages::read_dead_letter_key;
use crate::keys::{Keys, Kind};
use crate::transact::guarded::check_owner;
use crate::transact::scope::Scope;
use crate::transact::{self, check_scope};

pub use list::{DeadLetterPage, ListedDeadLetter, ListedDeadLetters, first_place, list};

const FORMAT: u8 = 1;

/// A message that its group refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter<'bytes> {
    /// The command that refused it.
    pub commit: u64,
    /// When that was, wall µs.
    pub refused_us: u64,
    /// Why.
    pub refusal: Rejection,
    /// The space of the group.
    pub space: u32,
    /// Its branch.
    pub branch: u32,
    /// The group.
    pub group: &'bytes str,
    /// The number of the message where it was sent.
    pub sent_number: u64,
    /// The message.
    pub message: Stored<'bytes>,
}

impl<'bytes> DeadLetter<'bytes> {
    /// Appends the letter's row.
    pub fn encode(&self, writer: &mut Writer) {
        let Self { commit, refused_us, refusal, space, branch, group, sent_number, message } = self;
        let mut inner = Writer::new();
        encode_rejection(&mut inner, refusal);
        writer.u8(FORMAT).u64(*commit).u64(*refused_us).bytes(inner.as_slice());
        writer.u32(*space).u32(*branch).bytes(group.as_bytes()).u64(*sent_number);
        inner = Writer::new();
        message.encode(&mut inner);
        writer.bytes(inner.as_slice());
    }

    /// Reads a letter's row.
    pub fn decode(bytes: &'bytes [u8]) -> Result<Self, Halt> {
        Self::read(bytes).map_err(|error: DecodeError| Halt::Undecodable { what: "a dead letter", error })
    }

    fn read(bytes: &'bytes [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        reader.format(FORMAT)?;
        let (commit, refused_us) = (reader.u64()?, reader.u64()?);
        let mut refusal_reader = Reader::new(reader.bytes()?);
        let refusal = decode_rejection(&mut refusal_reader)?;
        refusal_reader.end()?;
        let (space, branch, group, sent_number) = (reader.u32()?, reader.u32()?, reader.text()?, reader.u64()?);
        let message = Stored::read(reader.bytes()?)?;
        reader.end().map(|()| Self { commit, refused_us, refusal, space, branch, group, sent_number, message })
    }

    /// When it is dropped, wall µs.
    pub fn until_us(&self) -> u64 {
        self.refused_us.saturating_add(DEAD_LETTER_AGE_US)
    }

    /// The transaction that was refused.
    fn transact(&self) -> Result<Transact<'bytes>, Halt> {
        match self.message.send.target {
            Target::Transact(body) => match Body::decode(body) {
                Ok(Body::Transact(transact)) => Ok(transact),
                _ => Err(Halt::Inconsistent("a dead letter is not a transaction".into())),
            },
            Target::Topic { .. } => Err(Halt::Inconsistent("a dead letter is for a broker".into())),
        }
    }
}

/// Keeps a message that was refused, unless too many are kept, or its branch is gone. Returns what the change feed says of it.
pub(super) fn keep(
    applying: &mut Applying<'_>,
    message: &Stored<'_>,
    sent_number: u64,
    transact: &Transact<'_>,
    refusal: Rejection,
) -> Result<Reason, Halt> {
    if applying.catalogue.level < LEVEL_OF_DEAD_LETTERS {
        // None was kept, and the feed said no more than this.
        return Ok(Reason::Refused);
    }
    let Transact { space, branch, .. } = *transact;
    let is_live = applying.catalogue.space(space).is_ok_and(|space| space.live_branch(branch).is_ok());
    if !is_live {
        return Ok(Reason::Dropped);
    }
    let bucket = transact::bucket_here(applying.catalogue, transact);
    let (Ok(Some(bucket)), Some(group)) = (bucket, transact::group_of(transact)) else { return Ok(Reason::Lost) };
    if are_too_many(applying, space)? {
        return Ok(Reason::Lost);
    }
    let (commit, refused_us) = (applying.call.commit, applying.call.stamp.wall_us);
    let letter = DeadLetter { commit, refused_us, refusal, space, branch, group, sent_number, message: *message };
    let number = applying.next_number(bucket)?;
    put(applying, bucket, number, &letter);
    Ok(Reason::Refused)
}

fn are_too_many(applying: &Applying<'_>, space: u32) -> Result<bool, Halt> {
    let of_space = known(of_space_before(applying, space))?.unwrap_or(0);
    let before = known(counted_before(applying))?.map_or(0, |before| before.dead);
    Ok(of_space + applying.folded.dead_letters_of(space) >= i64::from(DEAD_LETTERS_OF_SPACE_MAX)
        || before + applying.folded.messages().dead >= i64::from(DEAD_LETTERS_MAX))
}

/// A count, or none if it is damaged: what is refused is not lost because nobody knows how many there are.
fn known<T>(counted: Result<T, Halt>) -> Result<Option<T>, Halt> {
    match counted {
        Err(halt) if halt.set_apart().is_some() => Ok(None),
        counted => counted.map(Some),
    }
}

/// The number of dead letters of a space before this entry.
fn of_space_before(applying: &Applying<'_>, space: u32) -> Result<i64, Halt> {
    let row = applying.state.get(&applying.keys.dead_letters_of_space(space))?;
    let count = row.map_or(Ok(0), |row| decode_dead_letters(&row))?;
    i64::try_from(count).map_err(|_| Halt::Inconsistent(format!("R6: space {space} has {count} dead letters")))
}

/// Puts a letter, and has it dropped when its time is over.
pub(crate) fn put(applying: &mut Applying<'_>, bucket: u16, number: u64, letter: &DeadLetter<'_>) {
    let DeadLetter { space, branch, .. } = *letter;
    applying.folded.count_dead_letters(space, 1);
    applying
        .state
        .put_encoded(applying.keys.dead_letter(bucket, space, branch, number), |writer| letter.encode(writer));
    let suffix = Keys::due_dead_letter_suffix(letter.until_us(), space, branch, number);
    applying.change_due(DueClock::Wall, bucket, suffix, b"", true);
}

fn remove(applying: &mut Applying<'_>, bucket: u16, number: u64, letter: &DeadLetter<'_>) {
    let DeadLetter { space, branch, .. } = *letter;
    applying.folded.count_dead_letters(space, -1);
    applying.state.delete(applying.keys.dead_letter(bucket, space, branch, number));
    let suffix = Keys::due_dead_letter_suffix(letter.until_us(), space, branch, number);
    applying.change_due(DueClock::Wall, bucket, suffix, b"", false);
}

/// The time of a letter is over.
pub(crate) fn expire(
    applying: &mut Applying<'_>,
    bucket: u16,
    (space, branch): (u32, u32),
    number: u64,
) -> Result<(), Halt> {
    let row = applying.state.get(&applying.keys.dead_letter(bucket, space, branch, number))?;
    let row = row.ok_or_else(|| Halt::Inconsistent("R6: a dead letter that is due has no row".into()))?;
    let letter = DeadLetter::decode(&row)?;
    remove(applying, bucket, number, &letter);
    note(applying, &letter.message, letter.sent_number, Reason::Dropped);
    Ok(())
}

/// Drops some letters of a deleted branch in a bucket.
pub(crate) fn erase_some(applying: &mut Applying<'_>, bucket: u16, space: u32, branch: u32) -> Result<(), Halt> {
    let range = applying.keys.rows_of_branch(Kind::DeadLetter, bucket, space, branch);
    let rows = applying.state.scan(&range, Order::Ascending).take(ERASED_MAX).collect::<Result<Vec<_>, _>>();
    // Damaged ones stay, and do not keep what else the branch has.
    for (key, row) in known(rows.map_err(Halt::from))?.unwrap_or_default() {
        let (_, number) = read_dead_letter_key(&key).ok_or_else(foreign)?;
        let letter = DeadLetter::decode(&row)?;
        remove(applying, bucket, number, &letter);
        note(applying, &letter.message, letter.sent_number, Reason::Dropped);
    }
    Ok(())
}

fn foreign() -> Halt {
    Halt::Inconsistent("a foreign key among dead letters".into())
}

/// Sends a letter again, or drops it. One that is refused again stays as it is.
pub(crate) fn command(applying: &mut Applying<'_>, command: &DeadLetterCommand<'_>) -> Result<Answer, Halt> {
    let DeadLetterCommand { space, branch, group, ref fences, force, number, act } = *command;
    let (fences, guards, ops) = (fences.clone(), Vec::new(), Vec::new());
    let asks = Transact { space, branch, group: Some(group), fences, force, guards, ops };
    let bucket = match may_decide(applying, &asks, group)? {
        Ok(bucket) => bucket,
        Err(rejection) => {
            applying.undo();
            return Ok(Answer::Rejected(rejection));
        }
    };
    let row = applying.state.get(&applying.keys.dead_letter(bucket, space, branch, number))?;
    let letter = row.as_deref().map(DeadLetter::decode).transpose()?;
    let Some(letter) = letter.filter(|letter| letter.group == group) else {
        return Ok(Answer::Rejected(Rejection::NoSuchDeadLetter { group: group.to_owned(), number }));
    };
    let (outcomes, reason) = match act {
        DeadLetterAct::Drop => (Vec::new(), Reason::Dropped),
        DeadLetterAct::Retry => {
            let mut transact = letter.transact()?;
            transact.force |= asks.force;
            if !asks.fences.is_empty() {
                // One without a group is in that of its only thing. With a fence it has two, and says which group it is in.
                transact.group = Some(letter.group);
            }
            for fence in &asks.fences {
                transact.fences.retain(|own| own.record != fence.record);
                transact.fences.push(*fence);
            }
            match attempt(applying, &letter.message, &transact)? {
                Ok(transacted) => (transacted.outcomes, Reason::Delivered),
                Err(rejection) => {
                    applying.undo();
                    return Ok(Answer::Rejected(rejection));
                }
            }
        }
    };
    remove(applying, bucket, number, &letter);
    note(applying, &letter.message, letter.sent_number, reason);
    Ok(Answer::Done { commit: applying.call.commit, outcomes })
}

/// Whether somebody may decide about the letters of a group; its bucket.
fn may_decide(applying: &mut Applying<'_>, asks: &Transact<'_>, group: &str) -> Result<Result<u16, Rejection>, Halt> {
    let found = applying.catalogue.space(asks.space);
    let found = found.and_then(|space| space.live_branch(asks.branch).map(|_| space));
    let bucket = match found.and_then(|space| applying.catalogue.bucket_here(space, group)) {
        Ok(bucket) => bucket,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let scope = match Scope::of(applying.catalogue, applying.keys, asks) {
        Ok(scope) => scope,
        Err(rejection) => return Ok(Err(rejection)),
    };
    if let Err(rejection) = check_scope(applying, &scope)? {
        return Ok(Err(rejection));
    }
    Ok(check_owner(applying, &scope, group)?.map(|()| bucket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::command::Send;

    /// Part of the stored format; `docs/formats/records.md`.
    #[test]
    fn golden_dead_letter() {
        let send = Send { target: Target::Transact(b"T"), after_us: None };
        let message = Stored { space: 1, branch: 2, source: "from", send };
        let refusal = Rejection::MainBranch;
        let letter = DeadLetter {
            commit: 3,
            refused_us: 258,
            refusal,
            space: 4,
            branch: 5,
            group: "g",
            sent_number: 6,
            message,
        };
        let mut writer = Writer::new();
        letter.encode(&mut writer);
        let long = |low: u8, high: u8| [low, high, 0, 0, 0, 0, 0, 0];
        let message = [&[1, 1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0][..], b"from", &[0, 1, 1, 0, 0, 0, b'T']].concat();
        let bytes = [
            &[1][..],
            &long(3, 0),
            &long(2, 1),
            &[1, 0, 0, 0, 8],
            &[4, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, b'g'],
            &long(6, 0),
            &[24, 0, 0, 0],
            &message,
        ]
        .concat();
        assert_eq!(writer.as_slice(), bytes);
        assert_eq!(DeadLetter::decode(&bytes).expect("a letter"), letter);
        for cut in 0..bytes.len() {
            assert!(DeadLetter::decode(&bytes[..cut]).is_err(), "{cut} bytes of it");
        }
    }
}
