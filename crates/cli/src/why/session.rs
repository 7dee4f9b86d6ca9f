//! Explains the state of a session.

use clap::Args;
use serde_json::json;
use wire::routes::SESSIONS_READ;

use super::{Reasons, with};
use crate::connection::{Ask, Connection};
use crate::contract::{Contract, Held};
use crate::exit::{Exit, Failure};
use crate::table::millis;
use crate::with_contracts;

/// Explain a session: whether its client is alive, what it holds, what waits for it.
///
/// Examples:
///   statehouse why session s-7
///   statehouse why session s-7 -o json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Session {
    /// The session's id.
    name: String,
}

macro_rules! held_by {
    ($($folder:ident: $noun:ident { $($explained:ident)? })*) => {
        /// What a session holds of each contract whose things sessions can hold.
        async fn held_by(connection: &Connection, session: &str, ends: bool) -> Result<Vec<Held>, Failure> {
            let held = [$(<crate::$folder::$noun as Contract>::held_by(connection, session, ends).await?),*];
            Ok(held.into_iter().flatten().collect())
        }
    };
}

with_contracts!(held_by);

impl Session {
    pub(super) async fn explain(&self, connection: &Connection) -> Result<Reasons, Failure> {
        let session = &self.name;
        let Some(found) = connection.call(SESSIONS_READ, &[session]).ask_if_there().await? else {
            let detail = format!("session {session} is unknown: it was never opened here, was closed, or timed out");
            let next = "what it held was released; its client must open a new session";
            return Err(Failure::new(Exit::NotFound, detail).next(next));
        };
        let state = found["state"].as_str().unwrap_or("?");
        let is_connected = state == "connected";
        let held = held_by(connection, session, !is_connected).await?;
        let timeout = millis(found["timeout_ms"].as_u64().unwrap_or(0));
        let (last, acknowledged) = (found["last_push"].as_u64(), found["acknowledged"].as_u64());
        let waiting = last.unwrap_or(0).saturating_sub(acknowledged.unwrap_or(0));
        let answers = found["stored_answers"].as_u64().unwrap_or(0);
        let holds = joined(&held, |held| {
            let Held { kind, things, complete, .. } = held;
            let some = if *complete { String::new() } else { format!(" (not all {kind} were searched)") };
            format!("{} {kind}{some}", things.len())
        });
        let now = format!(
            "session {session} is {state}: holds {holds}, keeps {answers} answers, {waiting} pushes are not acknowledged"
        );
        let (waits_for, next) = match is_connected {
            true => ("the next sign of life of its client".to_owned(), format!("without one for {timeout} it ends")),
            false => (
                format!("a sign of life of its client, which has gone silent; it has {timeout}"),
                format!("then it ends: {}", joined(&held, |held| held.given_back.clone())),
            ),
        };
        let mut found = with(&found, "session");
        let things = held.iter().flat_map(|held| &held.things);
        found["holds"] = things.map(|thing| json!({ "name": thing["name"], "attempt": thing["attempt"] })).collect();
        found["holds_complete"] = held.iter().all(|held| held.complete).into();
        let columns = held.first().map_or(&[][..], |held| held.columns);
        let history = held.into_iter().flat_map(|held| held.things).collect();
        Ok(Reasons { now, waits_for, next, found, history, columns })
    }
}

fn joined(held: &[Held], say: impl Fn(&Held) -> String) -> String {
    held.iter().map(say).collect::<Vec<_>>().join(", ")
}
