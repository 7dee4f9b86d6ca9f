//! Every route in one table. The entries of a contract are in its folder of `api`.

use std::sync::LazyLock;

use axum::http::Method;
use wire::routes::{
    BACKUP_CREATE, BACKUP_VERIFIED, BRANCHES_CREATE, BRANCHES_DELETE, BRANCHES_LIST, CHANGES_READ, ERRORS_LIST,
    ERRORS_PAGE, EXPORT_CREATE, LETTERS_DROP, LETTERS_LIST, LETTERS_RETRY, LIMITS_READ, PUSHES_RETRY, PUSHES_WAITING,
    PathParts, SERVER_DOCS, SERVER_LIVE, SERVER_METRICS, SERVER_OPENAPI, SERVER_READY, SERVER_ROOT, SERVER_STARTED,
    SERVER_STATUS, SERVER_VERSION, SESSIONS_ACKNOWLEDGE, SESSIONS_END, SESSIONS_KEEPALIVE, SESSIONS_LIST,
    SESSIONS_OPEN, SESSIONS_PUSHES, SESSIONS_READ, SESSIONS_REQUEST, SPACES_CREATE, SPACES_LIST, SPACES_RETENTION,
    SPACES_SET_RETENTION, SPACES_USAGE, STATE_COMMAND, TRANSACTIONS_COMMIT,
};

use super::entry::{Asked, Entry, entry, followed, waiting};
use crate::metrics::Operation;
use crate::{api, backup, errors, export, health, metrics, openapi, root, status};

static TABLE: LazyLock<Table> = LazyLock::new(Table::new);

/// All entries.
pub(crate) fn entries() -> &'static [Entry] {
    &TABLE.entries
}

/// The result of looking up a path and a method.
pub(crate) enum Found<'path> {
    /// A route, and what the path has for its parameters.
    Entry(&'static Entry, PathParts<'path>),
    /// The path exists with other methods.
    OtherMethod,
    /// No route.
    Nothing,
}

/// The route of a request.
pub(crate) fn find<'path>(method: &Method, path: &'path str) -> Found<'path> {
    let only_head = *method == Method::HEAD;
    let known = if only_head { "GET" } else { method.as_str() };
    match wire::routes::find(known, path) {
        wire::routes::Found::Route(place, parts) => match &TABLE.entries[place] {
            entry if only_head && !entry.head => Found::OtherMethod,
            entry => Found::Entry(entry, parts),
        },
        wire::routes::Found::OtherMethod => Found::OtherMethod,
        wire::routes::Found::Nothing => Found::Nothing,
    }
}

/// The methods that a path accepts.
pub(crate) fn methods(path: &str) -> Vec<&'static str> {
    let known = ["GET", "HEAD", "PUT", "PATCH", "POST", "DELETE"];
    let accepts = |method: &&str| match method.parse::<Method>() {
        Ok(method) => matches!(find(&method, path), Found::Entry(..)),
        Err(_) => false,
    };
    known.into_iter().filter(accepts).collect()
}

/// The metrics operation of an entry.
pub(crate) fn operation(entry: &'static Entry) -> Operation {
    Operation::of_entry(entry.place)
}

struct Table {
    /// In the order of the wire's routes.
    entries: Vec<Entry>,
}

impl Table {
    fn new() -> Self {
        let mut entries = all();
        for entry in &mut entries {
            let place = wire::routes::ALL.iter().position(|route| *route == entry.route);
            entry.place = place.expect("a route of the wire");
        }
        entries.sort_by_key(|entry| entry.place);
        let places = entries.iter().map(|entry| entry.place);
        assert!(places.eq(0..wire::routes::ALL.len()), "every route has one entry");
        Self { entries }
    }
}

/// All entries, not yet in the order of the routes.
fn all() -> Vec<Entry> {
    let mut all = api::routes();
    all.extend(across());
    all.extend(sessions());
    all.extend(catalogue());
    all.extend(operations());
    all
}

/// What goes across contracts.
fn across() -> Vec<Entry> {
    vec![
        entry(TRANSACTIONS_COMMIT, "Commits operations of any contract, all or nothing", api::transactions::commit)
            .write(),
        waiting(
            CHANGES_READ,
            "Reads the changes of every commit after a cursor",
            |query: &wire::changes::ReadChanges, _| followed(query.follow),
            api::changes::read,
        )
        .prefer_wait()
        .streams(),
        entry(LETTERS_LIST, "Lists dead letters: messages that their group refused", api::letters::list),
        entry(LETTERS_RETRY, "Sends a dead letter again", api::letters::retry).write(),
        entry(LETTERS_DROP, "Drops a dead letter", api::letters::drop).write(),
        entry(STATE_COMMAND, "Executes a command of the state primitive", api::state::command).write(),
    ]
}

