//! Explains the state of an operator: who owns each of its partitions, how far it has come, and what happens next.

use std::collections::BTreeSet;

use clap::Args;
use contract::guards::OWNER_RECORD;
use serde_json::Value as JsonValue;
use statehouse::shell::Suggested;
use wire::keyed::{ListMaps, ReadPositions};
use wire::records::ScanRecords;
use wire::routes::{KEYED_POSITIONS, KEYED_READ, MAPS_LIST, RECORDS_SCAN, Route, SESSIONS_READ};
use wire::values::PageCursor;

use super::name;
use super::operator::{partition_number, partition_of};
use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::table::{Column, Style, ago, column, millis, one_line, plain};
use crate::why::{Reasons, changes, last_of, named, when, with};

/// How what happened to an owner is shown.
const OWNERS: &[Column] = &[column("WHEN", "at", Style::Ago), plain("WHAT", "reason"), plain("COMMIT", "commit")];

/// Rows of one page.
const PAGE: u64 = 1_000;

/// Owners of groups to search for those of partitions that hold nothing yet.
const PAGES_OF_OWNERS_MAX: usize = 20;

/// Inputs to name; `keyed positions` has them all.
const INPUTS_MAX: usize = 5;

/// Explain an operator: who owns each partition and until when, how far its inputs are, what it commits next.
///
/// Examples:
///   statehouse why operator wordcount
///   statehouse why operator wordcount --partition 3 -o json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Operator {
    /// The operator's name.
    #[arg(value_parser = name)]
    name: String,
    /// Only this partition, which may hold nothing yet.
    #[arg(long, value_name = "NUMBER", value_parser = partition_number)]
    partition: Option<u32>,
}

impl Operator {
    pub(crate) async fn explain(&self, connection: &Connection) -> Result<Vec<Reasons>, Failure> {
        let numbers = match self.partition {
            Some(number) => self.only(connection, number)?,
            None => self.partitions(connection).await?,
        };
        if numbers.is_empty() {
            return Err(self.not_there(connection));
        }
        let is_owner =
            |change: &JsonValue| change["name"] == OWNER_RECORD && self.number_of(&change["group"]).is_some();
        let (owners, complete) = changes(connection, "record", is_owner, OWNER_RECORD).await?;
        let mut reasons = Vec::new();
        for number in numbers {
            let of_partition = |change: &&JsonValue| self.number_of(&change["group"]) == Some(number);
            let history = owners.iter().filter(of_partition).cloned().collect();
            reasons.push(Partition::read(connection, &self.name, number, history).await?.reasons(complete));
        }
        Ok(reasons)
    }

    /// The partition that was asked for. A group that is another one would be ignored otherwise.
    fn only(&self, connection: &Connection, number: u32) -> Result<BTreeSet<u32>, Failure> {
        let own = format!("{}/{number}", self.name);
        match connection.group() {
            Some(other) if other != own => {
                let detail =
                    format!("partition {number} of operator {:?} is the group {own:?}, not {other:?}", self.name);
                Err(Failure::usage(detail).next("remove --group or --partition"))
            }
            _ => Ok(BTreeSet::from([number])),
        }
    }

    /// The partition of this operator that a group is, if it is one.
    fn number_of(&self, group: &JsonValue) -> Option<u32> {
        let (operator, number) = partition_of(group.as_str()?)?;
        (operator == self.name).then_some(number)
    }

    /// The partitions that hold something, and those that are owned and hold nothing yet.
    async fn partitions(&self, connection: &Connection) -> Result<BTreeSet<u32>, Failure> {
        let of_maps = |cursor| {
            let query = ListMaps { prefix: Some(self.name.clone()), cursor, limit: Some(PAGE) };
            connection.call(MAPS_LIST, &[]).query(&query)
        };
        let mut found = self.listed(("maps", &self.name), usize::MAX, of_maps).await?;
        let of_owners = |cursor| connection.call(RECORDS_SCAN, &[]).query(&owners(cursor));
        found.extend(self.listed(("records", OWNER_RECORD), PAGES_OF_OWNERS_MAX, of_owners).await?);
        Ok(found)
    }

