//! Every call of the server: its path, what it is asked with, and what it answers.

use utoipa::openapi::path::HttpMethod;
use utoipa::openapi::path::HttpMethod::{Delete, Get, Head, Patch, Post, Put};

/// What kind of value a parameter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Duration,
    Boolean,
}

/// A parameter of the query, or a header.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) in_header: bool,
    pub(super) kind: Kind,
    pub(super) says: &'static str,
}

const fn query(name: &'static str, kind: Kind, says: &'static str) -> Parameter {
    Parameter { name, in_header: false, kind, says }
}

const fn header(name: &'static str, kind: Kind, says: &'static str) -> Parameter {
    Parameter { name, in_header: true, kind, says }
}

/// Where a call is.
const PLACE: &[Parameter] = &[
    query("space", Kind::Text, "The space; `default` if it is left out."),
    query("branch", Kind::Text, "The branch; `main` if it is left out."),
    query("group", Kind::Text, "The group; left out, a thing is a group of its own name."),
];

/// In which session it is sent.
const SESSION: &[Parameter] = &[
    header("Statehouse-Session", Kind::Number, "The session that this is sent in."),
    header(
        "Statehouse-Request",
        Kind::Number,
        "Its number in the session; sent again, it is answered again and not executed.",
    ),
    header("Statehouse-Lowest-Pending", Kind::Number, "The lowest request whose answer is still waited for."),
];

const IF_MATCH: Parameter =
    header("If-Match", Kind::Text, "Only if it is at this version, or the run at this sequence: a number in quotes.");
const IF_NONE_MATCH: Parameter = header("If-None-Match", Kind::Text, "`*`: only if it does not exist.");
const PREFIX: Parameter = query("prefix", Kind::Text, "Only names that begin so.");
const LIMIT: Parameter = query("limit", Kind::Number, "How many at most.");
const FOLLOW: Parameter = query(
    "follow",
    Kind::Text,
    "How long to wait for something if there is nothing: `10s`. `true` for a stream of events.",
);
const LAST_EVENT: Parameter = header("Last-Event-ID", Kind::Text, "Where a stream goes on.");
const VERBOSE: Parameter = query("verbose", Kind::Boolean, "Each check with its reason.");

/// What a call is sent.
pub(super) enum Body {
    /// JSON of this schema.
    Json(&'static str),
    /// Bytes.
    Bytes,
}

/// One call.
pub(super) struct Operation {
    pub(super) method: HttpMethod,
    pub(super) path: &'static str,
    pub(super) contract: &'static str,
    pub(super) summary: &'static str,
    pub(super) placed: bool,
    pub(super) in_session: bool,
    pub(super) parameters: &'static [Parameter],
    pub(super) body: Option<Body>,
    pub(super) statuses: &'static [&'static str],
    pub(super) answers: &'static str,
    pub(super) media: &'static [&'static str],
}

impl Operation {
    /// A name of its own: `put_v1_cells_name`.
    pub(super) fn id(&self) -> String {
        let method = match self.method {
            Get => "get",
            Head => "head",
            Put => "put",
            Patch => "patch",
            Post => "post",
            Delete => "delete",
            _ => "other",
        };
        let path: String = self.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        format!("{method}{}", path.replace("__", "_").trim_end_matches('_'))
    }

    /// The names in braces.
    pub(super) fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
    }

    /// All parameters but those of the path.
    pub(super) fn all_parameters(&self) -> impl Iterator<Item = &Parameter> {
        let place = if self.placed { PLACE } else { &[] };
        let session = if self.in_session { SESSION } else { &[] };
        place.iter().chain(session).chain(self.parameters)
    }

    const fn placed(mut self) -> Self {
        self.placed = true;
        self
    }

    /// A write of a thing, which can be sent in a session.
    const fn write(mut self) -> Self {
        self.placed = true;
        self.in_session = true;
        self
    }

    const fn with(mut self, parameters: &'static [Parameter]) -> Self {
        self.parameters = parameters;
        self
    }

    const fn body(mut self, schema: &'static str) -> Self {
        self.body = Some(Body::Json(schema));
        self
    }

    const fn bytes(mut self) -> Self {
        self.body = Some(Body::Bytes);
        self
    }

    const fn answers(mut self, statuses: &'static [&'static str], answers: &'static str) -> Self {
        self.statuses = statuses;
        self.answers = answers;
        self
    }

    const fn media(mut self, media: &'static [&'static str]) -> Self {
        self.media = media;
        self
    }
}

const fn op(method: HttpMethod, path: &'static str, contract: &'static str, summary: &'static str) -> Operation {
    Operation {
        method,
        path,
        contract,
        summary,
        placed: false,
        in_session: false,
        parameters: &[],
        body: None,
        statuses: &["200"],
        answers: "Done",
        media: &["application/json"],
    }
}

const JSON_OR_EVENTS: &[&str] = &["application/json", "text/event-stream"];
const MADE: &[&str] = &["200", "201"];

