//! Follows the change feed: what was changed, as it happens.
//!
//! Asks by long poll, and goes on from where the last answer ended: an answer holds whole commits, while a stream that is cut sends the
//! whole commit again. Keeps: no change is left out and none is shown twice, over a restart of the server too; where the store does not keep
//! what was asked for, a `gap` is shown in its place.

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
/// How long a server that has answered before may be away.
const AWAY_MAX: Duration = Duration::from_secs(30);
/// How long to wait until it is asked again.
const AWAY_PAUSE: Duration = Duration::from_millis(250);

/// How a change is shown.
pub(crate) const COLUMNS: &[Column] = &[
    plain("AT", "at"),
    plain("KIND", "kind"),
    plain("REASON", "reason"),
    plain("NAME", "name").raw(),
    plain("VERSION", "version"),
];

/// From where, and how long, something is followed.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Follow {
    /// Begin behind this commit; 0 is the oldest that is kept. Left out: from now on.
    #[arg(long, value_name = "COMMIT")]
    pub(crate) from: Option<u64>,
    /// Stop after so many.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Stop after so long.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) time: Option<Duration>,
}

impl Follow {
    /// How long the next request may wait; none when the time is over.
    pub(crate) fn next_wait(&self, began: Instant) -> Option<Duration> {
        match self.time {
            None => Some(POLL),
            Some(time) => time.checked_sub(began.elapsed()).filter(|left| !left.is_zero()).map(|left| left.min(POLL)),
        }
    }

    /// Gives every change with this prefix and kind to `each`.
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
                follow: Some(wire::runs::Follow::Wait(DurationText(wait))),
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

/// Questions that go on from one another: once one was answered, a server that is away for a moment is waited for.
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
