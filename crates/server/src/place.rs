//! Where a request is: its space and branch, its group, and its session.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::extract::rejection::PathRejection;
use axum::http::header::{ACCEPT, HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use contract::Expected;
use contract::catalogue::DEFAULT_SPACE;
use statehouse::{Cells, Records, Runs, Space, Statehouse};

use crate::Server;
use crate::json::parse_duration;
use crate::problem::Problem;

/// Names the space, unless `?space=` does.
static SPACE: HeaderName = HeaderName::from_static("statehouse-space");
/// The session that a request is sent in, its number in it, and the lowest whose answer is waited for.
static SESSION: HeaderName = HeaderName::from_static("statehouse-session");
pub(crate) static REQUEST: HeaderName = HeaderName::from_static("statehouse-request");
pub(crate) static LOWEST_PENDING: HeaderName = HeaderName::from_static("statehouse-lowest-pending");
/// Says that the answer was stored by an earlier sending of the request.
static REPLAYED: HeaderName = HeaderName::from_static("statehouse-replayed");

static PREFER: HeaderName = HeaderName::from_static("prefer");
static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request that follows something waits no longer than this; then the client asks again.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    space: String,
    branch: Option<String>,
    pub(crate) group: Option<String>,
    session: Option<InSession>,
    query: Vec<(String, String)>,
    prefer_wait: Option<Duration>,
    accepts_events: bool,
    last_event: Option<String>,
    has_idempotency_key: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InSession {
    session: u64,
    request: u64,
    lowest_pending: u64,
}

/// A place in a store that is open.
pub(crate) struct Inside {
    pub(crate) space: Space,
    group: Option<String>,
}

impl Inside {
    pub(crate) fn cells(&self) -> Cells {
        match &self.group {
            Some(group) => self.space.group(group).cells(),
            None => self.space.cells(),
        }
    }

    pub(crate) fn records(&self) -> Records {
        match &self.group {
            Some(group) => self.space.group(group).records(),
            None => self.space.records(),
        }
    }

    pub(crate) fn runs(&self) -> Runs {
        match &self.group {
            Some(group) => self.space.group(group).runs(),
            None => self.space.runs(),
        }
    }

    /// The answer to a write; it says if that was stored by an earlier sending of the request.
    pub(crate) fn answer(&self, mut response: Response) -> Response {
        if self.space.was_replayed() {
            response.headers_mut().insert(&REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

impl Place {
    /// Goes there, in the session if there is one.
    pub(crate) fn inside(&self, house: &Statehouse) -> Inside {
        let space = match self.session {
            None => house.space(&self.space),
            Some(InSession { session, request, lowest_pending }) => {
                house.sessions().request_in(session, request, lowest_pending, &self.space)
            }
        };
        let space = match &self.branch {
            Some(branch) => space.branch(branch),
            None => space,
        };
        Inside { space, group: self.group.clone() }
    }

    /// The same in a group that the path names.
    pub(crate) fn in_group(mut self, group: String) -> Self {
        self.group = Some(group);
        self
    }

    /// A parameter of the query.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A number of the query.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let number =
            |text: &str| text.parse().map_err(|_| Problem::malformed(format!("?{name}= is not a whole number")));
        self.query(name).map(number).transpose()
    }

    /// A duration of the query; none is no time at all.
    pub(crate) fn duration(&self, name: &str) -> Result<Duration, Problem> {
        Ok(self.query(name).map(parse_duration).transpose()?.unwrap_or(Duration::ZERO))
    }

    /// How long a request may wait for something to follow, at most [`WAIT_MAX`]: as the query says, or as
    /// `Prefer: wait=10` does, in seconds.
    pub(crate) fn wait(&self, name: &str) -> Result<Duration, Problem> {
        let wait = match self.query(name) {
            Some(wait) => parse_duration(wait)?,
            None => self.prefer_wait.unwrap_or_default(),
        };
        Ok(wait.min(WAIT_MAX))
    }

    /// Whether what is followed is to be sent as a stream of events.
    pub(crate) fn wants_stream(&self) -> bool {
        self.accepts_events || self.query("follow") == Some("true")
    }

    /// The last event of a stream that the client has had, as it says when it comes back.
    pub(crate) fn last_event(&self) -> Result<Option<u64>, Problem> {
        let number = |text: &String| text.parse().map_err(|_| Problem::malformed("Last-Event-ID is no id of ours"));
        self.last_event.as_ref().map(number).transpose()
    }

    /// A key that would be ignored is refused: whoever sends it relies on it.
    pub(crate) fn refuse_idempotency_key(&self) -> Result<(), Problem> {
        match self.has_idempotency_key {
            false => Ok(()),
            true => Err(Problem::malformed(
                "Idempotency-Key is known for appends to runs; send this in a session, by Statehouse-Session and Statehouse-Request",
            )),
        }
    }

    /// How many rows a page has.
    pub(crate) fn limit(&self, default: usize) -> Result<usize, Problem> {
        let limit = self.number("limit")?;
        Ok(limit.map_or(default, |limit| usize::try_from(limit).unwrap_or(usize::MAX)))
    }
}

impl FromRequestParts<Server> for Place {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let query = match parts.uri.query() {
            None => Vec::new(),
            Some(_) => {
                let query = axum::extract::Query::<Vec<(String, String)>>::from_request_parts(parts, server).await;
                query.map_err(|error| Problem::malformed(error.to_string()))?.0
            }
        };
        let find = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let space = find("space").or(header(&parts.headers, &SPACE)?.map(str::to_owned));
        let space = space.unwrap_or_else(|| DEFAULT_SPACE.to_owned());
        let session = match number_in(&parts.headers, &SESSION)? {
            None => None,
            Some(session) => {
                let request = number_in(&parts.headers, &REQUEST)?;
                let request = request.ok_or_else(|| Problem::malformed("Statehouse-Request is missing"))?;
                let lowest_pending = number_in(&parts.headers, &LOWEST_PENDING)?.unwrap_or(0);
                Some(InSession { session, request, lowest_pending })
            }
        };
        let prefer_wait = prefer_wait(&parts.headers);
        let accept = header(&parts.headers, &ACCEPT)?.unwrap_or_default();
        let accepts_events = accept.split(',').any(|kind| kind.trim().starts_with("text/event-stream"));
        let last_event = header(&parts.headers, &LAST_EVENT_ID)?.map(str::to_owned);
        let has_idempotency_key = parts.headers.contains_key(&IDEMPOTENCY_KEY);
        let (branch, group) = (find("branch"), find("group"));
        Ok(Self { space, branch, group, session, query, prefer_wait, accepts_events, last_event, has_idempotency_key })
    }
}

/// What the path names. A part that cannot be read is a problem like any other, and not a text of the router.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: Send> FromRequestParts<Server> for Path<T>
where
    axum::extract::Path<T>: FromRequestParts<Server, Rejection = PathRejection>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, server).await;
        read.map(|path| Self(path.0)).map_err(|rejection| Problem::malformed(rejection.body_text()))
    }
}

