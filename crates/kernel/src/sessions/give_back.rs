//! Giving back what an ended session owned, some of it with every tick.
//!
//! Touches: `Owned` rows, and what they name. Keeps: E6.

use kv::{Key, KeyRange, Order, skip_set_apart};
use session::Halt;

use super::hosted;
use crate::context::Applying;
use crate::contract::{Contract, OwnedThing};
use crate::contracts::with_contracts;
use crate::keys::Keys;
use crate::keys::due::DueClock;
use crate::keys::sessions::{Owned, read_owned_suffix};

/// Releasing one thing counts as this many steps of a tick: it reads and writes as much as that many other steps, and
/// others wait meanwhile.
const STEPS_FOR_ONE: u32 = 3;

/// Releases some of what a session owned in a bucket. Returns the number of steps.
pub(crate) fn give_back(
    applying: &mut Applying<'_>,
    bucket: u16,
    at_us: u64,
    session: u64,
    steps_max: u32,
) -> Result<u32, Halt> {
    let limit = (steps_max / STEPS_FOR_ONE).max(1);
    let found = owned_by(applying, bucket, session, limit as usize)?;
    for (owned, key) in &found {
        applying.savepoint();
        let ended = end(applying, bucket, session, owned);
        if applying.undo_if_damaged(ended)?.is_err() {
            // It cannot be released, and must not keep the others from it.
            applying.state.delete(key.clone());
        }
    }
    applying.savepoint();
    let given_back = u32::try_from(found.len()).expect("bounded by the steps");
    if given_back < limit {
        applying.change_due(DueClock::Cluster, bucket, Keys::due_session_suffix(at_us, session), b"", false);
    }
    Ok((given_back * STEPS_FOR_ONE).max(1))
}

fn owned_by(applying: &Applying<'_>, bucket: u16, session: u64, limit: usize) -> Result<Vec<(Owned, Key)>, Halt> {
    let prefix = applying.keys.owned_prefix(bucket, session);
    let mut found = Vec::new();
    for row in skip_set_apart(applying.state.scan(&KeyRange::prefix(&prefix), Order::Ascending)).take(limit) {
        let (key, _) = row?;
        let owned = read_owned_suffix(&key[prefix.len()..]);
        let unknown = || Halt::Inconsistent(format!("E6: session {session} owns an unknown thing"));
        found.push((owned.ok_or_else(unknown)?, key));
    }
    Ok(found)
}

fn end(applying: &mut Applying<'_>, bucket: u16, session: u64, owned: &Owned) -> Result<(), Halt> {
    match owned {
        Owned::Member { space, machine, group } => {
            hosted::expired(applying, bucket, session, (*space, *machine, group))
        }
        Owned::Thing(of, id) => give_back_thing(applying, &OwnedThing { session, of: *of, id, bucket }),
    }
}

macro_rules! dispatch {
    ($($folder:ident: $contract:ident { $kind:ident, $act:ident, $guard:ident, $item:ident, $trim:ident })*) => {
        /// Ends something of a thing, as its contract does it.
        fn give_back_thing(applying: &mut Applying<'_>, ended: &OwnedThing<'_>) -> Result<(), Halt> {
            match ended.of {
                $(of if crate::$folder::contract::$contract::OWNED.contains(&of) => {
                    crate::$folder::contract::$contract::give_back(applying, ended)
                })*
                of => Err(Halt::Inconsistent(format!("E6: no contract has what a session owned: {of:?}"))),
            }
        }
    };
}

with_contracts!(dispatch);
