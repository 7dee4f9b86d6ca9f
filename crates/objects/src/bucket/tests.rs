//! A bucket on a store in memory: the calls, answers that are lost, and stores that replace objects. `sim objects-s3` runs the
//! calls on a server.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};

use super::Bucket;
use crate::backend::Backend;
use crate::{Objects, ObjectsError, suite};

/// A store in memory that honours conditions, or not, and loses answers on demand.
#[derive(Clone, Debug, Default)]
struct Fake {
    objects: Arc<InMemory>,
    replaces_puts: bool,
    replaces_uploads: bool,
    /// Says that it refused, and replaced.
    lies: bool,
    /// The next write is done, and then refused because of itself, as if it had been sent twice.
    sends_twice: Arc<AtomicBool>,
    /// The next write is done, and nobody hears of it.
    loses_answer: Arc<AtomicBool>,
}

impl Fake {
    async fn write(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
        replaces: bool,
    ) -> Result<PutResult> {
        if replaces {
            options.mode = PutMode::Overwrite;
        }
        let existed = self.objects.get_opts(location, GetOptions::new().with_head(true)).await.is_ok();
        let put = self.objects.put_opts(location, payload, options).await?;
        let path = location.to_string();
        if (self.lies && existed) || self.sends_twice.swap(false, Ordering::SeqCst) {
            return Err(Error::AlreadyExists { path, source: "it exists".into() });
        }
        if self.loses_answer.swap(false, Ordering::SeqCst) {
            return Err(Error::Generic { store: "fake", source: "the connection\n was closed".into() });
        }
        Ok(put)
    }

    fn opened(&self, prefix: &str) -> std::result::Result<Objects, ObjectsError> {
        let bucket = Bucket::on(Arc::new(self.clone()), prefix, "s3://fake").unwrap();
        Objects::probed(Arc::new(bucket), "s3://fake")
    }
}

impl fmt::Display for Fake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("fake")
    }
}

#[async_trait]
impl ObjectStore for Fake {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.write(location, payload, options, self.replaces_puts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let (store, location, attributes) = (self.clone(), location.clone(), options.attributes);
        Ok(Box::new(FakeUpload { store, location, attributes, parts: Vec::new() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.objects.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct FakeUpload {
    store: Fake,
    location: Path,
    attributes: Attributes,
    parts: Vec<u8>,
}

#[async_trait]
impl MultipartUpload for FakeUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        data.iter().for_each(|bytes| self.parts.extend_from_slice(bytes));
        Box::pin(async { Ok(()) })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let payload = PutPayload::from(std::mem::take(&mut self.parts));
        let attributes = std::mem::take(&mut self.attributes);
        let options = PutOptions { mode: PutMode::Create, attributes, ..PutOptions::default() };
        self.store.write(&self.location, payload, options, self.store.replaces_uploads).await
    }

    async fn abort(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn every_call_does_as_documented() {
    for prefix in ["", "one", "one/two"] {
        let fake = Fake::default();
        suite::run(&fake.opened(prefix).unwrap());
    }
}

#[test]
fn prefixes_of_a_bucket_are_apart() {
    let fake = Fake::default();
    let (one, one_two) = (fake.opened("one").unwrap(), fake.opened("one-two").unwrap());
    one.create("a", b"1").unwrap();
    one_two.create("a", b"22").unwrap();
    assert_eq!(one.list("").unwrap(), [("a".to_owned(), 1)]);
    assert_eq!(one_two.list("").unwrap(), [("a".to_owned(), 2)]);
    assert_eq!(fake.opened("").unwrap().folders("").unwrap(), ["one", "one-two"]);
}

#[test]
fn a_store_that_replaces_objects_is_refused_by_name() {
    let replaces_puts = Fake { replaces_puts: true, ..Fake::default() };
    let replaces_uploads = Fake { replaces_uploads: true, ..Fake::default() };
    let lies = Fake { replaces_puts: true, lies: true, ..Fake::default() };
    for (fake, way) in
        [(replaces_puts, "PutObject"), (replaces_uploads, "CompleteMultipartUpload"), (lies, "PutObject")]
    {
        // With the probe of an earlier opening too.
        for _ in 0..2 {
            let refused = fake.opened("one").unwrap_err();
            assert_eq!(refused, ObjectsError::Replaces { target: "s3://fake".into(), way });
            assert!(refused.to_string().starts_with("s3://fake replaces an object although it is asked not to ("));
            assert!(refused.to_string().contains("; use a store that"));
        }
    }
}

#[test]
fn a_write_that_was_sent_twice_succeeds_once() {
    let fake = Fake::default();
    let objects = fake.opened("").unwrap();
    for lost in [&fake.sends_twice, &fake.loses_answer] {
        lost.store(true, Ordering::SeqCst);
        objects.create("a", b"bytes").unwrap();
        assert!(matches!(objects.create("a", b"bytes"), Err(ObjectsError::Exists { .. })));
        let mut writer = objects.writer("b").unwrap();
        std::io::Write::write_all(&mut writer, &vec![1; 9 << 20]).unwrap();
        lost.store(true, Ordering::SeqCst);
        assert_eq!(writer.finish().unwrap(), 9 << 20);
        for name in ["a", "b"] {
            objects.delete(name).unwrap();
        }
    }
}

#[test]
fn parts_grow_so_that_a_large_object_fits() {
    let fake = Fake::default();
    let bucket = Bucket::on(Arc::new(fake.clone()), "", "s3://fake").unwrap();
    // With a first part of 8 MiB that is 273 GiB.
    let most = 1_000 + 1_000 * 2 + 8_000 * 4;
    let mut bytes: Vec<u8> = (0..most).map(|n: u32| n.to_le_bytes()[0]).collect();
    let upload = |bytes: &[u8]| {
        let mut upload = bucket.upload("large", 1).unwrap();
        upload.write_all(bytes).map_err(|error| ObjectsError::from_io(&error).unwrap().clone())?;
        upload.finish()
    };
    upload(&bytes).unwrap();
    let mut read = Vec::new();
    bucket.reader("large").unwrap().0.read_to_end(&mut read).unwrap();
    assert!(read == bytes);
    bytes.push(0);
    let refused = upload(&bytes).unwrap_err();
    let (found, max) = (u64::from(most) + 1, u64::from(most));
    assert!(
        matches!(refused, ObjectsError::TooLarge { bytes, max: most, .. } if (bytes, most) == (found, max)),
        "{refused}"
    );
}

#[test]
fn a_write_without_an_answer_and_without_an_object_is_unknown() {
    let fake = Fake::default();
    let access = Bucket::on(Arc::new(fake), "", "s3://fake").unwrap().access;
    let lost = Error::Generic { store: "fake", source: "the connection\n was closed".into() };
    let unknown = access.settle("a", "a.write", Err(lost)).unwrap_err();
    let expected =
        "whether `a` was written to s3://fake is unknown: Generic fake error: the connection was closed; ask";
    assert!(unknown.to_string().starts_with(expected), "{unknown}");
}

#[test]
fn an_object_that_is_replaced_while_it_is_read_fails() {
    let fake = Fake::default();
    let objects = fake.opened("").unwrap();
    objects.create("a", b"bytes").unwrap();
    let mut reader = objects.reader("a").unwrap();
    objects.delete("a").unwrap();
    objects.create("a", b"other").unwrap();
    let failed = std::io::read_to_string(&mut reader).unwrap_err();
    assert!(matches!(ObjectsError::from_io(&failed), Some(ObjectsError::Failed { doing: "read", .. })), "{failed}");
}
