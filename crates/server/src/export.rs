//! `GET /v1/export`: everything committed so far, or one space of it, as lines of JSON.
//!
//! Keeps: at most [`EXPORTS_RUNNING_MAX`] at a time. Commands continue meanwhile. An interrupted export has no footer,
//! so nobody mistakes it for a complete one.

use std::io;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::access::{Area, Verb};
use contract::{Error, Failure, FailureKind};
use statehouse::TransferError;
use statehouse::export::Prepared;
use tokio::sync::Semaphore;

use wire::operations::NoBody;
use wire::query::NoQuery;

use crate::access::Permission;
use crate::api::call::Call;
use crate::api::refusal::Refusal;
use crate::backup::COMMIT_HEADER;
use crate::{Server, streamed};

/// The number of concurrent exports.
pub const EXPORTS_RUNNING_MAX: usize = 2;

/// The running exports.
#[derive(Clone)]
pub(crate) struct Exports(Arc<Semaphore>);

impl Default for Exports {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(EXPORTS_RUNNING_MAX)))
    }
}

/// What an export needs, of one space or of all.
pub(crate) fn permission() -> Permission<NoQuery, NoBody> {
    Permission::of("snapshot store, of the space or of every space", |asking, needs| match asking.scope.space {
        Some(_) => needs.everything(Verb::Snapshot, Area::Store),
        None => needs.store(Verb::Snapshot),
    })
}

/// Without a space, exports all spaces.
pub(crate) async fn export(server: Server, call: Call<NoQuery, NoBody>) -> Result<Response, Refusal> {
    let space = call.scope.space;
    let permit = server.exports.0.clone().try_acquire_owned().map_err(|_| {
        let message = format!("exports_running_max is {EXPORTS_RUNNING_MAX}; retry when one of them is done");
        Refusal::from(Error::from(Failure::not_applied(FailureKind::Busy, message)))
    })?;
    let prepare = move |house: &_| Prepared::new(house, space.as_deref()).map_err(TransferError::into_error);
    let prepared = server.call(prepare).await?;
    let commit = prepared.commit();
    let body = streamed::body(&server, move |out| {
        // The next export may start when this one is over, however it ends.
        let _permit = permit;
        prepared.write(out, &mut |_| {}).map_err(io::Error::other)?;
        Ok(())
    });
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    headers.insert(COMMIT_HEADER, commit.into());
    Ok((StatusCode::OK, headers, body).into_response())
}
