//! `GET /v1/backup`: everything committed so far, as one file. `POST /v1/backup/verified`: reports that a backup was
//! verified.
//!
//! Keeps: one backup at a time ([`BACKUPS_RUNNING_MAX`]). Commands continue meanwhile. Never: writes a file here; the
//! client decides what happens to the bytes.

use std::io;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::{Error, Failure, FailureKind};
use statehouse::TransferError;
use statehouse::backup::Prepared;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use wire::operations::{NoBody, Nothing, VerifiedBackup};
use wire::query::NoQuery;

use crate::api::call::{Answered, Call, Reply};
use crate::api::refusal::Refusal;
use crate::{Server, streamed};

/// The number of concurrent backups.
pub const BACKUPS_RUNNING_MAX: usize = 1;

/// The commit of a backup or an export, sent before its first byte.
pub(crate) const COMMIT_HEADER: HeaderName = HeaderName::from_static("statehouse-commit");

/// The running backups.
#[derive(Clone)]
pub struct Backups {
    running: Arc<Semaphore>,
}

impl Default for Backups {
    fn default() -> Self {
        Self { running: Arc::new(Semaphore::new(BACKUPS_RUNNING_MAX)) }
    }
}

impl Backups {
    fn begin(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.running.clone().try_acquire_owned().map_err(|_| {
            let message = format!(
                "a backup is being taken already, and backups_running_max is {BACKUPS_RUNNING_MAX}; try again when \
                 that one is done"
            );
            Refusal::from(Error::from(Failure::not_applied(FailureKind::Busy, message)))
        })
    }
}

pub(crate) async fn create(server: Server, _: Call<NoQuery, NoBody>) -> Result<Response, Refusal> {
    let permit = server.backups.begin()?;
    let prepared = server.call(|house| Prepared::new(house).map_err(TransferError::into_error)).await?;
    let commit = prepared.commit();
    let house = server.house.clone();
    let body = streamed::body(&server, move |out| {
        // The next backup may start when this one is over, however it ends.
        let _permit = permit;
        prepared.write(out, &mut |_| {}).map_err(io::Error::other)?;
        house.note_backup_taken(now_us());
        Ok(())
    });
    let name = format!("attachment; filename=\"statehouse-{commit}.shbackup\"");
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(COMMIT_HEADER, commit.into());
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok((StatusCode::OK, headers, body).into_response())
}

/// A client reports that it has verified a backup of this store.
pub(crate) async fn verified(server: Server, call: Call<NoQuery, VerifiedBackup>) -> Answered<Nothing> {
    let (of, id) = (call.body.store, format!("{:016x}", server.house.id()));
    if of != id {
        return Err(Refusal::invalid("store", format!("the backup is of store {of}, but this is store {id}")));
    }
    server
        .call(|house| {
            house.note_backup_verified(now_us());
            Ok(())
        })
        .await?;
    Ok(Reply::new(Nothing {}))
}

#[allow(
    clippy::disallowed_methods,
    reason = "when something happened, for people and alerts; nothing is decided by it"
)]
fn now_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
