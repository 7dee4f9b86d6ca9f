//! `txn`: one commit over things of one group.

use clap::Args;
use serde_json::Value as JsonValue;
use statehouse::shell::Suggested;

use crate::connection::{Call, path};
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
        let transaction = given::object(&self.file, &given::value(&given, false)?);
        let help = || Suggested::new(["statehouse", "txn", "--help"]);
        let mut transaction = transaction.map_err(|failure| failure.run("see how it looks", help()))?;
        let named = transaction.remove("group").and_then(|group| group.as_str().map(str::to_owned));
        let mut reach = self.reach.clone();
        let Some(group) = reach.group.take().or(named) else {
            return Err(Failure::usage("a transaction is in one group; give --group, or \"group\" in the file"));
        };
        let body = JsonValue::Object(transaction);
        reach.run(async |connection| {
            let call = Call::post(format!("{}/txn", path("/v1/groups", &group)), body);
            output.one(&connection.ask(call).await?, &[plain("COMMIT", "commit").raw()])
        })
    }
}
