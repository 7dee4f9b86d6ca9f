//! Every code with its title and its page: `GET /v1/errors` lists them, `GET /v1/errors/{code}` returns a page.
//!
//! Keeps: every code used anywhere is in the table; a test checks.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use wire::operations::{ErrorCode, ErrorList, NoBody};
use wire::query::NoQuery;
use wire::routes::ERRORS_PAGE;

use crate::Server;
use crate::api::call::{Answered, Call, Reply};
use crate::api::refusal::Refusal;

/// Code, title, page.
const PAGES: &[(&str, &str, &str)] = &[
    ("SH-1001", "invalid name", include_str!("../../../docs/errors/SH-1001.md")),
    ("SH-1002", "limit exceeded", include_str!("../../../docs/errors/SH-1002.md")),
    ("SH-1003", "conflict on a cell", include_str!("../../../docs/errors/SH-1003.md")),
    ("SH-1004", "a transaction spans two groups", include_str!("../../../docs/errors/SH-1004.md")),
    ("SH-1005", "no such space", include_str!("../../../docs/errors/SH-1005.md")),
    ("SH-1006", "no such branch", include_str!("../../../docs/errors/SH-1006.md")),
    ("SH-1007", "already exists", include_str!("../../../docs/errors/SH-1007.md")),
    ("SH-1008", "the branch main cannot be deleted", include_str!("../../../docs/errors/SH-1008.md")),
    ("SH-1009", "the catalogue is behind", include_str!("../../../docs/errors/SH-1009.md")),
    ("SH-1011", "the transaction was lost", include_str!("../../../docs/errors/SH-1011.md")),
    ("SH-1012", "wrong transaction state", include_str!("../../../docs/errors/SH-1012.md")),
    ("SH-1013", "no such record", include_str!("../../../docs/errors/SH-1013.md")),
    ("SH-1014", "no such record type", include_str!("../../../docs/errors/SH-1014.md")),
    ("SH-1015", "the record's state does not allow this", include_str!("../../../docs/errors/SH-1015.md")),
    ("SH-1016", "wrong kind of value in a field", include_str!("../../../docs/errors/SH-1016.md")),
    ("SH-1017", "conflict on a record", include_str!("../../../docs/errors/SH-1017.md")),
    ("SH-1018", "invalid declaration", include_str!("../../../docs/errors/SH-1018.md")),
    ("SH-1019", "conflict on a field", include_str!("../../../docs/errors/SH-1019.md")),
    ("SH-1020", "the group is not in this shard", include_str!("../../../docs/errors/SH-1020.md")),
    ("SH-1021", "the record is held", include_str!("../../../docs/errors/SH-1021.md")),
    ("SH-1022", "no such guard", include_str!("../../../docs/errors/SH-1022.md")),
    ("SH-1023", "no such dead letter", include_str!("../../../docs/errors/SH-1023.md")),
    ("SH-1030", "malformed request", include_str!("../../../docs/errors/SH-1030.md")),
    ("SH-1031", "not found", include_str!("../../../docs/errors/SH-1031.md")),
    ("SH-1032", "no such route", include_str!("../../../docs/errors/SH-1032.md")),
    ("SH-1033", "history no longer kept", include_str!("../../../docs/errors/SH-1033.md")),
    ("SH-1034", "the store has a different history", include_str!("../../../docs/errors/SH-1034.md")),
    ("SH-1040", "request head too large", include_str!("../../../docs/errors/SH-1040.md")),
    ("SH-1041", "URL too long", include_str!("../../../docs/errors/SH-1041.md")),
    ("SH-1042", "body too large", include_str!("../../../docs/errors/SH-1042.md")),
    ("SH-1043", "request arrived too slowly", include_str!("../../../docs/errors/SH-1043.md")),
    ("SH-1044", "compressed bodies are not supported", include_str!("../../../docs/errors/SH-1044.md")),
    ("SH-1045", "JSON nested too deeply", include_str!("../../../docs/errors/SH-1045.md")),
    ("SH-1046", "malformed HTTP request", include_str!("../../../docs/errors/SH-1046.md")),
    ("SH-1047", "body needs too much memory", include_str!("../../../docs/errors/SH-1047.md")),
    ("SH-1060", "wrong host", include_str!("../../../docs/errors/SH-1060.md")),
    ("SH-1061", "cross-origin request", include_str!("../../../docs/errors/SH-1061.md")),
    ("SH-2001", "the store is busy", include_str!("../../../docs/errors/SH-2001.md")),
    ("SH-2002", "the store is closed", include_str!("../../../docs/errors/SH-2002.md")),
    ("SH-2003", "the store has stopped", include_str!("../../../docs/errors/SH-2003.md")),
    ("SH-2004", "stored data is damaged", include_str!("../../../docs/errors/SH-2004.md")),
    ("SH-2005", "the directory cannot be opened", include_str!("../../../docs/errors/SH-2005.md")),
    ("SH-2006", "a bug in the server", include_str!("../../../docs/errors/SH-2006.md")),
    ("SH-2007", "an entry cannot be applied", include_str!("../../../docs/errors/SH-2007.md")),
    ("SH-2008", "this node does not own the shard", include_str!("../../../docs/errors/SH-2008.md")),
    ("SH-2010", "too many connections", include_str!("../../../docs/errors/SH-2010.md")),
    ("SH-2011", "too many requests in progress", include_str!("../../../docs/errors/SH-2011.md")),
    ("SH-2012", "too many streams", include_str!("../../../docs/errors/SH-2012.md")),
    ("SH-2013", "no answer in time", include_str!("../../../docs/errors/SH-2013.md")),
    ("SH-2014", "out of memory for requests", include_str!("../../../docs/errors/SH-2014.md")),
    ("SH-2015", "disk space is low", include_str!("../../../docs/errors/SH-2015.md")),
    ("SH-2016", "the server is stopping", include_str!("../../../docs/errors/SH-2016.md")),
    ("SH-2020", "the directory is already open", include_str!("../../../docs/errors/SH-2020.md")),
    ("SH-2021", "the disk is full", include_str!("../../../docs/errors/SH-2021.md")),
    ("SH-2022", "the server is starting", include_str!("../../../docs/errors/SH-2022.md")),
    ("SH-2023", "the thing is damaged", include_str!("../../../docs/errors/SH-2023.md")),
    ("SH-2024", "the server has no place for checkpoints", include_str!("../../../docs/errors/SH-2024.md")),
    ("SH-2025", "the place of checkpoints failed", include_str!("../../../docs/errors/SH-2025.md")),
    ("SH-3001", "invalid event", include_str!("../../../docs/errors/SH-3001.md")),
    ("SH-3002", "no such run", include_str!("../../../docs/errors/SH-3002.md")),
    ("SH-3003", "conflict on a run", include_str!("../../../docs/errors/SH-3003.md")),
    ("SH-3004", "idempotency key already used", include_str!("../../../docs/errors/SH-3004.md")),
    ("SH-3005", "the run is closed", include_str!("../../../docs/errors/SH-3005.md")),
    ("SH-3006", "the run was deleted", include_str!("../../../docs/errors/SH-3006.md")),
    ("SH-4002", "the attempt is over", include_str!("../../../docs/errors/SH-4002.md")),
    ("SH-4003", "a write without the fence", include_str!("../../../docs/errors/SH-4003.md")),
    ("SH-5001", "session limit reached", include_str!("../../../docs/errors/SH-5001.md")),
    ("SH-5003", "the answer was discarded", include_str!("../../../docs/errors/SH-5003.md")),
    ("SH-5004", "the session has expired", include_str!("../../../docs/errors/SH-5004.md")),
    ("SH-5005", "the machine cannot read the command", include_str!("../../../docs/errors/SH-5005.md")),
    ("SH-5006", "the request number was already used", include_str!("../../../docs/errors/SH-5006.md")),
    ("SH-5007", "the session's secret is missing or wrong", include_str!("../../../docs/errors/SH-5007.md")),
    ("SH-5008", "the session belongs to another space", include_str!("../../../docs/errors/SH-5008.md")),
    ("SH-6001", "the sender is not known", include_str!("../../../docs/errors/SH-6001.md")),
    ("SH-6002", "not permitted", include_str!("../../../docs/errors/SH-6002.md")),
    ("SH-6003", "no such principal", include_str!("../../../docs/errors/SH-6003.md")),
    ("SH-6004", "no such token", include_str!("../../../docs/errors/SH-6004.md")),
    ("SH-6005", "too many live tokens", include_str!("../../../docs/errors/SH-6005.md")),
    ("SH-6006", "the identity belongs to another principal", include_str!("../../../docs/errors/SH-6006.md")),
    ("SH-6007", "the principal sends too fast", include_str!("../../../docs/errors/SH-6007.md")),
    ("SH-8001", "no such map", include_str!("../../../docs/errors/SH-8001.md")),
    ("SH-8002", "a key is put or merged, never both", include_str!("../../../docs/errors/SH-8002.md")),
    ("SH-8003", "the sum overflows", include_str!("../../../docs/errors/SH-8003.md")),
    ("SH-8004", "a merge outside of a numbered commit", include_str!("../../../docs/errors/SH-8004.md")),
    ("SH-8005", "the number was used for another commit", include_str!("../../../docs/errors/SH-8005.md")),
    ("SH-8006", "not the next commit", include_str!("../../../docs/errors/SH-8006.md")),
    ("SH-8007", "a position would go back", include_str!("../../../docs/errors/SH-8007.md")),
    ("SH-8008", "conflict on a key", include_str!("../../../docs/errors/SH-8008.md")),
    ("SH-8009", "conflict on a position", include_str!("../../../docs/errors/SH-8009.md")),
    ("SH-8010", "the map has the other policy", include_str!("../../../docs/errors/SH-8010.md")),
    ("SH-8011", "the map exists with the other policy", include_str!("../../../docs/errors/SH-8011.md")),
    ("SH-8012", "the restore is over", include_str!("../../../docs/errors/SH-8012.md")),
    ("SH-8013", "the restore is incomplete", include_str!("../../../docs/errors/SH-8013.md")),
    ("SH-8014", "no such checkpoint was begun", include_str!("../../../docs/errors/SH-8014.md")),
    ("SH-8015", "the checkpoint is damaged", include_str!("../../../docs/errors/SH-8015.md")),
    ("SH-8016", "no committed checkpoint", include_str!("../../../docs/errors/SH-8016.md")),
    ("SH-8017", "the checkpoint was given up", include_str!("../../../docs/errors/SH-8017.md")),
];

