//! What a contract is to the kernel, but for exports and imports, which `portable/part.rs` says. `contracts.rs` lists them.

use contract::Rejection;
use kv::{Key, KeyRange, Order};
use session::{CommandDigest, Halt};

use crate::answer::OpOutcome;
use crate::catalogue::{Catalogue, FilledType};
use crate::command::act::{Act, Condition};
use crate::command::trim_step::TrimStep;
use crate::context::Applying;
use crate::held::HeldRows;
use crate::keys::due::{DueClock, DueOf};
use crate::keys::sessions::OwnedOf;
use crate::keys::things::OwnedId;
use crate::keys::{Keys, Kind, ThingId};
use crate::transact::scope::Scope;
use crate::trim::finding::Finding;

/// The outcome of an operation, or its rejection; or that the machine must halt.
pub(crate) type Outcome = Result<Result<OpOutcome, Rejection>, Halt>;

/// A contract: named things, what can be done to them, and what can be a condition.
pub(crate) trait Contract {
    /// What is done to one of its things.
    type Act<'bytes>: Act<'bytes>;
    /// A condition on its things.
    type Guard<'bytes>: Condition<'bytes>;
    /// Why a call on one of its things is refused.
    type Rejection;
    /// What a step of the walk does to its things.
    type Trim;

    /// Its number in stored rows, which no other contract ever has.
    const NUMBER: u8;

    /// The kinds of rows that hold its things, and are not derived from them: first the one by which a thing exists, then
    /// those of its parts. Their bytes are counted to their space.
    const HELD: &'static [Kind];

    /// The kinds of rows that its things have in a bucket of a branch.
    const ROWS: &'static [Kind];

    /// Those of them that [`erase_some`](Self::erase_some) removes.
    const ERASED: &'static [Kind] = Self::ROWS;

    /// What can be due on its things.
    const DUE: &'static [DueOf] = &[];

    /// What of its things can end with a session.
    const OWNED: &'static [OwnedOf] = &[];

    /// Whether a thing exists, by its row of the first kind in [`HELD`](Self::HELD). A deleted one may keep the row.
    fn exists(row: &[u8]) -> Result<bool, Halt>;

    /// Whether a thing is there for whoever asks now.
    fn is_there(applying: &Applying<'_>, thing: &ThingId<'_>) -> Result<bool, Halt>;

    /// Who holds a thing, if anybody does.
    fn holding(_applying: &Applying<'_>, _thing: &ThingId<'_>) -> Result<Option<Holding>, Halt> {
        Ok(None)
    }

    /// Does something to a thing. A rejection may leave changes, which its transaction undoes.
    fn act(applying: &mut Applying<'_>, scope: &Scope<'_>, thing: &ThingId<'_>, act: &Self::Act<'_>) -> Outcome;

    /// The number that an operation gives to its transaction: sent again, the transaction gets its first answer.
    fn number_of(_act: &Self::Act<'_>) -> Option<u64> {
        None
    }

    /// The answer to the transaction of this number, if it was applied before. `digest` is of what it contains.
    fn answered(
        _applying: &Applying<'_>,
        _thing: &ThingId<'_>,
        _number: u64,
        _digest: &CommandDigest,
    ) -> Result<Result<Option<Vec<u8>>, Rejection>, Halt> {
        Ok(Ok(None))
    }

    /// Keeps the answer to a transaction with a number.
    fn keep_answer(
        _applying: &mut Applying<'_>,
        _thing: &ThingId<'_>,
        _number: u64,
        _digest: &CommandDigest,
        _answer: &[u8],
    ) -> Result<(), Halt> {
        Ok(())
    }

    /// Checks what the scope of a transaction says of its things, before any condition.
    fn check_scope(_applying: &mut Applying<'_>, _scope: &Scope<'_>) -> Result<Result<(), Rejection>, Halt> {
        Ok(Ok(()))
    }

    /// Checks a condition. `looked_at` counts the things that those of the transaction have looked at in ranges.
    fn check(
        applying: &Applying<'_>,
        scope: &Scope<'_>,
        guard: &Self::Guard<'_>,
        looked_at: &mut usize,
    ) -> Result<Result<(), Rejection>, Halt>;

