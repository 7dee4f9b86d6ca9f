//! Records in an interactive transaction.

use contract::records::{Claimed, Put, Record, Retry};
use contract::{Error, Subject, Value};
use kernel::OpOutcome;
use kernel::keys::ThingId;
use kernel::records::get::ViewRecords;
use node::error::{from_halt, unexpected_answer};
use session::Halt;

use super::attempts::retry;
use super::commit::{OwnRecordGuard, OwnRecordOp};
use super::{Ttl, check_fields, owned, owned_patches};
use crate::transaction::Transaction;

/// The records of a transaction's group, with its own writes. Made by [`Transaction::records`].
///
/// Every method reads the record that it concerns: if somebody else writes that before the transaction commits, nothing of it
/// is done (with [`Isolation::Snapshot`](crate::Isolation), only if the transaction writes it too). Times of what it has
/// written are those of its beginning, until it is committed; so is the version of a record that did not exist.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::records::{ClaimOptions, Put};
/// let order = house.group("order-7");
/// order.records().put("charge", [("eur", 10)], Put::typed("task"))?;
/// let job = order.records().claim("charge", &ClaimOptions::worker("w1"))?;
/// // The charge is counted and the job finished, in one commit that depends on both.
/// order.transact(|transaction| {
///     let charged = transaction.get("charged")?.and_then(|eur| eur.as_integer()).unwrap_or(0);
///     let eur = transaction.records().get_field("charge", "eur")?.and_then(|eur| eur.as_integer()).unwrap_or(0);
///     transaction.set("charged", charged + eur)?;
///     transaction.records().complete(&job, [("result", "paid")])?;
///     Ok(())
/// })?;
/// assert_eq!(order.cells().get("charged")?, Some(10.into()));
/// assert_eq!(order.records().get_field("charge", "result")?, Some("paid".into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TransactionRecords<'transaction> {
    transaction: &'transaction mut Transaction,
}

impl Transaction {
    /// The records of this transaction's group.
    pub fn records(&mut self) -> TransactionRecords<'_> {
        TransactionRecords { transaction: self }
    }

    /// Ties the transaction to an attempt, whose record must be of this group: nothing is done unless it is the live one, now and
    /// when the transaction commits. It comes before the first operation, and once, because an operation may end the attempt.
    pub fn fence(&mut self, claimed: &Claimed) -> Result<(), Error> {
        self.check_place(claimed.place)?;
        self.fence_by(claimed.name.clone(), claimed.attempt)
    }
}

impl TransactionRecords<'_> {
    /// The record, if it exists.
    pub fn get(&mut self, record: &str) -> Result<Option<Record>, Error> {
        self.read(record, |records, id| records.get(id))
    }

    /// The value of one field, if the record exists and has it.
    pub fn get_field(&mut self, record: &str, field: &str) -> Result<Option<Value>, Error> {
        check_fields(std::iter::once(field))?;
        self.read(record, |records, id| records.field(id, field, || records.stamp()))
    }

    fn read<T>(
        &mut self,
        record: &str,
        read: impl FnOnce(&ViewRecords<'_>, &ThingId<'_>) -> Result<T, Halt>,
    ) -> Result<T, Error> {
        self.transaction.read(Subject::Record, record, self.unchanged(record))?;
        let seen = self.transaction.seen();
        let id = seen.thing(record)?;
        let records =
            ViewRecords::new(seen.view, seen.ids.keys, seen.catalogue).map(|records| records.existing_at(seen.stamp));
        records.and_then(|records| read(&records, &id)).map_err(|halt| from_halt(&halt))
    }

    /// Replaces the record, and returns the version that it will have.
    pub fn put<N: AsRef<str>, V: Into<Value>>(
        &mut self,
        record: &str,
        fields: impl IntoIterator<Item = (N, V)>,
        put: Put,
    ) -> Result<u64, Error> {
        self.write(record, OwnRecordOp::Put(record.to_owned(), owned(fields), put))
    }

    /// Writes and removes fields of a record; creates it if needed.
    pub fn set_fields<N: AsRef<str>>(
        &mut self,
        record: &str,
        fields: impl IntoIterator<Item = (N, Option<Value>)>,
    ) -> Result<u64, Error> {
        self.write(record, OwnRecordOp::Patch(record.to_owned(), owned_patches(fields)))
    }

    /// Adds to an integer field of a record, and returns the sum.
    pub fn increment(&mut self, record: &str, field: &str, by: i64) -> Result<i64, Error> {
        match self.outcome(record, OwnRecordOp::Increment(record.to_owned(), field.to_owned(), by))? {
            OpOutcome::Counted { value, .. } => Ok(value),
            other => Err(unexpected_answer("an increment in a transaction", &other)),
        }
    }

    /// Completes a claimed record.
    pub fn complete<N: AsRef<str>, V: Into<Value>>(
        &mut self,
        claimed: &Claimed,
        fields: impl IntoIterator<Item = (N, V)>,
    ) -> Result<u64, Error> {
        self.transaction.check_place(claimed.place)?;
        let fields = owned(fields).into_iter().map(|(field, value)| (field, Some(value))).collect();
        self.write(&claimed.name, OwnRecordOp::Complete(claimed.name.clone(), claimed.attempt, fields))
    }

    /// Releases a claimed record: it can be claimed at once, and the attempt does not count as failed.
    pub fn release(&mut self, claimed: &Claimed) -> Result<u64, Error> {
        self.transaction.check_place(claimed.place)?;
        self.write(&claimed.name, OwnRecordOp::Release(claimed.name.clone(), claimed.attempt))
    }

    /// Says that the attempt of a record failed: it will be tried again after a pause, or its budget is used up.
    pub fn fail(&mut self, claimed: &Claimed, error: &str) -> Result<Retry, Error> {
        self.transaction.check_place(claimed.place)?;
        let fields = owned_patches([("error", Some(Value::from(error)))]);
        retry(self.outcome(&claimed.name, OwnRecordOp::Fail(claimed.name.clone(), claimed.attempt, fields))?)
    }

    /// Sets how long a record will exist.
    pub fn set_ttl(&mut self, record: &str, ttl: Ttl) -> Result<u64, Error> {
        self.write(record, OwnRecordOp::Touch(record.to_owned(), ttl))
    }

    /// Deletes a record; false if there is none.
    pub fn delete(&mut self, record: &str) -> Result<bool, Error> {
        if self.get(record)?.is_none() {
            return Ok(false);
        }
        match self.outcome(record, OwnRecordOp::Delete(record.to_owned()))? {
            OpOutcome::Written(_) => Ok(true),
            OpOutcome::Nothing => Ok(false),
            other => Err(unexpected_answer("a deletion in a transaction", &other)),
        }
    }

    fn unchanged(&self, record: &str) -> OwnRecordGuard {
        OwnRecordGuard::UnchangedSince(record.to_owned(), self.transaction.seen_commit())
    }

    fn outcome(&mut self, record: &str, op: OwnRecordOp) -> Result<OpOutcome, Error> {
        // The answer says something about the record, even if it is a refusal.
        self.transaction.read(Subject::Record, record, self.unchanged(record))?;
        self.transaction.write(Subject::Record, record, self.unchanged(record), op)
    }

    fn write(&mut self, record: &str, op: OwnRecordOp) -> Result<u64, Error> {
        match self.outcome(record, op)? {
            OpOutcome::Written(version) => Ok(version),
            other => Err(unexpected_answer("a write in a transaction", &other)),
        }
    }
}
