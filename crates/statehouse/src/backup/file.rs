//! A file that gets its name when it is whole and durable: until then it is called `NAME.….partial`, with a number in it that nobody can
//! guess, so that nobody can put a link there.
//!
//! Keeps: a file with the name that was asked for is complete, also after power loss, and only its owner can read it. Never: replaces a file,
//! or follows a link.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::owner_only;

/// A file that is being written.
pub struct WholeFile {
    path: PathBuf,
    partial: PathBuf,
    out: Option<BufWriter<File>>,
}

const BUFFER_BYTES: usize = 1 << 20;

impl WholeFile {
    /// Begins a file. Whatever is there already, a link too, is refused.
    pub fn begin(path: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(found) => {
                let what = if found.is_symlink() { "is a link" } else { "exists already" };
                let message = format!("{} {what}; choose another name, or move it away", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
            }
        }
        let partial = owner_only::fresh_name(path, "partial");
        let out = BufWriter::with_capacity(BUFFER_BYTES, owner_only::create_new(&partial)?);
        Ok(Self { path: path.to_owned(), partial, out: Some(out) })
    }

    /// Makes durable what was written so far, and says under which name it can be read until the file has its own.
    pub fn sync(&mut self) -> io::Result<&Path> {
        let out = self.out.as_mut().expect("a file that is not finished");
        out.flush()?;
        out.get_ref().sync_all()?;
        Ok(&self.partial)
    }

    /// Makes it durable and gives it its name.
    pub fn finish(mut self) -> io::Result<()> {
        self.sync()?;
        owner_only::rename_new(&self.partial, &self.path)?;
        self.out = None;
        owner_only::sync_folder_of(&self.path)
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().expect("a file that is not finished").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().expect("a file that is not finished").flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if self.out.take().is_some() {
            // It was given up half-way. What is left of it is of no use, and its name says so if this fails too.
            let _ = fs::remove_file(&self.partial);
        }
    }
}