/// Every call.
pub(super) const OPERATIONS: &[Operation] = &[
    op(
        Get,
        "/v1/cells",
        "cells",
        "The cells of all groups, or of one, whose names begin with a prefix, in the order of (name, group)",
    )
    .placed()
    .with(&[PREFIX, LIMIT, query("after", Kind::Text, "The `next_after` of the page before.")])
    .answers(&["200"], "`cells` and `next_after`"),
    op(Get, "/v1/cells/{name}", "cells", "A cell, as it is or as it was; or its history")
        .placed()
        .with(&[
            query("at", Kind::Text, "As it was at a version, or at a time in RFC 3339."),
            query("view", Kind::Text, "`history`: its versions, newest first."),
            query("before", Kind::Number, "Of the history: only versions below this one."),
            LIMIT,
        ])
        .answers(&["200"], "`value`, `version`, `commit`, `updated_at`; `ETag` is the version"),
    op(Head, "/v1/cells/{name}", "cells", "Whether there is such a cell, and its version").placed().media(&[]),
    op(Put, "/v1/cells/{name}", "cells", "Writes a cell; the body is its value")
        .write()
        .with(&[IF_MATCH, IF_NONE_MATCH])
        .body("Value")
        .answers(MADE, "`version` and `commit`; 201 for its first version"),
    op(Delete, "/v1/cells/{name}", "cells", "Deletes a cell").write().with(&[IF_MATCH]),
    op(Get, "/v1/records", "records", "The records of all groups, or of one, that match, at one view")
        .placed()
        .with(&[
            PREFIX,
            LIMIT,
            query("where", Kind::Text, "A list of tests: `[[\"state\",\"eq\",\"pending\"]]`."),
            query("type", Kind::Text, "Only of this type."),
            query("cursor", Kind::Text, "Where the page before ended."),
        ])
        .answers(&["200"], "`records`, `cursor` if there may be more, `looked_at`"),
    op(Get, "/v1/records/{name}", "records", "A record").placed(),
    op(Head, "/v1/records/{name}", "records", "Whether there is such a record, and its version").placed().media(&[]),
    op(Put, "/v1/records/{name}", "records", "Replaces a record")
        .write()
        .with(&[IF_MATCH, IF_NONE_MATCH])
        .body("PutRecord")
        .answers(MADE, "`version` and `commit`; 201 for its first version"),
    op(Patch, "/v1/records/{name}", "records", "Changes fields of a record, all of it in one commit")
        .write()
        .with(&[IF_MATCH])
        .body("PatchRecord"),
    op(Delete, "/v1/records/{name}", "records", "Deletes a record").write().with(&[IF_MATCH]),
    op(Post, "/v1/records/{name}/step", "records", "Writes fields, if the attempt is the live one")
        .write()
        .body("Attempt"),
    op(Post, "/v1/records/{name}/extend", "records", "Holds the record longer").write().body("Attempt"),
    op(Post, "/v1/records/{name}/release", "records", "Gives the record back").write().body("Attempt"),
    op(Post, "/v1/records/{name}/complete", "records", "Finishes the record").write().body("Attempt"),
    op(Post, "/v1/records/{name}/fail", "records", "Says that the attempt failed").write().body("Attempt"),
    op(Get, "/v1/counts", "records", "How many records of each type are in each state").placed().with(&[PREFIX]),
    op(Post, "/v1/claims", "records", "Takes the next records that are ready, and waits for one if it is to")
        .write()
        .body("Claim")
        .answers(&["200"], "`claimed`: records with `attempt`, `token`, `lease_ms`"),
    op(Post, "/v1/groups/{group}/txn", "transactions", "Operations of any contract in one commit, all or nothing")
        .write()
        .body("Transaction")
        .answers(&["200"], "`commit`, and what each operation did in `done`"),
    op(
        Get,
        "/v1/runs",
        "runs",
        "The runs of all groups, or of one, by name, status, type and how long they have been quiet",
    )
    .placed()
    .with(&[
        PREFIX,
        query("status", Kind::Text, "`RUNNING`, `COMPLETED` and so on."),
        query("type", Kind::Text, "Only of this kind."),
        query("stalled", Kind::Duration, "Only those without an event for so long."),
        LIMIT,
        query("cursor", Kind::Text, "Where the page before ended."),
    ])
    .answers(&["200"], "`runs`, `cursor` if there may be more, `looked_at`"),
    op(Get, "/v1/runs/{run}/events", "runs", "The events behind a sequence")
        .placed()
        .with(&[query("after", Kind::Number, "Behind this sequence."), LIMIT, FOLLOW, LAST_EVENT])
        .answers(&["200"], "`events` and `stable_seq`, or a stream of them")
        .media(JSON_OR_EVENTS),
    op(Post, "/v1/runs/{run}/events", "runs", "Appends an event, or a list of them in one commit")
        .write()
        .with(&[
            IF_MATCH,
            header("Idempotency-Key", Kind::Text, "The event's idempotency key, if it has none itself."),
            query("type", Kind::Text, "What kind of run it is, if this makes it."),
        ])
        .body("Events"),
    op(Get, "/v1/runs/{run}/snapshot", "runs", "The projection of a run").placed().with(&[query(
        "project",
        Kind::Boolean,
        "Made anew from all events.",
    )]),
    op(Post, "/v1/runs/{run}/close", "runs", "Lets nothing more be appended").write(),
    op(Post, "/v1/runs/{run}/archive", "runs", "Deletes a run; its name is not used again").write(),
    op(Post, "/v1/runs/{run}/fork", "runs", "Makes a run that shares the events up to a sequence").write().body("Fork"),
    op(Get, "/v1/sessions", "sessions", "The sessions, by number")
        .with(&[query("after", Kind::Number, "Only those behind this one."), LIMIT]),
    op(Post, "/v1/sessions", "sessions", "Opens a session")
        .body("NewSession")
        .answers(&["201"], "`session`: its number"),
    op(Get, "/v1/sessions/{id}", "sessions", "How a session is doing"),
    op(Delete, "/v1/sessions/{id}", "sessions", "Ends a session"),
    op(Post, "/v1/sessions/{id}/keepalive", "sessions", "A sign of life"),
    op(Get, "/v1/sessions/{id}/pushes", "sessions", "What was pushed to the session and is not acknowledged")
        .with(&[
            query("wait", Kind::Duration, "How long to wait for a push if there is none."),
            LIMIT,
            query("follow", Kind::Boolean, "A stream of events."),
            LAST_EVENT,
        ])
        .media(JSON_OR_EVENTS),
    op(Post, "/v1/sessions/{id}/acks", "sessions", "Pushes up to this one are dealt with").body("Acknowledge"),
    op(
        Post,
        "/v1/sessions/{id}/requests",
        "sessions",
        "A command to a machine that the server hosts, in its own bytes",
    )
    .write()
    .with(&[query("machine", Kind::Number, "Which machine, if there are several.")])
    .bytes()
    .media(&["application/octet-stream"]),
    op(Get, "/v1/pushes", "sessions", "Whether pushes wait for their acknowledgement").with(&[query(
        "sent_before_us",
        Kind::Number,
        "Whether any was last sent before this time, too.",
    )]),
    op(Post, "/v1/pushes/retry", "sessions", "Takes pushes to be sent again").body("Retry"),
    op(Get, "/v1/changes", "changes", "What every commit changed, behind a cursor")
        .placed()
        .with(&[PREFIX, query("from", Kind::Number, "The cursor; left out, from now on."), LIMIT, FOLLOW, LAST_EVENT])
        .answers(&["200"], "`changes` and `next`, or a `gap`, or a stream of them")
        .media(JSON_OR_EVENTS),
    op(Get, "/v1/spaces", "catalogue", "The spaces"),
    op(Put, "/v1/spaces/{space}", "catalogue", "Makes a space").answers(&["201"], "Made"),
    op(Get, "/v1/spaces/{space}/retention", "catalogue", "How much history its cells keep"),
    op(Put, "/v1/spaces/{space}/retention", "catalogue", "Sets how much history its cells keep").body("Retention"),
    op(Get, "/v1/branches", "catalogue", "The branches of a space").placed(),
    op(Put, "/v1/branches/{branch}", "catalogue", "Makes an empty branch").placed().answers(&["201"], "Made"),
    op(Delete, "/v1/branches/{branch}", "catalogue", "Deletes a branch").placed(),
    op(Get, "/v1/types", "catalogue", "The record types of a space").placed(),
    op(Put, "/v1/types/{prefix}", "catalogue", "Declares a type for the records whose names begin with a prefix")
        .placed()
        .body("RecordType"),
    op(Get, "/v1/limits", "catalogue", "The limits that are in force"),
    op(Get, "/v1/backup", "operations", "Everything, as one file").media(&["application/octet-stream"]),
    op(Post, "/v1/backup/verified", "operations", "Notes that a backup was verified").body("Verified"),
    op(Get, "/v1/export", "operations", "Everything, as lines of JSON")
        .with(&[query("space", Kind::Text, "Only this space.")])
        .media(&["application/jsonl"]),
    op(Get, "/v1/errors", "errors", "Every error code"),
    op(Get, "/v1/errors/{code}", "errors", "The page of an error code").media(&["text/markdown; charset=utf-8"]),
    op(Get, "/livez", "health", "Whether a restart would help")
        .with(&[VERBOSE])
        .media(&["application/json", "text/plain"]),
    op(Get, "/readyz", "health", "Whether it can serve now")
        .with(&[VERBOSE])
        .media(&["application/json", "text/plain"]),
    op(Get, "/startupz", "health", "Whether it has started")
        .with(&[VERBOSE])
        .media(&["application/json", "text/plain"]),
    op(Get, "/status", "health", "How it is doing, in one screen").media(&["application/json", "text/plain"]),
    op(Get, "/metrics", "health", "The same as numbers").media(&["text/plain"]),
    op(Get, "/version", "health", "Which release it is"),
    op(Get, "/openapi.json", "documentation", "This document"),
    op(Get, "/docs", "documentation", "This document, as a page").media(&["text/html"]),
];
