//! The contract of sessions, over HTTP, in front of a machine that the server hosts.

use std::time::Duration;

use contract::Error;
use contract::sessions::{PushedRequest, SessionStore};
use serde_json::{Map, Value as JsonValue, json};

use wire::routes::{SESSIONS_ACKNOWLEDGE, SESSIONS_END, SESSIONS_REQUEST};
use wire::values::SessionId;

use super::client::Client;
use super::message::Request;
use super::values::{bytes_text, payload};

/// Sessions in front of one machine, in the client's place.
pub struct HttpSessions {
    client: Client,
    machine: u16,
}

impl HttpSessions {
    /// Sessions in front of the machine of this number.
    pub fn new(client: Client, machine: u16) -> Self {
        Self { client, machine }
    }
}

/// The number behind the text that a client keeps.
pub(super) fn session_number(text: &JsonValue) -> u64 {
    text.as_str().and_then(SessionId::parse).unwrap_or_else(|| panic!("{text} is no session")).0
}

/// Text as text, other bytes as bytes.
fn text_or_bytes(bytes: &[u8]) -> JsonValue {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => serde_json::from_str(&bytes_text(bytes)).expect("JSON"),
    }
}

impl SessionStore for HttpSessions {
    fn create(&self, timeout: Duration, capabilities: &[(String, Vec<u8>)]) -> Result<u64, Error> {
        let capabilities: Map<_, _> =
            capabilities.iter().map(|(name, value)| (name.clone(), text_or_bytes(value))).collect();
        let timeout = u64::try_from(timeout.as_millis()).expect("a timeout");
        let body = json!({ "timeout": timeout, "capabilities": capabilities }).to_string();
        let answer = self.client.call(Request::post("/v1/sessions").body(body))?.json();
        Ok(session_number(&answer["session"]))
    }

    fn request(&self, session: u64, request: u64, lowest_pending: u64, command: &[u8]) -> Result<Vec<u8>, Error> {
        let request = Request::post(SESSIONS_REQUEST.at(&[&SessionId(session).to_string()]))
            .query("machine", self.machine)
            .header("statehouse-request", request)
            .header("statehouse-lowest-pending", lowest_pending)
            .body(command);
        Ok(self.client.call(request)?.body)
    }

    fn acknowledge(&self, session: u64, upto: u64) -> Result<u64, Error> {
        let request = Request::post(SESSIONS_ACKNOWLEDGE.at(&[&SessionId(session).to_string()]))
            .body(json!({ "upto": upto }).to_string());
        Ok(self.client.call(request)?.json()["forgotten"].as_u64().expect("a number"))
    }

    fn expire(&self, session: u64) -> Result<bool, Error> {
        let answer = self.client.call(Request::delete(SESSIONS_END.at(&[&SessionId(session).to_string()])))?.json();
        Ok(answer["ended"].as_bool().expect("yes or no"))
    }

    fn requests_for_retry(&self, sent_before: u64, limit: u32) -> Result<Vec<PushedRequest>, Error> {
        let body = json!({ "sent_before_us": sent_before, "limit": limit }).to_string();
        let answer = self.client.call(Request::post("/v1/pushes/retry").body(body))?.json();
        let pushes = answer["pushes"].as_array().expect("pushes").iter();
        let number = |push: &JsonValue, name: &str| push[name].as_u64().expect("a number");
        let pushes = pushes.map(|push| PushedRequest {
            session: session_number(&push["session"]),
            number: number(push, "number"),
            last_sent_at: number(push, "last_sent_us"),
            payload: payload(&push["payload"]),
        });
        Ok(pushes.collect())
    }

    fn has_pending(&self) -> Result<bool, Error> {
        let answer = self.client.call(Request::get("/v1/pushes"))?.json();
        Ok(answer["pending"].as_bool().expect("yes or no"))
    }

    fn has_overdue(&self, sent_before: u64) -> Result<bool, Error> {
        let answer = self.client.call(Request::get("/v1/pushes").query("sent_before_us", sent_before))?.json();
        Ok(answer["overdue"].as_bool().expect("yes or no"))
    }
}
