//! Every route in one table. The entries of a contract are in its folder of `api`.

use std::sync::LazyLock;

use axum::http::Method;
use contract::access::{Area, Verb};
use wire::routes::{
    ACCESS_CHECK, ACCESS_WHOAMI, AUDIT_READ, BACKUP_CREATE, BACKUP_VERIFIED, BRANCHES_CREATE, BRANCHES_DELETE,
    BRANCHES_LIST, CHANGES_READ, ERRORS_LIST, ERRORS_PAGE, EXPORT_CREATE, LETTERS_DROP, LETTERS_LIST, LETTERS_RETRY,
    LIMITS_READ, PRINCIPALS_LIST, PRINCIPALS_READ, PRINCIPALS_REMOVE, PRINCIPALS_SET, PUSHES_RETRY, PUSHES_WAITING,
    PathParts, SERVER_DOCS, SERVER_LIVE, SERVER_METRICS, SERVER_OPENAPI, SERVER_READY, SERVER_ROOT, SERVER_STARTED,
    SERVER_STATUS, SERVER_VERSION, SESSIONS_ACKNOWLEDGE, SESSIONS_END, SESSIONS_KEEPALIVE, SESSIONS_LIST,
    SESSIONS_OPEN, SESSIONS_PUSHES, SESSIONS_READ, SESSIONS_REQUEST, SPACES_CREATE, SPACES_LIST, SPACES_RETENTION,
    SPACES_SET_RETENTION, SPACES_USAGE, STATE_COMMAND, TOKENS_ISSUE, TOKENS_REVOKE, TRANSACTIONS_COMMIT,
};

use super::entry::{Asked, Entry, entry, followed, waiting};
use crate::access::Permission;
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
    all.extend(principals());
    all.extend(operations());
    all
}

/// What goes across contracts.
fn across() -> Vec<Entry> {
    vec![
        entry(
            TRANSACTIONS_COMMIT,
            api::transactions::needs::permission(),
            "Commits operations of any contract, all or nothing",
            api::transactions::commit,
        ),
        waiting(
            CHANGES_READ,
            api::changes::permission(),
            "Reads the changes of every commit after a cursor",
            |query: &wire::changes::ReadChanges, _| followed(query.follow),
            api::changes::read,
        )
        .prefer_wait()
        .streams(),
        entry(
            LETTERS_LIST,
            Permission::listing(Area::Message, |_| None),
            "Lists dead letters: messages that their group refused",
            api::letters::list,
        ),
        entry(LETTERS_RETRY, api::letters::choosing(), "Sends a dead letter again", api::letters::retry),
        entry(LETTERS_DROP, api::letters::choosing(), "Drops a dead letter", api::letters::drop),
        entry(
            STATE_COMMAND,
            api::state::permission(),
            "Executes a command of the state primitive",
            api::state::command,
        ),
    ]
}

fn sessions() -> Vec<Entry> {
    use api::sessions::{acknowledge, end, ending, keep_alive, list, open, opening, own, pushes, read};
    fn of_others<Q: 'static, B>() -> Permission<Q, B> {
        Permission::area_of_store(Verb::Operate, Area::Session)
    }
    vec![
        entry(SESSIONS_LIST, of_others(), "Lists the sessions in the order they were opened", list),
        entry(SESSIONS_OPEN, opening(), "Opens a session", open).statuses(&[201]),
        entry(SESSIONS_READ, own(), "Reads the state of a session", read),
        entry(SESSIONS_END, ending().recorded(), "Ends a session", end).acts_as_session(),
        entry(SESSIONS_KEEPALIVE, own(), "Keeps a session alive", keep_alive).acts_as_session(),
        waiting(
            SESSIONS_PUSHES,
            own(),
            "Reads the pushes that the session has not acknowledged",
            |query: &wire::sessions::ReadPushes, _| Asked {
                wait: query.wait.map(|wait| wait.0),
                stream: query.follow == Some(true),
            },
            pushes,
        )
        .acts_as_session()
        .prefer_wait()
        .streams(),
        entry(SESSIONS_ACKNOWLEDGE, own(), "Acknowledges pushes up to a number", acknowledge).acts_as_session(),
        entry(
            SESSIONS_REQUEST,
            api::machines::permission(),
            "Sends a command to a hosted machine, in the machine's own encoding",
            api::machines::request,
        )
        .request(),
        entry(PUSHES_WAITING, of_others(), "Reports whether any pushes are unacknowledged", api::machines::waiting),
        entry(PUSHES_RETRY, of_others().recorded(), "Takes pushes that are due to be sent again", api::machines::retry),
    ]
}

