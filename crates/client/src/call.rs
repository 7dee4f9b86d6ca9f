//! One call, from request to answer: built, sent, retried where that is harmless, and read.

use std::time::Duration;

use contract::{Expected, Outcome, SessionCredentials};
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::http::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as JsonValue;
use tokio::time::Instant;
use wire::query::encode;
use wire::routes::{self, Method, Route};

use crate::client::{Client, Scope};
use crate::error::Error;
use crate::events::{EventStream, Resume};
use crate::operations::Download;
use crate::reply::Reply;
use crate::retry::{self, Safety};
use crate::session::{Number, ends_session, show};
use crate::transport::{AnswerBody, Unanswered};

/// Limit of one answer in bytes. A page of a list has at most 4 MiB; files are streamed.
const ANSWER_BYTES_MAX: usize = 64 << 20;

static HISTORY: HeaderName = HeaderName::from_static("statehouse-history");

/// A call of any route, for the answer exactly as sent. [`Client::call`] starts it; [`send`](Self::send), [`read`](Self::read),
/// [`answer`](Self::answer), [`download`](Self::download) or [`events`](Self::events) makes it.
#[derive(Clone)]
#[must_use = "nothing is sent yet"]
pub struct Call {
    client: Client,
    method: hyper::Method,
    target: String,
    headers: HeaderMap,
    body: Bytes,
    /// How long the server is asked to wait.
    wait: Duration,
    safety: Safety,
    /// Whether it may be sent in the client's session.
    in_session: bool,
    wrong: Option<String>,
}

impl Client {
    /// Starts a call of a route, in the client's place if the route has one; `parts` fill in the variables of its path. The
    /// typed methods use this; it is public for callers that want the answer byte for byte.
    ///
    /// ```no_run
    /// use statehouse_client::wire::{cells::ListCells, routes::{CELLS_LIST, CELLS_WRITE}, values::UserJson};
    /// use statehouse_client::{Client, Value};
    ///
    /// # async fn example(client: Client) -> Result<(), statehouse_client::Error> {
    /// let value = Value::json(r#"{"ratio": 1.50, "limit": 1e400}"#).expect("JSON");
    /// client.call(CELLS_WRITE, &["config/app"]).json(&UserJson(value)).if_version(Some(7)).send().await?;
    ///
    /// let query = ListCells { prefix: Some("config/".into()), ..ListCells::default() };
    /// let reply = client.call(CELLS_LIST, &[]).query(&query).send().await?;
    /// println!("{} {}", reply.status, String::from_utf8_lossy(&reply.body));
    /// # Ok(())
    /// # }
    /// ```
    pub fn call(&self, route: Route, parts: &[&str]) -> Call {
        self.call_at(route, route.at(parts))
    }

    /// Starts a call of a route at a path that was filled in, for one with bytes that are not text; see [`Route::at_key`].
    pub fn call_at(&self, route: Route, path: String) -> Call {
        let method = match route.method {
            Method::Get => hyper::Method::GET,
            Method::Put => hyper::Method::PUT,
            Method::Patch => hyper::Method::PATCH,
            Method::Post => hyper::Method::POST,
            Method::Delete => hyper::Method::DELETE,
        };
        let safety = if route.method == Method::Get { Safety::Reads } else { Safety::Unprotected };
        let call = Call {
            client: self.clone(),
            method,
            target: path,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            wait: Duration::ZERO,
            safety,
            in_session: route.numbered,
            wrong: None,
        };
        call.within(&self.scope, route)
    }
}

impl Call {
    fn within(mut self, place: &Scope, route: Route) -> Self {
        let Scope { space, branch, group, owner, force } = place;
        let parts = [
            ("space", space, routes::Scope::Space),
            ("branch", branch, routes::Scope::Branch),
            ("group", group, routes::Scope::Group),
        ];
        for (name, value, from) in parts {
            if let Some(value) = value.as_ref().filter(|_| route.scope >= from) {
                self = self.parameter(name, value);
            }
        }
        if let Some(owner) = owner.as_ref().filter(|_| route.is_fenced()) {
            self = self.header("statehouse-owner", owner);
        }
        match *force && route.can_be_forced() {
            true => self.header("statehouse-force", "true"),
            false => self,
        }
    }

