//! The API as OpenAPI 3.1: `/openapi.json`, and a page that renders it: `/docs`.
//!
//! Keeps: everything in it comes from the table of routes and from the types that its calls decode and encode, so that
//! exactly what is served is documented.

use std::sync::LazyLock;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value as JsonValue, json};
use sha2::{Digest, Sha256};
use wire::operations::{NoBody, OpenApiDocument, ProbeAnswer, Problem, StatusAnswer};
use wire::owners::OwnerToken;
use wire::query::NoQuery;
use wire::routes::{SERVER_OPENAPI, SERVER_STATUS};
use wire::schema::{Described, Schemas};

use crate::Server;
use crate::api::CONTRACTS_CALLED;
use crate::api::call::Call;
use crate::api::refusal::Refusal;
use crate::api::scope::FORCE;
use crate::api::scope::OWNER;
use crate::http::entry::{Entry, Honours};
use crate::http::table;

/// Built once: it is the same for every server of a release.
static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

const PAGE: &str = include_str!("page.html");

pub(crate) async fn json(_: Server, _: Call<NoQuery, NoBody>) -> Result<Response, Refusal> {
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response())
}

/// The page's policy: it may run its own script and style, by their digests, and call this server.
static PAGE_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let digest = |tag: &str| {
        let inside = PAGE.split_once(&format!("<{tag}>")).and_then(|(_, rest)| rest.split_once(&format!("</{tag}>")));
        let (text, _) = inside.expect("the page has one");
        BASE64_STANDARD.encode(Sha256::digest(text))
    };
    let (script, style) = (digest("script"), digest("style"));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).expect("ASCII")
});

pub(crate) async fn page(_: Server, _: Call<NoQuery, NoBody>) -> Result<Response, Refusal> {
    Ok(([(header::CONTENT_SECURITY_POLICY, PAGE_POLICY.clone())], Html(PAGE)).into_response())
}

fn document() -> JsonValue {
    let mut schemas = Schemas::default();
    let problem = Problem::schema(&mut schemas);
    let mut paths: Map<String, JsonValue> = Map::new();
    for entry in table::entries() {
        let described = described(entry, &mut schemas, &problem);
        let path = paths.entry(entry.route.path).or_insert_with(|| json!({}));
        let method = entry.route.method.as_str().to_ascii_lowercase();
        if entry.head && entry.route.path.contains('{') {
            path["head"] = head_of(&described, entry);
        }
        path[method] = described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Statehouse",
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!(
                "Stores what your workers are doing: {} and sessions, in one commit.",
                CONTRACTS_CALLED.join(", ")
            ),
        },
        "paths": paths,
        "components": { "schemas": schemas.into_json() },
    })
}

/// The same call without its body.
fn head_of(described: &JsonValue, entry: &Entry) -> JsonValue {
    let mut head = described.clone();
    head["operationId"] = format!("{}.head", entry.route.name).into();
    let shown = if entry.head_shows_version { ", and its version" } else { "" };
    head["summary"] = format!("{}: only whether it exists{shown}", entry.summary).into();
    for response in head["responses"].as_object_mut().into_iter().flat_map(|responses| responses.values_mut()) {
        if let Some(response) = response.as_object_mut() {
            response.remove("content");
        }
    }
    head
}