fn catalogue() -> Vec<Entry> {
    use Verb::{Administer, Operate, Read};
    use api::catalogue::{
        branches, create_branch, create_space, delete_branch, limits, of_space, retention, set_retention, spaces, usage,
    };
    fn of_catalogue<Q: 'static, B>(verb: Verb) -> Permission<Q, B> {
        Permission::everything(verb, Area::Catalogue)
    }
    vec![
        entry(SPACES_LIST, Permission::store(Read), "Lists the spaces", spaces),
        entry(SPACES_CREATE, Permission::store(Administer), "Creates a space", create_space).statuses(&[201]),
        entry(SPACES_RETENTION, of_space(Read), "Reads how much history the cells of a space keep", retention),
        entry(
            SPACES_SET_RETENTION,
            of_space(Operate),
            "Sets how much history the cells of a space keep",
            set_retention,
        ),
        entry(SPACES_USAGE, of_space(Read), "Reads how many things a space has, and how many bytes they take", usage),
        entry(BRANCHES_LIST, of_catalogue(Read), "Lists the branches of a space", branches),
        entry(BRANCHES_CREATE, of_catalogue(Operate), "Creates an empty branch", create_branch).statuses(&[201]),
        entry(BRANCHES_DELETE, of_catalogue(Operate), "Deletes a branch", delete_branch),
        entry(LIMITS_READ, Permission::store(Read), "Reads the limits in force", limits),
    ]
}

fn principals() -> Vec<Entry> {
    use api::principals::{check, issue_token, list, read, remove, revoke_token, set, whoami};
    fn administer<Q: 'static, B>() -> Permission<Q, B> {
        Permission::store(Verb::Administer)
    }
    vec![
        entry(PRINCIPALS_LIST, administer(), "Lists the principals", list),
        entry(PRINCIPALS_READ, administer(), "Reads a principal", read),
        entry(PRINCIPALS_SET, administer(), "Sets what a principal may do and how it is known", set),
        entry(PRINCIPALS_REMOVE, administer(), "Removes a principal, and so its tokens", remove),
        entry(
            TOKENS_ISSUE,
            Permission::of("to be the principal, or administer store", |asking, needs| {
                if !asking.caller.is(asking.name) {
                    needs.store(Verb::Administer);
                }
            }),
            "Issues a token of a principal",
            issue_token,
        )
        .statuses(&[201]),
        entry(
            TOKENS_REVOKE,
            Permission::of("to be its principal, or administer store", |asking, needs| {
                if !asking.caller.has_token(asking.name) {
                    needs.store(Verb::Administer);
                }
            }),
            "Revokes a token",
            revoke_token,
        ),
        entry(AUDIT_READ, Permission::store(Verb::Audit), "Reads what was done to the administration, and refused", {
            api::audit::read
        }),
        entry(ACCESS_WHOAMI, Permission::known(), "Shows who sends the request, and what it may do", whoami),
        entry(
            ACCESS_CHECK,
            Permission::of("to ask about oneself, or administer store", |asking, needs| {
                let body: &wire::access::CheckAccess = asking.body;
                if body.principal.as_deref().is_some_and(|principal| !asking.caller.is(principal)) {
                    needs.store(Verb::Administer);
                }
            }),
            "Shows whether somebody may do something, and which grant permits it",
            check,
        ),
    ]
}