    /// Does what is due on a thing. Returns how many steps of its tick that was.
    fn when_due(_applying: &mut Applying<'_>, work: &DueWork<'_>) -> Result<u32, Halt> {
        Err(Halt::Inconsistent(format!("nothing is ever due on {work:?}")))
    }

    /// A session that owned something has ended.
    fn give_back(_applying: &mut Applying<'_>, ended: &OwnedThing<'_>) -> Result<(), Halt> {
        Err(Halt::Inconsistent(format!("E6: nothing ends with a session: {ended:?}")))
    }

    /// If a rejection says that something was not as expected: the name of its type, which may be empty.
    fn conflict(
        applying: &Applying<'_>,
        scope: &Scope<'_>,
        rejection: &Self::Rejection,
    ) -> Result<Option<String>, Halt>;

    /// Does a step of the walk, if it still is to be done. Returns the type whose indexes are all filled by it.
    fn trim(applying: &mut Applying<'_>, step: &Self::Trim) -> Result<Option<FilledType>, Halt>;

    /// Finds steps among the rows of a bucket.
    fn find_in_bucket(_finding: &mut Finding<'_>, _bucket: u16) -> Result<(), Halt> {
        Ok(())
    }

    /// Finds steps among the rows of the shard itself.
    fn find_in_shard(_finding: &mut Finding<'_>) -> Result<(), Halt> {
        Ok(())
    }

    /// Steps that the catalogue alone tells of.
    fn find_in_catalogue(_catalogue: &Catalogue) -> Vec<TrimStep> {
        Vec::new()
    }

    /// Removes some things of a deleted branch in a bucket, with every row that follows from them.
    fn erase_some(applying: &mut Applying<'_>, bucket: u16, space: u32, branch: u32) -> Result<(), Halt> {
        for kind in Self::ERASED {
            let range = applying.keys.rows_of_branch(*kind, bucket, space, branch);
            delete_some(&mut applying.held(), &range)?;
        }
        Ok(())
    }

    /// The rows of the shard that belong to a branch, such as counts.
    fn shard_rows(_keys: &Keys, _space: u32, _branch: u32) -> Vec<KeyRange> {
        Vec::new()
    }

    /// The row of a branch in a bucket that outlives its things, and goes with the branch itself. It has a second copy.
    fn floor(_keys: &Keys, _bucket: u16, _space: u32, _branch: u32) -> Option<Key> {
        None
    }
}

/// That somebody holds a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    /// Who, if it gave a name.
    pub(crate) holder: Option<String>,
    /// Until when, ms since 1970.
    pub(crate) until_ms: u64,
}

/// Work that is due on a thing.
#[derive(Debug)]
pub(crate) struct DueWork<'tick> {
    pub(crate) clock: DueClock,
    /// When it was due.
    pub(crate) at_us: u64,
    pub(crate) of: DueOf,
    pub(crate) id: &'tick OwnedId,
    pub(crate) bucket: u16,
}

impl DueWork<'_> {
    /// The thing.
    pub(crate) fn thing(&self) -> ThingId<'_> {
        self.id.in_bucket(self.bucket)
    }
}

/// Something of a thing that ends with a session.
#[derive(Debug)]
pub(crate) struct OwnedThing<'tick> {
    pub(crate) session: u64,
    pub(crate) of: OwnedOf,
    pub(crate) id: &'tick OwnedId,
    pub(crate) bucket: u16,
}

/// Things or rows of a deleted branch that one step removes.
pub(crate) const ERASED_MAX: usize = 64;

/// Removes the first rows of a range.
pub(crate) fn delete_some(held: &mut HeldRows<'_>, range: &KeyRange) -> Result<(), Halt> {
    let rows = held.state.scan(range, Order::Ascending).take(ERASED_MAX).collect::<Result<Vec<_>, _>>()?;
    for (key, row) in rows {
        held.delete_found(key, &row)?;
    }
    Ok(())
}
