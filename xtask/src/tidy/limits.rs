//! Limits: each has a name, a place in the manual, and a test.
//!
//! Touches: the Rust files of the crates, and `docs/limits.md`. Keeps: the page names exactly the limits that there are, and
//! whatever is refused by the name of its limit is refused in a test.

use std::collections::{BTreeMap, BTreeSet};

use super::{Complaint, is_test, shipped_part};
use crate::repository::Tree;

/// The manual's page.
const PAGE: &str = "docs/limits.md";

/// Where limits are declared: constants, and members of structs, in the `limits.rs` of these crates and of the contracts' folders in
/// them.
const DECLARED: [&str; 2] = ["crates/contract/src/", "crates/server/src/"];

/// The name of such a file.
const DECLARING: &str = "limits.rs";

/// In front of the name of a limit, where something is refused because of it.
const REFUSING: [&str; 3] = ["check_limit(", "too_large(", "limit: \""];

/// Finds limits without a row or a test, and rows without a limit.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let mut complaints = Vec::new();
    if !tree.exists(PAGE) {
        return Ok(complaints);
    }
    let page = tree.text(PAGE)?;
    let rows = rows_of(&page);
    let mut known: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let mut refused: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let mut tests = String::new();
    for path in tree.files_with("rs").filter(|path| path.starts_with("crates/")) {
        let text = tree.text(path)?;
        let (shipped, tested) = match is_test(path) {
            true => ("", text.as_str()),
            false => text.split_at(shipped_part(&text).len()),
        };
        tests.push_str(tested);
        if declares_limits(path) {
            known.extend(declared(shipped).into_iter().map(|(name, line)| (name, (path.to_owned(), line))));
        }
        refused.extend(refused_in(shipped).into_iter().map(|(name, line)| (name, (path.to_owned(), line))));
    }
    for (name, (path, line)) in known.iter().chain(&refused) {
        if !rows.contains_key(name.as_str()) {
            let remedy = format!("add a row to {PAGE}");
            complaints.push(Complaint::new(path, *line, format!("the limit {name} is not in the manual"), remedy));
        }
    }
    for (name, (path, line)) in &refused {
        // As a test spells it: the name in quotes, or what the refusal says.
        let is_tested = tests.contains(&format!("\"{name}\"")) || tests.contains(&format!("exceeds {name} ="));
        if !is_tested {
            let wrong = format!("nothing is refused by the name {name} in any test");
            let remedy = "try the limit, and one more".to_owned();
            complaints.push(Complaint::new(path, *line, wrong, remedy));
        }
    }
    for (name, line) in rows {
        if !known.contains_key(name) && !refused.contains_key(name) {
            let remedy = "remove the row, or spell it as the code does".to_owned();
            complaints.push(Complaint::new(PAGE, line, format!("there is no limit {name}"), remedy));
        }
    }
    Ok(complaints)
}

/// Whether limits are declared in a file.
fn declares_limits(path: &str) -> bool {
    DECLARED.iter().any(|of| path.starts_with(of)) && path.rsplit('/').next() == Some(DECLARING)
}

/// The names in the first column of the page's tables, with their lines.
fn rows_of(page: &str) -> BTreeMap<&str, usize> {
    let mut rows = BTreeMap::new();
    for (line, text) in page.lines().enumerate().filter(|(_, text)| text.starts_with("| `")) {
        let first = text.trim_start_matches("| ").split(" | ").next().unwrap_or_default();
        rows.extend(first.split('`').skip(1).step_by(2).map(|name| (name, line + 1)));
    }
    rows
}

/// The limits that a file declares: `pub const NAME_BYTES_MAX`, or `pub sessions_max: u32` in a struct.
fn declared(text: &str) -> BTreeSet<(String, usize)> {
    let names = text.lines().enumerate().filter_map(|(line, text)| {
        let constant = text.strip_prefix("pub const ").and_then(|rest| rest.split(':').next()).map(str::to_lowercase);
        let member = text.strip_prefix("    pub ").filter(|rest| !rest.contains('(') && rest.ends_with(','));
        let member = member.and_then(|rest| rest.split(':').next()).map(str::to_owned);
        constant.or(member).map(|name| (name, line + 1))
    });
    names.collect()
}

/// The names of the limits by which a file refuses something.
fn refused_in(text: &str) -> BTreeSet<(String, usize)> {
    let mut names = BTreeSet::new();
    for marker in REFUSING {
        for (at, _) in text.match_indices(marker) {
            let quote = at + marker.trim_end_matches('"').len();
            // The name is the first argument, perhaps on the next line.
            let Some(rest) = text[quote..].trim_start().strip_prefix('"') else { continue };
            let name = rest.split('"').next().unwrap_or_default();
            if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
                names.insert((name.to_owned(), text[..at].lines().count().max(1)));
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    const CODE: &str =
        "/// Bytes.\npub const NAME_BYTES_MAX: usize = 7;\npub struct Limits {\n    pub jobs_max: u32,\n}\n";
    const USE: &str =
        "fn f() {\n    check_limit(\n        \"steps_max\", 1, 2)?;\n    too_large(\"name_bytes_max\", 1, 2)\n}\n";
    const TEST: &str = "assert_eq!(limit, \"name_bytes_max\"); // 9 exceeds steps_max = 8\n";
    const ROWS: &str = "| `name_bytes_max` | names | 7 |\n| `jobs_max`, `steps_max` | jobs | 1 |\n";

    fn complaints(code: &str, used: &str, test: &str, page: &str) -> Vec<String> {
        let files = [
            ("crates/contract/src/jobs/limits.rs", code),
            ("crates/kernel/src/x.rs", used),
            ("crates/kernel/tests/x.rs", test),
            (PAGE, page),
        ];
        let tree = TemporaryTree::with(&files);
        check(&tree.tree()).unwrap().into_iter().map(|complaint| complaint.wrong).collect()
    }

    #[test]
    fn a_limit_has_a_row_and_a_test() {
        assert_eq!(complaints(CODE, USE, TEST, ROWS), [""; 0]);
        let without_row = complaints(CODE, USE, TEST, "| `name_bytes_max` | names | 7 |\n");
        assert_eq!(
            without_row,
            ["the limit jobs_max is not in the manual", "the limit steps_max is not in the manual"]
        );
        let without_test = complaints(CODE, USE, "// 9 exceeds steps_max = 8\n", ROWS);
        assert_eq!(without_test, ["nothing is refused by the name name_bytes_max in any test"]);
        let without_limit = complaints(CODE, USE, TEST, &format!("{ROWS}| `rooms_max` | rooms | 1 |\n"));
        assert_eq!(without_limit, ["there is no limit rooms_max"]);
    }
}
