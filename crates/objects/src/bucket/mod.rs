//! Objects in an S3 bucket, on `object_store`.
//!
//! Touches: the network, and threads of its own. Keeps: every write is conditional on the name being free, and carries a number of
//! its own, so that a write whose answer was lost is recognised and not taken for somebody else's. Never: reads a folder.

mod connect;
mod driver;
mod reader;
mod upload;

use std::io::Read;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};

use crate::backend::{Backend, Upload};
use crate::error::ObjectsError;
use crate::names;
use driver::Driver;

/// The size of an object's first parts. S3 takes at least 5 MiB.
pub(crate) const PART_BYTES: usize = 8 << 20;
/// S3 takes so many parts of one object.
const PARTS_MAX: usize = 10_000;
/// After so many parts the next ones are twice as large, so that small objects need little memory and large ones fit.
const PARTS_OF_ONE_SIZE: usize = 1_000;
/// The largest parts are so many times as large as the first: 32 MiB, two of which are in memory.
const PART_GROWTH_MAX: usize = 4;

/// Requests for folders.
const LOOKS_AT_ONCE: usize = 16;

/// Which write an object comes from, as metadata of the user (`x-amz-meta-`).
const WRITE: &str = "statehouse-write";

/// A bucket, or what is behind a prefix in one.
pub(crate) struct Bucket {
    access: Arc<Access>,
}

/// What the bucket and its readers and uploads share.
struct Access {
    store: Arc<dyn ObjectStore>,
    driver: Driver,
    prefix: String,
    target: String,
}

impl Bucket {
    /// Connects, by the environment's variables.
    pub(crate) fn open(bucket: &str, prefix: &str, target: &str) -> Result<Self, ObjectsError> {
        Self::on(connect::s3(bucket, target)?, prefix, target)
    }

    /// On any store.
    pub(crate) fn on(store: Arc<dyn ObjectStore>, prefix: &str, target: &str) -> Result<Self, ObjectsError> {
        let driver = Driver::start().map_err(|error| ObjectsError::Failed {
            doing: "start the threads for",
            name: "/".to_owned(),
            target: target.to_owned(),
            reason: error.to_string(),
            next: "allow this process more threads and try again",
        })?;
        let (prefix, target) = (prefix.to_owned(), target.to_owned());
        Ok(Self { access: Arc::new(Access { store, driver, prefix, target }) })
    }
}

