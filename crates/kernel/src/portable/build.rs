//! Builds a new shard from things. Each is put once, with every row derived from it.
//!
//! Touches: every kind of row except those of sessions and changes. Keeps: K3, K8, L1 and R5 of its input: a history or
//! a log with a hole is refused. The applied row is written last, so an incomplete shard is not mistaken for a complete
//! one.

use kv::Store;

use super::Item;
use super::new_shard::{BuildError, NewShard};
use super::part::Portable;
use crate::applied::Applied;
use crate::catalogue::Catalogue;
use crate::changes;
use crate::command::Body;
use crate::contracts::with_contracts;
use crate::keys::Keys;
use crate::keys::due::DueClock;
use crate::outbox::command::Target;
use crate::outbox::dead_letters::{self, DeadLetter};
use crate::outbox::send;
use crate::outbox::{MessageState, Stored, numbers};
use crate::sessions::owned;

/// Rows staged before they are written to the store.
const STAGED_ROWS_MAX: usize = 16 << 10;

/// Approximate bytes of values staged before they are written to the store.
const STAGED_BYTES_MAX: usize = 16 << 20;

/// Whether what is staged is to be written.
pub(super) fn is_full(shard: &NewShard<'_>) -> bool {
    shard.state.writes().len() >= STAGED_ROWS_MAX || shard.staged_bytes >= STAGED_BYTES_MAX
}

/// Builds a shard in an empty store.
pub struct Builder<'store> {
    shard: NewShard<'store>,
    begun: Begun,
}

macro_rules! building {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// The things whose parts are being put.
        #[derive(Default)]
        struct Begun {
            $($folder: <crate::$folder::contract::$contract as Portable>::Begun,)*
        }

        impl Begun {
            /// An item follows: what was begun by another contract must be complete.
            fn end_others(&mut self, item: &Item<'_>) -> Result<(), BuildError> {
                $(if !matches!(item, Item::$kind(_)) {
                    crate::$folder::contract::$contract::end(&mut self.$folder)?;
                })*
                Ok(())
            }

            fn end(&mut self) -> Result<(), BuildError> {
                $(crate::$folder::contract::$contract::end(&mut self.$folder)?;)*
                Ok(())
            }
        }

        impl Builder<'_> {
            /// Puts something of the shard itself, or of a contract.
            fn put_item(&mut self, item: &Item<'_>) -> Result<(), BuildError> {
                let Self { shard, begun } = self;
                match item {
                    $(Item::$kind(item) => crate::$folder::contract::$contract::put(shard, &mut begun.$folder, item),)*
                    other => self.put_other(other),
                }
            }
        }
    };
}

with_contracts!(building);

impl<'store> Builder<'store> {
    /// Begins a shard in a store that holds nothing of it.
    pub fn new(
        store: &'store dyn Store,
        keys: Keys,
        catalogue: Catalogue,
        applied: Applied,
    ) -> Result<Self, BuildError> {
        let shard = NewShard::new(store, keys, catalogue, applied)?;
        Ok(Self { shard, begun: Begun::default() })
    }

    /// The catalogue, by which names become numbers.
    pub fn catalogue(&self) -> &Catalogue {
        &self.shard.contracts.catalogue
    }

    /// Puts a thing.
    pub fn put(&mut self, item: &Item<'_>) -> Result<(), BuildError> {
        self.begun.end_others(item)?;
        self.put_item(item)?;
        let shard = &mut self.shard;
        shard.state.savepoint();
        if is_full(shard) {
            shard.flush()?;
        }
        Ok(())
    }

    fn put_other(&mut self, item: &Item<'_>) -> Result<(), BuildError> {
        let shard = &mut self.shard;
        match item {
            Item::Bucket(bucket) => shard.check_bucket(*bucket),
            Item::Message { state, number, message } => self.message(*state, *number, message),
            Item::DeadLetter { number, letter } => self.dead_letter(*number, letter),
            Item::Received { bucket, source, last } => {
                shard.check_bucket(*bucket)?;
                shard.check_bucket(*source)?;
                check_number(*last)?;
                let key = shard.keys.received(*bucket, *source);
                shard.state.put_encoded(key, |writer| numbers::encode(writer, *last));
                Ok(())
            }
            Item::MessageNumbers { bucket, last } => {
                shard.check_bucket(*bucket)?;
                check_number(*last)?;
                shard.applying(|applying| applying.folded.numbers.raise(applying.state, &applying.keys, *bucket, *last))
            }
            Item::MachineState { space, machine, group, key, value } => {
                let mut whole = shard.keys.hosted(&shard.hosted(*space, *machine, group)?);
                whole.extend_from_slice(key);
                shard.staged_bytes += value.len();
                shard.state.put(whole, *value);
                Ok(())
            }
            Item::MachineMember { session, space, machine, group } => {
                let id = shard.hosted(*space, *machine, group)?;
                shard.state.put(shard.keys.member(*session, &id), b"".as_slice());
                shard.was_owned_by(*session, id.bucket)
            }
            _ => unreachable!("contracts put their own"),
        }
    }

