//! One call, from its type to its answer: put into a request, sent, sent again where that is harmless, and read.

use std::time::Duration;

use contract::Outcome;
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::http::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as JsonValue;
use tokio::time::Instant;
use wire::query::encode;
use wire::routes::{self, Method, Route};

use crate::client::{Client, Scope};
use crate::error::{Error, Refusal};
use crate::retry::{self, Safety};
use crate::session::Number;
use crate::transport::{AnswerBody, Unanswered};

/// Bytes of one answer. A page of a list has 4 MiB at most; files come as streams.
const ANSWER_BYTES_MAX: usize = 64 << 20;

static HISTORY: HeaderName = HeaderName::from_static("statehouse-history");
static REPLAYED: HeaderName = HeaderName::from_static("statehouse-replayed");

/// A call that is being put together.
pub(crate) struct Call {
    method: hyper::Method,
    target: String,
    headers: HeaderMap,
    body: Bytes,
    /// How long the server was asked to wait.
    wait: Duration,
    safety: Safety,
    wrong: Option<String>,
}

/// An answer: its status, its headers and its body.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// Whether it was stored by an earlier sending of the same request.
    pub fn was_replayed(&self) -> bool {
        self.headers.get(&REPLAYED).is_some_and(|replayed| replayed == "true")
    }

    /// Reads the body.
    pub fn read<A: DeserializeOwned>(&self) -> Result<A, Error> {
        let unreadable =
            |error: serde_json::Error| Error::Unreadable { cause: error.to_string(), outcome: Outcome::Unknown };
        serde_json::from_slice(&self.body).map_err(unreadable)
    }
}

impl Call {
    /// A call of a route in the client's place, as far as the route has one; `parts` fill in what its path leaves open.
    pub(crate) fn new(client: &Client, route: Route, parts: &[&str]) -> Self {
        let method = match route.method {
            Method::Get => hyper::Method::GET,
            Method::Put => hyper::Method::PUT,
            Method::Patch => hyper::Method::PATCH,
            Method::Post => hyper::Method::POST,
            Method::Delete => hyper::Method::DELETE,
        };
        let safety = if route.method == Method::Get { Safety::Reads } else { Safety::Unprotected };
        let call = Self {
            method,
            target: route.at(parts),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            wait: Duration::ZERO,
            safety,
            wrong: None,
        };
        call.within(&client.scope, route.scope)
    }

    fn within(mut self, place: &Scope, honours: routes::Scope) -> Self {
        let Scope { space, branch, group } = place;
        let parts = [
            ("space", space, routes::Scope::Space),
            ("branch", branch, routes::Scope::Branch),
            ("group", group, routes::Scope::Group),
        ];
        for (name, value, from) in parts {
            if let Some(value) = value.as_ref().filter(|_| honours >= from) {
                self = self.parameter(name, value);
            }
        }
        self
    }

    fn parameter(mut self, name: &str, value: &str) -> Self {
        self.target.push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(name);
        self.target.push('=');
        self.target.push_str(&encode(value));
        self
    }

    /// Adds the members of a query; those that are left out are not there.
    pub(crate) fn query(mut self, query: &impl Serialize) -> Self {
        let members = match serde_json::to_value(query) {
            Ok(JsonValue::Object(members)) => members,
            Ok(_) => return self,
            Err(error) => {
                self.wrong = Some(error.to_string());
                return self;
            }
        };
        for (name, value) in members {
            self = match value {
                JsonValue::Null => self,
                JsonValue::String(text) => self.parameter(&name, &text),
                other => self.parameter(&name, &other.to_string()),
            };
        }
        self
    }

