//! Every route by name: its method and its path. Servers serve these routes, clients call them; nothing else spells a
//! path.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::query::{encode, encode_bytes};

/// The method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Replaces or creates.
    Put,
    /// Changes a part.
    Patch,
    /// Performs an action.
    Post,
    /// Deletes.
    Delete,
}

impl Method {
    /// The name in HTTP.
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

/// The scope of a route: which of `space`, `branch` and `group` it honours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In the store: none of them.
    Store,
    /// In a space.
    Space,
    /// In a branch of a space.
    Branch,
    /// In a group of a branch.
    Group,
}

/// One route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its name: `records.claim`.
    pub name: &'static str,
    /// Its method.
    pub method: Method,
    /// Its scope.
    pub scope: Scope,
    /// Whether its requests can be numbered in a session: a repeated one is not executed again.
    pub numbered: bool,
    /// Its path, with parameters in braces: `/v1/cells/{name}`.
    pub path: &'static str,
}

impl Route {
    /// The path with its parameters filled in.
    ///
    /// ```
    /// assert_eq!(statehouse_wire::routes::CELLS_READ.at(&["a/b"]), "/v1/cells/a%2Fb");
    /// ```
    pub fn at(&self, parts: &[&str]) -> String {
        self.filled(parts.iter().map(|part| encode(part)))
    }

    /// [`at`](Self::at), for a path that ends with bytes which need not be text.
    ///
    /// ```
    /// assert_eq!(statehouse_wire::routes::MAPS_KEY.at_key(&["m"], &[0xff]), "/v1/maps/m/keys/%FF");
    /// ```
    pub fn at_key(&self, parts: &[&str], key: &[u8]) -> String {
        self.filled(parts.iter().map(|part| encode(part)).chain([encode_bytes(key)]))
    }

    fn filled(&self, mut parts: impl Iterator<Item = String>) -> String {
        let mut rest = self.path;
        let mut filled = String::with_capacity(rest.len());
        while let Some((before, behind)) = rest.split_once('{') {
            filled.push_str(before);
            filled.push_str(&parts.next().unwrap_or_default());
            rest = behind.split_once('}').map_or("", |(_, behind)| behind);
        }
        filled + rest
    }

    /// Whether it writes in a group, so that its sender can show that it owns the group.
    pub fn is_fenced(&self) -> bool {
        let about_owners = self.subject() == GROUPS_OWN.subject() || *self == KEYED_ACQUIRE;
        (self.numbered && !about_owners) || matches!(*self, SESSIONS_REQUEST | KEYED_CHECKPOINT)
    }

    /// Whether it can be forced: it writes in a group, or takes one from its owner.
    pub fn can_be_forced(&self) -> bool {
        self.is_fenced() || matches!(*self, GROUPS_OWN | KEYED_ACQUIRE | KEYED_RESTORE)
    }

    /// Whether it is refused unless it is forced.
    pub fn is_forced_always(&self) -> bool {
        *self == KEYED_RESTORE
    }

    /// Its subject: the part of its name before the dot.
    pub fn subject(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(subject, _)| subject)
    }

    /// Its verb: the part of its name after the dot.
    pub fn verb(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, verb)| verb)
    }
}

/// The result of looking up a method and a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'path> {
    /// The route at this index of [`ALL`], and what the path has for its parameters.
    Route(usize, PathParts<'path>),
    /// The path exists with other methods.
    OtherMethod,
    /// No route.
    Nothing,
}

/// The maximum number of parameters in a path.
const PARTS_MAX: usize = 3;

/// What a path has for the parameters of its route, in order, still escaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathParts<'path> {
    parts: [&'path str; PARTS_MAX],
    count: usize,
}

impl<'path> PathParts<'path> {
    /// The first one, which names the thing; empty if there is none.
    pub fn first(&self) -> &'path str {
        self.parts[0]
    }

    /// Those behind the first.
    pub fn rest(&self) -> &[&'path str] {
        self.parts.get(1..self.count).unwrap_or_default()
    }

    fn push(&mut self, part: &'path str) {
        self.parts[self.count] = part;
        self.count += 1;
    }
}

/// Path parameters that may contain `/`. Each is the last in its path.
const SPANNING: &[&str] = &["name", "run", "group", "prefix", "key"];

/// A path, split into its parts.
struct Pattern {
    before: &'static str,
    /// Its parameters: whether they may contain `/`, and what stands behind each.
    parameters: Vec<(bool, &'static str)>,
}

impl Pattern {
    fn new(path: &'static str) -> Self {
        let (before, mut rest) = path.split_once('{').unwrap_or((path, ""));
        let mut parameters = Vec::new();
        while let Some((name, behind)) = rest.split_once('}') {
            let (until, more) = behind.split_once('{').unwrap_or((behind, ""));
            parameters.push((SPANNING.contains(&name), until));
            rest = more;
        }
        Self { before, parameters }
    }

