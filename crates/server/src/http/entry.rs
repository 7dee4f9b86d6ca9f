//! A row of the table of routes.

use std::cell::OnceCell;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use contract::access::audit::{Decision, SYSTEM_SPACE};
use contract::object_text::ObjectText;
use contract::{Error, Rejection};
use serde::de::DeserializeOwned;
use wire::DecodeError;
use wire::follow::Follow;
use wire::query::from_parameters;
use wire::routes::{Route, Scope};
use wire::schema::{Described, Member, Schemas};

use super::encode::{AnswerForm, Encode};
use super::head::Head;
use crate::Server;
use crate::access::{Asking, Permission};
use crate::api::call::{Call, RawBytes};
use crate::api::refusal::Refusal;
use crate::api::scope::RequestScope;
use crate::problem::Problem;

/// How a request is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// Within the limit of requests, or of waits if it asks to wait.
    Bounded,
    /// Under any load, and while the server stops.
    Always,
}

/// What a route honours besides its query and its body. Anything else is refused by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Honours {
    pub(crate) space: bool,
    pub(crate) branch: bool,
    pub(crate) group: bool,
    /// `Statehouse-Session` with its request.
    pub(crate) session: bool,
    /// `Statehouse-Request` of the session in the path.
    pub(crate) request: bool,
    /// `Statehouse-Session-Secret`, of that session or of the one in the path.
    pub(crate) secret: bool,
    /// `Statehouse-Owner`: the sender owns the group.
    pub(crate) owner: bool,
    /// `Statehouse-Force`.
    pub(crate) force: bool,
    pub(crate) if_match: bool,
    pub(crate) if_none_match: bool,
    pub(crate) idempotency_key: bool,
    /// `Prefer: wait=10`.
    pub(crate) wait: bool,
    /// `Accept: text/event-stream` and `Last-Event-ID`.
    pub(crate) stream: bool,
}

/// How long a request asks to wait, and whether it asks for a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) wait: Option<Duration>,
    pub(crate) stream: bool,
}

/// 201 for the first version.
pub(crate) const MADE: &[u16] = &[200, 201];

/// What a request that follows something asks for.
pub(crate) fn followed(follow: Option<Follow>) -> Asked {
    match follow {
        Some(Follow::Stream) => Asked { wait: None, stream: true },
        Some(Follow::Wait(wait)) => Asked { wait: Some(wait.0), stream: false },
        Some(Follow::No) | None => Asked::default(),
    }
}

/// A decoded call that has not started.
pub(crate) struct Decoded {
    /// How long it may wait; none if it does not wait.
    pub(crate) wait: Option<Duration>,
    pub(crate) run: Pin<Box<dyn Future<Output = Response> + Send>>,
}

type Decode = Box<dyn Fn(&Server, Head, Bytes) -> Result<Decoded, Problem> + Send + Sync>;

/// The forms of a route's requests and answers, for the OpenAPI document.
pub(crate) struct Forms {
    pub(crate) query: Vec<Member>,
    pub(crate) body: Option<BodyForm>,
    pub(crate) answers: Vec<AnswerForm>,
}

/// The form of a body.
pub(crate) struct BodyForm {
    pub(crate) media: &'static str,
    pub(crate) schema: serde_json::Value,
    pub(crate) required: bool,
}

/// A row of the table: a route, what it honours, how it is admitted, and its call.
pub(crate) struct Entry {
    pub(crate) route: Route,
    /// Its index in the table.
    pub(crate) place: usize,
    pub(crate) summary: &'static str,
    pub(crate) honours: Honours,
    /// What it needs, for people.
    pub(crate) permission: String,
    /// Whether anybody may call it, known or not.
    pub(crate) is_open: bool,
    pub(crate) admitted: Admitted,
    /// Whether HEAD is answered too.
    pub(crate) head: bool,
    /// Whether HEAD tells the version, too.
    pub(crate) head_shows_version: bool,
    pub(crate) statuses: &'static [u16],
    /// Forms of answers that the call writes itself.
    pub(crate) media: &'static [&'static str],
    forms: fn(&mut Schemas) -> Forms,
    decode: Decode,
}

