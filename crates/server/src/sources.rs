//! The sources of our own crates, for tests that compare them with a table.

use std::path::Path;

/// The shipped part of every Rust file below a folder: without its tests.
pub(crate) fn shipped(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(shipped(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_stem() != Some("tests".as_ref())
        {
            let text = std::fs::read_to_string(&path).expect("text");
            found.push(text.split("#[cfg(test)]").next().unwrap_or_default().to_owned());
        }
    }
    found
}
