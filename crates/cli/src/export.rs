//! `export` and `import`: a store's data as lines of JSON, and a new directory from them.
//!
//! Keeps: a file gets its name once it is complete and durable. A failed import leaves nothing. Never: overwrites a file or a directory.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value as JsonValue, json};
use statehouse::backup::file::WholeFile;
use statehouse::export::Exported;
use statehouse::import::ImportOptions;
use statehouse::{hex, import, terminal};
use wire::routes::EXPORT_CREATE;

use crate::backup::{cannot_write, failed, listed, open, refuse_missing};
use crate::connection::{Connection, Streaming, serve_command};
use crate::contract::Contract;
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::reach::Reach;
use crate::table::{Column, plain, size};
use crate::with_contracts;

/// Export all data of a store as lines of JSON, with versions, histories and TTLs.
///
/// Examples:
///   statehouse export monday.jsonl
///   statehouse export --space shop | grep '"kind":"cell"'
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Export {
    #[command(flatten)]
    reach: Reach,
    /// The file to write; it must not exist. Default: stdout, also written as -.
    file: Option<PathBuf>,
}

/// Import an export into a new directory. Exits with 7, leaving nothing behind, if the file is
/// damaged or the result differs.
///
/// Examples:
///   statehouse import monday.jsonl --data ./restored
///   statehouse import - --data ./restored < monday.jsonl
///   statehouse import monday.jsonl --data ./moved --keep-claims
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Import {
    /// The file to read; - is stdin.
    file: PathBuf,
    /// The new directory; it must not exist.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Let workers keep what they hold, for a store that moves. Without it, what was held is released: its holder works for the store
    /// that was exported.
    #[arg(long)]
    keep_claims: bool,
}

macro_rules! columns {
    ($($folder:ident: $noun:ident { $($explained:ident)? })*) => {
        /// How an export is shown.
        fn columns() -> Vec<Column> {
            let mut columns = vec![plain("FILE", "file").raw(), plain("BYTES", "bytes"), plain("COMMIT", "commit")];
            $(columns.extend(<crate::$folder::$noun as Contract>::EXPORTED);)*
            columns.push(plain("SHA-256", "sha256"));
            columns
        }
    };
}

with_contracts!(columns);

impl Export {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let file = self.file.filter(|file| file.as_os_str() != "-");
        self.reach.run(async |connection| match &file {
            Some(file) => to_file(connection, file, &output).await,
            None => to_stdout(connection).await,
        })
    }
}

async fn to_file(connection: &Connection, file: &Path, output: &Output) -> Result<(), Failure> {
    let mut out = WholeFile::begin(file).map_err(|error| cannot_write(file, &error))?;
    let mut last = Vec::new();
    let (header, bytes) =
        lines(connection, &mut last, |bytes| out.write_all(bytes).map_err(|error| cannot_write(file, &error))).await?;
    let footer: JsonValue = serde_json::from_slice(&last).unwrap_or_default();
    if footer["kind"] != "footer" {
        return Err(Failure::check(format!("{}: the export is incomplete: its footer is missing", file.display())));
    }
    out.finish().map_err(|error| cannot_write(file, &error))?;
    let found = json!({
        "file": file.display().to_string(),
        "bytes": bytes,
        "commit": header["commit"],
        "counts": footer["counts"],
        "sha256": footer["sha256"],
        "missing": footer["missing"].as_array().cloned().unwrap_or_default(),
    });
    output.card(&found, &columns())?;
    refuse_missing(file, &missing_in(&footer))?;
    output.done(&format!("done: {} in {}", size(bytes), file.display()))
}

/// The ranges that the footer of an export says are missing.
fn missing_in(footer: &JsonValue) -> Vec<(String, String)> {
    let word = |range: &JsonValue, name: &str| range[name].as_str().unwrap_or_default().to_owned();
    let ranges = footer["missing"].as_array().map(Vec::as_slice).unwrap_or_default();
    ranges.iter().map(|range| (word(range, "from"), word(range, "to"))).collect()
}

async fn to_stdout(connection: &Connection) -> Result<(), Failure> {
    let (mut last, mut begun) = (Vec::new(), Vec::new());
    let seen = std::io::stdout().is_terminal();
    let write = |bytes: &[u8]| {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::nobody_reads(),
            _ => Failure::other(format!("cannot write to stdout: {error}")),
        })
    };
    lines(connection, &mut last, |bytes| {
        if !seen {
            return write(bytes);
        }
        // A terminal gets whole lines with control characters escaped; the JSON documents stay the same.
        begun.extend_from_slice(bytes);
        let whole = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines: Vec<u8> = begun.drain(..whole).collect();
        write(terminal::json(&String::from_utf8_lossy(&lines)).as_bytes())
    })
    .await?;
    let footer: JsonValue = serde_json::from_slice(&last).unwrap_or_default();
    refuse_missing(Path::new("the export"), &missing_in(&footer))
}

/// Reads the lines as they arrive. The number of buckets seen gives the progress. `last` gets the last line. Returns the first line and
/// the number of bytes.
async fn lines(
    connection: &Connection,
    last: &mut Vec<u8>,
    mut write: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(JsonValue, u64), Failure> {
    const BUCKET: &[u8] = br#"{"kind":"bucket","#;
    let mut answer = Streaming::begin(connection.call(EXPORT_CREATE, &[])).await?;
    let (mut progress, mut header) = (None, JsonValue::Null);
    let (mut done, mut buckets) = (0_u64, 0);
    while let Some(bytes) = answer.next().await? {
        write(&bytes)?;
        done += bytes.len() as u64;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if last.ends_with(b"\n") {
                last.clear();
            }
            last.extend_from_slice(piece);
            if last.ends_with(b"\n") {
                if progress.is_none() {
                    header = serde_json::from_slice(last).unwrap_or_default();
                    progress = Some(Progress::steps("export", header["buckets"].as_u64().unwrap_or(1)));
                }
                buckets += u64::from(last.starts_with(BUCKET));
            }
        }
        if let Some(progress) = &progress {
            progress.at(buckets);
            progress.say(indicatif::HumanBytes(done).to_string());
        }
    }
    if let Some(progress) = progress {
        progress.done();
    }
    Ok((header, done))
}

impl Import {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let (input, bytes): (Box<dyn Read>, _) = match self.file.as_os_str() == "-" {
            true => (Box::new(std::io::stdin()), None),
            false => open(&self.file).map(|(input, bytes)| (Box::new(input) as Box<dyn Read>, Some(bytes)))?,
        };
        let mut input: Box<dyn BufRead> = Box::new(BufReader::with_capacity(1 << 20, input));
        let progress = Progress::bytes("import", bytes);
        let mut options = ImportOptions::default();
        if self.keep_claims {
            options = options.keep_claims();
        }
        let imported = import::read_with(&self.data, &mut input, options, &mut |at| progress.at(at.done));
        let imported = imported.map_err(|error| failed(&self.file, error))?;
        progress.done();
        let mut found = shown(&self.file, &imported);
        found["directory"] = self.data.display().to_string().into();
        output.card(&found, &columns())?;
        refuse_missing(&self.file, &imported.missing)?;
        output.done(&format!("done: imported; serve it: {}", serve_command(&self.data).shell()))
    }
}

fn shown(file: &Path, found: &Exported) -> JsonValue {
    json!({
        "file": file.display().to_string(),
        "bytes": found.bytes,
        "commit": found.commit,
        "counts": found.counts,
        "sha256": hex(&found.sha256),
        "missing": listed(&found.missing),
    })
}
