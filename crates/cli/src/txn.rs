//! `txn`: one commit over things of one group.

use clap::Args;
use statehouse::Value;
use statehouse::shell::Suggested;
use wire::routes::TRANSACTIONS_COMMIT;
use wire::transactions::Transaction;
use wire::values::{Members, UserJson};

use crate::connection::Ask;
use crate::exit::Failure;
use crate::given;
use crate::output::Output;
use crate::reach::Reach;
use crate::table::plain;

/// Commit a transaction from a file: all of it, or nothing.
///
/// The file is one JSON object: {"group": ..., "if": [GUARD..], "fence": {"record", "attempt"}, "do": [OP..]}. A guard is
/// {"cell", "version"}, {"cell", "absent": true}, {"record", "version"} or {"record", "state_in": [..]}; an op is
/// {"op": "cell.set", "name", "value"}, cell.delete, record.put, record.patch, record.incr, record.complete, record.delete,
/// run.append, publish, push or send.
///
/// Examples:
///   statehouse txn -f order.json
///   echo '{"do":[{"op":"cell.set","name":"paid","value":true}]}' | statehouse txn --group order-7 -f -
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Txn {
    #[command(flatten)]
    reach: Reach,
    /// The file; - is stdin.
    #[arg(long, short, value_name = "FILE")]
    file: String,
}

impl Txn {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        let given = if self.file == "-" { self.file.clone() } else { format!("@{}", self.file) };
        let text = given::text(&given)?;
        let help = || Suggested::new(["statehouse", "txn", "--help"]);
        let read = || {
            let mut members = given::object(&self.file, &text)?;
            let named = take_group(&mut members);
            let json = serde_json::to_string(&members).map_err(|error| Failure::other(error.to_string()))?;
            Ok::<(_, Transaction), Failure>((named, given::document(&self.file, &json)?))
        };
        let (named, transaction) = read().map_err(|failure| failure.run("see how it looks", help()))?;
        let mut reach = self.reach.clone();
        let Some(group) = reach.group.take().or(named) else {
            return Err(Failure::usage("a transaction is in one group; give --group, or \"group\" in the file"));
        };
        reach.run(async |connection| {
            let call = connection.call(TRANSACTIONS_COMMIT, &[&group]).json(&transaction);
            output.one(&call.ask().await?, &[plain("COMMIT", "commit").raw()])
        })
    }
}

/// Takes the group that a file names out of it: the API has it in the path.
fn take_group(members: &mut Members<UserJson>) -> Option<String> {
    let place = members.0.iter().position(|(name, _)| name == "group")?;
    match &members.0[place].1.0 {
        Value::Text(group) => {
            let group = group.clone();
            members.0.remove(place);
            Some(group)
        }
        // Not a name; it stays, and is refused with the other members.
        _ => None,
    }
}
