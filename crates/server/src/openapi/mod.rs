//! What the server answers to, as OpenAPI 3.1: `GET /openapi.json`, and a page that shows it: `GET /docs`.
//!
//! `operations`: every call, as a table. `schemas`: what bodies look like.
//!
//! Keeps: a route that is served is in the table and a call of the table is served; tests look.

mod operations;
mod schemas;

use std::sync::LazyLock;

use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use sha2::{Digest, Sha256};
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn, PathItem, PathsBuilder};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{ContentBuilder, InfoBuilder, OpenApiBuilder, Ref, Required, ResponseBuilder};

use self::operations::{Body, OPERATIONS, Operation};
use crate::Server;

/// Made once: it is the same for every server of a release.
static DOCUMENT: LazyLock<String> = LazyLock::new(document);

const PAGE: &str = include_str!("page.html");

/// What the page may do: run its own script and style, by their digests, and ask this server.
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

pub(crate) fn routes() -> Router<Server> {
    Router::new().route("/openapi.json", get(json)).route("/docs", get(page))
}

async fn page() -> Response {
    ([(header::CONTENT_SECURITY_POLICY, PAGE_POLICY.clone())], Html(PAGE)).into_response()
}

async fn json() -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

fn document() -> String {
    let info = InfoBuilder::new()
        .title("Statehouse")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Stores what your workers are doing: cells, records, runs and sessions, in one commit."))
        .build();
    let mut paths = PathsBuilder::new();
    for operation in OPERATIONS {
        paths = paths.path(operation.path, PathItem::new(operation.method.clone(), described(operation)));
    }
    let document = OpenApiBuilder::new().info(info).paths(paths.build()).build();
    let mut document = serde_json::to_value(document).expect("a document is JSON");
    // Put in as they are: utoipa's own types cannot say that a body is anything at all.
    document["components"] = json!({ "schemas": schemas::all() });
    document.to_string()
}

fn described(operation: &Operation) -> OperationBuilder {
    let mut described = OperationBuilder::new()
        .tag(operation.contract)
        .summary(Some(operation.summary))
        .operation_id(Some(operation.id()));
    for name in operation.path_parameters() {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(schemas::path_parameter(name)));
        described = described.parameter(parameter);
    }
    for parameter in operation.all_parameters() {
        let within = if parameter.in_header { ParameterIn::Header } else { ParameterIn::Query };
        let parameter = ParameterBuilder::new()
            .name(parameter.name)
            .parameter_in(within)
            .required(Required::False)
            .description(Some(parameter.says))
            .schema(Some(schemas::of_kind(parameter.kind)));
        described = described.parameter(parameter);
    }
    if let Some(body) = &operation.body {
        let (media, schema) = match body {
            Body::Json(schema) => ("application/json", schema),
            Body::Bytes => ("application/octet-stream", &"Bytes"),
        };
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(*schema))).build();
        let body = RequestBodyBuilder::new().content(media, content).required(Some(Required::True));
        described = described.request_body(Some(body.build()));
    }
    let mut answer = ResponseBuilder::new().description(operation.answers);
    for media in operation.media {
        answer = answer.content(*media, ContentBuilder::new().build());
    }
    let answer = answer.build();
    let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    let problem = ResponseBuilder::new().description("A refusal").content("application/problem+json", problem);
    for status in operation.statuses {
        described = described.response(*status, answer.clone());
    }
    described.response("default", problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::shipped;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_route_is_documented() {
        let sources = shipped(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let registered = sources.iter().flat_map(|text| text.split("route(\"").skip(1));
        let routes = registered.filter_map(|rest| rest.split_once('"')).map(|(route, _)| route.replace("{*", "{"));
        let routes: BTreeSet<String> = routes.collect();
        assert!(routes.len() > 25, "the search still finds them: {routes:?}");
        let documented = paths();
        for route in routes {
            // What is told apart by its last part, by the handler, and what only refuses.
            let parts = ["/v1/runs/{path}", "/v1/groups/{path}"].contains(&route.as_str());
            if !parts && !route.ends_with('/') {
                assert!(documented.contains(route.as_str()), "{route} is not in the table of operations");
            }
        }
    }

    fn paths() -> BTreeSet<&'static str> {
        OPERATIONS.iter().map(|operation| operation.path).collect()
    }

    #[test]
    fn operations_have_ids_of_their_own_and_schemas_exist() {
        let ids: BTreeSet<_> = OPERATIONS.iter().map(Operation::id).collect();
        assert_eq!(ids.len(), OPERATIONS.len());
        let schemas = schemas::all();
        for operation in OPERATIONS {
            if let Some(Body::Json(schema)) = &operation.body {
                assert!(schemas.contains_key(*schema), "{schema}");
            }
        }
        let document: serde_json::Value = serde_json::from_str(&DOCUMENT).expect("JSON");
        assert_eq!(document["openapi"], "3.1.0");
        assert_eq!(document["info"]["title"], "Statehouse");
        assert_eq!(document["paths"].as_object().map(serde_json::Map::len), Some(paths().len()));
    }
}
