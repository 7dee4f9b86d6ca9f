//! The files of a journal with their bytes, to see that nothing has changed, or to change something.

use std::fs;
use std::path::{Path, PathBuf};

/// Every file with its bytes.
pub fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for place in [directory.to_owned(), directory.join("segments")] {
        for file in fs::read_dir(place).unwrap().map(|file| file.unwrap().path()) {
            if file.is_file() {
                let bytes = fs::read(&file).unwrap();
                found.push((file, bytes));
            }
        }
    }
    found.sort();
    found
}
