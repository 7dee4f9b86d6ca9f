//! A file that gets its name when it is whole and durable: until then it is called `NAME.partial`.
//!
//! Keeps: a file with the name that was asked for is complete, also after power loss. Never: replaces a file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that is being written.
pub struct WholeFile {
    path: PathBuf,
    partial: PathBuf,
    out: Option<BufWriter<File>>,
}

const BUFFER_BYTES: usize = 1 << 20;

impl WholeFile {
    /// Begins a file. One that is there already is refused, one that was left unfinished is begun again.
    pub fn begin(path: &Path) -> io::Result<Self> {
        if path.try_exists()? {
            let message = format!("{} exists already; choose another name, or move it away", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let out = BufWriter::with_capacity(BUFFER_BYTES, File::create(&partial)?);
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
        self.out = None;
        fs::rename(&self.partial, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
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
