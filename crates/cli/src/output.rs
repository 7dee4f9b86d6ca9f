//! Results on stdout: as a table, as JSON, as JSON lines, or raw.
//!
//! Keeps: every command goes through here, so every format works for every command. JSON is what the API gave; tables are for people and
//! may change. Never: writes anything but results to stdout.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use serde_json::Value as JsonValue;

use crate::exit::Failure;
use crate::raw_json;
use crate::table::{self, Column};

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// One JSON document.
    Json,
    /// One line of JSON for each row.
    Jsonl,
    /// The value alone; for a list, the names.
    Raw,
}

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: Format,
}

impl Output {
    /// One object.
    pub(crate) fn one(&self, found: &JsonValue, columns: &[Column]) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.line(&table::rows(std::slice::from_ref(found), columns)),
            Format::Json => self.json(found),
            Format::Jsonl => self.line(&raw_json::line(found)),
            Format::Raw => self.raw(found, columns),
        }
    }

    /// One object with one line for each part, where a row would be too wide.
    pub(crate) fn card(&self, found: &JsonValue, columns: &[Column]) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.line(&table::card(found, columns)),
            _ => self.one(found, columns),
        }
    }

    /// The rows under `key` of what was found.
    pub(crate) fn list(&self, found: &JsonValue, key: &str, columns: &[Column]) -> Result<(), Failure> {
        let rows = found[key].as_array().map(Vec::as_slice).unwrap_or_default();
        match self.format {
            Format::Table if rows.is_empty() => self.note("nothing found"),
            Format::Table => self.line(&table::rows(rows, columns)),
            Format::Json => self.json(found),
            Format::Jsonl => rows.iter().try_for_each(|row| self.line(&raw_json::line(row))),
            Format::Raw => rows.iter().try_for_each(|row| {
                self.raw(row, columns)?;
                self.end_of_raw_row()
            }),
        }
    }

    /// A row of something that goes on: one line at once.
    pub(crate) fn row(&self, row: &JsonValue, columns: &[Column]) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.line(&table::line(row, columns)),
            Format::Json | Format::Jsonl => self.line(&raw_json::line(row)),
            Format::Raw => {
                self.raw(row, columns)?;
                self.end_of_raw_row()
            }
        }
    }

    /// Text that is made for people; in JSON it is what `found` says.
    pub(crate) fn told(&self, text: &str, found: &JsonValue) -> Result<(), Failure> {
        match self.format {
            Format::Table | Format::Raw => self.line(text.trim_end()),
            Format::Json => self.json(found),
            Format::Jsonl => self.line(&raw_json::line(found)),
        }
    }

    /// Something for a person that is no result: to stderr, and only beside a table.
    pub(crate) fn note(&self, note: &str) -> Result<(), Failure> {
        if self.format == Format::Table {
            eprintln!("{note}");
        }
        Ok(())
    }

    /// Whether a person looks on.
    pub(crate) fn seen(&self) -> bool {
        self.format == Format::Table && std::io::stdout().is_terminal()
    }

    fn json(&self, found: &JsonValue) -> Result<(), Failure> {
        self.line(&raw_json::pretty(found))
    }

    /// The column that is marked as raw, exactly as it is; the whole object without one.
    fn raw(&self, found: &JsonValue, columns: &[Column]) -> Result<(), Failure> {
        match columns.iter().find(|column| column.raw) {
            Some(column) => {
                self.bytes(&raw_json::to_bytes(column.find(found)))?;
                if std::io::stdout().is_terminal() { self.bytes(b"\n") } else { Ok(()) }
            }
            None => self.line(&raw_json::line(found)),
        }
    }

    /// Rows stand on lines of their own; on a terminal each ends with one already.
    fn end_of_raw_row(&self) -> Result<(), Failure> {
        if std::io::stdout().is_terminal() { Ok(()) } else { self.bytes(b"\n") }
    }

    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        self.bytes(format!("{text}\n").as_bytes())
    }

    fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::nobody_reads(),
            _ => Failure::other(format!("stdout cannot be written: {error}")),
        })
    }
}
