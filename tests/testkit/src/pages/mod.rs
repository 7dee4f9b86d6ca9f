//! Pages of documentation, run as a reader would: every shell block, in order, in a clean folder.
//!
//! - [`blocks`]: the parts of a page to run, and their expected output.
//! - [`expected`]: compares an output with the page.
//! - [`reader`]: runs a page in a shell, with the command `statehouse` and its own port.
//!
//! Two kinds of fenced blocks are run. Every command of `sh` must succeed, and an answer of 400 or above is a failure
//! of `curl`. In `console`, lines that start with `$ ` are commands and the lines after them are their output, where
//! `…` matches anything; refusals are shown there, by their output. `<!-- not run: REASON -->` before a block skips it.

pub mod blocks;
pub mod expected;
pub mod reader;

use std::path::{Path, PathBuf};

/// The repository that the current directory is in.
///
/// # Panics
/// If it is in none.
pub fn repository() -> PathBuf {
    let current = std::env::current_dir().expect("a current directory");
    let root = current.ancestors().find(|directory| directory.join("xtask/Cargo.toml").is_file());
    root.expect("it is run inside the repository").to_path_buf()
}

/// The pages for users: `README.md` and everything below `docs`, relative to the repository, sorted.
pub fn of_users(repository: &Path) -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    let mut directories = vec!["docs".to_owned()];
    while let Some(directory) = directories.pop() {
        let listed = std::fs::read_dir(repository.join(&directory)).expect("a directory of the repository");
        for entry in listed.map(|entry| entry.expect("an entry")) {
            let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
            match entry.file_type().expect("a type").is_dir() {
                true => directories.push(path),
                false if path.ends_with(".md") => pages.push(path),
                false => {}
            }
        }
    }
    pages.sort();
    pages
}