/// Bodies of requests.
pub(crate) trait FromBody: Sized {
    fn from_body(bytes: Bytes) -> Result<Self, DecodeError>;
    fn form(schemas: &mut Schemas) -> Option<BodyForm>;
}

impl<T: DeserializeOwned + Described> FromBody for T {
    fn from_body(bytes: Bytes) -> Result<Self, DecodeError> {
        // An object without members may be omitted.
        let bytes: &[u8] = if bytes.is_empty() && T::OBJECT { b"{}" } else { &bytes };
        wire::from_json(bytes)
    }

    fn form(schemas: &mut Schemas) -> Option<BodyForm> {
        let (schema, members) = (T::schema(schemas), T::members(schemas));
        let is_nothing = T::OBJECT && members.is_empty();
        let required = !T::OBJECT || members.iter().any(|member| member.required);
        (!is_nothing).then_some(BodyForm { media: "application/json", schema, required })
    }
}

impl FromBody for RawBytes {
    fn from_body(bytes: Bytes) -> Result<Self, DecodeError> {
        Ok(Self(bytes))
    }

    fn form(_: &mut Schemas) -> Option<BodyForm> {
        let schema = serde_json::json!({ "type": "string", "format": "binary" });
        Some(BodyForm { media: "application/octet-stream", schema, required: true })
    }
}

/// Where something is done that is recorded: names, as a JSON object.
fn recorded_place(scope: &RequestScope, name: &str) -> String {
    let mut on = ObjectText::default();
    on.text_if("space", scope.space.as_deref()).text_if("branch", scope.branch.as_deref());
    on.text_if("group", scope.group.as_deref()).text_if("name", Some(name).filter(|name| !name.is_empty()));
    on.finish()
}

/// The group that a request names, in its path or beside it.
fn group_of(route: &Route, head: &Head) -> Option<String> {
    match route.path {
        path if path.contains("{group}") => Some(head.name.clone()),
        path if path.contains("{operator}/{partition}") => {
            Some(format!("{}/{}", head.name, String::from_utf8_lossy(head.rest.first()?)))
        }
        _ => head.scope.group.clone(),
    }
}

/// A route that does not wait.
pub(crate) fn entry<Q, B, R, F>(
    route: Route,
    permission: Permission<Q, B>,
    summary: &'static str,
    serve: impl Fn(Server, Call<Q, B>) -> F + Copy + Send + Sync + 'static,
) -> Entry
where
    Q: DeserializeOwned + Described + Send + 'static,
    B: FromBody + Send + 'static,
    R: Encode,
    F: Future<Output = Result<R, Refusal>> + Send + 'static,
{
    waiting(route, permission, summary, |_, _| Asked::default(), serve)
}

