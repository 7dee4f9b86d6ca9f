//! Rows that are stored in one transaction with the id of their batch.
//!
//! Keeps: a batch whose id is not above the last one that was stored changes nothing. Never: trusts what it remembers: the id is
//! compared in the transaction that stores the rows.

use std::collections::BTreeMap;

use contract::{CellRejection, Error, Rejection, Value};

use crate::Group;
use crate::keyed::MapUpdates;

/// A table that stores rows and an id in one transaction.
///
/// # Duties
/// - Rows and id are stored together or not at all, durably.
/// - They are stored only if the last id is still the expected one, whoever else writes.
pub trait Table {
    /// What it stores.
    type Row;
    /// Why it could not.
    type Error;

    /// The id of the last batch.
    fn last_id(&self) -> Result<Option<u64>, Self::Error>;

    /// Stores rows and their id, if the last id is `expected`; otherwise changes nothing and returns false.
    fn store(&mut self, rows: &[Self::Row], id: u64, expected: Option<u64>) -> Result<bool, Self::Error>;
}

/// A sink of rows in a table, which skips what it has stored before. Ids rise: the number of a commit, for instance.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::stream::sinks::{GroupTable, TableSink};
/// let group = house.group("shop");
/// let mut sink = TableSink::new(GroupTable::new(&group, "totals"));
/// assert!(sink.write(7, &[("hello".to_owned(), 3.into()), ("world".to_owned(), 1.into())])?);
/// assert!(!sink.write(7, &[("hello".to_owned(), 3.into())])?); // a replay
/// assert!(!sink.write(6, &[("hello".to_owned(), 2.into())])?); // one from before that
/// assert_eq!(group.maps().get("totals", b"hello")?.map(|found| found.value), Some(3.into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TableSink<T> {
    table: T,
}

impl<T: Table> TableSink<T> {
    /// The sink in a table.
    pub fn new(table: T) -> Self {
        Self { table }
    }

    /// Stores a batch, unless it was stored before or is older than what was. Returns whether this call has stored it.
    pub fn write(&mut self, id: u64, rows: &[T::Row]) -> Result<bool, T::Error> {
        loop {
            let last = self.table.last_id()?;
            if last.is_some_and(|last| last >= id) {
                return Ok(false);
            }
            // If another one has stored a batch since, the next round sees it: ids only rise.
            if self.table.store(rows, id, last)? {
                return Ok(true);
            }
        }
    }

    /// The table.
    pub fn table(&self) -> &T {
        &self.table
    }
}

/// A table in a map of a group: each row is a key, a name of 1 to 1,024 bytes, with its value and the id of its batch as its version.
/// The last id is in the cell of the group that has the name of the map. Nobody else may write them.
///
/// A batch has at most 10,000 rows (`keyed_updates_max`), within the bytes of a transaction (`transaction_bytes_max`), and its id is at
/// most `i64::MAX`; a larger one is refused by name, and nothing of it is stored (SH-1002).
///
/// Made from an [`OwnedGroup`](crate::OwnedGroup), whoever no longer owns the group is refused.
#[derive(Clone)]
pub struct GroupTable {
    group: Group,
    map: String,
}

impl GroupTable {
    /// A table in the map of this name, which is created by the first batch.
    pub fn new(group: &Group, map: impl Into<String>) -> Self {
        Self { group: group.clone(), map: map.into() }
    }
}

/// Anything else than an id is none.
fn id_in(value: Option<&Value>) -> Option<u64> {
    value.and_then(Value::as_integer).and_then(|id| id.try_into().ok())
}

impl Table for GroupTable {
    type Row = (String, Value);
    type Error = Error;

    fn last_id(&self) -> Result<Option<u64>, Error> {
        Ok(id_in(self.group.cells().get(&self.map)?.as_ref()))
    }

