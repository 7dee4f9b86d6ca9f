//! Objects as files below a folder.
//!
//! Touches: the folder. Keeps: a file has its name only when all of its bytes are on disk, and the name is on disk before the
//! write is acknowledged. Never: replaces a file, or follows a name out of the folder.
//!
//! A file is written in `.objects/staged`, synced, linked to its name, which fails if the name exists, and each folder down to it
//! is synced. `object_store`'s own folder does not refuse an existing name after an upload in parts, and never removes what a
//! killed process was writing.

mod reader;
mod staged;
mod walk;

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::backend::{Backend, Upload};
use crate::error::ObjectsError;
use crate::names::RESERVED;
use reader::FileReader;
use staged::Staged;

const STAGED: &str = "staged";

/// A folder of objects.
pub(crate) struct Folder {
    files: Arc<Files>,
}

/// What the folder and the objects that are being written share.
struct Files {
    root: PathBuf,
    target: String,
}

impl Folder {
    /// Opens or creates it, and removes what killed processes left behind.
    pub(crate) fn open(root: PathBuf, target: &str) -> Result<Self, ObjectsError> {
        let files = Files { root, target: target.to_owned() };
        let prepare = || {
            create_owned(&files.root)?;
            let staged = files.staged();
            create_owned(&staged)?;
            staged::remove_left_behind(&staged)
        };
        prepare().map_err(|error| files.failed("create", ".objects/staged", &error))?;
        Ok(Self { files: Arc::new(files) })
    }
}

impl Backend for Folder {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectsError> {
        let mut staged = Staged::new(Arc::clone(&self.files), name)?;
        io::Write::write_all(&mut staged, bytes).map_err(|error| self.files.failed("write", name, &error))?;
        staged.publish()
    }

    fn upload(&self, name: &str, _part_bytes: usize) -> Result<Box<dyn Upload>, ObjectsError> {
        Ok(Box::new(Staged::new(Arc::clone(&self.files), name)?))
    }

    fn reader(&self, name: &str) -> Result<(Box<dyn Read + Send>, u64), ObjectsError> {
        let open = || {
            let file = File::open(self.files.path(name))?;
            let metadata = file.metadata()?;
            // A folder can be opened too.
            if metadata.is_file() { Ok((file, metadata.len())) } else { Err(ErrorKind::NotFound.into()) }
        };
        match open() {
            Ok((file, size)) => Ok((Box::new(FileReader::new(Arc::clone(&self.files), name, file.take(size))), size)),
            Err(error) if is_missing(&error) => Err(self.files.missing(name)),
            Err(error) => Err(self.files.failed("read", name, &error)),
        }
    }

    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        match fs::metadata(self.files.path(name)) {
            Ok(metadata) => Ok(metadata.is_file().then_some(metadata.len())),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.files.failed("read the size of", name, &error)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, ObjectsError> {
        let mut listed = Vec::new();
        let walked = walk::files(&self.files.path(prefix), prefix, &mut |name, size| {
            listed.push((name, size));
            true
        });
        walked.map_err(|error| self.files.failed("list", prefix, &error))?;
        Ok(listed)
    }

    fn folders(&self, prefix: &str) -> Result<Vec<String>, ObjectsError> {
        walk::folders(&self.files.path(prefix), prefix).map_err(|error| self.files.failed("list", prefix, &error))
    }

    fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        let path = self.files.path(name);
        let delete = || {
            if fs::symlink_metadata(&path)?.is_dir() {
                return Ok(());
            }
            fs::remove_file(&path)?;
            // Else the object is back after a power failure.
            path.parent().map_or(Ok(()), sync_folder)?;
            self.files.remove_empty_folders(&path);
            Ok(())
        };
        match delete() {
            Err(error) if !is_missing(&error) => Err(self.files.failed("delete", name, &error)),
            _ => Ok(()),
        }
    }
}

impl Files {
    /// The file of a name; the folder itself for an empty one.
    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.root.clone() } else { self.root.join(name) }
    }

    /// Where files are written before they have their names: no name leads there.
    fn staged(&self) -> PathBuf {
        self.root.join(RESERVED).join(STAGED)
    }

    /// Makes the folders in front of a file.
    fn create_folders(&self, path: &Path) -> io::Result<()> {
        let Some(parent) = path.parent() else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => ErrorKind::NotADirectory.into(),
            _ => error,
        })
    }

    /// Puts every name on the way to a file on disk, also of folders that another thread made and did not sync yet.
    fn sync_folders(&self, path: &Path) -> io::Result<()> {
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.root)) {
            match sync_folder(folder) {
                // Somebody deleted the object and its folder meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                synced => synced?,
            }
        }
        Ok(())
    }

    /// A bucket has no empty folders.
    fn remove_empty_folders(&self, path: &Path) {
        for folder in path.ancestors().skip(1).take_while(|folder| *folder != self.root) {
            if fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }

    fn exists(&self, name: &str) -> ObjectsError {
        ObjectsError::Exists { name: name.to_owned(), target: self.target.clone() }
    }

    fn missing(&self, name: &str) -> ObjectsError {
        ObjectsError::Missing { name: name.to_owned(), target: self.target.clone() }
    }

    fn failed(&self, doing: &'static str, name: &str, error: &io::Error) -> ObjectsError {
        let next = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free space and try again",
            ErrorKind::PermissionDenied => "give this user the right to it and try again",
            ErrorKind::NotADirectory | ErrorKind::IsADirectory => "choose a name that is no folder of other objects",
            _ => "repair that and try again",
        };
        let name = if name.is_empty() { "/" } else { name };
        let (name, target, reason) = (name.to_owned(), self.target.clone(), error.to_string());
        ObjectsError::Failed { doing, name, target, reason, next }
    }
}

/// No object: nothing is there, or a part of the name is an object itself.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Creates a folder and those in front of it for their owner only, durably.
fn create_owned(folder: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for created in missing {
        created.parent().map_or(Ok(()), sync_folder)?;
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests;
