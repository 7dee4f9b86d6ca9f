//! The change feed: `GET /v1/changes`, a page at a time, waiting for one if it is asked to, or as a stream.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use contract::time::iso;
use contract::{Change, Followed, Reason, Subject};
use serde_json::{Value as JsonValue, json};
use statehouse::Changes;

use crate::Server;
use crate::metrics::Watcher;
use crate::place::Place;
use crate::problem::{Answered, ok};
use crate::stream::{Sent, Source};

/// Changes that a stream reads at a time. One command's are never split, so there can be more.
const CHANGES_AT_ONCE: usize = 16;

pub(crate) fn routes() -> Router<Server> {
    Router::new().route("/v1/changes", get(changes))
}

/// `?prefix=&from=CURSOR&limit=&follow=10s`. Without `from`, from now on. As a stream with `?follow=true`, which goes on
/// behind the `Last-Event-ID`.
async fn changes(State(server): State<Server>, place: Place) -> Answered {
    let feed = place.inside(&server.house).space.changes().with_prefix(place.query("prefix").unwrap_or_default());
    let streamed = place.wants_stream();
    let from = match place.last_event()?.filter(|_| streamed).or(place.number("from")?) {
        Some(from) => from,
        None => feed.newest()?,
    };
    if streamed {
        // That the space and the branch exist is said before the stream begins.
        feed.read(from, 1)?;
        let watcher = server.metrics.watchers.join();
        return server.stream(ChangeFeed { feed, cursor: from, watcher });
    }
    let wait = place.wait("follow")?;
    let limit = place.limit(100)?;
    let (mut followed, feed) = server.call(move |_| Ok((feed.read(from, limit)?, feed))).await?;
    if let Followed::Page(page) = &followed
        && page.changes.is_empty()
        && !page.more
        && !wait.is_zero()
        && let Some(found) = server.in_time(wait, feed.follow_async(page.next, limit)).await
    {
        followed = found?;
    }
    match followed {
        Followed::Gap { oldest, newest } => ok(json!({ "gap": { "oldest": oldest, "newest": newest } })),
        Followed::Page(page) => {
            let changes: Vec<_> = page.changes.iter().map(change_json).collect();
            ok(json!({ "changes": changes, "next": page.next, "more": page.more }))
        }
    }
}

/// The change feed, for a stream.
struct ChangeFeed {
    feed: Changes,
    cursor: u64,
    /// So that it is seen when its client is behind.
    watcher: Watcher,
}

impl Source for ChangeFeed {
    async fn next(&mut self) -> Result<Vec<Sent>, contract::Error> {
        self.watcher.waits();
        let followed = self.feed.follow_async(self.cursor, CHANGES_AT_ONCE).await?;
        self.watcher.has_upto(self.cursor);
        match followed {
            Followed::Page(page) => {
                self.cursor = page.next;
                let last = page.changes.len().saturating_sub(1);
                let id = |place: usize, change: &Change| {
                    // All changes of a commit have its number. A client that has not had all of them goes on before it.
                    match page.changes.get(place + 1) {
                        Some(next) if next.commit == change.commit => change.commit - 1,
                        _ if place == last => page.next,
                        _ => change.commit,
                    }
                };
                let sent = page.changes.iter().enumerate();
                Ok(sent
                    .map(|(place, change)| Sent::new(id(place, change), "change", change_json(change).to_string()))
                    .collect())
            }
            Followed::Gap { oldest, newest } => {
                self.cursor = newest;
                let gap = json!({ "oldest": oldest, "newest": newest });
                Ok(vec![Sent::new(newest, "gap", gap.to_string())])
            }
        }
    }

    /// Moves over what is filtered out, so that a client that comes back does not find a gap.
    fn position(&mut self) -> Result<u64, contract::Error> {
        if let Followed::Page(page) = self.feed.read(self.cursor, 1)?
            && page.changes.is_empty()
        {
            self.cursor = page.next;
        }
        Ok(self.cursor)
    }
}

fn change_json(change: &Change) -> JsonValue {
    json!({
        "commit": change.commit,
        "at": iso(change.updated_at),
        "kind": subject(change.subject),
        "reason": reason(change.reason),
        "group": change.group,
        "name": change.name,
        "version": change.version,
    })
}

fn subject(subject: Subject) -> &'static str {
    match subject {
        Subject::Cell => "cell",
        Subject::Record => "record",
        Subject::Message => "message",
        Subject::Run => "run",
        _ => "other",
    }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Written => "written",
        Reason::Deleted => "deleted",
        Reason::Expired => "expired",
        Reason::Claimed => "claimed",
        Reason::Released => "released",
        Reason::Rescued => "rescued",
        Reason::Finished => "finished",
        Reason::Exhausted => "exhausted",
        Reason::Delivered => "delivered",
        Reason::Refused => "refused",
        Reason::SessionEnded => "session_ended",
        Reason::Failed => "failed",
        _ => "other",
    }
}
