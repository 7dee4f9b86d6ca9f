//! The lists that each contract is in: operations of a transaction, their results, conditions, and kinds of things in the
//! change feed. Everything else about a contract is in its file or folder.

use std::sync::LazyLock;

use contract::Subject;
use serde::de::{self, Deserialize, Deserializer};
use serde::ser::SerializeMap;
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::cells::{CellOperation, CellRange};
use crate::error::{DecodeError, pass};
use crate::reader::{from_json_text, read_as_first_of};
use crate::records::operations::{FailedOperation, RecordOperation};
use crate::runs::{Appended, RunOperation};
use crate::schema::{Described, Schemas, object, words};
use crate::transactions::messages::{MessageOperation, Sent};
use crate::transactions::operation::{OperationHead, Operations};
use crate::transactions::{NothingDone, WrittenOperation};
use crate::values::UserJson;

macro_rules! operation {
    ($( $(#[doc = $says:literal])* $contract:ident($operations:ident), )*) => {
        /// One operation of a transaction: an object with its name in `op`.
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(untagged)]
        pub enum Operation {
            $( $(#[doc = $says])* $contract($operations), )*
        }

        /// Every operation by name.
        static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| [$($operations::NAMES),*].concat());

        fn operation(raw: &str) -> Result<Operation, DecodeError> {
            let OperationHead { op } = from_json_text(raw)?;
            $(if let Some(read) = $operations::read(&op, raw) {
                return read.map(Operation::$contract);
            })*
            let unknown: DecodeError = de::Error::unknown_variant(&op, &NAMES);
            Err(unknown.in_member("op"))
        }

        impl Described for Operation {
            fn schema(schemas: &mut Schemas) -> JsonValue {
                let choices = [$($operations::schemas(schemas)),*].concat();
                json!({ "oneOf": choices })
            }
        }
    };
}

operation! {
    /// On a cell.
    Cell(CellOperation),
    /// On a record.
    Record(RecordOperation),
    /// On a run.
    Run(RunOperation),
    /// Sends something.
    Message(MessageOperation),
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        operation(raw).map_err(pass)
    }
}

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Done {
    /// An event was appended.
    Appended(Appended),
    /// A cell or a record was written or deleted, or a cell already existed.
    Written(WrittenOperation),
    /// There was nothing to delete.
    Nothing(NothingDone),
    /// An attempt failed.
    Failed(FailedOperation),
    /// A message or a push was sent.
    Sent(Sent),
}

impl Done {
    /// An attempt failed: the record is retried after this time, or its attempts are used up.
    pub fn failed(retry_in_ms: Option<u64>) -> Self {
        Self::Failed(FailedOperation { retry_in_ms, exhausted: retry_in_ms.is_none() })
    }
}

read_as_first_of!(Done:
    Appended(Appended), Written(WrittenOperation), Nothing(NothingDone), Failed(FailedOperation), Sent(Sent)
);

impl Described for Done {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "anyOf": [
            WrittenOperation::schema(schemas),
            Appended::schema(schemas),
            NothingDone::schema(schemas),
            FailedOperation::schema(schemas),
            Sent::schema(schemas),
        ] })
    }
}

object! {
    /// The conditions on a cell, on a range of cells, on a record or on a run. All of them must hold.
    request GuardMembers {
        /// The cell.
        cell: Option<String>,
        /// The range of cells.
        cells: Option<CellRange>,
        /// The record.
        record: Option<String>,
        /// The run.
        run: Option<String>,
        /// The version of the cell or the record.
        version: Option<u64>,
        /// The cell is at a lower version, or does not exist.
        version_below: Option<u64>,
        /// `true`: it does not exist.
        absent: Option<bool>,
        /// `true`: it exists.
        exists: Option<bool>,
        /// No commit after this one has written it; of a range, written any of it.
        unchanged_since: Option<u64>,
        /// The states that the record may be in.
        state_in: Option<Vec<String>>,
        /// The record's attempt, live or not.
        attempt: Option<u64>,
        /// A field of the record.
        field: Option<String>,
        /// The expected value of the field; null expects that it does not exist.
        is: Option<UserJson>,
        /// The sequence of the run's last event; 0 expects that there was never such a run. A deleted run is refused.
        last: Option<u64>,
    }
}

/// Each thing that a guard can be about: its member, its name in a sentence, and its conditions.
pub(crate) const GUARDED: [(&str, &str, &[&str]); 4] = [
    ("cell", "a cell", &["version", "version_below", "absent", "exists", "unchanged_since"]),
    ("cells", "cells", &["unchanged_since"]),
    ("record", "a record", &["version", "absent", "exists", "unchanged_since", "state_in", "attempt", "field"]),
    ("run", "a run", &["last"]),
];

impl GuardMembers {
    /// The conditions that are set, by name.
    pub(crate) fn conditions(&self) -> Vec<&'static str> {
        let all = [
            ("version", self.version.is_some()),
            ("version_below", self.version_below.is_some()),
            ("absent", self.absent.is_some()),
            ("exists", self.exists.is_some()),
            ("unchanged_since", self.unchanged_since.is_some()),
            ("state_in", self.state_in.is_some()),
            ("attempt", self.attempt.is_some()),
            ("field", self.field.is_some()),
            ("last", self.last.is_some()),
        ];
        all.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
    }

    /// Which of the things the guard is about, in the order of [`GUARDED`].
    pub(crate) fn things(&self) -> [bool; GUARDED.len()] {
        [self.cell.is_some(), self.cells.is_some(), self.record.is_some(), self.run.is_some()]
    }

    /// Writes only the members that are set: `is` belongs to a field, and is null where the field must not exist.
    pub(crate) fn write_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let GuardMembers {
            cell,
            cells,
            record,
            run,
            version,
            version_below,
            absent,
            exists,
            unchanged_since,
            state_in,
            attempt,
            field,
            is,
            last,
        } = self;
        for (name, text) in [("cell", cell), ("record", record), ("run", run), ("field", field)] {
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        if let Some(cells) = cells {
            map.serialize_entry("cells", cells)?;
        }
        if field.is_some() {
            map.serialize_entry("is", is)?;
        }
        let numbers = [
            ("version", version),
            ("version_below", version_below),
            ("unchanged_since", unchanged_since),
            ("attempt", attempt),
            ("last", last),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                map.serialize_entry(name, number)?;
            }
        }
        for (name, flag) in [("absent", absent), ("exists", exists)] {
            if let Some(flag) = flag {
                map.serialize_entry(name, flag)?;
            }
        }
        if let Some(states) = state_in {
            map.serialize_entry("state_in", states)?;
        }
        Ok(())
    }
}

words! {
    /// The kind of thing that changed.
    SubjectText {
        /// A cell.
        Cell = "cell",
        /// A record.
        Record = "record",
        /// A message.
        Message = "message",
        /// A run.
        Run = "run",
        /// Something newer than this release.
        Other = "other",
    }
}

impl From<Subject> for SubjectText {
    fn from(subject: Subject) -> Self {
        match subject {
            Subject::Cell => SubjectText::Cell,
            Subject::Record => SubjectText::Record,
            Subject::Message => SubjectText::Message,
            Subject::Run => SubjectText::Run,
            _ => SubjectText::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_contracts_share_the_name_of_an_operation() {
        let unique: BTreeSet<_> = NAMES.iter().collect();
        assert_eq!(unique.len(), NAMES.len(), "{:?}", *NAMES);
    }
}
