//! Results on stdout: as a table, as JSON, as JSON lines, or raw.
//!
//! Keeps: every command goes through here, so every format works for every command. JSON is what the API gave; tables are for people and
//! may change. What is for people, and whatever reaches a terminal, has no control characters but our ends of lines and colours: tables and
//! text spell them out, JSON escapes them, and raw bytes are given as they are only to a file or a pipe. Never: writes anything but
//! results to stdout.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use serde_json::Value as JsonValue;

use statehouse::shell::Suggested;
use statehouse::terminal;

use crate::exit::Failure;
use crate::paint::Color;
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
    /// The value alone; for a list, the names. On a terminal control characters are spelled out.
    Raw,
}

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) color: Color,
}

impl Output {
    /// One object.
    pub(crate) fn one(&self, found: &JsonValue, columns: &[Column]) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.table(std::slice::from_ref(found), columns),
            Format::Json => self.json(found),
            Format::Jsonl => self.json_line(found),
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
            Format::Table => self.table(rows, columns),
            Format::Json => self.json(found),
            Format::Jsonl => rows.iter().try_for_each(|row| self.json_line(row)),
            Format::Raw => rows.iter().try_for_each(|row| self.raw_row(row, columns)),
        }
    }

    /// A row of something that goes on: one line at once.
    pub(crate) fn row(&self, row: &JsonValue, columns: &[Column]) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.line(&table::line(row, columns)),
            Format::Json | Format::Jsonl => self.json_line(row),
            Format::Raw => self.raw_row(row, columns),
        }
    }

    /// Text that is made for people; in JSON it is what `found` says.
    pub(crate) fn told(&self, text: &str, found: &JsonValue) -> Result<(), Failure> {
        match self.format {
            Format::Table | Format::Raw => {
                let text = terminal::lines(text.trim_end());
                self.bytes((self.color.for_stdout().screen(&text).trim_end().to_owned() + "\n").as_bytes())
            }
            Format::Json => self.json(found),
            Format::Jsonl => self.json_line(found),
        }
    }

    /// Rows under their titles.
    pub(crate) fn table(&self, rows: &[JsonValue], columns: &[Column]) -> Result<(), Failure> {
        let text = terminal::lines(&table::rows(rows, columns, self.columns()));
        let (titles, rest) = text.split_once('\n').unwrap_or((&text, ""));
        self.bytes(format!("{}\n{rest}\n", self.color.for_stdout().title(titles)).as_bytes())
    }

    /// How many columns the terminal has, if stdout is one.
    pub(crate) fn columns(&self) -> Option<usize> {
        columns_of(std::io::stdout())
    }

    /// Something for a person that is no result: to stderr, and only beside a table.
    pub(crate) fn note(&self, note: &str) -> Result<(), Failure> {
        if self.format == Format::Table {
            eprintln!("{}", terminal::one_line(note));
        }
        Ok(())
    }

    /// That long work is done: below its progress bar, and only where that was seen.
    pub(crate) fn done(&self, note: &str) -> Result<(), Failure> {
        if std::io::stderr().is_terminal() { self.note(note) } else { Ok(()) }
    }

    /// That a list goes on, with the flag that the next page needs, as a shell reads it.
    pub(crate) fn more(&self, note: &str, flag: &str, value: &str) -> Result<(), Failure> {
        self.note(&format!("{note}: {}", Suggested::new(Vec::<String>::new()).flag(flag, value).shell()))
    }

    /// Whether a person looks on.
    pub(crate) fn seen(&self) -> bool {
        self.format == Format::Table && std::io::stdout().is_terminal()
    }

    fn json(&self, found: &JsonValue) -> Result<(), Failure> {
        self.bytes((terminal::json(&raw_json::pretty(found)) + "\n").as_bytes())
    }

    fn json_line(&self, found: &JsonValue) -> Result<(), Failure> {
        self.bytes((terminal::json(&raw_json::line(found)) + "\n").as_bytes())
    }

    /// The column that is marked as raw, exactly as it is, or spelled out on a terminal; the whole object without one.
    fn raw(&self, found: &JsonValue, columns: &[Column]) -> Result<(), Failure> {
        let Some(column) = columns.iter().find(|column| column.raw) else {
            return self.json_line(found);
        };
        let bytes = raw_json::to_bytes(column.find(found));
        match std::io::stdout().is_terminal() {
            true => self.line(&terminal::lines(&String::from_utf8_lossy(&bytes))),
            false => self.bytes(&bytes),
        }
    }

    /// The same for a row among others: it takes one line on a terminal, and ends one in a file.
    fn raw_row(&self, found: &JsonValue, columns: &[Column]) -> Result<(), Failure> {
        let Some(column) = columns.iter().find(|column| column.raw) else {
            return self.json_line(found);
        };
        let bytes = raw_json::to_bytes(column.find(found));
        match std::io::stdout().is_terminal() {
            true => self.line(&terminal::one_line(&String::from_utf8_lossy(&bytes))),
            false => self.bytes(&[&bytes[..], b"\n"].concat()),
        }
    }

    /// Lines for people.
    pub(crate) fn line(&self, text: &str) -> Result<(), Failure> {
        self.bytes((terminal::lines(text) + "\n").as_bytes())
    }

    /// Clears a terminal: what follows stands in its upper left.
    pub(crate) fn clear_screen(&self) -> Result<(), Failure> {
        self.bytes(b"\x1b[H\x1b[2J")
    }

    fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::nobody_reads(),
            _ => Failure::other(format!("stdout cannot be written: {error}")),
        })
    }
}

/// How many columns the terminal of a stream has; none if it is no terminal.
pub(crate) fn columns_of(stream: impl std::os::fd::AsFd + IsTerminal) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(stream).map(|size| usize::from(size.ws_col));
    Some(columns.ok().filter(|columns| *columns > 0).unwrap_or(terminal::COLUMNS))
}
