//! Why a session is as it is.

use serde_json::{Value as JsonValue, json};

use super::{Reasons, with};
use crate::connection::{Call, Connection, path};
use crate::exit::{Exit, Failure};
use crate::table::{Column, Style, column, millis, plain};

/// Records that are looked at for what a session holds.
const LOOKED_AT_MAX: u64 = 20_000;

const HELD: &[Column] = &[
    plain("HOLDS", "name"),
    plain("GROUP", "group").optional(),
    plain("ATTEMPT", "attempt"),
    plain("WORKER", "holder.worker"),
    column("LEASE LEFT", "holder.lease_ms", Style::Millis),
];

pub(super) async fn reasons(connection: &Connection, session: &str) -> Result<Reasons, Failure> {
    let Some(found) = connection.find(Call::get(path("/v1/sessions", session))).await? else {
        let detail =
            format!("session {session} is not known: it was never opened here, was closed, or its time was over");
        let next = "what it held was given back; its client has to open another";
        return Err(Failure::new(Exit::NotFound, detail).next(next));
    };
    let (held, complete) = held_by(connection, session).await?;
    let state = found["state"].as_str().unwrap_or("?");
    let timeout = millis(found["timeout_ms"].as_u64().unwrap_or(0));
    let waiting = found["last_push"].as_u64().unwrap_or(0).saturating_sub(found["acknowledged"].as_u64().unwrap_or(0));
    let answers = found["stored_answers"].as_u64().unwrap_or(0);
    let some = if complete { "" } else { " (more were not looked at)" };
    let now = format!(
        "session {session} is {state}: holds {} records{some}, keeps {answers} answers, {waiting} pushes wait for their acknowledgement",
        held.len()
    );
    let (waits_for, next) = match state {
        "connected" => ("the next sign of its client".to_owned(), format!("without one for {timeout} it ends")),
        _ => (
            format!("a sign of its client, which was not heard of; it has {timeout}"),
            "it ends then: what it holds is given back, at once and to anyone".to_owned(),
        ),
    };
    let mut found = with(&found, "session");
    found["holds"] =
        held.iter().map(|record| json!({ "name": record["name"], "attempt": record["attempt"] })).collect();
    found["holds_complete"] = complete.into();
    Ok(Reasons { now, waits_for, next, found, history: held, columns: HELD })
}

/// The records that a session holds, and whether all were looked at. Those in groups of other names are not.
async fn held_by(connection: &Connection, session: &str) -> Result<(Vec<JsonValue>, bool), Failure> {
    let (mut held, mut cursor, mut looked_at) = (Vec::new(), None::<String>, 0);
    loop {
        let call = Call::get("/v1/records").query("limit", Some(1_000)).query("cursor", cursor.as_ref());
        let page = connection.ask(call).await?;
        let records = page["records"].as_array().into_iter().flatten();
        held.extend(records.filter(|record| record["holder"]["session"] == session).cloned());
        looked_at += page["looked_at"].as_u64().unwrap_or(1_000).max(1);
        cursor = page["cursor"].as_str().map(str::to_owned);
        if cursor.is_none() || looked_at >= LOOKED_AT_MAX {
            return Ok((held, cursor.is_none()));
        }
    }
}
