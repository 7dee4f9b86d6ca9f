//! `txn`: several operations in one group, in one commit.

use clap::Args;
use statehouse::Value;
use statehouse::shell::Suggested;
use wire::routes::TRANSACTIONS_COMMIT;
use wire::transactions::Transaction;

use crate::connection::Ask;
use crate::exit::Failure;
use crate::given;
use crate::output::Output;
use crate::reach::Reach;
use crate::table::plain;

/// Commit a transaction from a file, all or nothing.
///
/// The file is one JSON object: {"group": ..., "if": [GUARD..], "fence": {"record", "attempt"}, "do": [OP..]}. A guard is
/// {"cell" or "record", and "version", "absent": true, "exists": true or "unchanged_since"}, {"cell", "version_below"},
/// {"cells": {"from", "before"}, "unchanged_since"}, {"record", and "state_in": [..], "attempt" or "field" with "is"}, or
/// {"run", "last"}, {"key": {"map", "key"}, and "version", "version_below", "absent", "exists" or "unchanged_since"},
/// {"keys": {"map", "from", "before"}, "unchanged_since"}, or {"input": {"map", "input"}, and "position" or "absent"}; an op is {"op": "cell.set", "name", "value"}, cell.init, cell.delete, record.put, record.patch,
/// record.incr, record.step, record.release, record.complete, record.fail, record.delete, run.append, map.update,
/// map.commit, map.seal, map.create, map.delete, publish, push or send.
///
/// Examples:
///   statehouse txn -f order.json
///   echo '{"do":[{"op":"cell.set","name":"paid","value":true}]}' | statehouse txn --group order-7 -f -
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Txn {
    #[command(flatten)]
    reach: Reach,
    /// The file to read; - is stdin.
    #[arg(long, short, value_name = "FILE")]
    file: String,
}

impl Txn {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let (given, file) = match self.file.as_str() {
            "-" => ("-".to_owned(), "stdin"),
            file => (format!("@{file}"), file),
        };
        let text = given::text(&given)?;
        let help = || Suggested::new(["statehouse", "txn", "--help"]);
        let (named, transaction) = read(file, &text).map_err(|failure| failure.run("see the format", help()))?;
        let mut reach = self.reach.clone();
        let Some(group) = reach.group.take().or(named) else {
            return Err(Failure::usage("a transaction is in one group; give --group, or \"group\" in the file"));
        };
        // What a failure suggests is in the same group.
        reach.group = Some(group.clone());
        reach.run(async |connection| {
            let call = connection.call(TRANSACTIONS_COMMIT, &[&group]).json(&transaction);
            output.one(&call.ask().await?, &[plain("COMMIT", "commit").raw()])
        })
    }
}

/// The transaction of a file, and its group if it names one. The API has the group in the path.
fn read(file: &str, json: &str) -> Result<(Option<String>, Transaction), Failure> {
    let mut members = given::object(file, json)?;
    let named = members.0.iter().position(|(name, _)| name == "group").map(|place| members.0.remove(place).1.0);
    let named = match named {
        None => None,
        Some(Value::Text(group)) => Some(group),
        Some(_) => return Err(Failure::usage(format!("{file}: \"group\" is not text"))),
    };
    let json = serde_json::to_string(&members).map_err(|error| Failure::other(error.to_string()))?;
    Ok((named, given::document(file, &json)?))
}

#[cfg(test)]
mod tests {
    use wire::contracts::{Guard, Operation};

    use super::*;

    #[test]
    fn the_help_names_every_operation_and_every_member_of_a_guard() {
        let help = Txn::augment_args(clap::Command::new("txn")).render_long_help().to_string();
        let words: Vec<&str> = help.split(|letter: char| !letter.is_alphanumeric() && !"._".contains(letter)).collect();
        let words: Vec<&str> = words.into_iter().map(|word| word.trim_matches('.')).collect();
        for name in Operation::names() {
            assert!(words.contains(name), "{name} is not in the help");
        }
        for name in Guard::member_names() {
            assert!(help.contains(&format!("{name:?}")), "{name} is not in the help");
        }
    }

    #[test]
    fn a_file_is_read_by_its_members_and_sent_as_it_was_written() {
        let json = r#"{"group":"g","do":[{"op":"cell.set","name":"a","value":{"b":1e400,"b": -0}}]}"#;
        let (group, transaction) = read("f", json).expect("a transaction");
        assert_eq!(group.as_deref(), Some("g"));
        let sent = serde_json::to_string(&transaction).expect("JSON");
        assert!(sent.contains(r#""value":{"b":1e400,"b": -0}"#), "{sent}");
        let refused = |json| read("f", json).map(drop).expect_err("refused").detail;
        let misspelt = r#"{"do":[{"op":"cell.set","nam":"a","value":1}]}"#;
        assert_eq!(refused(misspelt), r#"f: "do[0].nam" is unknown; did you mean "name"?"#);
        assert_eq!(refused(r#"{"group":7,"do":[]}"#), r#"f: "group" is not text"#);
        assert_eq!(refused("[]"), "f: not a JSON object");
    }
}
