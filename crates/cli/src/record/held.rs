//! The records that a session holds, and what happens to them when it ends.

use std::time::Duration;

use serde_json::Value as JsonValue;
use statehouse::records::Backoff;
use wire::records::ScanRecords;
use wire::routes::{RECORDS_SCAN, TYPES_LIST};
use wire::values::PageCursor;

use crate::connection::{Ask, Connection};
use crate::contract::Held;
use crate::exit::Failure;
use crate::table::{Column, Style, column, millis, plain};

/// Records to search for those that a session holds.
const LOOKED_AT_MAX: u64 = 20_000;

/// How a held record is shown.
const COLUMNS: &[Column] = &[
    plain("HOLDS", "name"),
    plain("GROUP", "group").optional(),
    plain("ATTEMPT", "attempt"),
    plain("WORKER", "holder.worker"),
    column("LEASE LEFT", "holder.lease_ms", Style::Millis),
];

/// The records that a session holds, and with `ends`, what happens to them when it ends.
pub(super) async fn held_by(connection: &Connection, session: &str, ends: bool) -> Result<Held, Failure> {
    let (things, complete) = search(connection, session).await?;
    let given_back = match ends {
        true => after_pauses(&things, &pauses(connection, &things).await?),
        false => String::new(),
    };
    Ok(Held { kind: "records", things, complete, columns: COLUMNS, given_back })
}

/// The records that a session holds, and whether all were searched. Records in groups of other names are not.
async fn search(connection: &Connection, session: &str) -> Result<(Vec<JsonValue>, bool), Failure> {
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

/// What happens to held records, from the pause of each.
fn after_pauses(held: &[JsonValue], pauses: &[Option<u64>]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_back_off_is_said_and_so_is_a_last_attempt() {
        let held = |count| vec![JsonValue::Null; count];
        assert_eq!(after_pauses(&[], &[]), "it holds nothing");
        assert!(after_pauses(&held(1), &[Some(0)]).ends_with("can be claimed at once"));
        assert!(after_pauses(&held(2), &[Some(1_000), Some(4_000)]).ends_with("after a back-off of up to 4 s"));
        assert!(
            after_pauses(&held(2), &[Some(1_000), None])
                .ends_with("up to 1 s; 1 of them used their last attempt and end as failed")
        );
        assert_eq!(after_pauses(&held(1), &[None]), "what it holds used its last attempt and ends as failed");
    }
}
