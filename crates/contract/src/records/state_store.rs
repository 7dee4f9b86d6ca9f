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

    /// The matching records whose names start with a prefix, in name order.
    fn scan(&self, prefix: &str, filter: Option<&ScanFilter>) -> Result<Vec<(String, PortableRecord)>, Error>;

    /// Whether the store answers.
    fn ping(&self) -> bool;
}