/// `cargo xtask show secure routes` sees it fail.
#[cfg(feature = "unpermitted_route")]
fn unpermitted() -> Entry {
    entry(SERVER_VERSION, "A route without a permission", health::version)
}

fn operations() -> Vec<Entry> {
    const PROBE: &[&str] = &["application/json", "text/plain; charset=utf-8"];
    let (known, open, probing) = (Permission::known, Permission::open, health::probing);
    vec![
        entry(
            BACKUP_CREATE,
            Permission::store(Verb::Snapshot).recorded(),
            "Streams a backup of the whole store as one file",
            backup::create,
        )
        .media(&["application/octet-stream"]),
        entry(
            BACKUP_VERIFIED,
            Permission::store(Verb::Snapshot),
            "Records that a backup was verified",
            backup::verified,
        ),
        entry(
            EXPORT_CREATE,
            export::permission().recorded(),
            "Exports the whole store, or one space, as lines of JSON",
            export::export,
        )
        .media(&["application/jsonl"]),
        entry(ERRORS_LIST, open(), "Lists every error code", errors::list),
        entry(ERRORS_PAGE, open(), "Reads the page of an error code", errors::show)
            .media(&["text/markdown; charset=utf-8"]),
        entry(SERVER_LIVE, probing(), "Liveness: fails when a restart would help", health::alive)
            .always()
            .head()
            .statuses(&[200, 503])
            .media(PROBE),
        entry(SERVER_READY, probing(), "Readiness: whether the server can serve now", health::ready)
            .always()
            .head()
            .statuses(&[200, 503])
            .media(PROBE),
        entry(SERVER_STARTED, probing(), "Startup: whether the server has started", health::started)
            .always()
            .head()
            .statuses(&[200, 503])
            .media(PROBE),
        entry(
            SERVER_STATUS,
            Permission::store(Verb::Read),
            "Shows the state of the server on one screen",
            status::status,
        )
        .head()
        .media(PROBE),
        entry(SERVER_METRICS, Permission::store(Verb::Read), "Exposes metrics for Prometheus", metrics::metrics)
            .always()
            .media(&[
                "text/plain; version=0.0.4; charset=utf-8",
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
            ]),
        entry(SERVER_VERSION, known(), "Reads the release and the contract versions", health::version).always().head(),
        entry(SERVER_OPENAPI, known(), "Returns the OpenAPI document", openapi::json).media(&["application/json"]),
        entry(SERVER_ROOT, known(), "Shows where to find things", root::root)
            .media(&["text/plain; charset=utf-8", "text/html; charset=utf-8"]),
        entry(SERVER_DOCS, known(), "Shows the OpenAPI document as a page", openapi::page)
            .media(&["text/html; charset=utf-8"]),
    ]
}

#[cfg(test)]
mod tests {
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
    fn what_is_numbered_needs_more_than_to_read() {
        let known = Permission::<(), ()>::known().words;
        let reads = Area::ALL.iter().map(|area| format!("{} {area}", Verb::Read)).collect::<Vec<_>>();
        for entry in entries().iter().filter(|entry| entry.route.numbered) {
            let (name, needs) = (entry.route.name, &entry.permission);
            assert!(!entry.is_open && *needs != known && !reads.contains(needs), "{name}: {needs}");
        }
    }

    #[test]
    fn the_list_in_the_documentation_is_the_table() {
        let mut list = String::from("| name | call | does | honours | needs |\n|---|---|---|---|---|\n");
        for entry in entries() {
            let (route, head) = (entry.route, if entry.head { " HEAD" } else { "" });
            list.push_str(&format!(
                "| `{}` | `{}{head} {}` | {} | {} | {} |\n",
                route.name,
                route.method.as_str(),
                route.path,
                entry.summary,
                honoured(entry),
                entry.permission
            ));
        }
        assert!(PAGE.contains(&list), "docs/contracts/http.md must contain this list:\n\n{list}");
    }
}
