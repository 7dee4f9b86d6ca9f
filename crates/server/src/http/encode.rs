//! Answers as responses: status, `ETag`, `Statehouse-Replayed`, body.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value as JsonValue, json};
use wire::schema::{Described, Schemas};

use crate::api::call::{RawBytes, Reply};
use crate::stream::Followed;

/// Marks an answer that was stored by an earlier sending of the request.
static REPLAYED: HeaderName = HeaderName::from_static("statehouse-replayed");

/// The initial size of a body's buffer.
const BODY_BYTES: usize = 1 << 10;

/// A form of an answer: its media type and its schema.
pub(crate) struct AnswerForm {
    pub(crate) media: &'static str,
    pub(crate) schema: JsonValue,
}

/// Encodes the result of a call as a response.
pub(crate) trait Encode {
    fn encode(self) -> Response;

    /// Its forms; empty if the route lists them.
    fn forms(schemas: &mut Schemas) -> Vec<AnswerForm>;
}

impl<A: Serialize + Described> Encode for Reply<A> {
    fn encode(self) -> Response {
        let status = if self.created { StatusCode::CREATED } else { StatusCode::OK };
        let mut response = json_body(status, &self.body);
        if let Some(version) = self.version {
            let etag = HeaderValue::from_str(&format!("\"{version}\"")).expect("digits and quotes");
            response.headers_mut().insert(header::ETAG, etag);
        }
        if self.replayed {
            response.headers_mut().insert(&REPLAYED, HeaderValue::from_static("true"));
        }
        match self.page {
            Some(memory) => memory.hold(response),
            None => response,
        }
    }

    fn forms(schemas: &mut Schemas) -> Vec<AnswerForm> {
        vec![AnswerForm { media: "application/json", schema: A::schema(schemas) }]
    }
}

impl<A: Serialize + Described> Encode for Followed<A> {
    fn encode(self) -> Response {
        match self {
            Followed::Page(reply) => reply.encode(),
            Followed::Stream(events) => events.into_response(),
        }
    }

    fn forms(schemas: &mut Schemas) -> Vec<AnswerForm> {
        let events = json!({ "type": "string", "description": "A stream of server-sent events" });
        let mut forms = Reply::<A>::forms(schemas);
        forms.push(AnswerForm { media: "text/event-stream", schema: events });
        forms
    }
}

impl Encode for RawBytes {
    fn encode(self) -> Response {
        (StatusCode::OK, [(header::CONTENT_TYPE, "application/octet-stream")], self.0).into_response()
    }

    fn forms(_: &mut Schemas) -> Vec<AnswerForm> {
        let schema = json!({ "type": "string", "format": "binary" });
        vec![AnswerForm { media: "application/octet-stream", schema }]
    }
}

/// A response that the call built itself; its route describes it.
impl Encode for Response {
    fn encode(self) -> Response {
        self
    }

    fn forms(_: &mut Schemas) -> Vec<AnswerForm> {
        Vec::new()
    }
}

/// A JSON body with a status. It ends with a newline, so that a terminal's next prompt starts on a new line.
pub(crate) fn json_body(status: StatusCode, body: &impl Serialize) -> Response {
    let mut text = Vec::with_capacity(BODY_BYTES);
    serde_json::to_writer(&mut text, body).expect("what is answered is JSON");
    text.push(b'\n');
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}
