//! The change feed: `GET /v1/changes`, a page at a time, waiting for one if it is asked to.

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use contract::time::iso;
use contract::{Followed, Reason, Subject};
use serde_json::json;

use crate::Server;
use crate::place::Place;
use crate::problem::{Answered, ok};

pub(crate) fn routes() -> Router<Server> {
    Router::new().route("/v1/changes", get(changes))
}

/// `?prefix=&from=CURSOR&limit=&follow=10s`. Without `from`, from now on.
async fn changes(State(server): State<Server>, place: Place) -> Answered {
    let wait = place.wait("follow")?;
    let from = place.number("from")?;
    let limit = place.limit(100)?;
    let followed = server.call(move |house| {
        let feed = place.space(house).changes().with_prefix(place.query("prefix").unwrap_or_default());
        let from = match from {
            Some(from) => from,
            None => feed.newest()?,
        };
        feed.follow(from, limit, wait)
    });
    match followed.await? {
        Followed::Gap { oldest, newest } => ok(json!({ "gap": { "oldest": oldest, "newest": newest } })),
        Followed::Page(page) => {
            let changes: Vec<_> = page
                .changes
                .iter()
                .map(|change| {
                    json!({
                        "commit": change.commit,
                        "at": iso(change.updated_at),
                        "kind": subject(change.subject),
                        "reason": reason(change.reason),
                        "group": change.group,
                        "name": change.name,
                        "version": change.version,
                    })
                })
                .collect();
            ok(json!({ "changes": changes, "next": page.next, "more": page.more }))
        }
    }
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
        _ => "other",
    }
}
