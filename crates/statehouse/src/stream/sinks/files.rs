//! A folder with a file for each batch, named by its id.
//!
//! Touches: its folder. Keeps: a file with the name of an id is whole and durable: it is written under another name, synced, renamed,
//! and the folder is synced. Never: changes a file that is there; another batch under its id is an error.

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::Sink;

/// What the names of unfinished files begin and end with: no id is like that.
const PARTIAL: (&str, &str) = (".", ".partial");
/// The longest id: with what is added, a name has at most 255 bytes.
const ID_BYTES_MAX: usize = 200;

/// A folder with a file for each batch, named by its id: a replay writes the same file.
///
/// Whoever took over and whoever was replaced may write the same batch at the same time. One folder is for batches of one kind: ids
/// are unique in it.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let folder = directory.path().join("out");
/// use statehouse::stream::sinks::{FileSink, Sink};
/// let mut sink = FileSink::open(&folder)?;
/// sink.write("minute-7", b"hello 3\n")?;
/// sink.write("minute-7", b"hello 3\n")?; // a replay
/// assert_eq!(sink.ids()?, ["minute-7"]);
/// assert_eq!(std::fs::read(folder.join("minute-7"))?, b"hello 3\n");
/// assert!(sink.write("minute-7", b"hello 4\n").is_err()); // it was not the same batch
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileSink {
    folder: PathBuf,
}

impl FileSink {
    /// The sink in a folder, which is created if it does not exist. Removes what a killed process left of files that were
    /// finished by another.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            sync_folder(parent)?;
        }
        let sink = Self { folder };
        for name in sink.names()? {
            if id_of_partial(&name).is_some_and(|id| sink.folder.join(id).exists()) {
                remove_if_there(&sink.folder.join(name))?;
            }
        }
        Ok(sink)
    }

    /// The ids of the batches that were written, sorted.
    pub fn ids(&self) -> Result<Vec<String>, Error> {
        let mut ids: Vec<_> = self.names()?.into_iter().filter(|name| check_id(name).is_ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Names of files that are text.
    fn names(&self) -> Result<Vec<String>, Error> {
        let names = fs::read_dir(&self.folder)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }
}

impl Sink for FileSink {
    type Error = Error;

    fn write(&mut self, id: &str, batch: &[u8]) -> Result<(), Error> {
        check_id(id)?;
        let path = self.folder.join(id);
        if !is_there(&path, batch)? {
            // Each process has a name of its own: another one may be writing the same batch.
            let (begin, end) = PARTIAL;
            let partial = self.folder.join(format!("{begin}{id}.{}{end}", std::process::id()));
            let mut file = File::create(&partial)?;
            file.write_all(batch)?;
            file.sync_all()?;
            match fs::rename(&partial, &path) {
                // Somebody who found the file finished has removed this one.
                Err(error) if error.kind() == ErrorKind::NotFound && is_there(&path, batch)? => {}
                other => other?,
            }
        }
        // For a file that is there, too: whoever renamed it may have been killed before this.
        sync_folder(&self.folder)
    }
}

/// Whether the file of a batch is there. Another one under its name is an error.
fn is_there(path: &Path, batch: &[u8]) -> Result<bool, Error> {
    match fs::read(path) {
        Ok(found) if found == batch => Ok(true),
        Ok(_) => {
            let path = path.display();
            Err(Error::new(ErrorKind::AlreadyExists, format!("{path} holds another batch: its id was used twice")))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn check_id(id: &str) -> Result<(), Error> {
    let is_name = !id.starts_with('.') && !id.contains(['/', '\\', '\0']) && (1..=ID_BYTES_MAX).contains(&id.len());
    if is_name {
        return Ok(());
    }
    let rule = "an id is the name of a file: 1 to 200 bytes, no slash, no dot in front";
    Err(Error::new(ErrorKind::InvalidInput, format!("{id:?} is not allowed: {rule}")))
}

/// The id in the name of an unfinished file.
fn id_of_partial(name: &str) -> Option<&str> {
    let (id, _process) = name.strip_prefix(PARTIAL.0)?.strip_suffix(PARTIAL.1)?.rsplit_once('.')?;
    Some(id)
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_no_batch() {
        let directory = tempfile::tempdir().expect("a directory");
        let left = |name: &str| fs::write(directory.path().join(name), b"hal").expect("a file");
        left(".a.17.partial");
        left(".b.c.17.partial");
        let mut sink = FileSink::open(directory.path()).expect("a sink");
        assert!(sink.ids().expect("ids").is_empty());
        sink.write("a", b"half").expect("written");
        assert_eq!(sink.ids().expect("ids"), ["a"]);
        let sink = FileSink::open(directory.path()).expect("a sink");
        let mut names = sink.names().expect("names");
        names.sort_unstable();
        assert_eq!(names, [".b.c.17.partial", "a"], "the other one may still be written");
    }

    #[test]
    fn an_id_that_is_no_name_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut sink = FileSink::open(directory.path().join("out")).expect("a sink");
        for id in ["", ".", "..", ".hidden", "a/b", "../a", "a\0", &"x".repeat(201)] {
            assert_eq!(sink.write(id, b"").expect_err(id).kind(), ErrorKind::InvalidInput);
        }
        sink.write(&"x".repeat(200), b"").expect("the longest");
    }
}
