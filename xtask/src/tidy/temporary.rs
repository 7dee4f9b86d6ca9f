//! A small source tree in a temporary directory, for the tests of the rules.
//!
//! Touches: the system's temporary directory. Keeps: a directory per value, removed when it is
//! dropped. Never: is compiled outside of tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::repository::Tree;

static COUNT: AtomicU64 = AtomicU64::new(0);

pub(super) struct TemporaryTree {
    root: PathBuf,
}

impl TemporaryTree {
    pub(super) fn new() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("statehouse-tidy-{}-{number}", std::process::id());
        let root = std::env::temp_dir().join(name);
        fs::create_dir_all(&root).unwrap();
        Self { root }
    }

    /// A tree with these files.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let tree = Self::new();
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn tree(&self) -> Tree {
        Tree::read(&self.root).unwrap()
    }
}

impl Drop for TemporaryTree {
    fn drop(&mut self) {
        // A directory left behind harms no test, so a failure is not worth a panic.
        let _ = fs::remove_dir_all(&self.root);
    }
}