    fn parameter(mut self, name: &str, value: &str) -> Self {
        self.target.push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(name);
        self.target.push('=');
        self.target.push_str(&encode(value));
        self
    }

    /// Adds the members of a query, such as [`wire::cells::ListCells`]; members that are none are omitted.
    pub fn query(mut self, query: &impl Serialize) -> Self {
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

    /// Sets the body, such as [`wire::records::PutRecord`]. User JSON is sent byte for byte with
    /// [`wire::values::UserJson`].
    pub fn json(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.body = bytes.into(),
            Err(error) => self.wrong = Some(error.to_string()),
        }
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self
    }

    /// Sets the body to the caller's bytes.
    pub fn bytes(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => {
                self.headers.insert(name, value);
            }
            _ => self.wrong = Some(format!("header {name:?} cannot hold {value:?}")),
        }
        self
    }

    /// Shows the secret of a session.
    pub fn showing(mut self, session: &SessionCredentials) -> Self {
        show(&mut self.headers, session);
        self
    }

    /// Requires the thing to be at this version.
    pub fn if_version(self, version: Option<u64>) -> Self {
        self.if_expected(version.map(Expected::Version))
    }

    /// Requires the thing to be at this version, or not to exist.
    pub fn if_expected(self, expected: Option<Expected>) -> Self {
        match expected {
            None => self,
            Some(Expected::Absent) => self.header("if-none-match", "*"),
            Some(Expected::Version(version)) => self.header("if-match", &format!("\"{version}\"")),
        }
    }

    /// Sets how long the server is asked to wait, which extends the timeout.
    pub fn waiting(mut self, wait: Option<Duration>) -> Self {
        self.wait = wait.unwrap_or_default();
        self
    }

    /// Marks the call as idempotent.
    pub(crate) fn repeatable(mut self) -> Self {
        self.safety = Safety::Reads;
        self
    }

    fn sendable(&self) -> Result<(), Error> {
        match &self.wrong {
            Some(cause) => Err(Error::Unsendable { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Sends the call, in the client's session if it is a write and the client uses sessions; a refusal is an error.
    pub async fn send(self) -> Result<Reply, Error> {
        self.sendable()?;
        let in_session = self.in_session && self.client.shared.options.sessions;
        match self.safety == Safety::Unprotected && in_session {
            true => self.send_numbered().await,
            false => self.send_alone().await,
        }
    }

    /// Sends the call outside of the client's session, as do the calls that open the session and keep it alive.
    pub(crate) async fn send_alone(self) -> Result<Reply, Error> {
        self.sendable()?;
        self.send_until(None).await.map_err(|failed| failed.error)
    }

    /// Sends the call and reads the answer.
    pub async fn read<A: DeserializeOwned>(self) -> Result<A, Error> {
        self.send().await?.read()
    }

    /// Like [`read`](Self::read), but "not found" is none.
    pub async fn find<A: DeserializeOwned>(self) -> Result<Option<A>, Error> {
        match self.read().await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends the call once, outside of any session, and returns any answer, including a refusal.
    pub async fn answer(self) -> Result<Reply, Error> {
        self.sendable()?;
        self.exchange(None).await
    }

    /// Sends the call once and returns the body as it arrives; a refusal is an error.
    pub async fn download(self) -> Result<Download, Error> {
        let response = self.begin().await?;
        match response.status().is_success() {
            true => Ok(Download::new(self.client.named(), response.into_body())),
            false => Err(self.refused_stream(response).await),
        }
    }

    /// The events of a route's stream, after the event with this id or only new ones.
    pub fn events(self, after: Option<String>) -> EventStream {
        EventStream::new(self, after.map_or(Resume::Now, Resume::After))
    }

    async fn send_numbered(self) -> Result<Reply, Error> {
        let mut number = self.client.number().await?;
        loop {
            let failed = match self.send_until(Some(&number)).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            if !ends_session(&failed.error) {
                return Err(failed.error);
            }
            self.client.forget_session(number.session()).await;
            // The session has ended. A call sent once was refused for that; the outcome of an earlier attempt is unknown.
            if failed.sendings > 1 {
                let cause = "the client's session ended before the answer came".to_owned();
                return Err(self.no_answer(cause, Outcome::Unknown));
            }
            number = self.client.number().await?;
        }
    }

    /// Sends the call until its answer is final or its time is up.
    async fn send_until(&self, number: Option<&Number>) -> Result<Reply, Failed> {
        let options = &self.client.shared.options;
        let safety = if number.is_some() { Safety::Numbered } else { self.safety };
        let until = Instant::now() + options.deadline + self.wait;
        let mut sendings = 0;
        loop {
            let error = match self.send_once(number).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            sendings += 1;
            let pause = retry::pause(sendings);
            let again = options.retries && retry::is_worth_it(&error, safety);
            if !again || Instant::now() + pause >= until {
                return Err(Failed { error, sendings });
            }
            tracing::debug!(%error, target = %self.target, sendings, "sent again");
            tokio::time::sleep(pause).await;
        }
    }

    async fn send_once(&self, number: Option<&Number>) -> Result<Reply, Error> {
        let reply = self.exchange(number).await?;
        match reply.status.is_success() {
            true => Ok(reply),
            false => Err(reply.refused(self.unknown())),
        }
    }

    /// Sends the call and reads the whole answer.
    async fn exchange(&self, number: Option<&Number>) -> Result<Reply, Error> {
        let limit = self.client.shared.options.timeout + self.wait;
        let exchanged = tokio::time::timeout(limit, async {
            let response = self.begin_with(number).await?;
            self.collect(response).await
        });
        exchanged
            .await
            .unwrap_or_else(|_| Err(Error::TimedOut { server: self.client.named(), limit, outcome: self.unknown() }))
    }

    /// Sends the call and returns the head of the answer; its body is still to come.
    pub(crate) async fn begin(&self) -> Result<Response<AnswerBody>, Error> {
        self.sendable()?;
        self.begin_with(None).await
    }

    async fn begin_with(&self, number: Option<&Number>) -> Result<Response<AnswerBody>, Error> {
        let shared = &self.client.shared;
        let request = Request::builder().method(self.method.clone()).uri(&self.target).body(self.body.clone());
        let mut request = request.map_err(|error| Error::Unsendable { cause: error.to_string() })?;
        request.headers_mut().clone_from(&self.headers);
        if let Some(number) = number {
            number.write(request.headers_mut());
        }
        if let Some(history) = &shared.options.history {
            let history = HeaderValue::from_str(history);
            let history =
                history.map_err(|_| Error::Unsendable { cause: "the history is not a valid header".to_owned() })?;
            request.headers_mut().insert(&HISTORY, history);
        }
        if let Some(token) = shared.options.token_over(&*shared.transport)? {
            let mut shown = HeaderValue::from_str(&format!("Bearer {}", token.to_text()))
                .map_err(|_| Error::Unsendable { cause: "the token is not a valid header".to_owned() })?;
            shown.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, shown);
        }
        let response = shared.transport.send(request).await.map_err(|Unanswered { cause, may_have_arrived }| {
            let outcome = if may_have_arrived { self.unknown() } else { Outcome::NotApplied };
            self.no_answer(cause, outcome)
        })?;
        if let Some(history) = response.headers().get(&HISTORY) {
            let mut known = shared.history.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if known.as_ref() != Some(history) {
                *known = Some(history.clone());
            }
        }
        Ok(response)
    }

    /// Reads a whole answer.
    async fn collect(&self, response: Response<AnswerBody>) -> Result<Reply, Error> {
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let broken = |error| self.no_answer(format!("the answer broke off: {error}"), self.unknown());
        Ok(Reply { status: parts.status, headers: parts.headers, body: body.map_err(broken)?.to_bytes() })
    }

    /// A refusal whose body is still to come.
    pub(crate) async fn refused_stream(&self, response: Response<AnswerBody>) -> Error {
        match self.collect(response).await {
            Ok(reply) => reply.refused(self.unknown()),
            Err(error) => error,
        }
    }

    pub(crate) fn no_answer(&self, cause: String, outcome: Outcome) -> Error {
        Error::NoAnswer { server: self.client.named(), cause, outcome }
    }

    /// The outcome when no answer came: certain only for calls that change nothing.
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

#[cfg(test)]
mod tests;