    fn store(&mut self, rows: &[(String, Value)], id: u64, expected: Option<u64>) -> Result<bool, Error> {
        let limit = || Rejection::LimitExceeded { limit: "the id of a batch", max: i64::MAX.cast_unsigned(), got: id };
        let stored = Value::from(i64::try_from(id).map_err(|_| limit())?);
        let last = self.group.cells().get_versioned(&self.map)?;
        if id_in(last.as_ref().map(|last| &last.value)) != expected {
            return Ok(false);
        }
        // Of a row that is there twice the last one counts. Two puts of one version would be a conflict.
        let latest: BTreeMap<_, _> = rows.iter().map(|(row, value)| (row, value)).collect();
        let mut updates = MapUpdates::new();
        latest.into_iter().for_each(|(row, value)| updates.add_put(row.as_bytes(), value, id.into()));
        let commit = match last {
            Some(last) => self.group.commit().if_cell_version(&self.map, last.version),
            None => self.group.commit().if_cell_absent(&self.map),
        };
        match commit.update_map(&self.map, updates).set_cell(&self.map, stored).run() {
            // Another one has stored a batch since.
            Err(Error::Rejected(Rejection::Cell(CellRejection::Conflict { .. }))) => Ok(false),
            stored => stored.map(|_| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Statehouse;
    use crate::records::ClaimOptions;

    /// A table in which another one stores batch 5 just before the first batch.
    #[derive(Default)]
    struct Raced {
        stored: Vec<(u64, u32)>,
        raced: bool,
    }

    impl Table for Raced {
        type Row = u32;
        type Error = std::convert::Infallible;

        fn last_id(&self) -> Result<Option<u64>, Self::Error> {
            Ok(self.stored.last().map(|(id, _)| *id))
        }

        fn store(&mut self, rows: &[u32], id: u64, expected: Option<u64>) -> Result<bool, Self::Error> {
            if !std::mem::replace(&mut self.raced, true) {
                self.stored.push((5, 50));
            }
            let fits = self.last_id()? == expected;
            if fits {
                self.stored.extend(rows.iter().map(|row| (id, *row)));
            }
            Ok(fits)
        }
    }

    #[test]
    fn two_writers_store_each_batch_once() {
        let mut sink = TableSink::new(Raced::default());
        assert_eq!(sink.write(5, &[50]), Ok(false), "the other one was first");
        assert_eq!(sink.write(6, &[60]), Ok(true));
        assert_eq!(sink.table().stored, [(5, 50), (6, 60)]);
        let mut sink = TableSink::new(Raced::default());
        assert_eq!(sink.write(6, &[60]), Ok(true), "the other one was before it");
        assert_eq!(sink.table().stored, [(5, 50), (6, 60)]);
    }

    #[test]
    fn a_replaced_owner_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("a house");
        let group = house.group("shop");
        let first = group.own(&ClaimOptions::worker("w1")).expect("it is free");
        let mut sink = TableSink::new(GroupTable::new(&first, "totals"));
        assert_eq!(sink.write(1, &[("a".to_owned(), 1.into())]), Ok(true));
        let second = group.forced().own(&ClaimOptions::worker("w2")).expect("by force");
        let refused = sink.write(2, &[("a".to_owned(), 2.into())]).expect_err("it was replaced");
        assert_eq!(refused.code(), "SH-4002");
        let mut sink = TableSink::new(GroupTable::new(&second, "totals"));
        assert_eq!(sink.write(1, &[("a".to_owned(), 9.into())]), Ok(false));
        assert_eq!(sink.write(u64::MAX, &[]).expect_err("too large").code(), "SH-1002");
        assert_eq!(value(&group, "a"), Some(1.into()));
    }

    fn value(group: &Group, row: &str) -> Option<Value> {
        group.maps().get("totals", row.as_bytes()).expect("a map").map(|found| found.value)
    }

    #[test]
    fn a_batch_may_have_as_many_rows_as_a_commit_has_updates() {
        let directory = tempfile::tempdir().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("a house");
        let group = house.group("shop");
        let mut sink = TableSink::new(GroupTable::new(&group, "totals"));
        let rows =
            |count: i64, value: i64| -> Vec<_> { (0..count).map(|row| (row.to_string(), value.into())).collect() };
        assert_eq!(sink.write(1, &rows(10_000, 1)), Ok(true));
        let refused = sink.write(2, &rows(10_001, 2)).expect_err("too many").to_string();
        assert!(refused.contains("10001 exceeds keyed_updates_max = 10000"), "{refused}");
        assert_eq!(sink.table().last_id(), Ok(Some(1)), "nothing of it is stored");
        let twice = [("7".to_owned(), 2.into()), ("7".to_owned(), 3.into())];
        assert_eq!(sink.write(2, &twice), Ok(true));
        assert_eq!((value(&group, "7"), value(&group, "9999")), (Some(3.into()), Some(1.into())));
        assert_eq!(sink.write(3, &[]), Ok(true), "an empty one counts, too");
        assert_eq!(sink.table().last_id(), Ok(Some(3)));
    }

    #[test]
    fn threads_that_write_the_same_batches_store_each_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("a house");
        let group = house.group("shop");
        let write = |_| {
            let mut sink = TableSink::new(GroupTable::new(&group, "totals"));
            let row = |id: u64| ("sum".to_owned(), Value::from(i64::try_from(id).expect("small")));
            (1..=20).filter(|id| sink.write(*id, &[row(*id)]).expect("written")).count()
        };
        let stored: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|thread| scope.spawn(move || write(thread))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert!(stored <= 20, "{stored}");
        assert_eq!(value(&group, "sum"), Some(20.into()));
    }
}