    /// The partitions in whose groups a list has things of this name. It is sorted by name.
    async fn listed(
        &self,
        (key, name): (&str, &str),
        pages_max: usize,
        page: impl Fn(Option<PageCursor>) -> client::Call,
    ) -> Result<BTreeSet<u32>, Failure> {
        let (mut found, mut cursor) = (BTreeSet::new(), None);
        for _ in 0..pages_max {
            let page = page(cursor).ask().await?;
            let rows = page[key].as_array().map(Vec::as_slice).unwrap_or_default();
            let of_name = rows.iter().filter(|row| row["name"] == name);
            found.extend(of_name.filter_map(|row| self.number_of(&row["group"])));
            cursor = page["cursor"].as_str().and_then(PageCursor::parse);
            if cursor.is_none() || rows.last().is_some_and(|row| row["name"] != name) {
                break;
            }
        }
        Ok(found)
    }

    fn not_there(&self, connection: &Connection) -> Failure {
        let place = connection.group().map_or(String::new(), |group| format!(" in group {group:?}"));
        let detail = format!("no partition of operator {:?}{place} holds anything or is owned", self.name);
        let command = Suggested::new(["statehouse", "keyed", "operators"]);
        Failure::new(Exit::NotFound, detail).run("list the operators that hold something", command)
    }
}

/// Selects the records of owners.
fn owners(cursor: Option<PageCursor>) -> ScanRecords {
    ScanRecords { prefix: Some(OWNER_RECORD.to_owned()), cursor, limit: Some(PAGE), ..ScanRecords::default() }
}

/// Everything that is known of a partition.
struct Partition {
    /// The partition as a whole: its group, its guard, its map.
    read: JsonValue,
    /// The record of its owner.
    owner: JsonValue,
    /// The session of its owner; null if there is none.
    session: JsonValue,
    positions: JsonValue,
    /// What happened to its owners, oldest first.
    history: Vec<JsonValue>,
}

impl Partition {
    async fn read(
        connection: &Connection,
        operator: &str,
        number: u32,
        history: Vec<JsonValue>,
    ) -> Result<Self, Failure> {
        let number = number.to_string();
        let call = |route: Route| connection.client().call(route, &[operator, &number]);
        let read = call(KEYED_READ).ask().await?;
        let group = connection.client().group(format!("{operator}/{number}"));
        // Its name is reserved, so it can be listed and not be read.
        let listed = group.call(RECORDS_SCAN, &[]).query(&owners(None)).ask().await?;
        let owner = listed["records"][0].clone();
        let session = match owner["holder"]["session"].as_str() {
            Some(session) => connection.call(SESSIONS_READ, &[session]).ask_if_there().await?.unwrap_or_default(),
            None => JsonValue::Null,
        };
        let query = ReadPositions { limit: Some(PAGE), ..ReadPositions::default() };
        let positions = call(KEYED_POSITIONS).query(&query).ask().await?["positions"].clone();
        Ok(Self { read, owner, session, positions, history })
    }

    fn reasons(self, complete: bool) -> Reasons {
        let (now, waits_for, next) = self.say();
        let Self { read, owner, session, positions, history } = self;
        let mut found = with(&read, "operator");
        found["holder"] = owner["holder"].clone();
        found["epoch"] = owner["attempt"].clone();
        found["acquired_at"] = last_of(&history, &["claimed"]).map_or(JsonValue::Null, |change| change["at"].clone());
        found["session"] = session;
        found["positions"] = positions;
        found["history_complete"] = complete.into();
        Reasons { now, waits_for, next, found, history, columns: OWNERS }
    }

