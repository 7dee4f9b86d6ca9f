//! Explains the state of a session.

use std::time::Duration;

use serde_json::{Value as JsonValue, json};
use statehouse::records::Backoff;
use wire::records::ScanRecords;
use wire::routes::{RECORDS_SCAN, SESSIONS_READ, TYPES_LIST};
use wire::values::PageCursor;

use super::{Reasons, with};
use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::table::{Column, Style, column, millis, plain};

/// Records to search for those that a session holds.
const LOOKED_AT_MAX: u64 = 20_000;

const HELD: &[Column] = &[
    plain("HOLDS", "name"),
    plain("GROUP", "group").optional(),
    plain("ATTEMPT", "attempt"),
    plain("WORKER", "holder.worker"),
    column("LEASE LEFT", "holder.lease_ms", Style::Millis),
];

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
            format!("then it ends: {}", given_back(&held, &pauses(connection, &held).await?)),
        ),
    };
    let mut found = with(&found, "session");
    found["holds"] =
        held.iter().map(|record| json!({ "name": record["name"], "attempt": record["attempt"] })).collect();
    found["holds_complete"] = complete.into();
    Ok(Reasons { now, waits_for, next, found, history: held, columns: HELD })
}

/// The back-off of each held record in ms, once its attempt ends with the session, which counts as a failure; none if it has no
/// attempt left.
async fn pauses(connection: &Connection, held: &[JsonValue]) -> Result<Vec<Option<u64>>, Failure> {
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let types = connection.call(TYPES_LIST, &[]).ask().await?;
    let pause = |record: &JsonValue| {
        let mut declared = types["types"].as_array().into_iter().flatten();
        let declared = declared.find(|declared| declared["name"] == record["type"])?;
        let failures = record["failures"].as_u64().unwrap_or(0) + 1;
        let (first, max) = (declared["backoff"]["first_ms"].as_u64()?, declared["backoff"]["max_ms"].as_u64()?);
        let backoff = Backoff { first: Duration::from_millis(first), max: Duration::from_millis(max) };
        let ms = u64::try_from(backoff.after(failures).as_millis()).unwrap_or(u64::MAX);
        (failures < declared["attempts_max"].as_u64().unwrap_or(u64::MAX)).then_some(ms)
    };
    Ok(held.iter().map(pause).collect())
}

/// What happens to the records that a session holds.
fn given_back(held: &[JsonValue], pauses: &[Option<u64>]) -> String {
    let longest = pauses.iter().flatten().max().copied();
    let last = pauses.iter().filter(|pause| pause.is_none()).count();
    let of_last = match last {
        0 => String::new(),
        count => format!("; {count} of them used their last attempt and end as failed"),
    };
    match (held.len(), longest) {
        (0, _) => "it holds nothing".to_owned(),
        (_, None) => "what it holds used its last attempt and ends as failed".to_owned(),
        (_, Some(0)) => format!("what it holds is released and can be claimed at once{of_last}"),
        (_, Some(ms)) => {
            format!("what it holds is released and can be claimed after a back-off of up to {}{of_last}", millis(ms))
        }
    }
}

/// The records that a session holds, and whether all were searched. Records in groups of other names are not.
async fn held_by(connection: &Connection, session: &str) -> Result<(Vec<JsonValue>, bool), Failure> {
    let (mut held, mut cursor, mut looked_at) = (Vec::new(), None::<PageCursor>, 0);
    loop {
        let query = ScanRecords { limit: Some(1_000), cursor, ..ScanRecords::default() };
        let page = connection.call(RECORDS_SCAN, &[]).query(&query).ask().await?;
        let records = page["records"].as_array().into_iter().flatten();
        held.extend(records.filter(|record| record["holder"]["session"] == session).cloned());
        looked_at += page["looked_at"].as_u64().unwrap_or(1_000).max(1);
        cursor = page["cursor"].as_str().and_then(PageCursor::parse);
        if cursor.is_none() || looked_at >= LOOKED_AT_MAX {
            return Ok((held, cursor.is_none()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_back_off_is_said_and_so_is_a_last_attempt() {
        let held = |count| vec![JsonValue::Null; count];
        assert_eq!(given_back(&[], &[]), "it holds nothing");
        assert!(given_back(&held(1), &[Some(0)]).ends_with("can be claimed at once"));
        assert!(given_back(&held(2), &[Some(1_000), Some(4_000)]).ends_with("after a back-off of up to 4 s"));
        assert!(
            given_back(&held(2), &[Some(1_000), None])
                .ends_with("up to 1 s; 1 of them used their last attempt and end as failed")
        );
        assert_eq!(given_back(&held(1), &[None]), "what it holds used its last attempt and ends as failed");
    }
}
