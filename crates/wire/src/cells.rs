//! Requests and answers of the routes for cells; operations and conditions on cells.

use std::fmt;

use contract::Moment;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use serde_json::{Value as JsonValue, json};

use crate::error::DecodeError;
use crate::reader::read_as_first_of;
use crate::schema::{Described, Schemas, left_out, object, words};
use crate::transactions::guards::{guards, only_true};
use crate::transactions::operation::operations;
use crate::values::{PageCursor, UserJson};

object! {
    /// Selects cells to list.
    request ListCells {
        /// Only names with this prefix.
        prefix: Option<String>,
        /// The cursor of the previous page.
        cursor: Option<PageCursor>,
        /// Maximum number of cells.
        limit: Option<u64>,
    }

    /// Selects what to read of a cell.
    request ReadCell {
        /// Reads it as it was at a version, or at a time in RFC 3339.
        at: Option<MomentText>,
        /// `history`: its versions, newest first.
        view: Option<View>,
        /// For the history: only versions below this one.
        before: Option<u64>,
        /// For the history: maximum number of versions.
        limit: Option<u64>,
    }

    /// A cell.
    answer Cell {
        /// Its name.
        name: String,
        /// Its group, in a listing, if it has one.
        group["Option::is_none"]: Option<String>,
        /// Counts its writes.
        version: u64,
        /// The commit of its last write.
        commit: u64,
        /// When it was last written.
        updated_at: String,
        /// Its value.
        value: UserJson,
    }

    /// A version of a cell.
    answer CellVersion {
        /// The version.
        version: u64,
        /// Whether this version is a deletion.
        deleted: bool,
        /// Its commit.
        commit: u64,
        /// When it was written.
        updated_at: String,
        /// Its value; null for a deletion.
        value: UserJson,
    }

    /// The versions of a cell, newest first.
    answer CellHistory {
        /// Its name.
        name: String,
        /// The versions.
        versions: Vec<CellVersion>,
        /// Where the next page starts, if there is one.
        next_before: Option<u64>,
    }

    /// A page of cells, from one view.
    answer CellList {
        /// The cells, in name order.
        cells: Vec<Cell>,
        /// Where the next page starts, if there is one.
        cursor: Option<PageCursor>,
    }

    /// A cell that now exists.
    answer InitialisedCell {
        /// Its name.
        name: String,
        /// Its version.
        version: u64,
        /// Whether this request created it; an existing cell is left unchanged.
        created: bool,
    }
}

object! {
    /// Writes a cell.
    request CellSet {
        /// The cell.
        name: String,
        /// Its value.
        value: UserJson,
    }

    /// Creates a cell if it does not exist.
    request CellInit {
        /// The cell.
        name: String,
        /// Its value.
        value: UserJson,
    }

    /// Deletes a cell.
    request CellDelete {
        /// The cell.
        name: String,
    }

    /// The cells of the group from a name on.
    request CellRange {
        /// The first name.
        from: String,
        /// The name before which they end; without it they go to the last.
        before: Option<String>,
    }
}

operations! {
    /// An operation on a cell, in a transaction.
    CellOperation {
        /// Writes a cell.
        Set(CellSet) = "cell.set",
        /// Creates a cell if it does not exist.
        Init(CellInit) = "cell.init",
        /// Deletes a cell.
        Delete(CellDelete) = "cell.delete",
    }
}

guards! {
    /// The conditions on a cell or on a range of cells. All of them must hold.
    CellGuard about {
        /// The cell.
        cell: String = "a cell", if version | version_below | absent | exists | unchanged_since;
        /// The range of cells.
        cells: CellRange = "cells", if unchanged_since;
    } conditions {
        /// Its version.
        version: u64;
        /// The cell is at a lower version, or does not exist.
        version_below: u64;
        /// `true`: it does not exist.
        absent: bool;
        /// `true`: it exists.
        exists: bool;
        /// No commit after this one has written it; of a range, written any of it.
        unchanged_since: u64;
    }
}

impl CellGuard {
    fn could_hold(&self) -> Result<(), DecodeError> {
        only_true(&[("absent", self.absent), ("exists", self.exists)])
    }
}

left_out! {
    ListCells { prefix, cursor, limit }
    ReadCell { at, view, before, limit }
}

words! {
    /// What to read of a cell.
    View {
        /// Its versions.
        History = "history",
    }
}

/// A cell or its history.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum CellRead {
    /// The history, for `view=history`.
    History(CellHistory),
    /// The cell.
    Cell(Cell),
}

read_as_first_of!(CellRead: History(CellHistory), Cell(Cell));

impl Described for CellRead {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "anyOf": [Cell::schema(schemas), CellHistory::schema(schemas)] })
    }
}

/// A version, or a time in RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MomentText(pub Moment);

impl Serialize for MomentText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Moment::Version(version) => serializer.collect_str(&version),
            Moment::Time(us) => serializer.serialize_str(&contract::time::iso(us)),
        }
    }
}

impl<'de> Deserialize<'de> for MomentText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl Visitor<'_> for Reading {
            type Value = MomentText;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a version, or a time in RFC 3339")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<MomentText, E> {
                let moment = text.parse().ok().map(Moment::Version);
                let moment = moment.or_else(|| contract::time::parse_iso(text).map(Moment::Time));
                let refused = || E::custom(format!("{text:?} is neither a version nor a time in RFC 3339"));
                moment.map(MomentText).ok_or_else(refused)
            }
        }

        deserializer.deserialize_str(Reading)
    }
}

impl Described for MomentText {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "string", "description": "A version, or a time in RFC 3339" })
    }
}
