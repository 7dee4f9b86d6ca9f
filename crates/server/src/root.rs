//! `GET /`: a small page that shows where to find things. HTML for a browser, text otherwise.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::routes::{
    ERRORS_LIST, SERVER_DOCS, SERVER_LIVE, SERVER_METRICS, SERVER_OPENAPI, SERVER_STATUS, SERVER_VERSION,
};

use crate::Server;
use crate::api::call::Call;
use crate::api::refusal::Refusal;

/// Paths, and what they are for.
const PLACES: &[(&str, &str)] = &[
    (SERVER_DOCS.path, "every call of the API, to read and try out"),
    (SERVER_OPENAPI.path, "the same for tools"),
    ("/v1", "the API: cells, records, claims, runs, sessions and more"),
    (SERVER_STATUS.path, "the state of the server; as text with Accept: text/plain"),
    (SERVER_METRICS.path, "the same as numbers, for Prometheus"),
    (SERVER_LIVE.path, "liveness; see also /readyz and /startupz, all take ?verbose"),
    (ERRORS_LIST.path, "every error code, each with a page"),
    (SERVER_VERSION.path, "the release"),
];

pub(crate) async fn root(_: Server, call: Call<NoQuery, NoBody>) -> Result<Response, Refusal> {
    Ok(match call.takes.is_some_and(|takes| takes.contains("text/html")) {
        true => Html(html()).into_response(),
        false => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text()).into_response(),
    })
}

fn text() -> String {
    let lines = PLACES.iter().map(|(path, says)| format!("  {path:<14} {says}\n"));
    format!("statehouse {}\n\n{}", env!("CARGO_PKG_VERSION"), lines.collect::<String>())
}

fn html() -> String {
    // `/v1` alone is not a page.
    let place = |path: &str| match path {
        "/v1" => path.to_owned(),
        _ => format!("<a href=\"{path}\">{path}</a>"),
    };
    let rows = PLACES.iter().map(|(path, says)| format!("<dt>{}</dt><dd>{says}</dd>\n", place(path)));
    let version = env!("CARGO_PKG_VERSION");
    let rows: String = rows.collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>statehouse</title>\n<h1>statehouse {version}</h1>\n<dl>\n{rows}</dl>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_fits_a_terminal_and_names_every_place() {
        assert!(text().lines().all(|line| line.chars().count() <= 100), "{}", text());
        for (path, _) in PLACES {
            assert!(text().contains(path) && html().contains(path));
        }
        assert!(html().contains("<a href=\"/docs\">") && !html().contains("href=\"/v1\""));
    }
}
