//! A file that gets its final name when it is complete and durable: until then it is named `NAME.….partial`, with an
//! unguessable number, so that nobody can place a link there.
//!
//! Keeps: a file with its final name is complete, even after a power failure, and only its owner can read it. Never:
//! replaces a file, or follows a link.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use node::directory::owner_only;

/// A file being written.
pub struct WholeFile {
    path: PathBuf,
    partial: PathBuf,
    out: Option<BufWriter<File>>,
}

const BUFFER_BYTES: usize = 1 << 20;

impl WholeFile {
    /// Starts a file. Anything that already exists, including a link, is refused.
    pub fn begin(path: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(found) => {
                let what = if found.is_symlink() { "is a link" } else { "already exists" };
                let message = format!("{} {what}; choose another name, or move it", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
            }
        }
        let partial = owner_only::fresh_name(path, "partial");
        let out = BufWriter::with_capacity(BUFFER_BYTES, owner_only::create_new(&partial)?);
        Ok(Self { path: path.to_owned(), partial, out: Some(out) })
    }

    /// Makes everything written so far durable, and returns the name to read it by until the file has its final one.
    pub fn sync(&mut self) -> io::Result<&Path> {
        let out = self.out.as_mut().expect("a file that is not finished");
        out.flush()?;
        out.get_ref().sync_all()?;
        Ok(&self.partial)
    }

    /// Makes it durable and gives it its final name.
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
            // It was abandoned half-way. The remains are useless, and their name says so if removing them fails too.
            let _ = fs::remove_file(&self.partial);
        }
    }
}
