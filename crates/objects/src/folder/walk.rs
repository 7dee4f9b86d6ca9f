//! The files below a folder.
//!
//! Touches: folders, reading only. Keeps: what is deleted meanwhile is left out. Never: follows a symbolic link.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use super::is_missing;
use crate::names;

/// Calls `found` with the name and size of each file below `folder`, until it returns false; false if it did. What no object can
/// be named like is left out.
pub(super) fn files(folder: &Path, prefix: &str, found: &mut dyn FnMut(String, u64) -> bool) -> io::Result<bool> {
    for (entry, name) in entries(folder, prefix)? {
        let Some(kind) = unless_missing(entry.file_type())? else { continue };
        if kind.is_dir() {
            if !files(&entry.path(), &name, found)? {
                return Ok(false);
            }
        } else if kind.is_file() {
            let Some(metadata) = unless_missing(entry.metadata())? else { continue };
            if !found(name, metadata.len()) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The folders in `folder` with a file somewhere below.
pub(super) fn folders(folder: &Path, prefix: &str) -> io::Result<Vec<String>> {
    let mut parts = Vec::new();
    for (entry, name) in entries(folder, prefix)? {
        let is_folder = unless_missing(entry.file_type())?.is_some_and(|kind| kind.is_dir());
        // A killed process may leave an empty one.
        if is_folder && !files(&entry.path(), &name, &mut |_, _| false)? {
            parts.extend(entry.file_name().into_string());
        }
    }
    Ok(parts)
}

/// What is in a folder, each with its name as an object.
fn entries(folder: &Path, prefix: &str) -> io::Result<Vec<(DirEntry, String)>> {
    let mut found = Vec::new();
    let Some(listed) = unless_missing(fs::read_dir(folder))? else { return Ok(found) };
    for entry in listed {
        let entry = entry?;
        let Ok(part) = entry.file_name().into_string() else { continue };
        let name = if prefix.is_empty() { part } else { format!("{prefix}/{part}") };
        if names::check(&name).is_ok() {
            found.push((entry, name));
        }
    }
    Ok(found)
}

fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
