//! `keyed`: maps from keys to values whose updates count once, and operators, which own them in partitions.
//!
//! - `write`: the verbs that write a key. `operator`: the verbs of operators and their partitions. `checkpoints`: those of
//!   checkpoints, and `checkpoint_place` where these lie.
//! - `why`: who owns the partitions of an operator. `count` checks the maps of a directory, `bench` is a load, `contract` is for
//!   commands across the contracts.

mod bench;
mod checkpoint_place;
mod checkpoints;
mod contract;
mod count;
mod operator;
pub(crate) mod scopes;
pub(crate) mod why;
mod write;

use clap::{Args, Subcommand};
use serde::de::Deserialize;
use serde::de::value::StrDeserializer;
use serde_json::Value as JsonValue;
use statehouse::keyed::LogicalTime;
use statehouse::shell::Suggested;
use wire::DecodeError;
use wire::keyed::key::KeyText;
use wire::keyed::{CreateMap, ListMaps, ReadPositions, ScanKeys, SealMap};
use wire::routes::{
    MAPS_CREATE, MAPS_DELETE, MAPS_KEY, MAPS_LIST, MAPS_POSITIONS, MAPS_READ, MAPS_SCAN, MAPS_SEAL, Route,
};

use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::given;
use crate::output::Output;
use crate::reach::Reach;
use crate::repeating::{Listing, Sure};
use crate::table::{Column, Style, column, plain};

