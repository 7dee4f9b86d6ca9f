//! An object of a bucket, written in parts.
//!
//! Touches: the bucket. Keeps: at most two parts in memory, one that is filled and one that is sent. Never: leaves an upload
//! unfinished, unless the process or the network ends.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use object_store::{Error, MultipartUpload, PutMultipartOptions, PutPayload};

use super::driver::Started;
use super::{Access, PART_GROWTH_MAX, PARTS_MAX, PARTS_OF_ONE_SIZE, attributes};
use crate::error::ObjectsError;

/// So long the drop of an unfinished one waits.
const ABORT_TIME: Duration = Duration::from_secs(10);

/// An object that is being written. A small one becomes a single request at the end.
pub(super) struct PartUpload {
    access: Arc<Access>,
    name: String,
    /// The size of the first parts.
    part_bytes: usize,
    part: Vec<u8>,
    /// There from the first full part on.
    parts: Option<Parts>,
    failed: Option<ObjectsError>,
}

struct Parts {
    upload: Box<dyn MultipartUpload>,
    write: String,
    started: usize,
    in_flight: Option<Started<()>>,
}

impl PartUpload {
    pub(super) fn new(access: Arc<Access>, name: &str, part_bytes: usize) -> Self {
        Self { access, name: name.to_owned(), part_bytes, part: Vec::new(), parts: None, failed: None }
    }

    /// How many bytes the part has when it is full.
    fn full_bytes(&self) -> usize {
        bytes_of_part(self.parts.as_ref().map_or(0, |parts| parts.started), self.part_bytes)
    }

    /// Sends the part in the background, once the one before has arrived.
    fn send_part(&mut self) -> Result<(), ObjectsError> {
        let parts = match &mut self.parts {
            Some(parts) => parts,
            none => none.insert(begin(&self.access, &self.name)?),
        };
        if parts.started == PARTS_MAX {
            let max = (0..PARTS_MAX).map(|number| bytes_of_part(number, self.part_bytes) as u64).sum();
            return Err(ObjectsError::TooLarge {
                name: self.name.clone(),
                target: self.access.target.clone(),
                bytes: max + self.part.len() as u64,
                max,
                next: "write it as several objects",
            });
        }
        arrived(&self.access, &self.name, parts)?;
        let payload = PutPayload::from(std::mem::take(&mut self.part));
        parts.in_flight = Some(self.access.driver.spawn(parts.upload.put_part(payload)));
        parts.started += 1;
        Ok(())
    }

    fn try_finish(&mut self) -> Result<(), ObjectsError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.parts.is_none() {
            return self.access.create(&self.name, PutPayload::from(std::mem::take(&mut self.part)));
        }
        if !self.part.is_empty() {
            self.send_part()?;
        }
        if let Some(parts) = &mut self.parts {
            arrived(&self.access, &self.name, parts)?;
        }
        let Some(Parts { mut upload, write, .. }) = self.parts.take() else { return Ok(()) };
        let completed = self.access.driver.run(async move {
            let completed = upload.complete().await.map(drop);
            if completed.is_err() {
                // A completed upload is none any more, so that this cannot remove the object.
                let _ = upload.abort().await;
            }
            completed
        });
        self.access.settle(&self.name, &write, completed)
    }
}

/// The size of a part, by its number from 0.
fn bytes_of_part(number: usize, first_bytes: usize) -> usize {
    let growth = 1_usize.checked_shl(u32::try_from(number / PARTS_OF_ONE_SIZE).unwrap_or(u32::MAX));
    first_bytes * growth.map_or(PART_GROWTH_MAX, |growth| growth.min(PART_GROWTH_MAX))
}

fn begin(access: &Access, name: &str) -> Result<Parts, ObjectsError> {
    let write = access.new_write(name)?;
    let (store, path) = access.to(name);
    let options = PutMultipartOptions { attributes: attributes(&write), ..PutMultipartOptions::default() };
    let upload = access.driver.run(async move { store.put_multipart_opts(&path, options).await });
    let upload = upload.map_err(|error| access.failed("start to write", name, &error))?;
    Ok(Parts { upload, write, started: 0, in_flight: None })
}

/// Waits for the part that is sent.
fn arrived(access: &Access, name: &str, parts: &mut Parts) -> Result<(), ObjectsError> {
    let sent: Result<(), Error> = parts.in_flight.take().map_or(Ok(()), Started::wait);
    sent.map_err(|error| access.failed("write", name, &error))
}

impl Write for PartUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(error) = &self.failed {
            return Err(error.clone().into());
        }
        let full_bytes = self.full_bytes();
        let taken = bytes.len().min(full_bytes - self.part.len());
        self.part.extend_from_slice(&bytes[..taken]);
        if self.part.len() == full_bytes
            && let Err(error) = self.send_part()
        {
            self.failed = Some(error.clone());
            return Err(error.into());
        }
        Ok(taken)
    }

    /// A part is sent when it is full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl crate::backend::Upload for PartUpload {
    fn finish(mut self: Box<Self>) -> Result<(), ObjectsError> {
        self.try_finish()
    }
}

impl Drop for PartUpload {
    fn drop(&mut self) {
        let Some(Parts { mut upload, in_flight, .. }) = self.parts.take() else { return };
        if let Some(part) = in_flight {
            // One that arrives after the abort could stay behind.
            part.wait_at_most(ABORT_TIME);
        }
        let abort = self.access.driver.spawn(async move { upload.abort().await });
        abort.wait_at_most(ABORT_TIME);
    }
}