impl Backend for Bucket {
    fn create(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectsError> {
        self.access.create(name, PutPayload::from(bytes.to_vec()))
    }

    fn upload(&self, name: &str, part_bytes: usize) -> Result<Box<dyn Upload>, ObjectsError> {
        Ok(Box::new(upload::PartUpload::new(Arc::clone(&self.access), name, part_bytes)))
    }

    fn reader(&self, name: &str) -> Result<(Box<dyn Read + Send>, u64), ObjectsError> {
        let reader = reader::PieceReader::open(Arc::clone(&self.access), name)?;
        let size = reader.size();
        Ok((Box::new(reader), size))
    }

    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError> {
        let (store, path) = self.access.to(name);
        match self.access.driver.run(async move { store.head(&path).await }) {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.access.failed("read the size of", name, &error)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, ObjectsError> {
        let (store, path) = self.access.to(prefix);
        let listed = self.access.driver.run(async move {
            let found = store.list(Some(&path)).map_ok(|meta| (meta.location, meta.size));
            found.try_collect::<Vec<_>>().await
        });
        let listed = listed.map_err(|error| self.access.failed("list", prefix, &error))?;
        let named = |(path, size): (Path, u64)| Some((self.access.name_of(&path)?, size));
        Ok(listed.into_iter().filter_map(named).collect())
    }

    fn folders(&self, prefix: &str) -> Result<Vec<String>, ObjectsError> {
        let (store, path) = self.access.to(prefix);
        let listed = self.access.driver.run(async move {
            let listed = store.list_with_delimiter(Some(&path)).await?;
            // SeaweedFS names a folder for minutes after its last object was deleted.
            let looks = listed.common_prefixes.into_iter().map(|folder| {
                let first = store.list(Some(&folder));
                async move { Ok::<_, Error>(first.into_future().await.0.transpose()?.map(|_| folder)) }
            });
            let looks = stream::iter(looks).buffer_unordered(LOOKS_AT_ONCE);
            looks.try_filter_map(|folder| async { Ok(folder) }).try_collect::<Vec<_>>().await
        });
        let listed = listed.map_err(|error| self.access.failed("list", prefix, &error))?;
        Ok(listed.iter().filter_map(|path| path.filename().map(str::to_owned)).collect())
    }

    fn delete(&self, name: &str) -> Result<(), ObjectsError> {
        let (store, path) = self.access.to(name);
        match self.access.driver.run(async move { store.delete(&path).await }) {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.access.failed("delete", name, &error)),
        }
    }
}

impl Access {
    /// The store and the key of a name, for a task.
    fn to(&self, name: &str) -> (Arc<dyn ObjectStore>, Path) {
        // The parts of both were checked, so that nothing is escaped here.
        let path = Path::from_iter(self.prefix.split('/').chain(name.split('/')));
        (Arc::clone(&self.store), path)
    }

    /// The name of a key.
    fn name_of(&self, path: &Path) -> Option<String> {
        let key = path.as_ref();
        match self.prefix.as_str() {
            "" => Some(key.to_owned()),
            prefix => Some(key.strip_prefix(prefix)?.strip_prefix('/')?.to_owned()),
        }
    }

    /// Writes an object with one request.
    fn create(&self, name: &str, payload: PutPayload) -> Result<(), ObjectsError> {
        let write = self.new_write(name)?;
        let (store, path) = self.to(name);
        let options = PutOptions { mode: PutMode::Create, attributes: attributes(&write), ..PutOptions::default() };
        let put = self.driver.run(async move { store.put_opts(&path, payload, options).await.map(drop) });
        self.settle(name, &write, put)
    }

    fn new_write(&self, name: &str) -> Result<String, ObjectsError> {
        names::unique().map_err(|error| {
            let error = Error::Generic { store: "random numbers", source: Box::new(error) };
            self.failed("write", name, &error)
        })
    }

    /// What became of a write. One that was sent twice, since the first answer was lost, is refused because of itself.
    fn settle(&self, name: &str, write: &str, written: Result<(), Error>) -> Result<(), ObjectsError> {
        let Err(error) = written else { return Ok(()) };
        if is_definite(&error) {
            return Err(self.failed("write", name, &error));
        }
        let (store, path) = self.to(name);
        let options = GetOptions::new().with_head(true);
        let found = self.driver.run(async move { store.get_opts(&path, options).await.map(|found| found.attributes) });
        let ours = |found: &Attributes| found.get(&Attribute::Metadata(WRITE.into())).is_some_and(|by| **by == *write);
        let is_conflict = matches!(error, Error::AlreadyExists { .. } | Error::Precondition { .. });
        let (name, target) = (name.to_owned(), self.target.clone());
        match found {
            Ok(found) if ours(&found) => Ok(()),
            Ok(_) => Err(ObjectsError::Exists { name, target }),
            // It was refused for an object that is deleted by now or that another writer did not finish, or there is no such
            // bucket or upload.
            Err(Error::NotFound { .. }) if is_conflict || matches!(error, Error::NotFound { .. }) => {
                Err(self.failed("write", &name, &error))
            }
            Err(_) if is_conflict => Err(ObjectsError::Exists { name, target }),
            Err(_) => Err(ObjectsError::Unknown { name, target, reason: reason(&error) }),
        }
    }

    fn failed(&self, doing: &'static str, name: &str, error: &Error) -> ObjectsError {
        let next = match error {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights to the bucket"
            }
            Error::NotFound { .. } => "check the name of the bucket, AWS_REGION and AWS_ENDPOINT_URL",
            Error::AlreadyExists { .. } | Error::Precondition { .. } => "try again",
            _ => "check that AWS_ENDPOINT_URL or AWS_REGION is right and reached, and try again",
        };
        let name = if name.is_empty() { "/" } else { name };
        let (name, target) = (name.to_owned(), self.target.clone());
        ObjectsError::Failed { doing, name, target, reason: reason(error), next }
    }
}

/// Whether nothing was written for certain.
fn is_definite(error: &Error) -> bool {
    matches!(
        error,
        Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::NotImplemented { .. }
            | Error::NotSupported { .. }
            | Error::UnknownConfigurationKey { .. }
    )
}

fn attributes(write: &str) -> Attributes {
    Attributes::from_iter([(Attribute::Metadata(WRITE.into()), write.to_owned())])
}

/// What was said, with its causes, on one line: stores answer with XML.
fn reason(error: &Error) -> String {
    let mut said = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(because) = cause {
        let because_said = because.to_string();
        if !said.contains(&because_said) {
            said = format!("{said}: {because_said}");
        }
        cause = because.source();
    }
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
