//! The headers and the query of a request: its scope, its preconditions, and how long it waits.
//!
//! Keeps: whatever could change the meaning of a request is honoured or refused by name: a parameter, a `Statehouse-`
//! header, a precondition, `Idempotency-Key`, `Prefer`, `Last-Event-ID`. Each occurs once, and nothing is stated in two
//! places.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::request::Parts;
use contract::suggest::nearest;
use contract::{Expected, SessionSecret};
use wire::owners::OwnerToken;
use wire::query::{Parameter, decode, decode_bytes, parameters};
use wire::routes::PathParts;
use wire::values::SessionId;
use wire::{DecodeError, Reason};

use super::entry::{Asked, Entry, Honours};
use crate::api::scope::{FORCE, InSession, OWNER, RequestScope, ShownToken};
use crate::problem::Problem;

/// The header that shows the secret of a session.
const SECRET: &str = "Statehouse-Session-Secret";

/// Our own request headers.
pub(crate) const OURS: &[&str] = &[
    "Statehouse-Space",
    "Statehouse-Session",
    "Statehouse-Session-Secret",
    "Statehouse-Request",
    "Statehouse-Lowest-Pending",
    "Statehouse-History",
    OWNER,
    FORCE,
];

/// The decoded head of a request.
pub(crate) struct Head {
    pub(crate) scope: RequestScope,
    /// The name in the path.
    pub(crate) name: String,
    /// What the path has for the parameters behind the name.
    pub(crate) rest: Vec<Vec<u8>>,
    /// The parameters that the route's own type reads.
    pub(crate) parameters: Vec<Parameter<'static>>,
    pub(crate) expected: Option<Expected>,
    pub(crate) key: Option<String>,
    prefer_wait: Option<Duration>,
    pub(crate) accepts_events: bool,
    pub(crate) last_event: Option<String>,
    /// The media types that the client accepts.
    pub(crate) takes: Option<String>,
    honours: Honours,
}

/// What the path of a request names.
#[derive(Default)]
pub(crate) struct PathNames {
    /// The name, in the place of the first parameter.
    pub(crate) name: String,
    /// What is in the place of each further one.
    pub(crate) rest: Vec<Vec<u8>>,
}

impl PathNames {
    /// Decodes the parts of a path; none if an escape is broken, or the name is not text.
    pub(crate) fn of(parts: &PathParts<'_>) -> Option<Self> {
        let name = decode(parts.first())?.into_owned();
        let rest = parts.rest().iter().map(|part| decode_bytes(part).map(Cow::into_owned));
        rest.collect::<Option<_>>().map(|rest| Self { name, rest })
    }
}

/// The headers found; a repeated name is refused.
#[derive(Default)]
struct Found<'headers> {
    space: Option<&'headers str>,
    session: Option<&'headers str>,
    secret: Option<&'headers str>,
    request: Option<&'headers str>,
    lowest_pending: Option<&'headers str>,
    history: Option<&'headers str>,
    owner: Option<&'headers str>,
    force: Option<&'headers str>,
    if_match: Option<&'headers str>,
    if_none_match: Option<&'headers str>,
    idempotency_key: Option<&'headers str>,
    prefer: Option<&'headers str>,
    last_event: Option<&'headers str>,
}

impl Head {
    /// Reads the head of a request to a route.
    pub(crate) fn read(entry: &Entry, path: PathNames, parts: &Parts, history: &HeaderValue) -> Result<Self, Problem> {
        let PathNames { name, rest } = path;
        let honours = entry.honours;
        let (found, takes) = headers(parts, entry)?;
        if let Some(known) = found.history
            && known.as_bytes() != history.as_bytes()
        {
            let is = history.to_str().unwrap_or_default();
            return Err(Problem::other_history("Statehouse-History", known, is));
        }
        let mut scope = RequestScope::default();
        let parameters = match parts.uri.query() {
            None => Vec::new(),
            Some(query) => scoped(query, honours, &mut scope)?,
        };
        if let Some(space) = found.space {
            if scope.space.is_some() {
                let detail = "the space is both in the query and in the header Statehouse-Space: send one of them";
                return Err(Problem::refused_member("Statehouse-Space", detail));
            }
            scope.space = Some(space.to_owned());
        }
        scope.session = session(&found, honours)?;
        scope.secret = found.secret.map(secret).transpose()?;
        scope.owner = found.owner.map(owner).transpose()?.map(|token| ShownToken { token, member: OWNER });
        scope.force = found.force.map(force).transpose()?.unwrap_or(false);
        let accepts_events = honours.stream
            && takes
                .as_deref()
                .is_some_and(|takes| takes.split(',').any(|kind| kind.trim().starts_with("text/event-stream")));
        Ok(Self {
            scope,
            name,
            rest,
            parameters,
            expected: expected(&found)?,
            key: found.idempotency_key.map(str::to_owned),
            prefer_wait: found.prefer.map(prefer_wait).transpose()?,
            accepts_events,
            last_event: found.last_event.map(str::to_owned),
            takes,
            honours,
        })
    }

