//! Routes: a path of the HTTP API is spelled once.
//!
//! Touches: the Rust files of the crates and the examples. Keeps: paths below `/v1/` are in the table of the wire; a
//! crate that still spells some has a number here that only falls. Never: examines tests, comments and documentation,
//! which show what a user types.

use super::Complaint;
use crate::repository::Tree;

/// Where routes are spelled.
const TABLE: &str = "crates/wire/src/routes.rs";

/// The prefix of paths.
const PREFIX: &str = "/v1/";

/// Crates that spell paths beside the table, and how many.
const STILL: &[(&str, usize)] = &[("crates/cli/", 41)];

const HERE: &str = "xtask/src/tidy/routes.rs";

/// Counts the paths spelled outside of the table.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let mut complaints = Vec::new();
    let mut still: Vec<usize> = vec![0; STILL.len()];
    for path in tree.files_with("rs") {
        let shipped = path.starts_with("crates/") && path.contains("/src/") && path != TABLE;
        if !shipped || path.ends_with("/tests.rs") || path.contains("/tests/") {
            continue;
        }
        for (index, line) in tree.text(path)?.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).enumerate() {
            if !spells_a_path(line) {
                continue;
            }
            match STILL.iter().position(|(crate_path, _)| path.starts_with(crate_path)) {
                Some(place) => still[place] += 1,
                None => complaints.push(Complaint::error(
                    path,
                    index + 1,
                    format!("a path below `{PREFIX}` is spelled outside of the table"),
                    format!("use the route of {TABLE}"),
                )),
            }
        }
    }
    for ((crate_path, max), found) in STILL.iter().zip(still).filter(|((_, max), found)| found > max) {
        complaints.push(Complaint::error(
            HERE,
            1,
            format!("{crate_path} spells {found} paths of the API, {max} were there"),
            format!("use the routes of {TABLE}; the number only falls"),
        ));
    }
    Ok(complaints)
}

/// Whether a line of code, not of comments, holds a path in a text.
fn spells_a_path(line: &str) -> bool {
    let code = line.trim_start();
    !code.starts_with("//") && code.contains('"') && code.contains(PREFIX)
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
    fn what_still_spells_its_own_may_not_grow() {
        let (crate_path, max) = STILL[0];
        let path = format!("{crate_path}src/main.rs");
        let line = "const CELLS: &str = \"/v1/cells\";\n";
        assert_eq!(complaints(&path, &line.repeat(max)), 0);
        assert_eq!(complaints(&path, &line.repeat(max + 1)), 1);
    }
}
