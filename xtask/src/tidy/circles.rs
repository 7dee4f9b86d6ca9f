//! Circles: files of a crate that import each other, around a corner or directly. A reader of one must read all of them.
//!
//! Touches: the Rust files of the crates, as text. Keeps: no circle is larger than [`FILES_MAX`] files. Never: examines tests,
//! which may reach into what they test, or follows what is named through a re-export.

use std::collections::{BTreeMap, BTreeSet};

use super::{Complaint, is_test, shipped_part};
use crate::repository::Tree;

/// A reader can hold so many files in mind.
pub(super) const FILES_MAX: usize = 8;

/// Finds the circles of each crate that are too large.
pub(super) fn check(tree: &Tree) -> Result<Vec<Complaint>, String> {
    let mut complaints = Vec::new();
    for modules in crates(tree)?.values() {
        for circle in circles(modules).into_iter().filter(|circle| circle.len() > FILES_MAX) {
            let files: Vec<&str> = circle.iter().map(|module| modules[*module].path.as_str()).collect();
            let wrong = format!("a circle of {} files: {}", files.len(), files.join(", "));
            let remedy = format!("move what they share to a file below them; {FILES_MAX} is the most");
            complaints.push(Complaint::new(files[0], 1, wrong, remedy));
        }
    }
    Ok(complaints)
}

/// The files of the largest circle.
pub(super) fn largest(tree: &Tree) -> Result<usize, String> {
    Ok(crates(tree)?.values().flat_map(circles).map(|circle| circle.len()).max().unwrap_or(1))
}

/// The modules of each crate.
fn crates(tree: &Tree) -> Result<BTreeMap<String, BTreeMap<String, Module>>, String> {
    let mut crates: BTreeMap<String, BTreeMap<String, Module>> = BTreeMap::new();
    for path in tree.files_with("rs") {
        if let Some((name, module)) = module_of(path) {
            let text = tree.text(path)?;
            let found = Module { path: path.to_owned(), imports: imports(shipped_part(&text), &module) };
            crates.entry(name.to_owned()).or_default().insert(module, found);
        }
    }
    Ok(crates)
}

/// A file, and the paths that it names in its crate.
struct Module {
    path: String,
    imports: BTreeSet<String>,
}

/// The crate and the module of a file: `crates/kernel/src/runs/row.rs` is `runs::row` of `kernel`.
fn module_of(path: &str) -> Option<(&str, String)> {
    let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let module = file.strip_suffix(".rs").filter(|_| !is_test(path))?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    let module = if module == "lib" || module == "main" { "" } else { module };
    Some((name, module.replace('/', "::")))
}

/// The paths of the crate that a text names, from its root.
fn imports(text: &str, module: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |code, line| code + line.split(" //").next().unwrap_or_default() + "\n");
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut found = BTreeSet::new();
    for (word, from) in [("crate::", ""), ("super::", parent), ("self::", module)] {
        for (at, _) in code.match_indices(word) {
            let before = code[..at].chars().next_back();
            if before.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_' && letter != ':') {
                expand(from, &code[at + word.len()..], &mut found);
            }
        }
    }
    found
}

/// Adds the paths that a text begins with: `a::{b, c::d}` names `a::b` and `a::c::d`.
fn expand(from: &str, text: &str, found: &mut BTreeSet<String>) {
    let join = |path: &str| if from.is_empty() { path.to_owned() } else { format!("{from}::{path}") };
    if let Some(rest) = text.strip_prefix("super::") {
        return expand(from.rsplit_once("::").map_or("", |(parent, _)| parent), rest, found);
    }
    let word: String = text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    let rest = &text[word.len()..];
    match (word.is_empty(), rest.strip_prefix("::")) {
        (false, Some(rest)) => expand(&join(&word), rest, found),
        (false, None) => {
            found.insert(join(&word));
        }
        (true, _) if text.starts_with('{') => {
            for part in parts(&text[1..]) {
                expand(from, part.trim(), found);
            }
        }
        (true, _) => {
            found.insert(from.to_owned());
        }
    }
}

/// The parts of a list up to its closing brace, separated by commas outside of inner braces.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&text[begin..at]);
                return found;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// The module that a path is in: the longest beginning of it that is one.
fn resolve<'modules>(modules: &'modules BTreeMap<String, Module>, path: &str) -> Option<&'modules str> {
    let mut path = path;
    loop {
        if let Some((module, _)) = modules.get_key_value(path) {
            return Some(module);
        }
        path = path.rsplit_once("::")?.0;
    }
}

/// The sets of modules in which each reaches each other, largest first.
fn circles(modules: &BTreeMap<String, Module>) -> Vec<BTreeSet<&str>> {
    let edges: BTreeMap<&str, BTreeSet<&str>> = modules
        .iter()
        .map(|(name, module)| {
            let named = module.imports.iter().filter_map(|path| resolve(modules, path));
            (name.as_str(), named.filter(|other| *other != name).collect())
        })
        .collect();
    let reached = |from: &'_ str| {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut next: Vec<&str> = edges[from].iter().copied().collect();
        while let Some(module) = next.pop() {
            if seen.insert(module) {
                next.extend(&edges[module]);
            }
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|module| (*module, reached(module))).collect();
    let mut circles = BTreeSet::new();
    for (module, others) in &reach {
        let circle: BTreeSet<&str> = others.iter().copied().filter(|other| reach[other].contains(module)).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    let mut circles: Vec<_> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

#[cfg(test)]
mod tests {
    use super::super::temporary::TemporaryTree;
    use super::*;

    #[test]
    fn paths_are_found_wherever_they_are_named() {
        let text = "use crate::a::{self, b::C, d::{E, F}};\nuse super::g;\n// use crate::not::one;\n\
                    fn f() -> crate::h::I { super::super::j::k(); mycrate::no() }\n";
        let found: Vec<String> = imports(text, "x::y::z").into_iter().collect();
        assert_eq!(found, ["a::b::C", "a::d::E", "a::d::F", "a::self", "h::I", "x::j::k", "x::y::g"]);
    }

    /// A crate of so many files, each of which names the next, and the last the first.
    fn ring(count: usize) -> TemporaryTree {
        let tree = TemporaryTree::new();
        for file in 0..count {
            let next = (file + 1) % count;
            tree.write(&format!("crates/some/src/m{file}.rs"), &format!("use crate::m{next}::T;\n"));
        }
        tree.write("crates/some/src/lib.rs", "mod m0;\nuse crate::m0::T;\n");
        tree
    }

    #[test]
    fn a_circle_of_eight_files_is_the_largest() {
        assert_eq!(check(&ring(8).tree()).unwrap().len(), 0);
        let complaints = check(&ring(9).tree()).unwrap();
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].wrong.starts_with("a circle of 9 files: crates/some/src/m0.rs, "));
        let open = ring(9);
        open.write("crates/some/src/m8.rs", "#[cfg(test)]\nmod tests {\n    use crate::m0::T;\n}\n");
        assert_eq!(check(&open.tree()).unwrap().len(), 0, "a test may");
    }
}