/// A route that may wait; the decoded request says how long.
pub(crate) fn waiting<Q, B, R, F>(
    route: Route,
    permission: Permission<Q, B>,
    summary: &'static str,
    asks: fn(&Q, &B) -> Asked,
    serve: impl Fn(Server, Call<Q, B>) -> F + Copy + Send + Sync + 'static,
) -> Entry
where
    Q: DeserializeOwned + Described + Send + 'static,
    B: FromBody + Send + 'static,
    R: Encode,
    F: Future<Output = Result<R, Refusal>> + Send + 'static,
{
    let (words, is_open) = (permission.words.clone(), permission.is_open);
    let decode = move |server: &Server, head: Head, bytes: Bytes| {
        let query: Q = from_parameters(&head.parameters).map_err(|error| head.refused_parameter(error))?;
        let body = B::from_body(bytes).map_err(Problem::refused_body)?;
        let in_path = route.path.contains("{space}").then_some(head.name.as_str());
        if head.scope.space.as_deref().or(in_path) == Some(SYSTEM_SPACE) {
            // What is in it has routes of its own.
            return Err(Error::from(Rejection::NoSuchSpace { space: SYSTEM_SPACE.to_owned() }).into());
        }
        let asked = asks(&query, &body);
        let stream = asked.stream || head.accepts_events;
        let wait = head.wait(asked, stream, server.limits.wait_time_max)?;
        let group = group_of(&route, &head);
        let text = OnceCell::new();
        let needs = permission.needs(&Asking {
            caller: &server.caller,
            scope: &head.scope,
            group: group.as_deref(),
            name: &head.name,
            query: &query,
            body: &body,
            is_conditional: head.expected.is_some(),
            follows: stream || wait.is_some(),
            text: &text,
        });
        let has_needs = !needs.is_empty();
        if !permission.is_open || has_needs {
            server.caller.authorize(&needs).inspect_err(|_| {
                let mut on = ObjectText::default();
                if let Some(need) = server.caller.lacks(&needs) {
                    on.text("need", &need.to_string());
                }
                server.denials.note(&server.house, route.name, on);
            })?;
        }
        let server = if wait.is_some() || stream { server.for_as_long_as_permitted() } else { server.clone() };
        let call = Call {
            scope: head.scope,
            name: head.name,
            rest: head.rest,
            query,
            body,
            expected: head.expected,
            key: head.key,
            wait: wait.unwrap_or_default(),
            stream,
            last_event: head.last_event,
            takes: head.takes,
        };
        let recorded = (permission.is_recorded && has_needs && server.caller.name().is_some())
            .then(|| recorded_place(&call.scope, &call.name));
        let house = server.house.clone();
        let answer = serve(server, call);
        let run = async move {
            // What cannot be recorded is not done.
            if let Some(on) = recorded
                && let Err(error) = house.audit().note(route.name, &on, Decision::Permitted).await
            {
                return Problem::from(error).into_response();
            }
            match answer.await {
                Ok(reply) => reply.encode(),
                Err(refusal) => Problem::from(refusal).of_group(group.as_deref()).into_response(),
            }
        };
        Ok(Decoded { wait, run: Box::pin(run) })
    };
    let forms = |schemas: &mut Schemas| Forms {
        query: Q::members(schemas),
        body: B::form(schemas),
        answers: R::forms(schemas),
    };
    let honours = Honours {
        space: route.scope >= Scope::Space,
        branch: route.scope >= Scope::Branch,
        group: route.scope >= Scope::Group,
        session: route.numbered,
        secret: route.numbered,
        owner: route.is_fenced(),
        force: route.can_be_forced(),
        ..Honours::default()
    };
    Entry {
        route,
        place: 0,
        summary,
        honours,
        permission: words,
        is_open,
        admitted: Admitted::Bounded,
        head: false,
        head_shows_version: true,
        statuses: &[200],
        media: &[],
        forms,
        decode: Box::new(decode),
    }
}

impl Entry {
    /// Sends a request of the session in the path.
    pub(crate) fn request(mut self) -> Self {
        self.honours.request = true;
        self.honours.secret = true;
        self
    }

    /// Acts as the session in the path.
    pub(crate) fn acts_as_session(mut self) -> Self {
        self.honours.secret = true;
        self
    }

    pub(crate) fn always(mut self) -> Self {
        self.admitted = Admitted::Always;
        self
    }

    pub(crate) fn if_match(mut self) -> Self {
        self.honours.if_match = true;
        self
    }

    pub(crate) fn if_none_match(mut self) -> Self {
        self.honours.if_none_match = true;
        self
    }

    pub(crate) fn idempotency_key(mut self) -> Self {
        self.honours.idempotency_key = true;
        self
    }

    /// `Prefer: wait=10` is honoured.
    pub(crate) fn prefer_wait(mut self) -> Self {
        self.honours.wait = true;
        self
    }

    /// Can answer with a stream.
    pub(crate) fn streams(mut self) -> Self {
        self.honours.stream = true;
        self
    }

    pub(crate) fn head(mut self) -> Self {
        self.head = true;
        self
    }

    /// Answers HEAD without a version.
    pub(crate) fn head_without_version(mut self) -> Self {
        self.head_shows_version = false;
        self.head()
    }

    pub(crate) fn statuses(mut self, statuses: &'static [u16]) -> Self {
        self.statuses = statuses;
        self
    }

    pub(crate) fn media(mut self, media: &'static [&'static str]) -> Self {
        self.media = media;
        self
    }

    /// The forms of its requests and answers.
    pub(crate) fn forms(&self, schemas: &mut Schemas) -> Forms {
        (self.forms)(schemas)
    }

    /// Decodes a request into a call.
    pub(crate) fn decode(&self, server: &Server, head: Head, bytes: Bytes) -> Result<Decoded, Problem> {
        (self.decode)(server, head, bytes)
    }
}