fn described(entry: &Entry, schemas: &mut Schemas, problem: &JsonValue) -> JsonValue {
    let forms = entry.forms(schemas);
    let mut parameters = Vec::new();
    for name in entry.route.path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
        let schema = match name {
            "session" => wire::values::SessionId::schema(schemas),
            "partition" => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
            _ => json!({ "type": "string", "minLength": 1 }),
        };
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
    }
    for (name, says) in scope_parameters(entry.honours) {
        parameters.push(json!({ "name": name, "in": "query", "description": says, "schema": { "type": "string" } }));
    }
    for member in forms.query {
        parameters.push(json!({
            "name": member.name,
            "in": "query",
            "required": member.required,
            "description": member.says,
            "schema": not_null(member.schema),
        }));
    }
    for (name, says, schema) in header_parameters(entry.honours, schemas) {
        let mut parameter = json!({ "name": name, "in": "header", "description": says, "schema": schema });
        if name == FORCE && entry.route.is_forced_always() {
            parameter["required"] = true.into();
            parameter["description"] = "`true`: take the partition from whoever owns it. Required.".into();
        }
        parameters.push(parameter);
    }
    let mut content = Map::new();
    for form in &forms.answers {
        content.insert(form.media.to_owned(), json!({ "schema": form.schema }));
    }
    for media in entry.media {
        content.insert((*media).to_owned(), json!({ "schema": own_form(entry, media, schemas) }));
    }
    let mut responses = Map::new();
    for status in entry.statuses {
        responses.insert(status.to_string(), json!({ "description": entry.summary, "content": content }));
    }
    let refusal = json!({ "application/problem+json": { "schema": problem } });
    responses.insert("default".to_owned(), json!({ "description": "A refusal", "content": refusal }));
    let mut described = json!({
        "operationId": entry.route.name,
        "tags": [entry.route.subject()],
        "summary": entry.summary,
        "parameters": parameters,
        "responses": responses,
        "x-needs": entry.permission,
        "x-open": entry.is_open,
    });
    if let Some(body) = forms.body {
        let media = body.media;
        described["requestBody"] =
            json!({ "required": body.required, "content": { media: { "schema": body.schema } } });
    }
    described
}

/// The answer of a call that writes its own response.
fn own_form(entry: &Entry, media: &str, schemas: &mut Schemas) -> JsonValue {
    match media {
        "application/json" if entry.route.name == SERVER_OPENAPI.name => OpenApiDocument::schema(schemas),
        "application/json" if entry.route.name == SERVER_STATUS.name => StatusAnswer::schema(schemas),
        "application/json" => ProbeAnswer::schema(schemas),
        "application/octet-stream" => json!({ "type": "string", "format": "binary" }),
        _ => json!({ "type": "string" }),
    }
}

/// A parameter is present or absent; null is not a value of it.
fn not_null(schema: JsonValue) -> JsonValue {
    let JsonValue::Object(mut object) = schema else {
        return schema;
    };
    if let Some(kind) = object.get("type").and_then(JsonValue::as_array).and_then(|kinds| kinds.first()).cloned() {
        object.insert("type".into(), kind);
    }
    match object.get("anyOf").and_then(JsonValue::as_array).and_then(|choices| choices.first()).cloned() {
        Some(first) => first,
        None => JsonValue::Object(object),
    }
}

fn scope_parameters(honours: Honours) -> Vec<(&'static str, &'static str)> {
    let mut parameters = Vec::new();
    if honours.space {
        parameters.push(("space", "The space; `default` by default."));
    }
    if honours.branch {
        parameters.push(("branch", "The branch; `main` by default."));
    }
    if honours.group {
        parameters.push(("group", "The group; without it, a thing is in the group of its own name."));
    }
    parameters
}

