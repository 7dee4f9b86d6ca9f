//! A session of a client that does not give up: each request has a number, and is sent again by the same number until it
//! is answered.

use std::time::Duration;

use serde_json::json;
use wire::values::SessionId;

use super::client::Client;
use super::message::{Request, Response};
use super::sessions::session_number;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// See the module. One request at a time.
pub struct NumberedSession {
    client: Client,
    session: u64,
    next_request: u64,
    /// What was done to get answers.
    pub pains: Pains,
}

/// How often a client had to do more than ask once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pains {
    /// Requests sent again because no answer came, or "later".
    pub repeats: u64,
    /// Requests sent first over a connection that was closed before the answer.
    pub abandoned: u64,
    /// Answers that the server said were stored ones.
    pub replayed: u64,
}

impl NumberedSession {
    /// Opens a session; this once, a lost answer leaves a session that nobody uses.
    pub fn open(client: Client, timeout: Duration) -> Self {
        let body = json!({ "timeout": format!("{}ms", timeout.as_millis()) }).to_string();
        let mut pains = Pains::default();
        let opened = until_answered(&client, &Request::post("/v1/sessions").body(body), &mut pains);
        assert!(opened.is_success(), "a session was refused: {}", opened.text());
        let session = session_number(&opened.json()["session"]);
        Self { client, session, next_request: 1, pains }
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.session
    }

    /// Sends a request by the next number until it is answered.
    pub fn send(&mut self, request: Request) -> Response {
        let request = self.numbered(request);
        until_answered(&self.client, &request, &mut self.pains)
    }

    /// The same for a client that hangs up before the first answer.
    pub fn send_twice(&mut self, request: Request) -> Response {
        let request = self.numbered(request);
        self.client.abandon(request.clone());
        self.pains.abandoned += 1;
        until_answered(&self.client, &request, &mut self.pains)
    }

    fn numbered(&mut self, request: Request) -> Request {
        let number = self.next_request;
        self.next_request += 1;
        request
            .header("statehouse-session", SessionId(self.session))
            .header("statehouse-request", number)
            .header("statehouse-lowest-pending", number)
    }
}

/// Sends a request until the store answers it: no connection, no answer, and an answer that says "later" are none.
pub fn until_answered(client: &Client, request: &Request, pains: &mut Pains) -> Response {
    loop {
        match client.send(request.clone()) {
            Ok(response) if !matches!(response.status, 429 | 503 | 504) => {
                pains.replayed += u64::from(response.header("statehouse-replayed") == Some("true"));
                return response;
            }
            _ => {
                pains.repeats += 1;
                std::thread::sleep(PAUSE);
            }
        }
    }
}
