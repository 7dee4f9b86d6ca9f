//! The content of a shard as named things, for files that other programs read; and building a new shard from such
//! things.
//!
//! - [`Item`]: one thing: a cell's version, a record, a run, an event, a message.
//! - [`walk`]: every thing that a view holds, in the order of keys.
//! - [`Builder`]: puts things into an empty store, with every derived row: indexes, schedule, counts.
//! - [`release_held`]: ends what was held in the shard before.
//! - `part`: what each contract does of this. `walking`, `new_shard`: what helps it.
//!
//! Derived rows are not items. Neither are sessions and the change feed: they concern the clients of one store. Things
//! held by a session name it, and are released in the new shard, as when a session ends.
//!
//! Keeps: walking a built shard returns what was put into it, in the same order.

mod build;
pub(crate) mod new_shard;
pub(crate) mod part;
mod release;
mod walk;
pub(crate) mod walking;

pub use build::Builder;
pub use new_shard::BuildError;
pub use release::release_held;
pub use walk::walk;

use crate::contracts::with_contracts;
use crate::outbox::dead_letters::DeadLetter;
use crate::outbox::{MessageState, Stored};

macro_rules! items {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// One thing, or a part of one.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Item<'row> {
            $(
                #[doc = concat!("Of the contract `", stringify!($folder), "`.")]
                $kind(crate::$folder::item::$item<'row>),
            )*
            /// The start of a bucket: what follows is in it, up to the next.
            Bucket(u16),
            /// A message that waits.
            Message {
                /// What it waits for.
                state: MessageState,
                /// Its number in the bucket of its source.
                number: u64,
                /// The message.
                message: Stored<'row>,
            },
            /// A message that its group refused.
            DeadLetter {
                /// Its number in the bucket of the group.
                number: u64,
                /// The letter.
                letter: DeadLetter<'row>,
            },
            /// The last number that a bucket has given to a message, if no message has it or a higher one.
            MessageNumbers {
                /// The bucket.
                bucket: u16,
                /// The number.
                last: u64,
            },
            /// The last number that a bucket has received of another bucket's messages.
            Received {
                /// The bucket that has received them.
                bucket: u16,
                /// The bucket that has sent them.
                source: u16,
                /// The number.
                last: u64,
            },
            /// A row of a user's machine.
            MachineState {
                /// The space.
                space: u32,
                /// The machine.
                machine: u16,
                /// The group.
                group: &'row str,
                /// The machine's own key.
                key: &'row [u8],
                /// The value.
                value: &'row [u8],
            },
            /// A user's machine has seen a session.
            MachineMember {
                /// The session.
                session: u64,
                /// The space.
                space: u32,
                /// The machine.
                machine: u16,
                /// The group.
                group: &'row str,
            },
        }
    };
}

with_contracts!(items);