    /// Its state now, what it waits for, what happens next.
    fn say(&self) -> (String, String, String) {
        let commit = format!("number {}", self.read["map"]["last_number"].as_u64().unwrap_or(0) + 1);
        let (owned, waits_for, next) = match self.owner["holder"].is_null() {
            true => self.free(&commit),
            false => self.owned(&commit),
        };
        let name = one_line(self.read["group"].as_str().unwrap_or("?"));
        if self.read["restoring"] == true {
            let now = format!(
                "{name} is owned by {owned}{}; it is being restored: commit nothing until it has ended; until then {}",
                self.guard(),
                self.content()
            );
            let waits_for = match self.owner["holder"].is_null() {
                true => waits_for,
                false => "the end of the restore".to_owned(),
            };
            return (now, waits_for, self.after_restore(&next));
        }
        let now = format!("{name} is owned by {owned}{}; {}", self.guard(), self.content());
        (now, waits_for + &self.waiting(), next)
    }

    /// A restore that its owner does not end is given up by whoever acquires the partition.
    fn after_restore(&self, next: &str) -> String {
        match self.owner["holder"].is_null() {
            true => {
                format!("nobody owns it, so nobody ends the restore: it is given up with the next acquisition; {next}")
            }
            false => {
                "its keys, its positions and the number of its next commit become those of the checkpoint in one step; \
                      what is committed before is gone then"
                    .to_owned()
            }
        }
    }

    fn owned(&self, commit: &str) -> (String, String, String) {
        let holder = &self.owner["holder"];
        let (worker, epoch) = (named(&holder["worker"]), &self.owner["attempt"]);
        let lease = millis(holder["lease_ms"].as_u64().unwrap_or(0));
        let session = match holder["session"].as_str() {
            None => String::new(),
            Some(id) if self.session.is_null() => format!(", in session {id}, which has ended"),
            Some(id) => format!(", in session {id}, which is {}", self.session["state"].as_str().unwrap_or("there")),
        };
        let since = when(last_of(&self.history, &["claimed"]));
        let owned = format!("{worker} in epoch {epoch}, acquired {since}{session}");
        let waits_for = format!("{worker}, whose lease ends in {lease} unless it is extended");
        let next = format!(
            "{worker} commits {commit}; otherwise the lease ends in {lease}, and whoever acquires it in a higher epoch does"
        );
        (owned, waits_for, next)
    }

    fn free(&self, commit: &str) -> (String, String, String) {
        let last = last_of(&self.history, &["released", "rescued", "session_ended", "failed", "deleted"]);
        let how = match last.and_then(|change| change["reason"].as_str()) {
            Some("rescued") => format!(": the lease ended {}", when(last)),
            Some("session_ended") => format!(": the session of its owner ended {}", when(last)),
            Some(_) => format!(": it was released {}", when(last)),
            None => String::new(),
        };
        let epoch = self.owner["attempt"].as_u64().filter(|epoch| *epoch > 0);
        let owned = match epoch {
            Some(epoch) => format!("nobody since epoch {epoch}{how}"),
            None => "nobody".to_owned(),
        };
        let from = match self.positions.as_array().is_some_and(|positions| !positions.is_empty()) {
            true => "resumes from these positions",
            false => "reads its inputs from the beginning",
        };
        let next = format!("whoever acquires it gets epoch {}, {from}, and commits {commit}", epoch.unwrap_or(0) + 1);
        (owned, "a worker to acquire it".to_owned(), next)
    }