fn sessions() -> Vec<Entry> {
    vec![
        entry(SESSIONS_LIST, "Lists the sessions in the order they were opened", api::sessions::list),
        entry(SESSIONS_OPEN, "Opens a session", api::sessions::open).write().statuses(&[201]),
        entry(SESSIONS_READ, "Reads the state of a session", api::sessions::read),
        entry(SESSIONS_END, "Ends a session", api::sessions::end).write().acts_as_session(),
        entry(SESSIONS_KEEPALIVE, "Keeps a session alive", api::sessions::keep_alive).write().acts_as_session(),
        waiting(
            SESSIONS_PUSHES,
            "Reads the pushes that the session has not acknowledged",
            |query: &wire::sessions::ReadPushes, _| Asked {
                wait: query.wait.map(|wait| wait.0),
                stream: query.follow == Some(true),
            },
            api::sessions::pushes,
        )
        .acts_as_session()
        .prefer_wait()
        .streams(),
        entry(SESSIONS_ACKNOWLEDGE, "Acknowledges pushes up to a number", api::sessions::acknowledge)
            .write()
            .acts_as_session(),
        entry(
            SESSIONS_REQUEST,
            "Sends a command to a hosted machine, in the machine's own encoding",
            api::machines::request,
        )
        .request(),
        entry(PUSHES_WAITING, "Reports whether any pushes are unacknowledged", api::machines::waiting),
        entry(PUSHES_RETRY, "Takes pushes that are due to be sent again", api::machines::retry).write(),
    ]
}

fn catalogue() -> Vec<Entry> {
    use api::catalogue::{
        branches, create_branch, create_space, delete_branch, limits, retention, set_retention, spaces, usage,
    };
    vec![
        entry(SPACES_LIST, "Lists the spaces", spaces),
        entry(SPACES_CREATE, "Creates a space", create_space).operate().statuses(&[201]),
        entry(SPACES_RETENTION, "Reads how much history the cells of a space keep", retention),
        entry(SPACES_SET_RETENTION, "Sets how much history the cells of a space keep", set_retention).operate(),
        entry(SPACES_USAGE, "Reads how many things a space has, and how many bytes they take", usage),
        entry(BRANCHES_LIST, "Lists the branches of a space", branches),
        entry(BRANCHES_CREATE, "Creates an empty branch", create_branch).operate().statuses(&[201]),
        entry(BRANCHES_DELETE, "Deletes a branch", delete_branch).operate(),
        entry(LIMITS_READ, "Reads the limits in force", limits),
    ]
}

fn operations() -> Vec<Entry> {
    const PROBE: &[&str] = &["application/json", "text/plain; charset=utf-8"];
    vec![
        entry(BACKUP_CREATE, "Streams a backup of the whole store as one file", backup::create)
            .operate()
            .media(&["application/octet-stream"]),
        entry(BACKUP_VERIFIED, "Records that a backup was verified", backup::verified).operate(),
        entry(EXPORT_CREATE, "Exports the whole store, or one space, as lines of JSON", export::export)
            .operate()
            .media(&["application/jsonl"]),
        entry(ERRORS_LIST, "Lists every error code", errors::list).open(),
        entry(ERRORS_PAGE, "Reads the page of an error code", errors::show)
            .open()
            .media(&["text/markdown; charset=utf-8"]),
        entry(SERVER_LIVE, "Liveness: fails when a restart would help", health::alive)
            .open()
            .always()
            .head()
            .statuses(&[200, 503])
            .media(PROBE),
        entry(SERVER_READY, "Readiness: whether the server can serve now", health::ready)
            .open()
            .always()
            .head()
            .statuses(&[200, 503])
            .media(PROBE),
        entry(SERVER_STARTED, "Startup: whether the server has started", health::started)
            .open()
            .always()
            .head()
            .statuses(&[200, 503])
            .media(PROBE),
        entry(SERVER_STATUS, "Shows the state of the server on one screen", status::status).open().head().media(PROBE),
        entry(SERVER_METRICS, "Exposes metrics for Prometheus", metrics::metrics).open().always().media(&[
            "text/plain; version=0.0.4; charset=utf-8",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ]),
        entry(SERVER_VERSION, "Reads the release and the contract versions", health::version).open().always().head(),
        entry(SERVER_OPENAPI, "Returns the OpenAPI document", openapi::json).open().media(&["application/json"]),
        entry(SERVER_ROOT, "Shows where to find things", root::root)
            .open()
            .media(&["text/plain; charset=utf-8", "text/html; charset=utf-8"]),
        entry(SERVER_DOCS, "Shows the OpenAPI document as a page", openapi::page)
            .open()
            .media(&["text/html; charset=utf-8"]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::entry::Access;
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/contracts/http.md");

    /// What a route honours, in a few words.
    fn honoured(entry: &Entry) -> String {
        let honours = entry.honours;
        let words = [
            (honours.group, "group"),
            (honours.branch && !honours.group, "branch"),
            (honours.space && !honours.branch, "space"),
            (honours.session, "session"),
            (honours.request, "request"),
            (honours.secret && !honours.session && !honours.request, "secret"),
            (honours.owner, "owner"),
            (honours.force && !honours.owner, "force"),
            (honours.if_match, "`If-Match`"),
            (honours.if_none_match, "`If-None-Match`"),
            (honours.idempotency_key, "`Idempotency-Key`"),
            (honours.wait, "`Prefer`"),
            (honours.stream, "stream"),
        ];
        words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_is_numbered_writes() {
        for entry in entries().iter().filter(|entry| entry.route.numbered) {
            assert_eq!(entry.access, Access::Write, "{}", entry.route.name);
        }
    }

    #[test]
    fn the_list_in_the_documentation_is_the_table() {
        let mut list = String::from("| name | call | does | honours |\n|---|---|---|---|\n");
        for entry in entries() {
            let (route, head) = (entry.route, if entry.head { " HEAD" } else { "" });
            list.push_str(&format!(
                "| `{}` | `{}{head} {}` | {} | {} |\n",
                route.name,
                route.method.as_str(),
                route.path,
                entry.summary,
                honoured(entry)
            ));
        }
        assert!(PAGE.contains(&list), "docs/contracts/http.md must contain this list:\n\n{list}");
    }
}
