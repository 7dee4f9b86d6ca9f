//! The portable contract of records: what every backend provides, with bytes for values.
//!
//! Each call is atomic; calls on several keys are separate commits. A backend with more features offers them beside
//! this.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::Error;

/// A record in the portable contract.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PortableRecord {
    /// Fields and values.
    pub fields: BTreeMap<String, Vec<u8>>,
    /// Its remaining time to live, if it has one. Read only: an argument sets the TTL.
    pub ttl: Option<Duration>,
}

/// How a field is compared in a scan. Fields that hold numbers are compared as numbers, all others by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Eq,
    /// Less.
    Lt,
    /// Greater.
    Gt,
}

impl Comparison {
    /// Whether a field that compares so to the operand matches.
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Lt => order.is_lt(),
            Comparison::Gt => order.is_gt(),
        }
    }
}

/// A condition of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanFilter {
    /// The field.
    pub field: String,
    /// The comparison.
    pub op: Comparison,
    /// The operand.
    pub value: Vec<u8>,
    /// The maximum number of records; none for no maximum.
    pub max_results: Option<u32>,
}

/// Records as a scan finds them.
pub type PortableScan<'store> = Box<dyn Iterator<Item = Result<(String, PortableRecord), Error>> + 'store>;

/// Items that come in pages; each page is fetched when the one before is used up, with the cursor that it gave. A failure is
/// the last item.
///
/// ```
/// use statehouse_contract::records::state_store::by_pages;
/// let pages = by_pages(|after: Option<u32>| {
///     let first = after.unwrap_or(0);
///     Ok((vec![first, first + 1], (first < 4).then_some(first + 2)))
/// });
/// assert_eq!(pages.map(|item| item.unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
/// ```
pub fn by_pages<Item, Cursor>(
    mut fetch: impl FnMut(Option<Cursor>) -> Result<(Vec<Item>, Option<Cursor>), Error>,
) -> impl Iterator<Item = Result<Item, Error>> {
    let mut page = Vec::new().into_iter();
    // The cursor of the next page; the first has none.
    let mut next = Some(None);
    std::iter::from_fn(move || {
        loop {
            if let Some(item) = page.next() {
                return Some(Ok(item));
            }
            match fetch(next.take()?) {
                Ok((items, cursor)) => (page, next) = (items.into_iter(), cursor.map(Some)),
                Err(error) => return Some(Err(error)),
            }
        }
    })
}

/// The portable store. Values are bytes; a text field of a type takes UTF-8, a number field decimal digits.
pub trait StateStore {
    /// The record, or none.
    fn get(&self, key: &str) -> Result<Option<PortableRecord>, Error>;

    /// Replaces the record. Without a TTL it lives forever.
    fn put(&self, key: &str, fields: &BTreeMap<String, Vec<u8>>, ttl: Option<Duration>) -> Result<(), Error>;

    /// Deletes the record, if it exists.
    fn delete(&self, key: &str) -> Result<(), Error>;

    /// The value of a field.
    fn get_field(&self, key: &str, field: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Writes a field, and creates the record if needed. Its TTL stays unchanged.
    fn set_field(&self, key: &str, field: &str, value: &[u8]) -> Result<(), Error> {
        self.set_fields(key, &BTreeMap::from([(field.to_owned(), Some(value.to_vec()))]))
    }

    /// Writes fields, all or none; a value of none removes the field.
    fn set_fields(&self, key: &str, fields: &BTreeMap<String, Option<Vec<u8>>>) -> Result<(), Error>;

    /// Writes a field if it holds the expected value; none expects that it does not exist. True if it was written.
    fn compare_and_swap(&self, key: &str, field: &str, expected: Option<&[u8]>, new: &[u8]) -> Result<bool, Error>;

    /// The matching records whose names start with a prefix, in name order, read as the caller goes on. A failure is the
    /// last item.
    fn scan(&self, prefix: &str, filter: Option<&ScanFilter>) -> PortableScan<'_>;

    /// Whether the store answers.
    fn ping(&self) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rejection;

    #[test]
    fn a_page_is_fetched_when_it_is_needed_and_a_failure_ends_it() {
        let mut fetched = 0;
        let mut items = by_pages(|after: Option<u32>| {
            fetched += 1;
            match after {
                None => Ok((vec![1, 2], Some(2))),
                Some(2) => Ok((Vec::new(), Some(3))),
                Some(_) => Err(Rejection::MainBranch.into()),
            }
        });
        assert_eq!((items.next(), items.next()), (Some(Ok(1)), Some(Ok(2))));
        assert_eq!((items.next(), items.next()), (Some(Err(Rejection::MainBranch.into())), None));
        drop(items);
        assert_eq!(fetched, 3, "also behind an empty page");
        let mut fetched = 0;
        let first = by_pages(|_: Option<u32>| {
            fetched += 1;
            Ok((vec![1, 2], Some(2)))
        })
        .next();
        assert_eq!((first, fetched), (Some(Ok(1)), 1));
    }
}
