//! Every command of `statehouse`, as a program would call it: no terminal, stdin closed, nothing in the environment.
//!
//! - `script`: the commands, in an order in which each finds what it needs, with the exit code that each must have. `step`: one of
//!   them.
//! - `stage`: a store to run them against: a server process, or a directory.
//! - `scopes`: every command with each flag that selects a space, a branch or a group.
//! - `mask`: masks what differs from run to run, so that the rest can be compared with a golden file.
//!
//! Keeps: every leaf of the tree of commands is in the script; a missing command is a complaint. Never: kills or waits
//! for anything but its own processes.

mod mask;
mod scopes;
mod script;
mod stage;
mod step;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as JsonValue;

pub use scopes::check_flags;
use stage::{Done, Stage};
pub use stage::{Store, help};
use step::Step;

/// The table output of every command, masked where it differs.
pub const GOLDEN: &str = include_str!("../../../../crates/cli/tests/golden/tables.txt");

/// The path of [`GOLDEN`].
pub const GOLDEN_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/cli/tests/golden/tables.txt");

/// Servers, which run until they are stopped: the others run against them.
const SERVERS: &[&str] = &["dev", "serve"];

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people; compared with the golden file.
    Table,
    /// One document; read by a parser and by `jq -e .`.
    Json,
    /// Lines; each read by a parser.
    Jsonl,
    /// Bytes; only the exit code is checked.
    Raw,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Raw => "raw",
        }
    }
}

/// The findings of running the script.
#[derive(Debug, Default)]
pub struct Found {
    /// The number of commands run.
    pub commands: usize,
    /// What went wrong.
    pub complaints: Vec<String>,
    /// The exit codes seen, each as expected.
    pub exits: BTreeSet<i32>,
    /// The masked output; for [`Format::Table`] only.
    pub transcript: String,
}

/// Runs every command of the script once.
pub fn run(statehouse: &Path, store: Store, format: Format) -> Found {
    let stage = Stage::set(statehouse, store);
    let mut found = Found::default();
    for step in script::steps() {
        let done = stage.run(step, format);
        found.commands += 1;
        match complaint(step, format, &done) {
            Some(complaint) => found.complaints.push(format!("{store:?} -o {}: {complaint}", format.name())),
            None => drop(found.exits.insert(step.exit)),
        }
        if format == Format::Table && step.golden && !(step.of_server && store == Store::Directory) {
            found.transcript.push_str(&stage.transcript(step, &done));
        }
    }
    found
}

/// Compares a transcript with the golden file: how many commands are equal, and the first that differs.
pub fn compare(store: Store, transcript: &str) -> (usize, Option<String>) {
    let parts = |text: &str| text.split("$ statehouse ").skip(1).map(str::to_owned).collect::<Vec<_>>();
    let (mut golden, now) = (parts(GOLDEN), parts(transcript));
    if store == Store::Directory {
        let of_server =
            |part: &String| script::steps().any(|step| step.of_server && part.lines().next() == Some(step.line));
        golden.retain(|part| !of_server(part));
    }
    let equal = golden.iter().zip(&now).filter(|(golden, now)| golden == now).count();
    let mut different = golden.iter().zip(&now).filter(|(golden, now)| golden != now);
    let difference = match different.next() {
        Some((golden, now)) => Some(format!("golden:\n{golden}\nnow:\n{now}")),
        None if golden.len() != now.len() => {
            Some(format!("{} commands are golden, {} were run", golden.len(), now.len()))
        }
        None => None,
    };
    (equal, difference)
}

fn complaint(step: &Step, format: Format, done: &Done) -> Option<String> {
    let line = step.line;
    let said = || format!("stdout: {}\nstderr: {}", String::from_utf8_lossy(&done.stdout), done.stderr);
    if done.exit != Some(step.exit) && (done.exit.is_none() || done.exit != step.or_exit) {
        return Some(format!("`{line}` exits with {:?}, not with {}\n{}", done.exit, step.exit, said()));
    }
    let documents = serde_json::Deserializer::from_slice(&done.stdout).into_iter::<JsonValue>();
    let documents = documents.collect::<Result<Vec<_>, _>>().map(|documents| documents.len()).ok();
    let lines = done.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    let wrong = match (format, documents) {
        (Format::Table | Format::Raw, _) => None,
        (_, None) => Some("prints what is no JSON"),
        (Format::Json, Some(count)) if step.exit == 0 && !step.goes_on && count != 1 => Some("prints not one document"),
        (Format::Json, _) if done.jq == Some(false) => Some("prints what `jq -e .` does not take"),
        (Format::Jsonl, Some(count)) if count != lines => Some("prints lines that are no documents"),
        // Refusals of the command line itself are text, before the format is known.
        _ if done.exit != Some(0) && !step.refused_at_once => {
            let said: Option<JsonValue> = serde_json::from_str(&done.stderr).ok();
            let exit = said.and_then(|said| said["exit"].as_i64());
            (exit != done.exit.map(i64::from)).then_some("does not say on stderr, as JSON, how it ended")
        }
        _ => None,
    };
    wrong.map(|wrong| format!("`{line}` {wrong}\n{}", said()))
}

/// Walks the tree of commands by `--help`: reports every leaf that the script does not run, and every help without two
/// examples. Also returns the number of commands.
pub fn walk(statehouse: &Path) -> (usize, Vec<String>) {
    let mut complaints = Vec::new();
    let tree = stage::tree(statehouse);
    for (path, help) in &tree {
        let examples = help.split_once("Examples:\n").map_or("", |(_, examples)| examples);
        let examples = examples.lines().take_while(|line| line.starts_with("  "));
        if examples.filter(|line| line.contains("statehouse ")).count() < 2 {
            complaints.push(format!("`{} --help` has fewer than two examples", path.join(" ")));
        }
    }
    let leaves = stage::leaves(statehouse);
    for leaf in &leaves {
        let path: Vec<_> = leaf.split(' ').map(str::to_owned).collect();
        let is_server = path.first().is_some_and(|noun| SERVERS.contains(&noun.as_str()));
        if !is_server && !script::steps().any(|step| step.words().starts_with(&path)) {
            complaints.push(format!("`{leaf}` is not in the script"));
        }
    }
    (leaves.len(), complaints)
}