fn header<'headers>(headers: &'headers HeaderMap, name: &HeaderName) -> Result<Option<&'headers str>, Problem> {
    let malformed = |_| Problem::malformed(format!("the header {name} is not text"));
    headers.get(name).map(|value| value.to_str().map_err(malformed)).transpose()
}

/// How long `Prefer: wait=10` asks to wait, in seconds. It is the one preference that has a meaning here.
pub(crate) fn prefer_wait(headers: &HeaderMap) -> Option<Duration> {
    let given = headers.get_all(&PREFER).iter().filter_map(|given| given.to_str().ok());
    let mut waits = given.flat_map(|given| given.split(',')).filter_map(|part| part.trim().strip_prefix("wait="));
    waits.next().and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs)
}

/// A number in a header, if it is there.
pub(crate) fn number_in(headers: &HeaderMap, name: &HeaderName) -> Result<Option<u64>, Problem> {
    let parse = |text: &str| text.parse().map_err(|_| Problem::malformed(format!("the header {name} is no number")));
    header(headers, name)?.map(parse).transpose()
}

/// The version or sequence that `If-Match` names, if it is there.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(given) = headers.get(IF_MATCH) else {
        return Ok(None);
    };
    let number = given.to_str().ok().and_then(|text| text.trim_matches('"').parse().ok());
    number.map(Some).ok_or_else(|| Problem::malformed("If-Match is not one of our ETags, a number in quotes"))
}

/// The idempotency key of a request; only appends to runs have one.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    Ok(header(headers, &IDEMPOTENCY_KEY)?.map(str::to_owned))
}

/// What `If-Match` and `If-None-Match` expect of a cell or a record.
pub(crate) fn expected(headers: &HeaderMap) -> Result<Option<Expected>, Problem> {
    if let Some(none_match) = headers.get(IF_NONE_MATCH) {
        return match none_match.as_bytes() {
            b"*" => Ok(Some(Expected::Absent)),
            _ => Err(Problem::malformed("If-None-Match is only known as *")),
        };
    }
    Ok(if_match(headers)?.map(Expected::Version))
}
