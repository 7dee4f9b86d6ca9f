//! Checkpoints of partitions: `checkpoint`, `checkpoints` and `restore`.

use std::time::Duration;

use clap::Subcommand;
use serde_json::Value as JsonValue;
use statehouse::shell::Suggested;
use wire::keyed::checkpoints::{ListCheckpoints, RestorePartition, TakeCheckpoint};
use wire::routes::{KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_RESTORE};
use wire::values::DurationText;

use super::operator::{explained, partition_number};
use super::{more, name};
use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::given;
use crate::output::Output;
use crate::reach::{Reach, duration};
use crate::repeating::{Listing, Sure};
use crate::table::{Column, Style, column, plain};

/// Longer than any work takes.
const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Take a checkpoint of a partition: an incremental one after the one before, or a full one.
    ///
    /// The owner shows its token with --owner; anybody else needs --force. Commits go on meanwhile. The place is the
    /// server's setting checkpoints; with --data, the variable STATEHOUSE_CHECKPOINTS.
    ///
    /// Examples:
    ///   statehouse keyed checkpoint wordcount 3 --owner "$TOKEN"
    ///   statehouse keyed checkpoint wordcount 3 --full --force
    #[command(verbatim_doc_comment)]
    Checkpoint {
        /// The operator's name.
        #[arg(value_parser = name)]
        operator: String,
        /// The partition's number.
        #[arg(value_parser = partition_number)]
        partition: u32,
        /// Take a full checkpoint, also if an incremental one is possible.
        #[arg(long)]
        full: bool,
        /// How long to wait until it is committed; the server continues with it after that. With --data, waits for the end.
        #[arg(long, value_parser = duration, default_value = "30s")]
        wait: Duration,
    },
    /// List the committed checkpoints of a partition, from the last to the first.
    ///
    /// Examples:
    ///   statehouse keyed checkpoints wordcount 3
    ///   statehouse keyed checkpoints wordcount 3 --together -o jsonl
    #[command(verbatim_doc_comment)]
    Checkpoints {
        /// The operator's name.
        #[arg(value_parser = name)]
        operator: String,
        /// The partition's number.
        #[arg(value_parser = partition_number)]
        partition: u32,
        /// List those that several partitions have taken together.
        #[arg(long)]
        together: bool,
        /// Continue after a page, with the cursor that it printed.
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Restore a partition from a checkpoint: whoever owned it is refused from then on, and what came later is gone.
    ///
    /// Prints the token of the new owner. A damaged checkpoint changes nothing that the partition holds.
    ///
    /// Examples:
    ///   statehouse keyed restore wordcount 3 --worker ann
    ///   statehouse keyed restore wordcount 3 --checkpoint 7 --worker ann --lease 5m --yes -o raw
    #[command(verbatim_doc_comment)]
    Restore {
        /// The operator's name.
        #[arg(value_parser = name)]
        operator: String,
        /// The partition's number.
        #[arg(value_parser = partition_number)]
        partition: u32,
        /// The number of the checkpoint. Default: the last one.
        #[arg(long, value_name = "N")]
        checkpoint: Option<u64>,
        /// Take one of those that several partitions have taken together.
        #[arg(long)]
        together: bool,
        /// Who takes it over: whoever is refused is told this name.
        #[arg(long)]
        worker: String,
        /// How long it is owned unless it is extended. Default: 30s.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
        /// How long to wait until it is restored; the server continues with it after that. With --data, waits for the end.
        #[arg(long, value_parser = duration, default_value = "30s")]
        wait: Duration,
        #[command(flatten)]
        sure: Sure,
    },
}

const TAKEN: &[Column] = &[
    plain("CHECKPOINT", "number").raw(),
    plain("COMMITTED", "committed"),
    plain("KEYS", "keys"),
    plain("BYTES", "bytes"),
    plain("BASE", "base"),
    plain("COMMIT", "commit"),
];

const LISTED: &[Column] = &[
    plain("CHECKPOINT", "number").raw(),
    plain("KEYS", "keys"),
    plain("BYTES", "bytes"),
    plain("DEPTH", "depth"),
    plain("BASE", "base"),
    plain("COMMIT", "commit"),
    column("MADE", "made_at", Style::Ago),
];