    /// The bytes behind the last parameter: a pattern with more of them is more specific.
    fn bytes_behind(&self) -> usize {
        self.parameters.last().map_or(0, |(_, behind)| behind.len())
    }

    /// What a path has for the parameters, if it matches this pattern.
    fn parts_of<'path>(&self, path: &'path str) -> Option<PathParts<'path>> {
        let mut parts = PathParts::default();
        let mut left = path.strip_prefix(self.before)?;
        let Some(((spanning, behind), earlier)) = self.parameters.split_last() else {
            return left.is_empty().then_some(parts);
        };
        for (_, until) in earlier {
            let end = left.find('/').filter(|end| *end > 0)?;
            parts.push(&left[..end]);
            left = left[end..].strip_prefix(until)?;
        }
        let last = left.strip_suffix(behind)?;
        parts.push(last);
        (*spanning || (!last.is_empty() && !last.contains('/'))).then_some(parts)
    }
}

/// Routes by the first word of their paths, below `/v1` or not; those with the longest suffix first.
static BY_WORD: LazyLock<HashMap<&'static str, Vec<(usize, Pattern)>>> = LazyLock::new(|| {
    let mut by_word: HashMap<&'static str, Vec<(usize, Pattern)>> = HashMap::new();
    for (place, route) in ALL.iter().enumerate() {
        by_word.entry(first_word(route.path)).or_default().push((place, Pattern::new(route.path)));
    }
    for patterns in by_word.values_mut() {
        patterns.sort_by_key(|(_, pattern)| std::cmp::Reverse(pattern.bytes_behind()));
    }
    by_word
});

fn first_word(path: &str) -> &str {
    let path = path.trim_start_matches('/');
    let below = path.strip_prefix("v1/").unwrap_or(path);
    below.split('/').next().unwrap_or_default()
}

/// The route of a request. A path can match two routes, because a record may be named `a/step`; among those with the
/// method, the more specific one wins.
///
/// ```
/// use statehouse_wire::routes::{ALL, Found, RECORDS_READ, RECORDS_STEP, find};
/// let found = |method, path| match find(method, path) {
///     Found::Route(place, parts) => Some((ALL[place].name, parts.first())),
///     _ => None,
/// };
/// assert_eq!(found("POST", "/v1/records/a/step"), Some((RECORDS_STEP.name, "a")));
/// assert_eq!(found("GET", "/v1/records/a/step"), Some((RECORDS_READ.name, "a/step")));
/// assert_eq!(find("PUT", "/v1/claims"), Found::OtherMethod);
/// assert_eq!(find("GET", "/v1/nowhere"), Found::Nothing);
/// ```
pub fn find<'path>(method: &str, path: &'path str) -> Found<'path> {
    let mut other_method = false;
    for (place, pattern) in BY_WORD.get(first_word(path)).into_iter().flatten() {
        let Some(parts) = pattern.parts_of(path) else {
            continue;
        };
        if ALL[*place].method.as_str() == method {
            return Found::Route(*place, parts);
        }
        other_method = true;
    }
    if other_method { Found::OtherMethod } else { Found::Nothing }
}

macro_rules! routes {
    (@numbered) => { false };
    (@numbered numbered) => { true };
    ($($constant:ident = $method:ident $scope:ident $($numbered:ident)? $path:literal $name:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub const $constant: Route = Route {
                name: $name,
                method: Method::$method,
                scope: Scope::$scope,
                numbered: routes!(@numbered $($numbered)?),
                path: $path,
            };
        )*

        /// Every route.
        pub const ALL: &[Route] = &[$($constant),*];
    };
}

