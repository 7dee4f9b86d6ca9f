//! `audit`: what was done to the administration of a store, by whom, and what was refused.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use contract::access::audit::{AuditHead, hex};
use serde_json::{Value as JsonValue, json};
use statehouse::backup::file::WholeFile;
use wire::access::ReadAudit;

use crate::connection::Connection;
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::Reach;
use crate::table::{Column, Style, column, plain};

/// The audit: what was done to principals, tokens, spaces and the rest of the administration; forced writes; and what was refused.
///
/// Examples:
///   statehouse audit tail
///   statehouse audit verify
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Audit {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show the last events.
    ///
    /// Examples:
    ///   statehouse audit tail
    ///   statehouse audit tail --limit 100 -o jsonl
    #[command(verbatim_doc_comment)]
    Tail {
        /// So many of them.
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u64,
    },
    /// Check that no event was changed, removed or put in between: in the store, or in a file that `audit export` wrote. Exits with 7 if
    /// one was.
    ///
    /// Examples:
    ///   statehouse audit verify
    ///   statehouse audit verify audit.jsonl
    #[command(verbatim_doc_comment)]
    Verify {
        /// The file.
        file: Option<PathBuf>,
    },
    /// Write all events into a file, as lines of JSON, each byte for byte as it was recorded.
    ///
    /// Examples:
    ///   statehouse audit export audit.jsonl
    ///   statehouse audit export 2026-11.jsonl --after 1200
    #[command(verbatim_doc_comment)]
    Export {
        /// The file to write; it must not exist.
        file: PathBuf,
        /// Only those after this number.
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: u64,
    },
}

const EVENTS: &[Column] = &[
    plain("NUMBER", "number").raw(),
    column("AT", "at", Style::Ago),
    plain("PRINCIPAL", "principal"),
    plain("DECISION", "decision"),
    plain("ACT", "act"),
    column("ON", "on", Style::Value),
];

const CHECKED: &[Column] = &[plain("EVENTS", "events"), plain("LAST", "number").raw(), plain("SHA-256", "digest")];

/// Events of one request.
const PAGE: u64 = 1_000;

impl Audit {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        if let Verb::Verify { file: Some(file) } = &self.verb {
            return verify_file(file, &output);
        }
        self.reach.run(async |connection| self.verb.run(connection, &output).await)
    }
}

impl Verb {
    async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Tail { limit } => {
                let head = page(connection, u64::MAX - 1, 1).await?.1;
                let (events, _) = page(connection, head.number.saturating_sub(*limit), (*limit).min(PAGE)).await?;
                let events: Vec<JsonValue> =
                    events.iter().filter_map(|event| serde_json::from_str(event).ok()).collect();
                output.list(&json!({ "events": events }), "events", EVENTS)
            }
            Verb::Verify { .. } => {
                let mut checked = Checked::from(AuditHead::default());
                let end = each(connection, 0, |event| checked.add(event)).await?;
                checked.finish(&end, output)
            }
            Verb::Export { file, after } => {
                let failed = |error: &std::io::Error| Failure::other(format!("{}: {error}", file.display()));
                let mut out = WholeFile::begin(file).map_err(|error| failed(&error))?;
                let mut events = 0_u64;
                let end = each(connection, *after, |event| {
                    events += 1;
                    out.write_all(format!("{event}\n").as_bytes()).map_err(|error| failed(&error))
                });
                let end = end.await?;
                let last = json!({ "end": { "number": end.number, "digest": hex(&end.digest) } });
                out.write_all(format!("{last}\n").as_bytes()).map_err(|error| failed(&error))?;
                out.finish().map_err(|error| failed(&error))?;
                let found = json!({ "events": events, "number": end.number, "digest": hex(&end.digest) });
                output.card(&found, CHECKED)
            }
        }
    }
}

/// A page of events as they were recorded, and where the audit ends.
async fn page(connection: &Connection, after: u64, limit: u64) -> Result<(Vec<String>, AuditHead), Failure> {
    let query = ReadAudit { after: Some(after), limit: Some(limit) };
    let page = connection.client().principals().audit(&query).await?;
    let head = AuditHead { number: page.head.number, digest: digest_of(&page.head.digest)? };
    Ok((page.events.into_iter().map(|event| event.0.to_json_text()).collect(), head))
}

/// Passes each event up to where the audit ends now, and says where that is.
async fn each(
    connection: &Connection,
    after: u64,
    mut take: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<AuditHead, Failure> {
    let (mut after, mut end) = (after, None);
    loop {
        let (events, head) = page(connection, after, PAGE).await?;
        let end = *end.get_or_insert(head);
        let left = usize::try_from(end.number.saturating_sub(after)).unwrap_or(usize::MAX);
        events.iter().take(left).try_for_each(|event| take(event))?;
        if events.is_empty() || events.len() >= left {
            return Ok(end);
        }
        after += events.len() as u64;
    }
}

fn digest_of(text: &str) -> Result<[u8; 32], Failure> {
    let digits = |place: usize| u8::from_str_radix(text.get(place..place + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..64).step_by(2).map(digits).collect();
    let bytes = bytes.filter(|_| text.len() == 64).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| Failure::check("the audit has no end: its digest is missing"))
}

/// Events that were checked one after the other.
struct Checked {
    head: AuditHead,
    events: u64,
}

impl Checked {
    fn from(head: AuditHead) -> Self {
        Self { head, events: 0 }
    }

    fn add(&mut self, event: &str) -> Result<(), Failure> {
        self.events += 1;
        self.head.check(event).map_err(|fault| Failure::check(format!("the audit was changed: {fault}")))
    }

    fn finish(&self, end: &AuditHead, output: &Output) -> Result<(), Failure> {
        let fits = self.head.check_end(end);
        fits.map_err(|fault| Failure::check(format!("the audit was changed: {fault}")))?;
        let digest = hex(&end.digest);
        output.card(&json!({ "events": self.events, "number": end.number, "digest": digest }), CHECKED)
    }
}

/// Checks a file that begins with the first event.
fn verify_file(file: &Path, output: &Output) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| Failure::usage(format!("{}: {error}", file.display()));
    let lines = BufReader::new(std::fs::File::open(file).map_err(|error| failed(&error))?).lines();
    let (mut checked, mut end) = (Checked::from(AuditHead::default()), None);
    for line in lines {
        let line = line.map_err(|error| failed(&error))?;
        if end.is_some() {
            return Err(Failure::check(format!(
                "{}: a line follows that which says where the audit ends",
                file.display()
            )));
        }
        let read: JsonValue = serde_json::from_str(&line).unwrap_or_default();
        match read["end"]["number"].as_u64() {
            Some(number) => {
                let digest = digest_of(read["end"]["digest"].as_str().unwrap_or_default())?;
                end = Some(AuditHead { number, digest });
            }
            None => checked.add(&line)?,
        }
    }
    let missing = || format!("{}: the last line, which says where the audit ends, is missing", file.display());
    checked.finish(&end.ok_or_else(|| Failure::check(missing()))?, output)
}
