//! A file that is being read.
//!
//! Touches: the file. Keeps: an error of the disk names the object and the folder. Never: reads ahead.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Take};
use std::sync::Arc;

use super::Files;

/// The bytes of a file, up to its size when it was opened.
pub(super) struct FileReader<R = Take<File>> {
    files: Arc<Files>,
    name: String,
    bytes: R,
}

impl<R: Read> FileReader<R> {
    pub(super) fn new(files: Arc<Files>, name: &str, bytes: R) -> Self {
        Self { files, name: name.to_owned(), bytes }
    }
}

impl<R: Read> Read for FileReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.bytes.read(into) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                Err(self.files.failed("read", &self.name, &error).into())
            }
            read => read,
        }
    }
}