    /// Completes the shard, and makes everything durable. `hash` is the initial value of the hash over all effects.
    pub fn finish(mut self, hash: u64) -> Result<(), BuildError> {
        self.begun.end()?;
        let mut shard = self.shard;
        shard.applied.hash = hash;
        let (sessions, cluster_us) = (shard.take_sessions(), shard.applied.stamp.cluster_us);
        shard.applying(|applying| {
            for (session, bucket) in &sessions {
                owned::put_ended(applying, *bucket, cluster_us, *session);
            }
            Ok(())
        })?;
        shard.contracts.catalogue.write_everything(&shard.keys, &mut shard.state);
        changes::begin_after(&mut shard.state, &shard.keys, shard.applied.commit);
        shard.flush()?;
        shard.store.persist()?;
        shard.store.commit(kv::Batch::new().put(shard.keys.applied(), shard.applied.encode()))?;
        shard.store.persist()?;
        Ok(())
    }

    fn bucket_of(&self, space: u32, group: &str) -> Result<u16, BuildError> {
        let catalogue = &self.shard.contracts.catalogue;
        Ok(catalogue.bucket_here(catalogue.space(space)?, group)?)
    }

    fn dead_letter(&mut self, number: u64, letter: &DeadLetter<'_>) -> Result<(), BuildError> {
        let is_transact = |body| matches!(Body::decode(body), Ok(Body::Transact(_)));
        if !matches!(letter.message.send.target, Target::Transact(body) if is_transact(body)) {
            return Err(BuildError::Refused("the command of a dead letter is not a transaction".into()));
        }
        let bucket = self.bucket_of(letter.space, letter.group)?;
        self.shard.contracts.catalogue.space(letter.space)?.live_branch(letter.branch)?;
        let key = self.shard.keys.dead_letter(bucket, letter.space, letter.branch, number);
        self.shard.absent(&key, "a dead letter of", letter.group)?;
        check_number_of(&letter.message, number)?;
        self.shard.applying(|applying| {
            applying.folded.numbers.raise(applying.state, &applying.keys, bucket, number)?;
            dead_letters::put(applying, bucket, number, letter);
            Ok(())
        })
    }

    fn message(&mut self, state: MessageState, number: u64, message: &Stored<'_>) -> Result<(), BuildError> {
        if let Target::Transact(body) = message.send.target
            && !matches!(Body::decode(body), Ok(Body::Transact(_)))
        {
            return Err(BuildError::Refused("the command of a message is not a transaction".into()));
        }
        let bucket = self.bucket_of(message.space, message.source)?;
        let key = match state {
            MessageState::Publish => self.shard.keys.publish(bucket, number),
            MessageState::Outgoing => self.shard.keys.outgoing(bucket, number),
            MessageState::Due(due_us) => {
                let mut key = self.shard.keys.due_prefix(DueClock::Wall, bucket);
                key.extend_from_slice(&Keys::due_send_suffix(due_us, number));
                key
            }
        };
        self.shard.absent(&key, "a message of", message.source)?;
        check_number_of(message, number)?;
        self.shard.applying(|applying| {
            applying.folded.numbers.raise(applying.state, &applying.keys, bucket, number)?;
            send::put_waiting(applying, bucket, state, number, message);
            Ok(())
        })
    }
}

fn check_number_of(message: &Stored<'_>, number: u64) -> Result<(), BuildError> {
    match number {
        0 => Err(BuildError::Refused(format!("a message of {:?} has the number 0", message.source))),
        number => check_number(number),
    }
}

/// A bucket gives numbers above those that it is imported with.
fn check_number(number: u64) -> Result<(), BuildError> {
    match number <= numbers::IMPORTED_MAX {
        true => Ok(()),
        false => Err(BuildError::Refused(format!("the number {number} of a message is too high"))),
    }
}
