//! Follows the change feed as commits happen.
//!
//! Polls, continuing where the last answer ended: an answer holds whole commits, while an interrupted stream would send a whole commit
//! again. Keeps: no change is lost or shown twice, even across restarts of the server. Changes that the store no longer keeps are shown
//! as a `gap`.

use std::time::{Duration, Instant};

use clap::Args;
use client::Call;
use serde_json::{Value as JsonValue, json};
use wire::changes::ReadChanges;
use wire::routes::CHANGES_READ;
use wire::values::{DurationText, FeedCursor};

use crate::connection::{Ask, Connection};
use crate::exit::{Exit, Failure};
use crate::output::Output;
use crate::reach::duration;
use crate::table::{Column, plain};

/// How long one request waits.
const POLL: Duration = Duration::from_secs(20);
/// How long a server that has answered before may be unreachable.
const AWAY_MAX: Duration = Duration::from_secs(30);
/// Pause between two attempts.
const AWAY_PAUSE: Duration = Duration::from_millis(250);

/// How a change is shown.
pub(crate) const COLUMNS: &[Column] = &[
    plain("AT", "at"),
    plain("KIND", "kind"),
    plain("REASON", "reason"),
    plain("NAME", "name").raw(),
    plain("VERSION", "version"),
];

/// Where to start following, and when to stop.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Follow {
    /// Start after this commit; 0 is the oldest one kept. Default: only new changes.
    #[arg(long, value_name = "COMMIT")]
    pub(crate) from: Option<u64>,
    /// Stop after this many.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Stop after this long.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) time: Option<Duration>,
}

impl Follow {
    /// How long the next request may wait; none once the time is up.
    pub(crate) fn next_wait(&self, began: Instant) -> Option<Duration> {
        match self.time {
            None => Some(POLL),
            Some(time) => time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()).map(|left| left.min(POLL)),
        }
    }

    /// Passes every change with this prefix and kind to `each`.
    pub(crate) async fn changes(
        &self,
        connection: &Connection,
        prefix: &str,
        kind: Option<&str>,
        mut each: impl FnMut(&JsonValue) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (began, mut following) = (Instant::now(), Following::default());
        let mut from = self.from.map(FeedCursor);
        let mut left = self.limit.unwrap_or(u64::MAX);
        while left > 0 {
            let over = self.next_wait(began);
            let wait = over.unwrap_or(Duration::ZERO);
            let query = ReadChanges {
                prefix: Some(prefix.to_owned()),
                from,
                follow: Some(wire::follow::Follow::Wait(DurationText(wait))),
                ..ReadChanges::default()
            };
            let page = following.ask(connection.call(CHANGES_READ, &[]).query(&query).waiting(Some(wait))).await?;
            if !page["gap"].is_null() {
                each(&json!({ "kind": "gap", "oldest": page["gap"]["oldest"], "newest": page["gap"]["newest"] }))?;
                from = page["gap"]["oldest"].as_str().and_then(FeedCursor::parse);
                continue;
            }
            for change in page["changes"].as_array().into_iter().flatten() {
                if left > 0 && kind.is_none_or(|kind| change["kind"] == kind) {
                    each(change)?;
                    left -= 1;
                }
            }
            from = page["next"].as_str().and_then(FeedCursor::parse).or(from);
            if over.is_none() && page["more"] != true {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Shows every change with this prefix and kind.
    pub(crate) async fn show(
        &self,
        connection: &Connection,
        output: &Output,
        prefix: &str,
        kind: Option<&str>,
    ) -> Result<(), Failure> {
        self.changes(connection, prefix, kind, |change| output.row(change, COLUMNS)).await
    }
}

/// A series of polls: after the first answer, it waits for a server that is unreachable for a moment.
#[derive(Default)]
pub(crate) struct Following {
    answered: bool,
}

impl Following {
    pub(crate) async fn ask(&mut self, call: Call) -> Result<JsonValue, Failure> {
        let away_since = Instant::now();
        loop {
            match call.clone().ask().await {
                Err(failure)
                    if self.answered && failure.exit == Exit::Unavailable && away_since.elapsed() < AWAY_MAX =>
                {
                    tokio::time::sleep(AWAY_PAUSE).await;
                }
                answered => {
                    self.answered = true;
                    return answered;
                }
            }
        }
    }
}
