//! Operators and their partitions: `operators`, `partitions` and `fence`.

use std::time::Duration;

use clap::Subcommand;
use serde_json::json;
use statehouse::shell::Suggested;
use wire::keyed::operators::{AcquirePartition, ListOperators, ListPartitions};
use wire::routes::{KEYED_ACQUIRE, KEYED_LIST, KEYED_PARTITIONS};
use wire::values::DurationText;

use super::{more, name};
use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::given;
use crate::group::of_owner;
use crate::output::{Format, Output};
use crate::reach::duration;
use crate::repeating::{Listing, Sure};
use crate::table::{Column, Style, column, plain};

#[derive(Subcommand)]
pub(super) enum Verb {
    /// List the operators that hold something, by name prefix.
    ///
    /// Examples:
    ///   statehouse keyed operators
    ///   statehouse keyed operators word -o raw
    #[command(verbatim_doc_comment)]
    Operators {
        /// Prefix of their names.
        #[arg(default_value = "")]
        prefix: String,
        /// Continue where an earlier list ended.
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// List the partitions of an operator that hold something.
    ///
    /// `statehouse why operator` says who owns them, and how far they are.
    ///
    /// Examples:
    ///   statehouse keyed partitions wordcount
    ///   statehouse keyed partitions wordcount --limit 10 -o jsonl
    #[command(verbatim_doc_comment)]
    Partitions {
        /// The operator's name.
        #[arg(value_parser = name)]
        operator: String,
        /// Continue where an earlier list ended.
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Take a partition over: whoever owned it is refused from then on.
    ///
    /// Prints the epoch, the number of the next commit, and the token that proves that you own it: a write shows that
    /// with --owner. Asks first, since a worker may be at work there; --yes answers.
    ///
    /// Examples:
    ///   statehouse keyed fence wordcount 3 --worker ann
    ///   statehouse keyed fence wordcount 3 --worker ann --lease 5m --yes -o raw
    #[command(verbatim_doc_comment)]
    Fence {
        /// The operator's name.
        #[arg(value_parser = name)]
        operator: String,
        /// The partition's number.
        #[arg(value_parser = partition_number)]
        partition: u32,
        /// Who takes it over: whoever is refused is told this name.
        #[arg(long)]
        worker: String,
        /// How long it is owned unless it is extended. Default: 30s.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
        #[command(flatten)]
        sure: Sure,
    },
}

const OPERATORS: &[Column] = &[plain("OPERATOR", "name").raw()];

const PARTITIONS: &[Column] = &[
    plain("PARTITION", "partition").raw(),
    plain("GROUP", "group"),
    plain("KEYS", "keys"),
    plain("LAST NUMBER", "last_number"),
    plain("SEAL", "seal"),
    column("CHANGED", "updated_at", Style::Ago),
];

const FENCED: &[Column] =
    &[plain("GROUP", "group"), plain("EPOCH", "epoch"), plain("NEXT NUMBER", "next"), plain("TOKEN", "token").raw()];

impl Verb {
    pub(super) async fn run(&self, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Operators { prefix, cursor, listing } => {
                let query = ListOperators {
                    prefix: Some(prefix.clone()),
                    cursor: given::word_if_given("--cursor", cursor)?,
                    limit: Some(listing.limit),
                };
                let once = async || {
                    let mut found = connection.call(KEYED_LIST, &[]).query(&query).ask().await?;
                    // Tables and lines need rows.
                    if output.format != Format::Json
                        && let Some(names) = found["operators"].as_array_mut()
                    {
                        names.iter_mut().for_each(|name| *name = json!({ "name": name }));
                    }
                    output.list(&found, "operators", OPERATORS)?;
                    more(output, &found, "--cursor", "cursor")
                };
                listing.run(output, once).await
            }
            Verb::Partitions { operator, cursor, listing } => {
                let query =
                    ListPartitions { cursor: given::word_if_given("--cursor", cursor)?, limit: Some(listing.limit) };
                let once = async || {
                    let found = connection.call(KEYED_PARTITIONS, &[operator]).query(&query).ask().await?;
                    let is_empty = found["partitions"].as_array().is_some_and(Vec::is_empty);
                    if is_empty && cursor.is_none() && found["cursor"].is_null() {
                        return Err(no_such_operator(operator));
                    }
                    output.list(&found, "partitions", PARTITIONS)?;
                    more(output, &found, "--cursor", "cursor")
                };
                listing.run(output, once).await
            }
            Verb::Fence { operator, partition, worker, lease, sure } => {
                sure.or_ask(&format!(
                    "take partition {operator}/{partition} over; whoever owns it now is refused from then on"
                ))?;
                let body = AcquirePartition { lease: lease.map(DurationText), ..AcquirePartition::by(worker.as_str()) };
                let forced = connection.client().clone().forced();
                let call = forced.call(KEYED_ACQUIRE, &[operator, &partition.to_string()]).json(&body);
                output.one(&call.ask().await?, FENCED)
            }
        }
    }
}

/// The number of a partition.
pub(super) fn partition_number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "a partition has a number: 0, 1, 2, ... below 4294967296".to_owned())
}

/// No partition of the operator holds anything.
fn no_such_operator(operator: &str) -> Failure {
    let detail = format!("no partition of operator {operator:?} holds anything");
    let command = Suggested::new(["statehouse", "keyed", "operators"]);
    Failure::new(Exit::NotFound, detail).run("list the operators that hold something", command)
}

/// The operator and the number of the partition that a group is, if it is one.
pub(super) fn partition_of(group: &str) -> Option<(&str, u32)> {
    let (operator, number) = group.split_once('/')?;
    // Another spelling is another group.
    let parsed: u32 = number.parse().ok().filter(|parsed: &u32| parsed.to_string() == number)?;
    (!operator.is_empty()).then_some((operator, parsed))
}

/// Whoever is refused in the group of a partition is told who owns it.
pub(super) fn explained(failure: Failure, group: Option<&str>) -> Failure {
    let Some((operator, number)) = group.and_then(partition_of) else {
        return failure;
    };
    let failure = of_owner(failure);
    let next = match failure.code.as_deref() {
        Some("SH-4002") => "stop writing it; see who owns it",
        Some("SH-4003") => "show the token of its owner with --owner; see who that is",
        _ => return failure,
    };
    let command = Suggested::new(["statehouse", "why", "operator"]).flag("--partition", number.to_string());
    failure.run(next, command.name(operator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_partition_in_one_spelling() {
        assert_eq!(partition_of("wordcount/3"), Some(("wordcount", 3)));
        for other in ["wordcount", "wordcount/", "/3", "wordcount/03", "wordcount/+3", "wordcount/a/3", "a/4294967296"]
        {
            assert_eq!(partition_of(other), None, "{other}");
        }
    }
}
