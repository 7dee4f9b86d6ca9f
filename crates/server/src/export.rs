//! `GET /v1/export`: everything that is committed now as lines of JSON, or one space of it.
//!
//! Keeps: at most [`EXPORTS_RUNNING_MAX`] at a time. Commands go on meanwhile. An export that breaks off has no footer, so
//! nobody takes it for a whole one.

use std::io;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use contract::{Error, Failure, FailureKind};
use statehouse::TransferError;
use statehouse::export::Prepared;
use tokio::sync::Semaphore;

use wire::operations::NoBody;
use wire::query::NoQuery;

use crate::api::{Call, Refusal};
use crate::backup::COMMIT_HEADER;
use crate::{Server, streamed};

/// Exports that are made at a time.
pub const EXPORTS_RUNNING_MAX: usize = 2;

/// The exports that are being made.
#[derive(Clone)]
pub(crate) struct Exports(Arc<Semaphore>);

impl Default for Exports {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(EXPORTS_RUNNING_MAX)))
    }
}

/// Without a space, all are exported.
pub(crate) async fn export(server: Server, call: Call<NoQuery, NoBody>) -> Result<Response, Refusal> {
    let space = call.scope.space;
    let permit = server.exports.0.clone().try_acquire_owned().map_err(|_| {
        let message = format!("exports_running_max is {EXPORTS_RUNNING_MAX}; try again when one of them is done");
        Refusal::from(Error::from(Failure::not_applied(FailureKind::Busy, message)))
    })?;
    let prepare = move |house: &_| Prepared::new(house, space.as_deref()).map_err(TransferError::into_error);
    let prepared = server.call(prepare).await?;
    let commit = prepared.commit();
    let body = streamed::body(move |out| {
        // The next one may begin when this is over, however it ends.
        let _permit = permit;
        prepared.write(out, &mut |_| {}).map_err(io::Error::other)?;
        Ok(())
    });
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    headers.insert(COMMIT_HEADER, commit.into());
    Ok((StatusCode::OK, headers, body).into_response())
}