routes! {
    CELLS_LIST = Get Group "/v1/cells" "cells.list";
    CELLS_READ = Get Group "/v1/cells/{name}" "cells.get";
    CELLS_WRITE = Put Group numbered "/v1/cells/{name}" "cells.put";
    CELLS_INIT = Post Group numbered "/v1/cells/{name}" "cells.init";
    CELLS_DELETE = Delete Group numbered "/v1/cells/{name}" "cells.delete";
    STATE_COMMAND = Post Space numbered "/v1/state/command" "state.command";
    RECORDS_SCAN = Get Group "/v1/records" "records.scan";
    RECORDS_READ = Get Group "/v1/records/{name}" "records.get";
    RECORDS_PUT = Put Group numbered "/v1/records/{name}" "records.put";
    RECORDS_PATCH = Patch Group numbered "/v1/records/{name}" "records.patch";
    RECORDS_DELETE = Delete Group numbered "/v1/records/{name}" "records.delete";
    RECORDS_STEP = Post Group numbered "/v1/records/{name}/step" "records.step";
    RECORDS_EXTEND = Post Group numbered "/v1/records/{name}/extend" "records.extend";
    RECORDS_RELEASE = Post Group numbered "/v1/records/{name}/release" "records.release";
    RECORDS_COMPLETE = Post Group numbered "/v1/records/{name}/complete" "records.complete";
    RECORDS_FAIL = Post Group numbered "/v1/records/{name}/fail" "records.fail";
    ATTEMPTS_STEP = Post Branch numbered "/v1/attempts/step" "attempts.step";
    ATTEMPTS_EXTEND = Post Branch numbered "/v1/attempts/extend" "attempts.extend";
    ATTEMPTS_RELEASE = Post Branch numbered "/v1/attempts/release" "attempts.release";
    ATTEMPTS_COMPLETE = Post Branch numbered "/v1/attempts/complete" "attempts.complete";
    ATTEMPTS_FAIL = Post Branch numbered "/v1/attempts/fail" "attempts.fail";
    RECORDS_CLAIM = Post Group numbered "/v1/claims" "records.claim";
    RECORDS_COUNTS = Get Group "/v1/counts" "records.counts";
    GROUPS_OWN = Post Branch numbered "/v1/groups/{group}/own" "groups.own";
    GROUPS_OWNER = Get Branch "/v1/groups/{group}/owner" "groups.owner";
    GROUPS_EXTEND = Post Branch numbered "/v1/groups/{group}/extend" "groups.extend";
    GROUPS_RELEASE = Post Branch numbered "/v1/groups/{group}/release" "groups.release";
    LETTERS_LIST = Get Group "/v1/letters" "letters.list";
    LETTERS_RETRY = Post Group numbered "/v1/letters/retry" "letters.retry";
    LETTERS_DROP = Post Group numbered "/v1/letters/drop" "letters.drop";
    TRANSACTIONS_COMMIT = Post Branch numbered "/v1/groups/{group}/txn" "transactions.commit";
    RUNS_LIST = Get Group "/v1/runs" "runs.list";
    RUNS_EVENTS = Get Group "/v1/runs/{run}/events" "runs.events";
    RUNS_APPEND = Post Group numbered "/v1/runs/{run}/events" "runs.append";
    RUNS_SNAPSHOT = Get Group "/v1/runs/{run}/snapshot" "runs.snapshot";
    RUNS_CLOSE = Post Group numbered "/v1/runs/{run}/close" "runs.close";
    RUNS_FORK = Post Group numbered "/v1/runs/{run}/fork" "runs.fork";
    RUNS_DELETE = Delete Group numbered "/v1/runs/{run}" "runs.delete";
    MAPS_LIST = Get Group "/v1/maps" "maps.list";
    MAPS_READ = Get Group "/v1/maps/{map}" "maps.get";
    MAPS_CREATE = Put Group numbered "/v1/maps/{map}" "maps.create";
    MAPS_DELETE = Delete Group numbered "/v1/maps/{map}" "maps.delete";
    MAPS_UPDATE = Post Group numbered "/v1/maps/{map}/updates" "maps.update";
    MAPS_COMMIT = Post Group numbered "/v1/maps/{map}/commits" "maps.commit";
    MAPS_SEAL = Post Group numbered "/v1/maps/{map}/seal" "maps.seal";
    MAPS_SCAN = Get Group "/v1/maps/{map}/keys" "maps.scan";
    MAPS_KEY = Get Group "/v1/maps/{map}/keys/{key}" "maps.get_key";
    MAPS_PUT_KEY = Put Group numbered "/v1/maps/{map}/keys/{key}" "maps.put_key";
    MAPS_DELETE_KEY = Delete Group numbered "/v1/maps/{map}/keys/{key}" "maps.delete_key";
    MAPS_POSITIONS = Get Group "/v1/maps/{map}/positions" "maps.positions";
    KEYED_LIST = Get Branch "/v1/keyed" "keyed.list";
    KEYED_PARTITIONS = Get Branch "/v1/keyed/{operator}" "keyed.partitions";
    KEYED_READ = Get Branch "/v1/keyed/{operator}/{partition}" "keyed.get";
    KEYED_ACQUIRE = Post Branch numbered "/v1/keyed/{operator}/{partition}/acquire" "keyed.acquire";
    KEYED_COMMIT = Post Branch numbered "/v1/keyed/{operator}/{partition}/commits" "keyed.commit";
    KEYED_CHECKPOINTS = Get Branch "/v1/keyed/{operator}/{partition}/checkpoints" "keyed.checkpoints";
    KEYED_CHECKPOINT = Post Branch "/v1/keyed/{operator}/{partition}/checkpoints" "keyed.checkpoint";
    KEYED_RESTORE = Post Branch "/v1/keyed/{operator}/{partition}/restore" "keyed.restore";
    KEYED_SCAN = Get Branch "/v1/keyed/{operator}/{partition}/keys" "keyed.scan";
    KEYED_KEY = Get Branch "/v1/keyed/{operator}/{partition}/keys/{key}" "keyed.get_key";
    KEYED_POSITIONS = Get Branch "/v1/keyed/{operator}/{partition}/positions" "keyed.positions";
    SESSIONS_LIST = Get Store "/v1/sessions" "sessions.list";
    SESSIONS_OPEN = Post Space "/v1/sessions" "sessions.open";
    SESSIONS_READ = Get Store "/v1/sessions/{session}" "sessions.get";
    SESSIONS_END = Delete Store "/v1/sessions/{session}" "sessions.end";
    SESSIONS_KEEPALIVE = Post Store "/v1/sessions/{session}/keepalive" "sessions.keepalive";
    SESSIONS_PUSHES = Get Store "/v1/sessions/{session}/pushes" "sessions.pushes";
    SESSIONS_ACKNOWLEDGE = Post Store "/v1/sessions/{session}/acks" "sessions.acknowledge";
    SESSIONS_REQUEST = Post Group "/v1/sessions/{session}/requests" "sessions.request";
    PUSHES_WAITING = Get Store "/v1/pushes" "pushes.waiting";
    PUSHES_RETRY = Post Store "/v1/pushes/retry" "pushes.retry";
    CHANGES_READ = Get Group "/v1/changes" "changes.get";
    SPACES_LIST = Get Store "/v1/spaces" "spaces.list";
    SPACES_CREATE = Put Store "/v1/spaces/{space}" "spaces.create";
    SPACES_RETENTION = Get Store "/v1/spaces/{space}/retention" "spaces.retention";
    SPACES_SET_RETENTION = Put Store "/v1/spaces/{space}/retention" "spaces.set_retention";
    SPACES_USAGE = Get Store "/v1/spaces/{space}/usage" "spaces.usage";
    BRANCHES_LIST = Get Space "/v1/branches" "branches.list";
    BRANCHES_CREATE = Put Space "/v1/branches/{branch}" "branches.create";
    BRANCHES_DELETE = Delete Space "/v1/branches/{branch}" "branches.delete";
    TYPES_LIST = Get Space "/v1/types" "types.list";
    TYPES_DECLARE = Put Space "/v1/types/{prefix}" "types.declare";
    GUARDS_LIST = Get Space "/v1/guards" "guards.list";
    GUARDS_SET = Put Space "/v1/guards/{prefix}" "guards.set";
    GUARDS_REMOVE = Delete Space "/v1/guards/{prefix}" "guards.remove";
    LIMITS_READ = Get Store "/v1/limits" "limits.get";
    PRINCIPALS_LIST = Get Store "/v1/principals" "principals.list";
    PRINCIPALS_READ = Get Store "/v1/principals/{principal}" "principals.get";
    PRINCIPALS_SET = Put Store "/v1/principals/{principal}" "principals.set";
    PRINCIPALS_REMOVE = Delete Store "/v1/principals/{principal}" "principals.remove";
    TOKENS_ISSUE = Post Store "/v1/principals/{principal}/tokens" "tokens.issue";
    TOKENS_REVOKE = Delete Store "/v1/tokens/{token}" "tokens.revoke";
    ACCESS_WHOAMI = Get Store "/v1/whoami" "access.whoami";
    ACCESS_CHECK = Post Store "/v1/access" "access.check";
    AUDIT_READ = Get Store "/v1/audit" "audit.get";
    BACKUP_CREATE = Get Store "/v1/backup" "backup.create";
    BACKUP_VERIFIED = Post Store "/v1/backup/verified" "backup.verified";
    EXPORT_CREATE = Get Space "/v1/export" "export.create";
    ERRORS_LIST = Get Store "/v1/errors" "errors.list";
    ERRORS_PAGE = Get Store "/v1/errors/{code}" "errors.page";
    SERVER_ROOT = Get Store "/" "server.root";
    SERVER_LIVE = Get Store "/livez" "server.livez";
    SERVER_READY = Get Store "/readyz" "server.readyz";
    SERVER_STARTED = Get Store "/startupz" "server.startupz";
    SERVER_STATUS = Get Store "/status" "server.status";
    SERVER_METRICS = Get Store "/metrics" "server.metrics";
    SERVER_VERSION = Get Store "/version" "server.version";
    SERVER_OPENAPI = Get Store "/openapi.json" "server.openapi";
    SERVER_DOCS = Get Store "/docs" "server.docs";
}

#[cfg(test)]
mod tests;
