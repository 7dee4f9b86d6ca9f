//! Where a request is: its space and branch, its group, and its session.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;
use axum::http::request::Parts;
use contract::catalogue::DEFAULT_SPACE;
use statehouse::{Cells, Records, Runs, Space, Statehouse};

use crate::Server;
use crate::json::parse_duration;
use crate::problem::Problem;

/// Names the space, unless `?space=` does.
const SPACE: &str = "statehouse-space";
/// The session that a request is sent in, its number in it, and the lowest whose answer is waited for.
const SESSION: &str = "statehouse-session";
pub(crate) const REQUEST: &str = "statehouse-request";
pub(crate) const LOWEST_PENDING: &str = "statehouse-lowest-pending";

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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InSession {
    session: u64,
    request: u64,
    lowest_pending: u64,
}

impl Place {
    /// The space and branch, in the session if there is one.
    pub(crate) fn space(&self, house: &Statehouse) -> Space {
        let space = match self.session {
            None => house.space(&self.space),
            Some(InSession { session, request, lowest_pending }) => {
                house.sessions().request_in(session, request, lowest_pending, &self.space)
            }
        };
        match &self.branch {
            Some(branch) => space.branch(branch),
            None => space,
        }
    }

    pub(crate) fn cells(&self, house: &Statehouse) -> Cells {
        match &self.group {
            Some(group) => self.space(house).group(group).cells(),
            None => self.space(house).cells(),
        }
    }

    pub(crate) fn records(&self, house: &Statehouse) -> Records {
        match &self.group {
            Some(group) => self.space(house).group(group).records(),
            None => self.space(house).records(),
        }
    }

    pub(crate) fn runs(&self, house: &Statehouse) -> Runs {
        match &self.group {
            Some(group) => self.space(house).group(group).runs(),
            None => self.space(house).runs(),
        }
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

    /// How long the query lets a request wait, at most [`WAIT_MAX`].
    pub(crate) fn wait(&self, name: &str) -> Result<Duration, Problem> {
        Ok(self.duration(name)?.min(WAIT_MAX))
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
        let query = axum::extract::Query::<Vec<(String, String)>>::from_request_parts(parts, server).await;
        let query = query.map_err(|error| Problem::malformed(error.to_string()))?.0;
        let find = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let space = find("space").or(header(&parts.headers, SPACE)?).unwrap_or_else(|| DEFAULT_SPACE.to_owned());
        let session = match number_in(&parts.headers, SESSION)? {
            None => None,
            Some(session) => {
                let request = number_in(&parts.headers, REQUEST)?;
                let request = request.ok_or_else(|| Problem::malformed("Statehouse-Request is missing"))?;
                let lowest_pending = number_in(&parts.headers, LOWEST_PENDING)?.unwrap_or(0);
                Some(InSession { session, request, lowest_pending })
            }
        };
        Ok(Self { space, branch: find("branch"), group: find("group"), session, query })
    }
}

fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let malformed = |_| Problem::malformed(format!("the header {name} is not text"));
    headers.get(name).map(|value| value.to_str().map(str::to_owned).map_err(malformed)).transpose()
}

/// A number in a header, if it is there.
pub(crate) fn number_in(headers: &HeaderMap, name: &str) -> Result<Option<u64>, Problem> {
    let parse = |text: String| text.parse().map_err(|_| Problem::malformed(format!("the header {name} is no number")));
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