    /// How long the request waits; none if it does not. More than `max` is refused.
    pub(crate) fn wait(&self, asked: Asked, stream: bool, max: Duration) -> Result<Option<Duration>, Problem> {
        if self.last_event.is_some() && !stream {
            let detail = "Last-Event-ID is where a stream goes on, and this request asks for none";
            return Err(Problem::refused_member("Last-Event-ID", detail));
        }
        let wait = match (asked.wait, self.prefer_wait) {
            (Some(_), Some(_)) => {
                let detail = "how long to wait is said by Prefer and by the request itself: send one of them";
                return Err(Problem::refused_member("Prefer", detail));
            }
            (wait, prefer) => wait.or(prefer),
        };
        if stream && wait.is_some() {
            return Err(Problem::refused_member("Prefer", "a stream does not wait: it follows until it ends"));
        }
        match wait {
            Some(wait) if wait > max => Err(Problem::wait_too_long(max, wait)),
            wait => Ok(wait.filter(|wait| !wait.is_zero())),
        }
    }

    /// Refuses a parameter that is unknown or malformed.
    pub(crate) fn refused_parameter(&self, error: DecodeError) -> Problem {
        let suggested = match (error.reason(), error.member()) {
            (Reason::UnknownMember { nearest: None }, Some(member)) => nearest(&member, scope_names(self.honours)),
            _ => None,
        };
        Problem::refused_parameter(&error, suggested)
    }
}

fn scope_names(honours: Honours) -> impl Iterator<Item = &'static str> {
    let names = [("space", honours.space), ("branch", honours.branch), ("group", honours.group)];
    names.into_iter().filter(|(_, honoured)| *honoured).map(|(name, _)| name)
}

/// Takes the scope out of the query.
fn scoped(query: &str, honours: Honours, scope: &mut RequestScope) -> Result<Vec<Parameter<'static>>, Problem> {
    let mut rest = Vec::new();
    for (name, value) in parameters(query).map_err(|error| Problem::refused_parameter(&error, None))? {
        let place = match &*name {
            "space" if honours.space => &mut scope.space,
            "branch" if honours.branch => &mut scope.branch,
            "group" if honours.group => &mut scope.group,
            _ => {
                rest.push((Cow::Owned(name.into_owned()), Cow::Owned(value.into_owned())));
                continue;
            }
        };
        if place.is_some() {
            return Err(Problem::refused_parameter(&DecodeError::repeated_member(&name), None));
        }
        *place = Some(value.into_owned());
    }
    Ok(rest)
}

/// Every header that could change the meaning of a request; and the media types that the client accepts.
fn headers<'parts>(parts: &'parts Parts, entry: &Entry) -> Result<(Found<'parts>, Option<String>), Problem> {
    let honours = entry.honours;
    let mut found = Found::default();
    let mut takes: Option<String> = None;
    for (name, value) in &parts.headers {
        let name = name.as_str();
        let (honoured, shown, place) = match name {
            "if-match" => (honours.if_match, "If-Match", &mut found.if_match),
            "if-none-match" => (honours.if_none_match, "If-None-Match", &mut found.if_none_match),
            "if-modified-since" | "if-unmodified-since" | "if-range" => return Err(not_honoured(name, entry)),
            "idempotency-key" => (honours.idempotency_key, "Idempotency-Key", &mut found.idempotency_key),
            "prefer" => (honours.wait, "Prefer", &mut found.prefer),
            "last-event-id" => (honours.stream, "Last-Event-ID", &mut found.last_event),
            "accept" => {
                let text = value.to_str().map_err(|_| Problem::refused_member("Accept", "it is not text"))?;
                match &mut takes {
                    Some(takes) => *takes = format!("{takes},{text}"),
                    None => takes = Some(text.to_owned()),
                }
                continue;
            }
            _ if !name.starts_with("statehouse-") => continue,
            "statehouse-space" => (honours.space, "Statehouse-Space", &mut found.space),
            "statehouse-session" => (honours.session, "Statehouse-Session", &mut found.session),
            "statehouse-session-secret" => (honours.secret, SECRET, &mut found.secret),
            "statehouse-request" => (honours.session || honours.request, "Statehouse-Request", &mut found.request),
            "statehouse-lowest-pending" => {
                (honours.session || honours.request, "Statehouse-Lowest-Pending", &mut found.lowest_pending)
            }
            "statehouse-owner" => (honours.owner, OWNER, &mut found.owner),
            "statehouse-force" => (honours.force, FORCE, &mut found.force),
            "statehouse-history" => (true, "Statehouse-History", &mut found.history),
            _ => {
                let near = nearest(name, OURS.iter().copied());
                return Err(Problem::refused_header(name, near));
            }
        };
        if !honoured {
            return Err(not_honoured(shown, entry));
        }
        if place.is_some() {
            return Err(Problem::refused_member(shown, format!("the header {shown} is repeated")));
        }
        let text = value.to_str();
        *place = Some(text.map_err(|_| Problem::refused_member(shown, format!("the header {shown} is not text")))?);
    }
    Ok((found, takes))
}

