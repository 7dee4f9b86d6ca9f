//! Routes: a path of the HTTP API is spelled once.
//!
//! Touches: the Rust files of the crates and the examples. Keeps: paths of the API are in the table of the wire and nowhere
//! else. Never: examines tests, comments and documentation, which show what a user types.

use super::{Complaint, is_test, shipped_part};
use crate::repository::Tree;

/// Where routes are spelled.
const TABLE: &str = "crates/wire/src/routes.rs";

/// The prefix of most paths.
const PREFIX: &str = "/v1/";

/// Finds the paths spelled outside of the table.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let mut complaints = Vec::new();
    let table = if tree.exists(TABLE) { tree.text(TABLE)? } else { String::new() };
    let elsewhere = paths_elsewhere(&table);
    for path in tree.files_with("rs") {
        let shipped = path.starts_with("crates/") && path.contains("/src/") && path != TABLE;
        if !shipped || is_test(path) {
            continue;
        }
        for (index, line) in shipped_part(&tree.text(path)?).lines().enumerate() {
            if spells_a_path(line, &elsewhere) {
                complaints.push(Complaint::new(
                    path,
                    index + 1,
                    "a path of the API is spelled outside of the table".to_owned(),
                    format!("use the route of {TABLE}"),
                ));
            }
        }
    }
    Ok(complaints)
}

/// The paths of the table that are not below `/v1/`, as they stand in code: with their quotes.
fn paths_elsewhere(table: &str) -> Vec<String> {
    let routes = table.split_once("routes! {\n").map_or("", |(_, routes)| routes);
    let paths = routes.lines().filter_map(|line| line.split('"').nth(1));
    let paths = paths.filter(|path| path.len() > 1 && path.starts_with('/') && !path.starts_with(PREFIX));
    paths.map(|path| format!("\"{path}\"")).collect()
}

/// Whether a line of code, not of comments, holds a path in a text.
fn spells_a_path(line: &str, elsewhere: &[String]) -> bool {
    let code = line.trim_start();
    let below = code.contains('"') && code.contains(PREFIX);
    !code.starts_with("//") && (below || elsewhere.iter().any(|path| code.contains(path)))
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    fn complaints(path: &str, text: &str) -> usize {
        check(&TemporaryTree::with(&[(path, text)]).tree()).unwrap().len()
    }

    #[test]
    fn a_path_is_spelled_in_the_table_only() {
        let line = "const CELLS: &str = \"/v1/cells\";\n";
        assert_eq!(complaints("crates/server/src/cells.rs", line), 1);
        assert_eq!(complaints("crates/server/src/cells.rs", &line.repeat(2)), 2);
        for elsewhere in [TABLE, "crates/server/tests/http.rs", "tests/sim/src/main.rs", "crates/kv/src/x/tests.rs"] {
            assert_eq!(complaints(elsewhere, line), 0, "{elsewhere}");
        }
        assert_eq!(complaints("crates/server/src/cells.rs", "//! `GET /v1/cells`\n// \"/v1/cells\"\n"), 0);
        let in_tests = format!("fn shipped() {{}}\n#[cfg(test)]\nmod tests {{\n    {line}}}\n");
        assert_eq!(complaints("crates/server/src/cells.rs", &in_tests), 0);
    }

    #[test]
    fn probes_are_in_the_table_too() {
        let table = "routes! {\n    SERVER_LIVE = Get Store \"/livez\" \"server.livez\";\n    SERVER_ROOT = Get Store \"/\" \"r\";\n}\n";
        let of = |line: &str| {
            let files = [(TABLE, table), ("crates/server/src/x.rs", line)];
            check(&TemporaryTree::with(&files).tree()).unwrap().len()
        };
        assert_eq!(of("let path = \"/livez\";\n"), 1);
        assert_eq!(of("let path = \"/\"; let other = \"/livezz\";\n// \"/livez\"\n"), 0);
    }
}
