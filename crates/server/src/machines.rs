//! Machines that users bring, over HTTP: `POST /v1/sessions/{id}/requests` sends one a command, in its own bytes. And the
//! pushes of all sessions, for whoever delivers them: `GET /v1/pushes`, `POST /v1/pushes/retry`.
//!
//! Keeps: nothing; a machine is found by its number in `?machine=`, which may be left out if there is only one.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use serde_json::json;
use statehouse::Space;
use statehouse::sessions::{SessionStore, UserMachine};

use crate::Server;
use crate::json::{number, parse_object};
use crate::place::{LOWEST_PENDING, Path, Place, REQUEST, number_in};
use crate::problem::{Answered, Problem, ok};
use crate::sessions::payload_json;

/// The group of a machine's state if a request names none.
const GROUP: &str = "default";
/// Pushes of one answer if it is not said.
const PUSHES: u64 = 100;

/// The machines that requests can be sent to, by number.
pub(crate) type Machines = Arc<BTreeMap<u16, Machine>>;

/// Gives the contract of sessions in front of one machine, in a space and a group.
pub(crate) type Machine = Arc<dyn Fn(&Space, &str) -> Box<dyn SessionStore> + Send + Sync>;

impl Server {
    /// The same server, which also sends requests to a machine that its directory was opened with.
    pub fn hosting<M: UserMachine>(mut self) -> Self {
        let machine: Machine = Arc::new(|space, group| Box::new(space.machine::<M>().group(group).portable()));
        Arc::make_mut(&mut self.machines).insert(M::NUMBER, machine);
        self
    }
}

pub(crate) fn routes() -> Router<Server> {
    Router::new()
        .route("/v1/sessions/{id}/requests", post(request))
        .route("/v1/pushes", get(waiting))
        .route("/v1/pushes/retry", post(retry))
}

/// The body is the command, the answer's body is the machine's response. `Statehouse-Request` is its number.
async fn request(
    State(server): State<Server>,
    Path(session): Path<u64>,
    place: Place,
    headers: HeaderMap,
    command: Bytes,
) -> Answered {
    let machine = machine(&server, place.number("machine")?)?;
    let number = number_in(&headers, &REQUEST)?;
    let number = number.ok_or_else(|| Problem::malformed("Statehouse-Request is missing"))?;
    let lowest_pending = number_in(&headers, &LOWEST_PENDING)?.unwrap_or(0);
    let answer = server.call(move |house| {
        let group = place.group.as_deref().unwrap_or(GROUP);
        machine(&place.inside(house).space, group).request(session, number, lowest_pending, &command)
    });
    let answer = answer.await?;
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, "application/octet-stream")], answer).into_response())
}

fn machine(server: &Server, number: Option<u64>) -> Result<Machine, Problem> {
    let found = match number {
        Some(number) => u16::try_from(number).ok().and_then(|number| server.machines.get(&number)),
        None if server.machines.len() > 1 => {
            let numbers: Vec<_> = server.machines.keys().collect();
            return Err(Problem::malformed(format!("?machine= is missing; there are {numbers:?}")));
        }
        None => server.machines.values().next(),
    };
    let named = number.map_or_else(|| "of any number".to_owned(), |number| number.to_string());
    found.cloned().ok_or_else(|| Problem::not_found("machine", &named))
}

/// `?sent_before_us=`: whether any push waits for its acknowledgement, and whether any was last sent before a time. Hints.
async fn waiting(State(server): State<Server>, place: Place) -> Answered {
    let sent_before = place.number("sent_before_us")?;
    let found = server.call(move |house| {
        let sessions = house.sessions();
        let overdue = sent_before.map(|sent_before| sessions.has_overdue(sent_before)).transpose()?;
        Ok((sessions.has_pending()?, overdue))
    });
    let (pending, overdue) = found.await?;
    ok(json!({ "pending": pending, "overdue": overdue }))
}

/// `{"sent_before_us": N, "limit": 100}`: takes the pushes that were last sent before a time, and notes that they are sent
/// now.
async fn retry(State(server): State<Server>, bytes: Bytes) -> Answered {
    let object = parse_object(&bytes)?;
    let sent_before = number(&object, "sent_before_us")?;
    let sent_before = sent_before.ok_or_else(|| Problem::malformed("sent_before_us is missing"))?;
    let limit = number(&object, "limit")?.unwrap_or(PUSHES);
    let limit = u32::try_from(limit).map_err(|_| Problem::malformed("limit is too large"))?;
    let pushes = server.call(move |house| house.sessions().requests_for_retry(sent_before, limit)).await?;
    let pushes: Vec<_> = pushes
        .into_iter()
        .map(|push| {
            json!({
                "session": push.session,
                "number": push.number,
                "last_sent_us": push.last_sent_us,
                "payload": payload_json(push.payload),
            })
        })
        .collect();
    ok(json!({ "pushes": pushes }))
}
