//! Explains the state of a session.

use serde_json::json;
use wire::routes::SESSIONS_READ;

use super::{Reasons, with};
use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::record::held::{COLUMNS, given_back, held_by};
use crate::table::millis;

pub(super) async fn reasons(connection: &Connection, session: &str) -> Result<Reasons, Failure> {
    let Some(found) = connection.call(SESSIONS_READ, &[session]).ask_if_there().await? else {
        let detail = format!("session {session} is unknown: it was never opened here, was closed, or timed out");
        let next = "what it held was released; its client must open a new session";
        return Err(Failure::new(Exit::NotFound, detail).next(next));
    };
    let (held, complete) = held_by(connection, session).await?;
    let state = found["state"].as_str().unwrap_or("?");
    let timeout = millis(found["timeout_ms"].as_u64().unwrap_or(0));
    let waiting = found["last_push"].as_u64().unwrap_or(0).saturating_sub(found["acknowledged"].as_u64().unwrap_or(0));
    let answers = found["stored_answers"].as_u64().unwrap_or(0);
    let some = if complete { "" } else { " (not all records were searched)" };
    let now = format!(
        "session {session} is {state}: holds {} records{some}, keeps {answers} answers, {waiting} pushes are not acknowledged",
        held.len()
    );
    let (waits_for, next) = match state {
        "connected" => ("the next sign of life of its client".to_owned(), format!("without one for {timeout} it ends")),
        _ => (
            format!("a sign of life of its client, which has gone silent; it has {timeout}"),
            format!("then it ends: {}", given_back(connection, &held).await?),
        ),
    };
    let mut found = with(&found, "session");
    found["holds"] =
        held.iter().map(|record| json!({ "name": record["name"], "attempt": record["attempt"] })).collect();
    found["holds_complete"] = complete.into();
    Ok(Reasons { now, waits_for, next, found, history: held, columns: COLUMNS })
}
