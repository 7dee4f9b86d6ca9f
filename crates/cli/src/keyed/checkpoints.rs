//! Checkpoints of partitions: `checkpoint`, `checkpoints` and `restore`.

use std::time::Duration;

use clap::Subcommand;
use serde_json::Value as JsonValue;
use statehouse::shell::Suggested;
use wire::keyed::checkpoints::{ListCheckpoints, RestorePartition, TakeCheckpoint};
use wire::routes::{KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_RESTORE};
use wire::values::DurationText;

use super::name;
use super::operator::{explained, partition_number};
use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::output::Output;
use crate::reach::duration;
use crate::repeating::{Listing, Sure};
use crate::table::{Column, Style, column, plain};

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Take a checkpoint of a partition: of what has changed since the one before, or of everything.
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
        /// Write everything, also what has not changed.
        #[arg(long)]
        full: bool,
        /// How long to wait until it is committed; it goes on after that.
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
        /// How long to wait until it is restored; that goes on after the wait.
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
    pub(super) async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        let (operator, partition) = match self {
            Verb::Checkpoint { operator, partition, .. }
            | Verb::Checkpoints { operator, partition, .. }
            | Verb::Restore { operator, partition, .. } => (operator.as_str(), *partition),
        };
        let done = self.ask(connection, output, (operator, &partition.to_string())).await;
        done.map_err(|failure| {
            with_next(explained(failure, Some(&format!("{operator}/{partition}"))), operator, partition)
        })
    }

    async fn ask(
        &self,
        connection: &Connection,
        output: &Output,
        (operator, number): (&str, &str),
    ) -> Result<(), Failure> {
        let of = &[operator, number];
        match self {
            Verb::Checkpoint { full, wait, .. } => {
                let body = TakeCheckpoint { full: Some(*full), wait: Some(DurationText(*wait)) };
                let call = connection.call(KEYED_CHECKPOINT, of).json(&body).waiting(Some(*wait));
                let taken = call.ask().await?;
                output.one(&taken, TAKEN)?;
                match taken["committed"] == JsonValue::Bool(true) {
                    true => Ok(()),
                    false => output.note(&format!("it goes on; {} lists it when it is committed", listing(of).shell())),
                }
            }
            Verb::Checkpoints { together, listing, .. } => {
                let query = ListCheckpoints { together: together.then_some(true) };
                let once = async || {
                    let found = connection.call(KEYED_CHECKPOINTS, of).query(&query).ask().await?;
                    output.list(&listing.first(found, "checkpoints"), "checkpoints", LISTED)
                };
                listing.run(output, once).await
            }
            Verb::Restore { checkpoint, together, worker, lease, wait, sure, .. } => {
                let from = checkpoint.map_or("its last checkpoint".to_owned(), |number| format!("checkpoint {number}"));
                sure.or_ask(&format!(
                    "take partition {operator}/{number} over and restore it from {from}; what was committed since is gone"
                ))?;
                let body = RestorePartition {
                    checkpoint: *checkpoint,
                    together: together.then_some(true),
                    worker: Some(worker.clone()),
                    lease: lease.map(DurationText),
                    wait: Some(DurationText(*wait)),
                };
                let forced = connection.client().clone().forced();
                let restored = forced.call(KEYED_RESTORE, of).json(&body).waiting(Some(*wait)).ask().await?;
                output.one(&restored, RESTORED)?;
                match restored["restored"] == JsonValue::Bool(true) {
                    true => Ok(()),
                    false => {
                        output.note("it goes on; commit nothing, and extend the lease, until `restoring` is false")
                    }
                }
            }
        }
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