    fn guard(&self) -> &'static str {
        match self.read["guard"].is_null() {
            true => ", and no guard covers it, so anybody can write it",
            false => "",
        }
    }

    /// What it holds.
    fn content(&self) -> String {
        let map = &self.read["map"];
        if map.is_null() {
            return "it holds nothing yet".to_owned();
        }
        let keys = map["keys"].as_u64().unwrap_or(0);
        let changed = map["updated_at"].as_str().map_or("?".into(), ago);
        let last = match map["last_number"].as_u64().unwrap_or(0) {
            0 => "no numbered commit".to_owned(),
            number => format!("last commit number {number}"),
        };
        let seal = match &map["seal"] {
            JsonValue::Null => String::new(),
            seal => format!(", sealed up to {}", version(seal)),
        };
        format!("{keys} key{}, {last}, changed {changed}{seal}; {}", if keys == 1 { "" } else { "s" }, self.inputs())
    }

    /// How far its inputs were read.
    fn inputs(&self) -> String {
        let positions = self.positions.as_array().map(Vec::as_slice).unwrap_or_default();
        let one =
            |at: &JsonValue| format!("{} is at {}", one_line(at["input"].as_str().unwrap_or("?")), at["position"]);
        let named: Vec<_> = positions.iter().take(INPUTS_MAX).map(one).collect();
        match positions.len().saturating_sub(INPUTS_MAX) {
            _ if positions.is_empty() => "it has read no input".to_owned(),
            0 => named.join(", "),
            more => format!("{}, and {more} more inputs", named.join(", ")),
        }
    }

    /// What waits in an ordered partition.
    fn waiting(&self) -> String {
        let map = &self.read["map"];
        match map["waiting"].as_u64().unwrap_or(0) {
            0 => String::new(),
            1 => "; 1 update waits for the seal".to_owned(),
            waiting => format!("; {waiting} updates wait for the seal"),
        }
    }
}

/// A version, which is a number or text.
fn version(found: &JsonValue) -> String {
    found.as_str().map_or_else(|| found.to_string(), one_line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn partition(holder: JsonValue, map: JsonValue, positions: JsonValue) -> Partition {
        let read = json!({ "group": "wordcount/3", "guard": "wordcount/", "map": map });
        let owner = json!({ "attempt": 2, "holder": holder });
        Partition { read, owner, session: JsonValue::Null, positions, history: Vec::new() }
    }

    #[test]
    fn an_owned_partition_says_who_commits_what() {
        let map = json!({ "keys": 1, "last_number": 7, "seal": "1:5", "waiting": 2, "updated_at": "?" });
        let positions = json!([{ "input": "topic\n", "position": 9 }]);
        let (now, waits_for, next) = partition(json!({ "worker": "w1", "lease_ms": 25_000 }), map, positions).say();
        assert_eq!(
            now,
            "wordcount/3 is owned by w1 in epoch 2, acquired at an unknown time; \
             1 key, last commit number 7, changed ?, sealed up to 1:5; topic\\n is at 9"
        );
        assert_eq!(waits_for, "w1, whose lease ends in 25 s unless it is extended; 2 updates wait for the seal");
        assert!(next.starts_with("w1 commits number 8; otherwise the lease ends in 25 s"), "{next}");
    }

    #[test]
    fn a_free_partition_says_what_its_next_owner_does() {
        let (now, waits_for, next) = partition(JsonValue::Null, JsonValue::Null, json!([])).say();
        assert_eq!(now, "wordcount/3 is owned by nobody since epoch 2; it holds nothing yet");
        assert_eq!(waits_for, "a worker to acquire it");
        assert_eq!(next, "whoever acquires it gets epoch 3, reads its inputs from the beginning, and commits number 1");
    }

    #[test]
    fn a_partition_that_is_being_restored_says_to_commit_nothing() {
        let map = json!({ "keys": 1, "last_number": 7, "seal": null, "waiting": 0, "updated_at": "?" });
        let mut owned = partition(json!({ "worker": "w1", "lease_ms": 25_000 }), map, json!([]));
        owned.read["restoring"] = true.into();
        let (now, waits_for, next) = owned.say();
        assert!(now.contains("is being restored: commit nothing until it has ended; until then 1 key"), "{now}");
        assert_eq!(waits_for, "the end of the restore");
        assert!(!next.contains("commits number"), "{next}");
        owned.owner["holder"] = JsonValue::Null;
        let (_, waits_for, next) = owned.say();
        assert_eq!(waits_for, "a worker to acquire it");
        assert!(next.starts_with("nobody owns it, so nobody ends the restore"), "{next}");
    }

    #[test]
    fn many_inputs_are_counted() {
        let positions = (0..7).map(|input| json!({ "input": format!("topic-{input}"), "position": input })).collect();
        let inputs = partition(JsonValue::Null, json!({}), positions).inputs();
        assert!(inputs.ends_with("topic-4 is at 4, and 2 more inputs"), "{inputs}");
    }
}