const RESTORED: &[Column] = &[
    plain("GROUP", "group"),
    plain("CHECKPOINT", "checkpoint"),
    plain("RESTORED", "restored"),
    plain("EPOCH", "epoch"),
    plain("NEXT NUMBER", "next"),
    plain("TOKEN", "token").raw(),
];

impl Verb {
    pub(super) async fn run(&self, reach: &Reach, connection: &Connection, output: &Output) -> Result<(), Failure> {
        let (operator, partition) = match self {
            Verb::Checkpoint { operator, partition, .. }
            | Verb::Checkpoints { operator, partition, .. }
            | Verb::Restore { operator, partition, .. } => (operator.as_str(), *partition),
        };
        let done = self.ask(reach, connection, output, (operator, &partition.to_string())).await;
        done.map_err(|failure| {
            with_next(explained(failure, Some(&format!("{operator}/{partition}"))), operator, partition)
        })
    }

    async fn ask(
        &self,
        reach: &Reach,
        connection: &Connection,
        output: &Output,
        (operator, number): (&str, &str),
    ) -> Result<(), Failure> {
        let of = &[operator, number];
        match self {
            Verb::Checkpoint { full, wait, .. } => {
                let (wait, waiting) = waits(connection, *wait);
                let body = TakeCheckpoint { full: Some(*full), wait };
                let taken = connection.call(KEYED_CHECKPOINT, of).json(&body).waiting(Some(waiting)).ask().await?;
                output.one(&taken, TAKEN)?;
                if let Some(why) = taken["not_removed"].as_str() {
                    output.note(&format!(
                        "it is committed, but earlier ones that are not needed were not removed: {why}"
                    ))?;
                }
                match taken["committed"] == JsonValue::Bool(true) {
                    true => Ok(()),
                    false => {
                        let list = reach.in_command(listing(of)).shell();
                        output.note(&format!("the server continues with it; {list} lists it when it is committed"))
                    }
                }
            }
            Verb::Checkpoints { together, cursor, listing, .. } => {
                let query = ListCheckpoints {
                    together: together.then_some(true),
                    cursor: given::word_if_given("--cursor", cursor)?,
                    limit: Some(listing.limit),
                };
                let once = async || {
                    let found = connection.call(KEYED_CHECKPOINTS, of).query(&query).ask().await?;
                    output.list(&found, "checkpoints", LISTED)?;
                    more(output, &found, "--cursor", "cursor")
                };
                listing.run(output, once).await
            }
            Verb::Restore { checkpoint, together, worker, lease, wait, sure, .. } => {
                let from = checkpoint.map_or("its last checkpoint".to_owned(), |number| format!("checkpoint {number}"));
                sure.or_ask(&format!(
                    "take partition {operator}/{number} over and restore it from {from}; what was committed since is gone"
                ))?;
                let (wait, waiting) = waits(connection, *wait);
                let body = RestorePartition {
                    checkpoint: *checkpoint,
                    together: together.then_some(true),
                    worker: Some(worker.clone()),
                    lease: lease.map(DurationText),
                    wait,
                };
                let forced = connection.client().clone().forced();
                let restored = forced.call(KEYED_RESTORE, of).json(&body).waiting(Some(waiting)).ask().await?;
                output.one(&restored, RESTORED)?;
                match restored["restored"] == JsonValue::Bool(true) {
                    true => Ok(()),
                    false => {
                        output.note(
                            "the server continues with it; commit nothing, and extend the lease, until `restoring` is false",
                        )
                    }
                }
            }
        }
    }
}

/// How long the store is asked to wait, and how long its answer may take for that. An open directory is closed with the command, so
/// its answer comes at the end of the work.
fn waits(connection: &Connection, wait: Duration) -> (Option<DurationText>, Duration) {
    match connection.is_remote() {
        true => (Some(DurationText(wait)), wait),
        false => (None, UNLIMITED),
    }
}

fn listing([operator, number]: &[&str; 2]) -> Suggested {
    Suggested::new(["statehouse", "keyed", "checkpoints"]).name(*operator).name(*number)
}

/// Whoever names a checkpoint that is not there, or cannot be restored, is told which are.
fn with_next(failure: Failure, operator: &str, partition: u32) -> Failure {
    let next = match failure.code.as_deref() {
        Some("SH-8015") => "restore an earlier one; see which are there",
        Some("SH-8016") => "see which are there",
        _ => return failure,
    };
    failure.run(next, listing(&[operator, &partition.to_string()]))
}