    /// Sets the body.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.body = bytes.into(),
            Err(error) => self.wrong = Some(error.to_string()),
        }
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self
    }

    /// Sets the body to bytes of the caller's own.
    pub(crate) fn bytes(mut self, body: Vec<u8>) -> Self {
        self.body = body.into();
        self
    }

    /// Adds a header, if there is one.
    pub(crate) fn header(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            match HeaderValue::from_str(&value.to_string()) {
                Ok(value) => {
                    self.headers.insert(HeaderName::from_static(name), value);
                }
                Err(_) => self.wrong = Some(format!("{name} cannot hold {:?}", value.to_string())),
            }
        }
        self
    }

    /// Only if the thing is at this version.
    pub(crate) fn if_version(self, version: Option<u64>) -> Self {
        self.header("if-match", version.map(|version| format!("\"{version}\"")))
    }

    /// How long the server is asked to wait, so that its answer is waited for.
    pub(crate) fn waiting(mut self, wait: Option<Duration>) -> Self {
        self.wait = wait.unwrap_or_default();
        self
    }

    /// Says that it may arrive twice without doing anything twice.
    pub(crate) fn repeatable(mut self) -> Self {
        self.safety = Safety::Reads;
        self
    }

    /// Sends it, in the client's session if it is a write and the client has sessions.
    pub(crate) async fn send(self, client: &Client) -> Result<Reply, Error> {
        if let Some(cause) = self.wrong {
            return Err(Error::Unsendable { cause });
        }
        let numbered = self.safety == Safety::Unprotected && client.shared.options.sessions;
        match numbered {
            true => self.send_numbered(client).await,
            false => self.send_until(client, None).await.map_err(|failed| failed.error),
        }
    }

    /// Sends it as it is, without a number.
    pub(crate) async fn send_alone(self, client: &Client) -> Result<Reply, Error> {
        match self.wrong {
            Some(cause) => Err(Error::Unsendable { cause }),
            None => self.send_until(client, None).await.map_err(|failed| failed.error),
        }
    }

    /// Sends it and reads the answer.
    pub(crate) async fn read<A: DeserializeOwned>(self, client: &Client) -> Result<A, Error> {
        self.send(client).await?.read()
    }

    /// The same; nothing that is found is none.
    pub(crate) async fn find<A: DeserializeOwned>(self, client: &Client) -> Result<Option<A>, Error> {
        match self.read(client).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn send_numbered(self, client: &Client) -> Result<Reply, Error> {
        let mut number = client.number().await?;
        loop {
            let failed = match self.send_until(client, Some(&number)).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            if failed.error.code() != Some("SH-5004") {
                return Err(failed.error);
            }
            client.forget_session(number.session()).await;
            // The session has ended. What was sent once was refused by that; of what was sent before, nobody knows.
            if failed.sendings > 1 {
                let cause = "the client's session ended before the answer came".to_owned();
                return Err(Error::NoAnswer { cause, outcome: Outcome::Unknown });
            }
            number = client.number().await?;
        }
    }

    /// Sends it until there is an answer that stays, or its time is over.
    async fn send_until(&self, client: &Client, number: Option<&Number>) -> Result<Reply, Failed> {
        let safety = if number.is_some() { Safety::Numbered } else { self.safety };
        let until = Instant::now() + client.shared.options.deadline + self.wait;
        let mut sendings = 0;
        loop {
            let error = match self.send_once(client, number).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            sendings += 1;
            let pause = retry::pause(sendings);
            if !retry::is_worth_it(&error, safety) || Instant::now() + pause >= until {
                return Err(Failed { error, sendings });
            }
            tracing::debug!(%error, target = %self.target, sendings, "sent again");
            tokio::time::sleep(pause).await;
        }
    }

    async fn send_once(&self, client: &Client, number: Option<&Number>) -> Result<Reply, Error> {
        let limit = client.shared.options.timeout + self.wait;
        let exchanged = tokio::time::timeout(limit, async {
            let response = self.begin(client, number).await?;
            collect(response, self.unknown()).await
        });
        let reply = exchanged.await.unwrap_or_else(|_| {
            let cause = format!("{} did not answer within {} ms", client.named(), limit.as_millis());
            Err(Error::NoAnswer { cause, outcome: self.unknown() })
        })?;
        match reply.status.is_success() {
            true => Ok(reply),
            false => Err(refused(&reply, self.unknown())),
        }
    }

    /// Sends it and gives the head of the answer; its body is still to come.
    pub(crate) async fn begin(&self, client: &Client, number: Option<&Number>) -> Result<Response<AnswerBody>, Error> {
        let request = Request::builder().method(self.method.clone()).uri(&self.target).body(self.body.clone());
        let mut request = request.map_err(|error| Error::Unsendable { cause: error.to_string() })?;
        request.headers_mut().clone_from(&self.headers);
        if let Some(number) = number {
            number.write(request.headers_mut());
        }
        if let Some(history) = &client.shared.options.history {
            let history = HeaderValue::from_str(history);
            let history = history.map_err(|_| Error::Unsendable { cause: "the history is no header".to_owned() })?;
            request.headers_mut().insert(&HISTORY, history);
        }
        let response =
            client.shared.transport.send(request).await.map_err(|Unanswered { cause, may_have_arrived }| {
                let outcome = if may_have_arrived { self.unknown() } else { Outcome::NotApplied };
                Error::NoAnswer { cause: format!("{}: {cause}", client.named()), outcome }
            })?;
        if let Some(history) = response.headers().get(&HISTORY) {
            let mut known = client.shared.history.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if known.as_ref() != Some(history) {
                *known = Some(history.clone());
            }
        }
        Ok(response)
    }

    /// What is known when no answer came: of a call that changes nothing, everything.
    fn unknown(&self) -> Outcome {
        match self.method {
            hyper::Method::GET => Outcome::NotApplied,
            _ => Outcome::Unknown,
        }
    }
}

struct Failed {
    error: Error,
    sendings: u32,
}

/// Reads an answer to its end.
async fn collect(response: Response<AnswerBody>, outcome: Outcome) -> Result<Reply, Error> {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let broken = |error| Error::NoAnswer { cause: format!("the answer broke off: {error}"), outcome };
    Ok(Reply { status: parts.status, headers: parts.headers, body: body.map_err(broken)?.to_bytes() })
}

/// The error that a refusal stands for.
fn refused(reply: &Reply, outcome: Outcome) -> Error {
    match Refusal::read(reply.status.as_u16(), &reply.body) {
        Some(refusal) => Error::Refused(Box::new(refusal)),
        None => {
            let cause = format!("status {} without a problem document; it is no Statehouse server", reply.status);
            Error::Unreadable { cause, outcome }
        }
    }
}

/// A refusal whose body is still to come.
pub(crate) async fn refused_stream(response: Response<AnswerBody>) -> Error {
    match collect(response, Outcome::NotApplied).await {
        Ok(reply) => refused(&reply, Outcome::NotApplied),
        Err(error) => error,
    }
}
