//! The repository as a list of files with paths relative to its root.
//!
//! Touches: the file system, reading only. Keeps: paths use `/` and are sorted, so complaints come
//! in the same order on every machine. Never: follows a symbolic link, or enters `.git` or `target`.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories that hold no source: version control and build output.
const SKIPPED_DIRECTORIES: &[&str] = &[".git", "target"];

/// Finds the root from the current directory, so that tasks work from any directory inside.
///
/// Not taken from a compile-time variable: two checkouts may share one target directory, and the
/// binary of one would then check the tree of the other.
pub(crate) fn root() -> Result<PathBuf, String> {
    let current = std::env::current_dir().map_err(|error| format!("current directory: {error}"))?;
    current
        .ancestors()
        .find(|directory| directory.join("xtask/Cargo.toml").is_file())
        .map(Path::to_path_buf)
        .ok_or_else(|| format!("{} is not inside the repository", current.display()))
}

/// All files below a root.
pub(crate) struct Tree {
    root: PathBuf,
    files: Vec<String>,
}

impl Tree {
    /// Lists the files below `root`.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut files = Vec::new();
        collect(root, "", &mut files)?;
        files.sort();
        Ok(Self { root: root.to_path_buf(), files })
    }

    /// Every file, relative to the root, sorted.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// Every file whose name ends in `.EXTENSION`.
    pub(crate) fn files_with(&self, extension: &str) -> impl Iterator<Item = &str> {
        self.files().filter(move |file| Path::new(file).extension().is_some_and(|e| e == extension))
    }

    /// Whether a file or a directory is at this path. `..` is allowed.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.root.join(path)).map_err(|error| format!("read {path}: {error}"))
    }

    /// The file's text; bytes that are not UTF-8 are replaced, because no rule examines them.
    pub(crate) fn text(&self, path: &str) -> Result<String, String> {
        Ok(String::from_utf8_lossy(&self.bytes(path)?).into_owned())
    }
}

fn collect(root: &Path, below: &str, files: &mut Vec<String>) -> Result<(), String> {
    let directory = root.join(below);
    let failed = |error: std::io::Error| format!("list {}: {error}", directory.display());
    for entry in fs::read_dir(&directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() && !SKIPPED_DIRECTORIES.contains(&name.as_str()) {
            collect(root, &path, files)?;
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(())
}
