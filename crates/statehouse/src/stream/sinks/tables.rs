//! Rows that are stored in one transaction with the id of their batch.
//!
//! Keeps: a batch whose id is not above the last one that was stored changes nothing. Never: trusts what it remembers: the id is
//! compared in the transaction that stores the rows.

use contract::{Error, Rejection, Value};

use crate::Group;

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
/// let group = house.group("totals");
/// let mut sink = TableSink::new(GroupTable::new(&group, "last-batch"));
/// assert!(sink.write(7, &[("hello".to_owned(), 3.into()), ("world".to_owned(), 1.into())])?);
/// assert!(!sink.write(7, &[("hello".to_owned(), 3.into())])?); // a replay
/// assert!(!sink.write(6, &[("hello".to_owned(), 2.into())])?); // one from before that
/// assert_eq!(group.cells().get("hello")?, Some(3.into()));
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

/// A table in the cells of a group: each row is a cell with its value, and the last id is a cell beside them.
///
/// Made from an [`OwnedGroup`](crate::OwnedGroup), whoever no longer owns the group is refused.
#[derive(Clone)]
pub struct GroupTable {
    group: Group,
    last_id: String,
}

impl GroupTable {
    /// A table in a group, whose last id is in the cell of this name.
    pub fn new(group: &Group, last_id: impl Into<String>) -> Self {
        Self { group: group.clone(), last_id: last_id.into() }
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
        Ok(id_in(self.group.cells().get(&self.last_id)?.as_ref()))
    }

    fn store(&mut self, rows: &[(String, Value)], id: u64, expected: Option<u64>) -> Result<bool, Error> {
        let limit = || Rejection::LimitExceeded { limit: "the id of a batch", max: i64::MAX.cast_unsigned(), got: id };
        let stored = Value::from(i64::try_from(id).map_err(|_| limit())?);
        self.group.transact(|all| {
            if id_in(all.get(&self.last_id)?.as_ref()) != expected {
                return Ok(false);
            }
            for (cell, value) in rows {
                all.set(cell, value.clone())?;
            }
            all.set(&self.last_id, stored.clone())?;
            Ok(true)
        })
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
        let group = house.group("totals");
        let first = group.own(&ClaimOptions::worker("w1")).expect("it is free");
        let mut sink = TableSink::new(GroupTable::new(&first, "last"));
        assert_eq!(sink.write(1, &[("a".to_owned(), 1.into())]), Ok(true));
        let second = group.forced().own(&ClaimOptions::worker("w2")).expect("by force");
        let refused = sink.write(2, &[("a".to_owned(), 2.into())]).expect_err("it was replaced");
        assert_eq!(refused.code(), "SH-4002");
        let mut sink = TableSink::new(GroupTable::new(&second, "last"));
        assert_eq!(sink.write(1, &[("a".to_owned(), 9.into())]), Ok(false));
        assert_eq!(sink.write(u64::MAX, &[]).expect_err("too large").code(), "SH-1002");
        assert_eq!(group.cells().get("a").expect("a cell"), Some(1.into()));
    }
}
