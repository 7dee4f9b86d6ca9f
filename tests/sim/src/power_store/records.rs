//! What a writing process says about itself, one line each: what it is about to write, and what was answered.
//!
//! A line about an intent is written before its command is submitted, one about an answer after it has come. So at
//! any moment, what was answered must be there after power loss, and nothing but what was intended may be.

use std::fmt::{self, Display};
use std::str::FromStr;

use statehouse::Value;
use testkit::random::Random;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// The store is open and has applied the entry with this index, to this hash.
    Opened { index: u64, hash: u64 },
    /// As above, at some moment later.
    Status { index: u64, hash: u64 },
    /// A flush has returned that began after this entry was applied.
    Flushed { index: u64 },
    /// One command is about to be submitted that does all of these writes.
    Intended { number: u64, writes: Vec<Write> },
    /// The command was answered; its commit number, where the answer has one.
    Answered { number: u64, commit: Option<u64> },
}

/// One write of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) cell: Cell,
    /// The version that it gets. Each cell has one writer, who knows.
    pub(super) version: u64,
    /// What is written, or none for a deletion.
    pub(super) token: Option<Token>,
}

/// A cell, in a group or its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) group: Option<String>,
    pub(super) name: String,
}

/// Stands for a value that no other write has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) life: u64,
    pub(super) thread: u64,
    pub(super) sequence: u64,
    pub(super) bytes: usize,
}

impl Token {
    pub(super) fn value(self) -> Value {
        let seed = self.life << 48 ^ self.thread << 40 ^ self.sequence;
        let mut bytes = format!("{self}:").into_bytes();
        bytes.extend(Random::new(seed).bytes(self.bytes));
        bytes.into()
    }
}

impl Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}.{}", self.life, self.thread, self.sequence, self.bytes)
    }
}

impl Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.group.as_deref().unwrap_or("-"), self.name)
    }
}

impl Display for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Record::Opened { index, hash } => write!(formatter, "opened {index} {hash}"),
            Record::Status { index, hash } => write!(formatter, "status {index} {hash}"),
            Record::Flushed { index } => write!(formatter, "flushed {index}"),
            Record::Answered { number, commit: None } => write!(formatter, "answered {number}"),
            Record::Answered { number, commit: Some(commit) } => {
                write!(formatter, "answered {number} {commit}")
            }
            Record::Intended { number, writes } => {
                write!(formatter, "intended {number}")?;
                for Write { cell, version, token } in writes {
                    match token {
                        Some(token) => write!(formatter, " {cell} {version} {token}")?,
                        None => write!(formatter, " {cell} {version} -")?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl FromStr for Record {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let wrong = || format!("not a record: {line:?}");
        let mut words = line.split_whitespace();
        let kind = words.next().ok_or_else(wrong)?;
        let mut number = || -> Option<u64> { words.next()?.parse().ok() };
        let first = number().ok_or_else(wrong)?;
        Ok(match kind {
            "opened" => Record::Opened { index: first, hash: number().ok_or_else(wrong)? },
            "status" => Record::Status { index: first, hash: number().ok_or_else(wrong)? },
            "flushed" => Record::Flushed { index: first },
            "answered" => Record::Answered { number: first, commit: number() },
            "intended" => {
                let words: Vec<&str> = words.collect();
                let writes = words.chunks(3).map(|words| parse_write(words).ok_or_else(wrong));
                Record::Intended { number: first, writes: writes.collect::<Result<_, _>>()? }
            }
            _ => return Err(wrong()),
        })
    }
}

fn parse_write(words: &[&str]) -> Option<Write> {
    let [cell, version, token] = words else { return None };
    let (group, name) = cell.split_once('/')?;
    let group = (group != "-").then(|| group.to_owned());
    let token = match *token {
        "-" => None,
        token => Some(parse_token(token)?),
    };
    Some(Write { cell: Cell { group, name: name.to_owned() }, version: version.parse().ok()?, token })
}

fn parse_token(token: &str) -> Option<Token> {
    let mut parts = token.split('.');
    let mut part = || parts.next()?.parse::<u64>().ok();
    let (life, thread, sequence) = (part()?, part()?, part()?);
    Some(Token { life, thread, sequence, bytes: usize::try_from(part()?).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_written() {
        let token = Token { life: 1, thread: 2, sequence: 3, bytes: 40 };
        let cell = |group: Option<&str>| Cell { group: group.map(str::to_owned), name: "c".into() };
        let writes = vec![
            Write { cell: cell(None), version: 7, token: Some(token) },
            Write { cell: cell(Some("g")), version: 8, token: None },
        ];
        for record in [
            Record::Opened { index: 3, hash: u64::MAX },
            Record::Status { index: 3, hash: 1 },
            Record::Flushed { index: 9 },
            Record::Answered { number: 1, commit: None },
            Record::Answered { number: 1, commit: Some(4) },
            Record::Intended { number: 5, writes },
        ] {
            assert_eq!(record.to_string().parse(), Ok(record));
        }
    }
}