fn not_honoured(header: &str, entry: &Entry) -> Problem {
    let name = entry.route.name;
    let advice = match header {
        "Idempotency-Key" => "; send this in a session, with Statehouse-Session and Statehouse-Request",
        _ => "",
    };
    Problem::refused_member(header, format!("{name} does not support the header {header}{advice}"))
}

/// The numbered request of a session.
fn session(found: &Found<'_>, honours: Honours) -> Result<Option<InSession>, Problem> {
    let number = |header: &str, text: &str| {
        let number = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|text| text.parse().ok());
        number.ok_or_else(|| Problem::refused_member(header, format!("the header {header} is not a number")))
    };
    let session = match found.session {
        Some(text) => {
            let refused = || {
                let detail = format!("Statehouse-Session {text:?} is not a session issued by a server");
                Problem::refused_member("Statehouse-Session", detail)
            };
            SessionId::parse(text).ok_or_else(refused)?.0
        }
        // The session is in the path.
        None if honours.request => 0,
        None => {
            for (header, there) in [
                ("Statehouse-Request", found.request),
                ("Statehouse-Lowest-Pending", found.lowest_pending),
                (SECRET, found.secret),
            ] {
                if there.is_some() && honours.session {
                    let detail = format!("{header} needs Statehouse-Session, which is missing");
                    return Err(Problem::refused_member(header, detail));
                }
            }
            return Ok(None);
        }
    };
    let missing = |header: &'static str| Problem::refused_member(header, format!("{header} is missing"));
    let request = match found.request {
        Some(request) => number("Statehouse-Request", request)?,
        // The call reports it, once it knows that the rest can be read.
        None if honours.request && found.lowest_pending.is_none() => return Ok(None),
        None => return Err(missing("Statehouse-Request")),
    };
    let lowest_pending = found.lowest_pending.map(|text| number("Statehouse-Lowest-Pending", text)).transpose()?;
    Ok(Some(InSession { session, request, lowest_pending: lowest_pending.unwrap_or(0) }))
}

/// The secret of a session. The refusal does not repeat what is malformed: it may be most of a secret.
fn secret(text: &str) -> Result<SessionSecret, Problem> {
    let refused = || Problem::refused_member(SECRET, format!("the header {SECRET} is not a secret issued by a server"));
    SessionSecret::parse(text).ok_or_else(refused)
}

/// The attempt by which the sender owns the group.
fn owner(text: &str) -> Result<OwnerToken, Problem> {
    let refused = || {
        let detail = format!("{text:?} is not a token of a group; groups.own returns one");
        Problem::refused_member(OWNER, detail)
    };
    OwnerToken::parse(text).ok_or_else(refused)
}

/// `Statehouse-Force` has one meaning.
fn force(text: &str) -> Result<bool, Problem> {
    match text {
        "true" => Ok(true),
        _ => Err(Problem::refused_member(FORCE, format!("{FORCE} can only be true"))),
    }
}

/// The preconditions of `If-Match` and `If-None-Match`.
fn expected(found: &Found<'_>) -> Result<Option<Expected>, Problem> {
    match (found.if_match, found.if_none_match) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            Err(Problem::refused_member("If-None-Match", "If-Match and If-None-Match cannot both hold"))
        }
        (None, Some("*")) => Ok(Some(Expected::Absent)),
        (None, Some(_)) => Err(Problem::refused_member("If-None-Match", "If-None-Match can only be *")),
        (Some(text), None) => {
            let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
            let number = Some(bare).filter(|bare| bare.bytes().all(|byte| byte.is_ascii_digit()));
            let number = number.and_then(|bare| bare.parse().ok()).map(Expected::Version);
            let refused =
                || Problem::refused_member("If-Match", "If-Match must be an ETag of this server: a number in quotes");
            number.map(Some).ok_or_else(refused)
        }
    }
}

/// `Prefer` has one meaning: `wait=10`, in seconds.
fn prefer_wait(text: &str) -> Result<Duration, Problem> {
    let seconds = text.trim().strip_prefix("wait=").filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let refused = || Problem::refused_member("Prefer", "Prefer can only be wait=N, with N in seconds");
    seconds.and_then(|text| text.parse().ok()).map(Duration::from_secs).ok_or_else(refused)
}
