//! The calls: [`Objects`], and the objects that are being written ([`ObjectWriter`]) and read ([`ObjectReader`]).
//!
//! Touches: a folder or a bucket, through `backend`. Keeps: every name is checked before it is used. Never: blocks a runtime's
//! own tasks by itself; a caller in one uses a thread for blocking work.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use crate::backend::{Backend, Upload};
use crate::bucket::{Bucket, PART_BYTES};
use crate::error::ObjectsError;
use crate::folder::Folder;
use crate::target::Target;
use crate::{names, probe};

/// Named blobs in a local folder or in an S3 bucket. A clone is a handle on the same.
///
/// A name is relative, has parts of `A-Z a-z 0-9 . _ = -` with `/` between them, at most 700 bytes, and does not begin with the
/// part `.objects`, which is reserved. No object may be named like a folder of others: with `a/b`, `a` is refused by a local
/// folder and by some stores behind S3.
///
/// # A bucket
///
/// The usual environment variables are read: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
/// `AWS_ENDPOINT_URL`, and those of web identities, containers and instances; `~/.aws` is not read. An endpoint with `http://` must
/// be on the loopback, or `AWS_ALLOW_HTTP=true` be set. An upload that is cut off by the end of the process stays behind in the
/// bucket as an unfinished multipart upload, which nothing lists: give the bucket a lifecycle rule that removes them.
///
/// ```
/// # use statehouse_objects::Objects;
/// # let scratch = tempfile::tempdir()?;
/// # let folder = scratch.path().join("backups");
/// let objects = Objects::open(folder.to_str().unwrap())?;
/// objects.create("2026/first", b"bytes")?;
/// assert_eq!(objects.clone().size("2026/first")?, Some(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Objects {
    target: Arc<str>,
    backend: Arc<dyn Backend>,
}

