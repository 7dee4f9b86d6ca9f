//! Every route by name: its method and its path. Servers serve these and clients call these; nothing else spells a path.

use crate::query::encode;

/// How a route is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Replaces, or makes.
    Put,
    /// Changes a part.
    Patch,
    /// Does something.
    Post,
    /// Deletes.
    Delete,
}

impl Method {
    /// As HTTP has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Post => "POST",
            Method::Delete => "DELETE",
        }
    }
}

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its name: `records.claim`.
    pub name: &'static str,
    /// How it is called.
    pub method: Method,
    /// Its path, with what is filled in in braces: `/v1/cells/{name}`.
    pub path: &'static str,
}

impl Route {
    /// The path with its parts filled in.
    ///
    /// ```
    /// assert_eq!(statehouse_wire::routes::CELLS_READ.at(&["a/b"]), "/v1/cells/a%2Fb");
    /// ```
    pub fn at(&self, parts: &[&str]) -> String {
        let mut parts = parts.iter();
        let mut rest = self.path;
        let mut filled = String::with_capacity(rest.len());
        while let Some((before, behind)) = rest.split_once('{') {
            filled.push_str(before);
            filled.push_str(&encode(parts.next().copied().unwrap_or_default()));
            rest = behind.split_once('}').map_or("", |(_, behind)| behind);
        }
        filled + rest
    }

    /// What it is about: the part of its name before the dot.
    pub fn subject(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(subject, _)| subject)
    }

    /// What it does: the part of its name behind the dot.
    pub fn verb(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, verb)| verb)
    }
}

macro_rules! routes {
    ($($constant:ident = $method:ident $path:literal $name:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub const $constant: Route = Route { name: $name, method: Method::$method, path: $path };
        )*

        /// Every route.
        pub const ALL: &[Route] = &[$($constant),*];
    };
}

routes! {
    CELLS_LIST = Get "/v1/cells" "cells.list";
    CELLS_READ = Get "/v1/cells/{name}" "cells.get";
    CELLS_WRITE = Put "/v1/cells/{name}" "cells.put";
    CELLS_INIT = Post "/v1/cells/{name}" "cells.init";
    CELLS_DELETE = Delete "/v1/cells/{name}" "cells.delete";
    STATE_COMMAND = Post "/v1/state/command" "state.command";
    RECORDS_SCAN = Get "/v1/records" "records.scan";
    RECORDS_READ = Get "/v1/records/{name}" "records.get";
    RECORDS_PUT = Put "/v1/records/{name}" "records.put";
    RECORDS_PATCH = Patch "/v1/records/{name}" "records.patch";
    RECORDS_DELETE = Delete "/v1/records/{name}" "records.delete";
    RECORDS_STEP = Post "/v1/records/{name}/step" "records.step";
    RECORDS_EXTEND = Post "/v1/records/{name}/extend" "records.extend";
    RECORDS_RELEASE = Post "/v1/records/{name}/release" "records.release";
    RECORDS_COMPLETE = Post "/v1/records/{name}/complete" "records.complete";
    RECORDS_FAIL = Post "/v1/records/{name}/fail" "records.fail";
    ATTEMPTS_STEP = Post "/v1/attempts/step" "attempts.step";
    ATTEMPTS_EXTEND = Post "/v1/attempts/extend" "attempts.extend";
    ATTEMPTS_RELEASE = Post "/v1/attempts/release" "attempts.release";
    ATTEMPTS_COMPLETE = Post "/v1/attempts/complete" "attempts.complete";
    ATTEMPTS_FAIL = Post "/v1/attempts/fail" "attempts.fail";
    RECORDS_CLAIM = Post "/v1/claims" "records.claim";
    RECORDS_COUNTS = Get "/v1/counts" "records.counts";
    TRANSACTIONS_COMMIT = Post "/v1/groups/{group}/txn" "transactions.commit";
    RUNS_LIST = Get "/v1/runs" "runs.list";
    RUNS_EVENTS = Get "/v1/runs/{run}/events" "runs.events";
    RUNS_APPEND = Post "/v1/runs/{run}/events" "runs.append";
    RUNS_SNAPSHOT = Get "/v1/runs/{run}/snapshot" "runs.snapshot";
    RUNS_CLOSE = Post "/v1/runs/{run}/close" "runs.close";
    RUNS_FORK = Post "/v1/runs/{run}/fork" "runs.fork";
    RUNS_DELETE = Delete "/v1/runs/{run}" "runs.delete";
    SESSIONS_LIST = Get "/v1/sessions" "sessions.list";
    SESSIONS_OPEN = Post "/v1/sessions" "sessions.open";
    SESSIONS_READ = Get "/v1/sessions/{session}" "sessions.get";
    SESSIONS_END = Delete "/v1/sessions/{session}" "sessions.end";
    SESSIONS_KEEPALIVE = Post "/v1/sessions/{session}/keepalive" "sessions.keepalive";
    SESSIONS_PUSHES = Get "/v1/sessions/{session}/pushes" "sessions.pushes";
    SESSIONS_ACKNOWLEDGE = Post "/v1/sessions/{session}/acks" "sessions.acknowledge";
    SESSIONS_REQUEST = Post "/v1/sessions/{session}/requests" "sessions.request";
    PUSHES_WAITING = Get "/v1/pushes" "pushes.waiting";
    PUSHES_RETRY = Post "/v1/pushes/retry" "pushes.retry";
    CHANGES_READ = Get "/v1/changes" "changes.get";
    SPACES_LIST = Get "/v1/spaces" "spaces.list";
    SPACES_CREATE = Put "/v1/spaces/{space}" "spaces.create";
    SPACES_RETENTION = Get "/v1/spaces/{space}/retention" "spaces.retention";
    SPACES_SET_RETENTION = Put "/v1/spaces/{space}/retention" "spaces.set_retention";
    BRANCHES_LIST = Get "/v1/branches" "branches.list";
    BRANCHES_CREATE = Put "/v1/branches/{branch}" "branches.create";
    BRANCHES_DELETE = Delete "/v1/branches/{branch}" "branches.delete";
    TYPES_LIST = Get "/v1/types" "types.list";
    TYPES_DECLARE = Put "/v1/types/{prefix}" "types.declare";
    LIMITS_READ = Get "/v1/limits" "limits.get";
    BACKUP_CREATE = Get "/v1/backup" "backup.create";
    BACKUP_VERIFIED = Post "/v1/backup/verified" "backup.verified";
    EXPORT_CREATE = Get "/v1/export" "export.create";
    ERRORS_LIST = Get "/v1/errors" "errors.list";
    ERRORS_PAGE = Get "/v1/errors/{code}" "errors.page";
    SERVER_LIVE = Get "/livez" "server.livez";
    SERVER_READY = Get "/readyz" "server.readyz";
    SERVER_STARTED = Get "/startupz" "server.startupz";
    SERVER_STATUS = Get "/status" "server.status";
    SERVER_METRICS = Get "/metrics" "server.metrics";
    SERVER_VERSION = Get "/version" "server.version";
    SERVER_OPENAPI = Get "/openapi.json" "server.openapi";
    SERVER_DOCS = Get "/docs" "server.docs";
}
