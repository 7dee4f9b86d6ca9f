//! Results on stdout: as a table, JSON, JSON lines or raw.
//!
//! Keeps: every command prints through here, so every format works for every command. JSON is the API's answer; tables are for people and
//! may change. Output for people or for a terminal has no control characters except our own line ends and colours: tables and text spell
//! them out, JSON escapes them, and only a file or a pipe gets raw bytes unchanged. Never: writes anything but results to stdout.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use serde_json::Value as JsonValue;

use statehouse::shell::Suggested;
use statehouse::terminal;

use crate::exit::Failure;
use crate::paint::Color;
use crate::raw_json;
use crate::table::{self, Column};

/// Format of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// One JSON document.
    Json,
    /// One line of JSON per row.
    Jsonl,
    /// The value alone; for a list, the names. On a terminal, control characters are spelled out.
    Raw,
}

/// Prints results to stdout in the chosen format and colour.
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

    /// One object, one line per part, where a row would be too wide.
    pub(crate) fn card(&self, found: &JsonValue, columns: &[Column]) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.line(&table::card(found, columns)),
            _ => self.one(found, columns),
        }
    }

    /// The rows under `key` of an answer.
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

    /// A row of a list without an end, printed at once as one line.
    pub(crate) fn row(&self, row: &JsonValue, columns: &[Column]) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.line(&table::line(row, columns)),
            Format::Json | Format::Jsonl => self.json_line(row),
            Format::Raw => self.raw_row(row, columns),
        }
    }

    /// Text for people; `found` in JSON formats.
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

    /// The width of the terminal, if stdout is one.
    pub(crate) fn columns(&self) -> Option<usize> {
        columns_of(std::io::stdout())
    }

    /// A note for people that is not a result: goes to stderr, and only with the table format.
    pub(crate) fn note(&self, note: &str) -> Result<(), Failure> {
        if self.format == Format::Table {
            eprintln!("{}", terminal::one_line(note));
        }
        Ok(())
    }

    /// Reports the end of long work below its progress bar, if that was visible.
    pub(crate) fn done(&self, note: &str) -> Result<(), Failure> {
        if std::io::stderr().is_terminal() { self.note(note) } else { Ok(()) }
    }

    /// Notes that a list has more rows, with the flag for the next page, quoted for a shell.
    pub(crate) fn more(&self, note: &str, flag: &str, value: &str) -> Result<(), Failure> {
        self.note(&format!("{note}: {}", Suggested::new(Vec::<String>::new()).flag(flag, value).shell()))
    }

    /// Whether a person is watching.
    pub(crate) fn seen(&self) -> bool {
        self.format == Format::Table && std::io::stdout().is_terminal()
    }

    fn json(&self, found: &JsonValue) -> Result<(), Failure> {
        self.bytes((terminal::json(&raw_json::pretty(found)) + "\n").as_bytes())
    }

    fn json_line(&self, found: &JsonValue) -> Result<(), Failure> {
        self.bytes((terminal::json(&raw_json::line(found)) + "\n").as_bytes())
    }

    /// The raw column, byte for byte, or spelled out on a terminal; the whole object if no column is raw.
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

    /// The same for one of several rows: one line on a terminal, and a line end after it in a file.
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

    /// Clears a terminal; output continues in its upper left corner.
    pub(crate) fn clear_screen(&self) -> Result<(), Failure> {
        self.bytes(b"\x1b[H\x1b[2J")
    }

    fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::nobody_reads(),
            _ => Failure::other(format!("cannot write to stdout: {error}")),
        })
    }
}

/// The width of a stream's terminal; none if it is not a terminal.
pub(crate) fn columns_of(stream: impl std::os::fd::AsFd + IsTerminal) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(stream).map(|size| usize::from(size.ws_col));
    Some(columns.ok().filter(|columns| *columns > 0).unwrap_or(terminal::COLUMNS))
}