/// Every code, in order.
pub fn codes() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(code, _, _)| *code)
}

/// The title of a code.
pub fn title(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _, _)| *known == code).map(|(_, title, _)| *title)
}

/// The page of a code, as Markdown.
///
/// ```
/// assert!(statehouse_server::errors::page("SH-4002").unwrap().starts_with("# SH-4002: the attempt is over"));
/// assert_eq!(statehouse_server::errors::page("SH-9999"), None);
/// ```
pub fn page(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(known, _, _)| *known == code).map(|(_, _, page)| *page)
}

pub(crate) async fn list(_: Server, _: Call<NoQuery, NoBody>) -> Answered<ErrorList> {
    let errors = PAGES.iter().map(|(code, title, _)| ErrorCode {
        code: (*code).to_owned(),
        title: (*title).to_owned(),
        page: ERRORS_PAGE.at(&[code]),
    });
    Ok(Reply::new(ErrorList { errors: errors.collect() }))
}

pub(crate) async fn show(_: Server, call: Call<NoQuery, NoBody>) -> Result<Response, Refusal> {
    let page = page(&call.name).ok_or_else(|| Refusal::not_found("error code", call.name))?;
    Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], page).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::shipped;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn codes_in(text: &str) -> BTreeSet<String> {
        let places = text.match_indices("SH-").map(|(place, _)| &text[place..]);
        let codes =
            places.filter_map(|rest| rest.get(..7)).filter(|code| code[3..].bytes().all(|b| b.is_ascii_digit()));
        codes.map(str::to_owned).collect()
    }

    #[test]
    fn every_code_that_is_said_has_a_page_and_every_page_is_in_the_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut said = BTreeSet::new();
        for name in ["contract", "statehouse", "server"] {
            said.extend(shipped(&root.join("crates").join(name).join("src")).iter().flat_map(|text| codes_in(text)));
        }
        // An example of a code that does not exist.
        said.remove("SH-9999");
        let known: BTreeSet<_> = codes().map(str::to_owned).collect();
        assert_eq!(said, known);
        let files = std::fs::read_dir(root.join("docs/errors")).expect("a folder");
        let files = files.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        let files: BTreeSet<_> = files.filter_map(|name| name.strip_suffix(".md").map(str::to_owned)).collect();
        assert_eq!(files.iter().filter(|name| *name != "README").cloned().collect::<BTreeSet<_>>(), known);
        for (code, title, page) in PAGES {
            assert!(page.starts_with(&format!("# {code}: {title}\n")), "{code}");
            assert!(page.contains("**What to do.**"), "{code}");
        }
    }
}