fn header_parameters(honours: Honours, schemas: &mut Schemas) -> Vec<(&'static str, &'static str, JsonValue)> {
    let number = || json!({ "type": "integer", "minimum": 0 });
    let text = || json!({ "type": "string" });
    let mut headers = Vec::new();
    if honours.session {
        let session = wire::values::SessionId::schema(schemas);
        headers.push(("Statehouse-Session", "The session of this request.", session));
    }
    if honours.secret {
        let says = "The secret of the session, as its creation returned it.";
        headers.push(("Statehouse-Session-Secret", says, wire::values::SecretText::schema(schemas)));
    }
    if honours.session || honours.request {
        let says = "Its number in the session; a repeated request gets the same answer and is not executed again.";
        headers.push(("Statehouse-Request", says, number()));
        let says = "The lowest request whose answer the client still waits for.";
        headers.push(("Statehouse-Lowest-Pending", says, number()));
    }
    if honours.owner {
        let says = "The token of the group's owner, in a guarded group.";
        headers.push((OWNER, says, OwnerToken::schema(schemas)));
    }
    if honours.force {
        let says = "`true`: without the fences that a guard requires; for repairs by hand.";
        headers.push((FORCE, says, json!({ "type": "string", "const": "true" })));
    }
    if honours.if_match {
        let says = "Only if it is at this version, or the run at this sequence: a number in quotes.";
        headers.push(("If-Match", says, json!({ "type": "string", "pattern": "^\"[0-9]{1,18}\"$" })));
    }
    if honours.if_none_match {
        headers.push(("If-None-Match", "`*`: only if it does not exist.", json!({ "type": "string", "const": "*" })));
    }
    if honours.idempotency_key {
        headers.push(("Idempotency-Key", "The event's idempotency key, if it has none itself.", text()));
    }
    if honours.wait {
        let says = "`wait=10`: how many seconds to wait if there is nothing to return yet.";
        headers.push(("Prefer", says, json!({ "type": "string", "const": "wait=0" })));
    }
    if honours.stream {
        headers.push(("Last-Event-ID", "Where a stream resumes.", text()));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use wire::routes::Method;

    #[test]
    fn every_route_of_the_wire_is_in_the_table_once() {
        let served: Vec<_> = table::entries().iter().map(|entry| entry.route.name).collect();
        let names: BTreeSet<_> = wire::routes::ALL.iter().map(|route| route.name).collect();
        assert_eq!(served.iter().copied().collect::<BTreeSet<_>>(), names);
        assert_eq!(served.len(), names.len(), "each once");
        let calls: BTreeSet<_> = wire::routes::ALL.iter().map(|route| (route.method.as_str(), route.path)).collect();
        assert_eq!(calls.len(), names.len(), "no two names for one call");
    }

    #[test]
    fn no_operation_is_without_an_answer_schema_and_every_reference_leads_somewhere() {
        let document = document();
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        let (mut operations, mut ids) = (0, BTreeSet::new());
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("methods") {
                operations += 1;
                assert!(ids.insert(operation["operationId"].as_str().expect("an id").to_owned()), "{method} {path}");
                for (status, response) in operation["responses"].as_object().expect("responses") {
                    let Some(content) = response.get("content").and_then(JsonValue::as_object) else {
                        assert_eq!(method, "head", "{path} {status}");
                        continue;
                    };
                    assert!(!content.is_empty(), "{method} {path} {status}");
                    for (media, form) in content {
                        assert!(form["schema"].is_object(), "{method} {path} {status} {media}");
                    }
                }
            }
        }
        assert!(operations > wire::routes::ALL.len(), "{operations}");
        assert!(schemas.values().all(JsonValue::is_object));
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schemas.contains_key(name), "{name}");
        }
    }

    #[test]
    fn what_a_call_is_refused_without_is_required() {
        let document = document();
        let required = |path: &str, method: &str, name: &str| {
            let parameters = document["paths"][path][method]["parameters"].as_array().expect("parameters");
            let found = parameters.iter().find(|parameter| parameter["name"] == name).expect("a parameter");
            found["required"] == true
        };
        for method in ["put", "delete"] {
            assert!(required("/v1/maps/{map}/keys/{key}", method, "version"), "{method}");
        }
        let partition = "/v1/keyed/{operator}/{partition}";
        assert!(required(&format!("{partition}/restore"), "post", FORCE));
        assert!(!required(&format!("{partition}/acquire"), "post", FORCE));
    }

    #[test]
    fn a_head_promises_the_headers_that_it_has() {
        let document = document();
        for (path, item) in document["paths"].as_object().expect("paths") {
            let Some(summary) = item["head"]["summary"].as_str() else { continue };
            let of_key = path.contains("/keys/");
            assert_eq!(summary.contains("its version"), !of_key, "{path}: {summary}");
        }
    }

    #[test]
    fn methods_are_those_of_the_routes() {
        let document = document();
        for route in wire::routes::ALL {
            let method = match route.method {
                Method::Get => "get",
                Method::Put => "put",
                Method::Patch => "patch",
                Method::Post => "post",
                Method::Delete => "delete",
            };
            assert_eq!(document["paths"][route.path][method]["operationId"], route.name);
        }
    }
}