impl Objects {
    /// Opens an absolute path or a `file://` URL, which is created for its owner only if it is missing, or
    /// `s3://bucket/prefix`, whose bucket must exist. Checks that the store refuses to replace an object; for that it keeps a small
    /// object of its own.
    ///
    /// ```
    /// # use statehouse_objects::Objects;
    /// # let scratch = tempfile::tempdir()?;
    /// let url = format!("file://{}/objects", scratch.path().display());
    /// let objects = Objects::open(&url)?;
    /// assert!(objects.target().ends_with("/objects"));
    /// assert!(Objects::open("gs://bucket/prefix").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(target: &str) -> Result<Self, ObjectsError> {
        let target = Target::parse(target)?;
        let shown = target.shown();
        let backend: Arc<dyn Backend> = match target {
            Target::Folder(path) => Arc::new(Folder::open(path, &shown)?),
            Target::Bucket { bucket, prefix } => Arc::new(Bucket::open(&bucket, &prefix, &shown)?),
        };
        Self::probed(backend, &shown)
    }

    /// A store that is checked first.
    pub(crate) fn probed(backend: Arc<dyn Backend>, target: &str) -> Result<Self, ObjectsError> {
        probe::run(&*backend, target)?;
        Ok(Self { target: target.into(), backend })
    }

    /// Where the objects are, for messages; without secrets.
    ///
    /// ```
    /// # use statehouse_objects::Objects;
    /// # let scratch = tempfile::tempdir()?;
    /// # let path = scratch.path().to_str().unwrap();
    /// assert_eq!(Objects::open(path)?.target(), path);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Writes an object: all of it, durable on return, or nothing. A name that exists is [`ObjectsError::Exists`].
    ///
    /// After [`ObjectsError::Unknown`] the object may exist, now or in a while; after any other error it does not.
    ///
    /// ```
    /// # use statehouse_objects::{Objects, ObjectsError};
    /// # let scratch = tempfile::tempdir()?;
    /// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
    /// objects.create("a", b"first")?;
    /// let refused = objects.create("a", b"second").unwrap_err();
    /// assert!(matches!(&refused, ObjectsError::Exists { name, .. } if name == "a"));
    /// assert_eq!(objects.read("a", 100)?, b"first");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectsError> {
        self.backend.create(self.checked(name)?, bytes)
    }

    /// An object that is written in pieces, of any size: see [`ObjectWriter`]. A name that exists is refused at once; one that
    /// appears meanwhile is refused by [`ObjectWriter::finish`].
    ///
    /// ```
    /// # use statehouse_objects::Objects;
    /// use std::io::Write;
    /// # let scratch = tempfile::tempdir()?;
    /// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
    /// let mut writer = objects.writer("large")?;
    /// writer.write_all(&[7; 100_000])?;
    /// assert_eq!(objects.size("large")?, None);
    /// writer.finish()?;
    /// assert_eq!(objects.size("large")?, Some(100_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn writer(&self, name: &str) -> Result<ObjectWriter, ObjectsError> {
        if self.size(name)?.is_some() {
            return Err(ObjectsError::Exists { name: name.to_owned(), target: self.target().to_owned() });
        }
        Ok(ObjectWriter { upload: self.backend.upload(name, PART_BYTES)?, bytes: 0 })
    }

    /// The bytes of an object, in pieces. A name without an object is [`ObjectsError::Missing`].
    ///
    /// ```
    /// # use statehouse_objects::{Objects, ObjectsError};
    /// use std::io::Read;
    /// # let scratch = tempfile::tempdir()?;
    /// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
    /// # objects.create("a", b"bytes")?;
    /// let mut reader = objects.reader("a")?;
    /// let mut piece = [0; 3];
    /// reader.read_exact(&mut piece)?;
    /// assert_eq!((&piece, reader.size()), (b"byt", 5));
    /// assert!(matches!(objects.reader("b"), Err(ObjectsError::Missing { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reader(&self, name: &str) -> Result<ObjectReader, ObjectsError> {
        let (bytes, size) = self.backend.reader(self.checked(name)?)?;
        Ok(ObjectReader { bytes, size })
    }

    /// All bytes of a small object. One with more than `max_bytes` is [`ObjectsError::TooLarge`].
    ///
    /// ```
    /// # use statehouse_objects::{Objects, ObjectsError};
    /// # let scratch = tempfile::tempdir()?;
    /// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
    /// objects.create("a", b"bytes")?;
    /// assert_eq!(objects.read("a", 5)?, b"bytes");
    /// assert!(matches!(objects.read("a", 4), Err(ObjectsError::TooLarge { bytes: 5, max: 4, .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(&self, name: &str, max_bytes: u64) -> Result<Vec<u8>, ObjectsError> {
        read_all(&*self.backend, self.checked(name)?, self.target(), max_bytes)
    }

    /// The size of an object; none if there is no object of this name.
    ///
    /// ```
    /// # use statehouse_objects::Objects;
    /// # let scratch = tempfile::tempdir()?;
    /// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
    /// assert_eq!(objects.size("a")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        self.backend.size(self.checked(name)?)
    }

    /// The objects whose names continue behind `prefix` and a `/`, or all if the prefix is empty: full names with sizes, sorted by
    /// name. For some tens of thousands at most: all are held in memory. Anything in the folder or bucket that no object can be
    /// named like is not listed.
    ///
    /// ```
    /// # use statehouse_objects::Objects;
    /// # let scratch = tempfile::tempdir()?;
    /// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
    /// objects.create("days/2/b", b"12")?;
    /// objects.create("days/1/a", b"1")?;
    /// assert_eq!(objects.list("days")?, [("days/1/a".to_owned(), 1), ("days/2/b".to_owned(), 2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, ObjectsError> {
        let mut listed = self.backend.list(self.checked_prefix(prefix)?)?;
        listed.retain(|(name, _)| names::check(name).is_ok());
        listed.sort();
        Ok(listed)
    }

    /// The next parts of the names behind `prefix` and a `/`, as far as further parts follow them; sorted. An empty prefix asks for
    /// the first parts. In a bucket each folder is one more request.
    ///
    /// ```
    /// # use statehouse_objects::Objects;
    /// # let scratch = tempfile::tempdir()?;
    /// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
    /// objects.create("days/2/b", b"")?;
    /// objects.create("days/1/a", b"")?;
    /// objects.create("days/about", b"")?;
    /// assert_eq!(objects.folders("days")?, ["1", "2"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn folders(&self, prefix: &str) -> Result<Vec<String>, ObjectsError> {
        let mut parts = self.backend.folders(self.checked_prefix(prefix)?)?;
        parts.retain(|part| match prefix {
            "" => names::check(part).is_ok(),
            _ => names::check_parts(part).is_ok(),
        });
        parts.sort();
        Ok(parts)
    }

    /// Removes an object. A name without an object is fine.
    ///
    /// ```
    /// # use statehouse_objects::Objects;
    /// # let scratch = tempfile::tempdir()?;
    /// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
    /// # objects.create("a", b"")?;
    /// objects.delete("a")?;
    /// objects.delete("a")?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        self.backend.delete(self.checked(name)?)
    }

    fn checked<'a>(&self, name: &'a str) -> Result<&'a str, ObjectsError> {
        let refused = |reason| ObjectsError::Name { name: name.to_owned(), target: self.target().to_owned(), reason };
        names::check(name).map(|()| name).map_err(refused)
    }

    fn checked_prefix<'a>(&self, prefix: &'a str) -> Result<&'a str, ObjectsError> {
        if prefix.is_empty() { Ok(prefix) } else { self.checked(prefix) }
    }
}