/// Keyed state: maps whose updates count once, and operators.
///
/// A partition of an operator is the map of its name in the group OPERATOR/NUMBER.
///
/// Examples:
///   statehouse keyed set prices apple 30 --version 7
///   statehouse keyed get wordcount hello --group wordcount/3
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Keyed {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List maps by name prefix, in all groups, or in one with --group.
    ///
    /// Examples:
    ///   statehouse keyed ls
    ///   statehouse keyed ls prices --limit 10 -o jsonl
    #[command(verbatim_doc_comment)]
    Ls {
        /// Prefix of their names.
        #[arg(default_value = "")]
        prefix: String,
        /// Continue where an earlier list ended.
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a map as a whole: its policy, its keys, its seal, the number of its last commit.
    ///
    /// Examples:
    ///   statehouse keyed show prices
    ///   statehouse keyed show wordcount --group wordcount/3 -o json
    #[command(verbatim_doc_comment)]
    Show {
        /// The map's name.
        #[arg(value_parser = name)]
        map: String,
    },
    /// Show a key with its value and its version.
    ///
    /// Examples:
    ///   statehouse keyed get prices apple
    ///   statehouse keyed get prices '{"$b64":"/wE="}' -o raw
    #[command(verbatim_doc_comment)]
    Get {
        /// The map's name.
        #[arg(value_parser = name)]
        map: String,
        /// The key: text, or bytes as {"$b64":"..."}.
        #[arg(value_parser = key)]
        key: KeyText,
    },
    /// Show keys in the order of their bytes.
    ///
    /// Examples:
    ///   statehouse keyed scan prices --prefix ap
    ///   statehouse keyed scan prices --from b --to d --limit 10 -o jsonl
    #[command(verbatim_doc_comment)]
    Scan {
        /// The map's name.
        #[arg(value_parser = name)]
        map: String,
        /// Only keys with this prefix.
        #[arg(long, value_name = "KEY", value_parser = part_of_key)]
        prefix: Option<KeyText>,
        /// Only keys from this one on.
        #[arg(long, value_name = "KEY", value_parser = part_of_key)]
        from: Option<KeyText>,
        /// Only keys before this one.
        #[arg(long, value_name = "KEY", value_parser = part_of_key)]
        to: Option<KeyText>,
        /// Continue where an earlier scan ended.
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show how far the inputs of a map were read.
    ///
    /// Examples:
    ///   statehouse keyed positions totals
    ///   statehouse keyed positions wordcount --group wordcount/3
    #[command(verbatim_doc_comment)]
    Positions {
        /// The map's name.
        #[arg(value_parser = name)]
        map: String,
        /// Only inputs after this one.
        #[arg(long, value_name = "INPUT")]
        after: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Create a map with a policy, unless it exists with it. A map that its first update creates is monotonic.
    ///
    /// Examples:
    ///   statehouse keyed create prices
    ///   statehouse keyed create balances --policy ordered
    #[command(verbatim_doc_comment)]
    Create {
        /// The map's name.
        #[arg(value_parser = name)]
        map: String,
        /// Apply updates at once if they are newer than their keys, or in the order of their versions once the seal reaches them.
        #[arg(long, value_parser = ["monotonic", "ordered"], default_value = "monotonic")]
        policy: String,
    },
    /// Raise the seal of a map: the source has finished up to a version.
    ///
    /// An update that arrives later with a version at or below it changes nothing. An ordered map applies what waits up to it. A seal never
    /// goes back.
    ///
    /// Examples:
    ///   statehouse keyed seal balances 7
    ///   statehouse keyed seal balances 1:7
    #[command(verbatim_doc_comment)]
    Seal {
        /// The map, created if missing.
        #[arg(value_parser = name)]
        map: String,
        /// The version up to which the source has finished: 7, or an epoch and a round, 1:7.
        version: LogicalTime,
    },
    /// Delete a map with all that it holds: keys, positions, its seal and its numbers.
    ///
    /// Examples:
    ///   statehouse keyed rm prices
    ///   statehouse keyed rm wordcount --group wordcount/3 --force --yes
    #[command(verbatim_doc_comment)]
    Rm {
        /// The map's name.
        #[arg(value_parser = name)]
        map: String,
        #[command(flatten)]
        sure: Sure,
    },
    #[command(flatten)]
    Write(write::Verb),
    #[command(flatten)]
    Operator(operator::Verb),
    #[command(flatten)]
    Checkpoints(checkpoints::Verb),
}

/// The name of a map or an operator. An empty one would be another path of the API.
fn name(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("a name has at least one byte".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// A key: text, or bytes in the form that they have in the API.
fn key(text: &str) -> Result<KeyText, String> {
    match text.is_empty() {
        true => Err("a key has at least one byte".to_owned()),
        false => part_of_key(text),
    }
}

fn part_of_key(text: &str) -> Result<KeyText, String> {
    KeyText::deserialize(StrDeserializer::<DecodeError>::new(text)).map_err(|error| error.to_string())
}

const LISTED: &[Column] = &[
    plain("MAP", "name").raw(),
    plain("GROUP", "group").optional(),
    plain("KEYS", "keys"),
    plain("LAST NUMBER", "last_number"),
    plain("SEAL", "seal"),
    column("CHANGED", "updated_at", Style::Ago),
];

const MAP: &[Column] = &[
    plain("MAP", "name").raw(),
    plain("POLICY", "policy"),
    plain("KEYS", "keys"),
    plain("DELETED", "deleted"),
    plain("WAITING", "waiting"),
    plain("LAST NUMBER", "last_number"),
    plain("SEAL", "seal"),
    column("CHANGED", "updated_at", Style::Ago),
];

const KEY: &[Column] = &[
    column("KEY", "key", Style::Value),
    column("VALUE", "value", Style::Value).raw(),
    plain("VERSION", "version"),
    plain("COMMIT", "commit"),
];

const SCANNED: &[Column] = &[
    column("KEY", "key", Style::Value).raw(),
    column("VALUE", "value", Style::Value),
    plain("VERSION", "version"),
    plain("COMMIT", "commit"),
];

const POSITIONS: &[Column] = &[
    plain("INPUT", "input").raw(),
    plain("POSITION", "position"),
    plain("COMMIT", "commit"),
    column("UPDATED", "updated_at", Style::Ago),
];

const CREATED: &[Column] = &[plain("MAP", "name").raw(), plain("POLICY", "policy"), plain("CREATED", "created")];

const SEALED: &[Column] = &[plain("MAP", "name"), plain("RAISED", "raised").raw()];

const DELETED: &[Column] = &[plain("MAP", "name").raw(), plain("COMMIT", "commit")];

impl Keyed {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| {
            let done = self.verb.run(&self.reach, connection, &output).await;
            done.map_err(|failure| operator::explained(failure, connection.group()))
        })
    }
}

impl Verb {
    async fn run(&self, reach: &Reach, connection: &Connection, output: &Output) -> Result<(), Failure> {
        match self {
            Verb::Ls { prefix, cursor, listing } => {
                let query = ListMaps {
                    prefix: Some(prefix.clone()),
                    cursor: given::word_if_given("--cursor", cursor)?,
                    limit: Some(listing.limit),
                };
                let once = async || {
                    let found = connection.call(MAPS_LIST, &[]).query(&query).ask().await?;
                    output.list(&found, "maps", LISTED)?;
                    more(output, &found, "--cursor", "cursor")
                };
                listing.run(output, once).await
            }
            Verb::Show { map } => output.one(&connection.call(MAPS_READ, &[map]).ask().await?, MAP),
            Verb::Get { map, key } => match of_key(connection, MAPS_KEY, map, key).ask().await {
                Ok(found) => output.one(&found, KEY),
                Err(failure) => Err(no_such_key(connection, map, key, failure).await),
            },
            Verb::Scan { map, prefix, from, to, cursor, listing } => {
                let query = ScanKeys {
                    prefix: prefix.clone(),
                    from: from.clone(),
                    to: to.clone(),
                    cursor: given::word_if_given("--cursor", cursor)?,
                    limit: Some(listing.limit),
                };
                let once = async || {
                    let found = connection.call(MAPS_SCAN, &[map]).query(&query).ask().await?;
                    output.list(&found, "keys", SCANNED)?;
                    more(output, &found, "--cursor", "cursor")
                };
                listing.run(output, once).await
            }
            Verb::Positions { map, after, listing } => {
                let query = ReadPositions { after: after.clone(), limit: Some(listing.limit) };
                let once = async || {
                    let found = connection.call(MAPS_POSITIONS, &[map]).query(&query).ask().await?;
                    output.list(&found, "positions", POSITIONS)?;
                    more(output, &found, "--after", "next_after")
                };
                listing.run(output, once).await
            }
            Verb::Create { map, policy } => {
                let body = CreateMap { policy: Some(given::word("--policy", policy)?) };
                output.one(&connection.call(MAPS_CREATE, &[map]).json(&body).ask().await?, CREATED)
            }
            Verb::Seal { map, version } => {
                let body = SealMap { version: (*version).into() };
                output.one(&connection.call(MAPS_SEAL, &[map]).json(&body).ask().await?, SEALED)
            }
            Verb::Rm { map, sure } => {
                let of = connection.group().map_or(String::new(), |group| format!(" of group {group:?}"));
                sure.or_ask(&format!("delete the map {map:?}{of} with all its keys and positions"))?;
                output.one(&connection.call(MAPS_DELETE, &[map]).ask().await?, DELETED)
            }
            Verb::Write(verb) => verb.run(connection, output).await,
            Verb::Operator(verb) => verb.run(connection, output).await,
            Verb::Checkpoints(verb) => verb.run(reach, connection, output).await,
        }
    }
}

/// A call about one key of a map.
fn of_key(connection: &Connection, route: Route, map: &str, key: &KeyText) -> client::Call {
    connection.client().call_at(route, route.at_key(&[map], &key.0))
}

/// The key as it is given on the command line.
fn text_of(key: &KeyText) -> String {
    match serde_json::to_value(key) {
        Ok(JsonValue::String(text)) => text,
        _ => String::new(),
    }
}

/// A command with a map and a key of it.
fn with_key(words: &[&str], map: &str, key: &KeyText) -> Suggested {
    let key = text_of(key);
    let dashed = map.starts_with('-') || key.starts_with('-');
    let names = dashed.then_some("--").into_iter().chain([map, &key]);
    Suggested::new(["statehouse", "keyed"].iter().chain(words).copied().chain(names))
}

/// Why a key is not there: its map may not be.
async fn no_such_key(connection: &Connection, map: &str, key: &KeyText, mut failure: Failure) -> Failure {
    if failure.code.as_deref() != Some("SH-1031") {
        return failure;
    }
    if let Err(missing) = connection.call(MAPS_READ, &[map]).ask().await
        && missing.exit == Exit::NotFound
    {
        return missing;
    }
    failure.detail = format!("map {map:?} has no key {:?}", text_of(key));
    failure.run("list its keys", Suggested::new(["statehouse", "keyed", "scan"]).name(map))
}

/// Notes that a list has more rows.
fn more(output: &Output, found: &JsonValue, flag: &str, member: &str) -> Result<(), Failure> {
    match found[member].as_str() {
        Some(next) => output.more("there may be more", flag, next),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_given_as_the_api_writes_it() {
        for text in ["apple", "a/b", "-1", "{\"$b64\":\"/wE=\"}"] {
            assert_eq!(text_of(&key(text).expect("a key")), text);
        }
        assert_eq!(key("{\"$b64\":\"/wE=\"}").expect("bytes").0, [0xff, 1]);
        assert!(key("").is_err() && part_of_key("").is_ok());
        assert!(key("{\"$b64\":\"a\"}").expect_err("no base64").contains("is not base64"));
        let dashed = with_key(&["get"], "prices", &key("-1").expect("a key"));
        assert_eq!(dashed.shell(), "statehouse keyed get -- prices -1");
    }
}
