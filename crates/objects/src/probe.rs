//! The probe: does the store refuse to replace an object? Some answer that they did and replace it.
//!
//! Touches: one small object of its own, which stays, so that a store that keeps everything for ever gets one and not one per
//! opening. Keeps: a store that replaces objects is refused by name, in either way to write. Never: touches an object of the user.

use std::io::Write;

use crate::backend::Backend;
use crate::error::ObjectsError;
use crate::names;
use crate::objects::read_all;

const NAME: &str = ".objects/probe";
const BYTES_MAX: u64 = 1024;

/// Asks the store to replace an object, and looks whether it did.
pub(crate) fn run(backend: &dyn Backend, target: &str) -> Result<(), ObjectsError> {
    probe(backend, target).map_err(|error| match error {
        // Whether this one was written matters to nobody.
        ObjectsError::Unknown { reason, .. } => failed(target, reason),
        error => error,
    })
}

fn probe(backend: &dyn Backend, target: &str) -> Result<(), ObjectsError> {
    let attempt = names::unique().map_err(|error| failed(target, error.to_string()))?;
    match backend.create(NAME, format!("first {attempt}").as_bytes()) {
        // By an earlier opening, or by another process just now.
        Ok(()) | Err(ObjectsError::Exists { .. }) => {}
        Err(error) => return Err(error),
    }
    let before = read_all(backend, NAME, target, BYTES_MAX)?;
    let second = format!("second {attempt}");
    let at_once = backend.create(NAME, second.as_bytes());
    judge(backend, target, "PutObject", &before, at_once)?;
    let in_parts = || {
        // The part is full with these bytes, so that a bucket really uses parts.
        let mut upload = backend.upload(NAME, second.len())?;
        let written = upload.write_all(second.as_bytes());
        written.map_err(|error| {
            ObjectsError::from_io(&error).cloned().unwrap_or_else(|| failed(target, error.to_string()))
        })?;
        upload.finish()
    };
    judge(backend, target, "CompleteMultipartUpload", &before, in_parts())
}

fn judge(
    backend: &dyn Backend,
    target: &str,
    way: &'static str,
    before: &[u8],
    second: Result<(), ObjectsError>,
) -> Result<(), ObjectsError> {
    let replaces = || Err(ObjectsError::Replaces { target: target.to_owned(), way });
    match second {
        Err(ObjectsError::Exists { .. }) => {}
        Err(error) => return Err(error),
        Ok(()) => return replaces(),
    }
    if read_all(backend, NAME, target, BYTES_MAX)? == before { Ok(()) } else { replaces() }
}

fn failed(target: &str, reason: String) -> ObjectsError {
    ObjectsError::Failed {
        doing: "write",
        name: NAME.to_owned(),
        target: target.to_owned(),
        reason,
        next: "check the settings (of a bucket: AWS_ENDPOINT_URL, AWS_REGION) and the connection, and open it again",
    }
}