/// All bytes of an object that has at most `max_bytes`.
pub(crate) fn read_all(
    backend: &dyn Backend,
    name: &str,
    target: &str,
    max_bytes: u64,
) -> Result<Vec<u8>, ObjectsError> {
    let (reader, size) = backend.reader(name)?;
    if size > max_bytes {
        return Err(ObjectsError::TooLarge {
            name: name.to_owned(),
            target: target.to_owned(),
            bytes: size,
            max: max_bytes,
            next: "read it in pieces",
        });
    }
    let mut bytes = Vec::new();
    let read = reader.take(size).read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() as u64 == size => Ok(bytes),
        Ok(_) => Err(read_failed(name, target, format!("it ends after {} of {size} bytes", bytes.len()))),
        Err(error) => {
            Err(ObjectsError::from_io(&error).cloned().unwrap_or_else(|| read_failed(name, target, error.to_string())))
        }
    }
}

fn read_failed(name: &str, target: &str, reason: String) -> ObjectsError {
    ObjectsError::Failed {
        doing: "read",
        name: name.to_owned(),
        target: target.to_owned(),
        reason,
        next: "repair that and read it again",
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Objects").field("target", &self.target).finish_non_exhaustive()
    }
}

/// An object that is being written; nothing is listed under its name before [`ObjectWriter::finish`]. Dropped before that, it
/// leaves nothing. In a bucket it is sent in parts of 8 MiB, of 16 MiB after a thousand of them, and of 32 MiB after another thousand:
/// up to 64 MiB are in memory, and an object has at most 273 GiB.
///
/// ```
/// # use statehouse_objects::Objects;
/// use std::io::Write;
/// # let scratch = tempfile::tempdir()?;
/// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
/// let mut writer = objects.writer("a")?;
/// writer.write_all(b"half")?;
/// drop(writer);
/// assert_eq!(objects.list("")?, []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ObjectWriter {
    upload: Box<dyn Upload>,
    bytes: u64,
}

impl ObjectWriter {
    /// Makes the object appear under its name, whole and durable, and returns its size. A name that exists by now is
    /// [`ObjectsError::Exists`].
    ///
    /// ```
    /// # use statehouse_objects::{Objects, ObjectsError};
    /// # let scratch = tempfile::tempdir()?;
    /// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
    /// let (first, second) = (objects.writer("a")?, objects.writer("a")?);
    /// assert_eq!(first.finish()?, 0);
    /// assert!(matches!(second.finish(), Err(ObjectsError::Exists { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(self) -> Result<u64, ObjectsError> {
        self.upload.finish()?;
        Ok(self.bytes)
    }
}

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.upload.write(bytes)?;
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}

impl fmt::Debug for ObjectWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ObjectWriter").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The bytes of an object, in order. From a bucket it fetches 4 MiB at a time, and fails if the object is deleted meanwhile.
///
/// ```
/// # use statehouse_objects::Objects;
/// # let scratch = tempfile::tempdir()?;
/// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
/// objects.create("a", b"bytes")?;
/// let mut copy = Vec::new();
/// std::io::copy(&mut objects.reader("a")?, &mut copy)?;
/// assert_eq!(copy, b"bytes");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ObjectReader {
    bytes: Box<dyn Read + Send>,
    size: u64,
}

impl ObjectReader {
    /// The size of the whole object.
    ///
    /// ```
    /// # use statehouse_objects::Objects;
    /// # let scratch = tempfile::tempdir()?;
    /// # let objects = Objects::open(scratch.path().to_str().unwrap())?;
    /// # objects.create("a", b"bytes")?;
    /// assert_eq!(objects.reader("a")?.size(), 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Read for ObjectReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(into)
    }
}

impl fmt::Debug for ObjectReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ObjectReader").field("size", &self.size).finish_non_exhaustive()
    }
}
