//! A session of a client that does not give up: each request has a number, and is sent again by the same number until it
//! is answered.

use std::time::Duration;

use contract::Error;
use serde_json::json;

use super::client::Client;
use super::message::{Request, Response};
use super::refusals::refusal;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// See the module. One request at a time.
pub struct NumberedSession {
    client: Client,
    session: u64,
    next_request: u64,
    /// How often a request was sent again.
    pub repeats: u64,
}

impl NumberedSession {
    /// Opens a session; this once, a lost answer leaves a session that nobody uses.
    pub fn open(client: Client, timeout: Duration) -> Self {
        let body = json!({ "timeout": format!("{}ms", timeout.as_millis()) }).to_string();
        let mut repeats = 0;
        let opened = until_answered(&client, &Request::post("/v1/sessions").body(body), &mut repeats);
        assert!(opened.is_success(), "a session was refused: {}", opened.text());
        let session = opened.json()["session"].as_u64().expect("the session's number");
        Self { client, session, next_request: 1, repeats }
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.session
    }

    /// The number that the next request gets.
    pub fn next_request(&self) -> u64 {
        self.next_request
    }

    /// Sends a request by the next number until it is answered.
    pub fn send(&mut self, request: Request) -> Response {
        let number = self.next_request;
        self.next_request += 1;
        let request = request
            .header("statehouse-session", self.session)
            .header("statehouse-request", number)
            .header("statehouse-lowest-pending", number);
        until_answered(&self.client, &request, &mut self.repeats)
    }

    /// The same; a refusal is the error that it stands for.
    pub fn call(&mut self, request: Request) -> Result<Response, Error> {
        let response = self.send(request);
        if response.is_success() { Ok(response) } else { Err(refusal(&response)) }
    }
}

/// Sends a request until the store answers it: no connection, no answer, and an answer that says "later" are none.
fn until_answered(client: &Client, request: &Request, repeats: &mut u64) -> Response {
    loop {
        match client.send(request.clone()) {
            Ok(response) if !matches!(response.status, 429 | 503 | 504) => return response,
            _ => {
                *repeats += 1;
                std::thread::sleep(PAUSE);
            }
        }
    }
}
