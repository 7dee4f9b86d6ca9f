//! A folder with a file for each batch, named by its id.
//!
//! Touches: its folder. Keeps: a file with the name of an id is whole and durable: it is written under a name of its own, synced, and
//! linked to that name, which fails if the name exists; then the folder is synced. Never: changes a file that is there; another batch
//! under its id is an error.
//!
//! `partial`: a file that is being written, and what a killed process leaves of it.

mod partial;

use std::fs::{self, File};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::Sink;
use partial::Partial;

/// The longest id: with what is added, the name of a partial file has at most 255 bytes.
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
    /// The sink in a folder, which is created if it does not exist. Removes what killed processes were writing.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, Error> {
        // It stays the same one if the process changes to another directory.
        let folder = std::path::absolute(folder.into())?;
        create_durably(&folder)?;
        partial::remove_left_behind(&folder)?;
        Ok(Self { folder })
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
            let mut partial = Partial::create(&self.folder, id)?;
            partial.file().write_all(batch)?;
            partial.file().sync_all()?;
            match partial.link(&path) {
                // Another one wrote it meanwhile; whether it was the same batch decides.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && is_there(&path, batch)? => {}
                other => other?,
            }
        }
        // For a file that is there, too: whoever linked it may have been killed before this.
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

/// Creates a folder and those above it, durably: each new name is on disk before a batch is answered.
fn create_durably(folder: &Path) -> Result<(), Error> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(folder)?;
    // The folder itself may have been created just now by another, who has not synced its name yet.
    let named = if missing.is_empty() { vec![folder] } else { missing };
    named.into_iter().filter_map(Path::parent).try_for_each(sync_folder)
}

fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sink: &FileSink) -> Vec<String> {
        let mut names = sink.names().expect("names");
        names.sort_unstable();
        names
    }

    #[test]
    fn what_a_killed_process_left_is_no_batch_and_goes() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut sink = FileSink::open(directory.path()).expect("a sink");
        let mut writing = Partial::create(directory.path(), "a").expect("a file");
        writing.file().write_all(b"hal").expect("written");
        for left in [".a.17.partial", ".b.c.0123.partial"] {
            fs::write(directory.path().join(left), b"hal").expect("a file");
        }
        assert!(sink.ids().expect("ids").is_empty());
        sink.write("a", b"half").expect("written");
        let sink = FileSink::open(directory.path()).expect("a sink");
        assert_eq!(names(&sink).len(), 2, "a, and what is being written: {:?}", names(&sink));
        assert_eq!(sink.ids().expect("ids"), ["a"]);
        drop(writing);
        assert_eq!(names(&sink), ["a"]);
    }

    #[test]
    fn writers_of_one_batch_have_a_file_each_and_none_replaces_what_is_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut first = Partial::create(directory.path(), "a").expect("a file");
        first.file().write_all(b"whole").expect("written");
        // The next owner starts to write the same batch, in a process whose number may be the same.
        let second = Partial::create(directory.path(), "a").expect("another file");
        let path = directory.path().join("a");
        first.link(&path).expect("linked");
        assert_eq!(fs::read(&path).expect("a file"), b"whole");
        assert_eq!(second.link(&path).expect_err("it is there").kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).expect("a file"), b"whole");
    }

    #[test]
    fn threads_that_write_the_same_ids_agree_on_one_batch_each() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |thread: usize| {
            let mut sink = FileSink::open(directory.path()).expect("a sink");
            let batch = |id: usize| vec![u8::try_from(thread).expect("few"); 10_000 + id];
            (0..20).filter(|id| sink.write(&id.to_string(), &batch(*id)).is_ok()).collect::<Vec<_>>()
        };
        let written: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || write(thread))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        for id in 0..20 {
            let found = fs::read(directory.path().join(id.to_string())).expect("a file");
            let by: Vec<_> = (0..4).filter(|thread| written[*thread].contains(&id)).collect();
            assert_eq!(by.len(), 1, "{id}: one batch was answered, all others were refused");
            assert_eq!(found, vec![u8::try_from(by[0]).expect("few"); 10_000 + id], "{id}");
        }
    }

    #[test]
    fn a_folder_below_others_that_do_not_exist_is_created() {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("a/b/c");
        let mut sink = FileSink::open(&folder).expect("a sink");
        sink.write("x", b"1").expect("written");
        assert_eq!(fs::read(folder.join("x")).expect("a file"), b"1");
        let here = std::env::current_dir().expect("a directory");
        let below = tempfile::tempdir_in(&here).expect("a directory");
        let relative = below.path().strip_prefix(&here).expect("it is below").join("a/b");
        let sink = FileSink::open(&relative).expect("a sink in a relative folder");
        assert_eq!(sink.folder, here.join(relative));
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
