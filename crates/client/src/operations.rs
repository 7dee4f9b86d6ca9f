//! Calls for operators: the server's health, backups and exports.

use contract::Outcome;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use wire::operations::{StatusAnswer, Version};
use wire::routes::{BACKUP_CREATE, EXPORT_CREATE, SERVER_READY, SERVER_STATUS, SERVER_VERSION};

use crate::client::Client;
use crate::error::Error;
use crate::transport::AnswerBody;

impl Client {
    /// The server's release, and the contracts that it supports.
    pub async fn version(&self) -> Result<Version, Error> {
        self.call(SERVER_VERSION, &[]).read().await
    }

    /// Whether the server can serve now.
    pub async fn is_ready(&self) -> Result<bool, Error> {
        Ok(self.call(SERVER_READY, &[]).answer().await?.status.is_success())
    }

    /// The server's health on one screen.
    pub async fn status(&self) -> Result<StatusAnswer, Error> {
        self.call(SERVER_STATUS, &[]).read().await
    }

    /// A backup of the whole store, as it arrives.
    pub async fn backup(&self) -> Result<Download, Error> {
        self.call(BACKUP_CREATE, &[]).download().await
    }

    /// The whole store or the client's space as lines of JSON, as they arrive.
    pub async fn export(&self) -> Result<Download, Error> {
        self.call(EXPORT_CREATE, &[]).download().await
    }
}

/// A file in transit. An interrupted transfer is an error, never a short file.
pub struct Download {
    server: String,
    body: AnswerBody,
}

impl Download {
    pub(crate) fn new(server: String, body: AnswerBody) -> Self {
        Self { server, body }
    }

    /// The next bytes; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
                Some(Err(error)) => {
                    let cause = format!("the answer broke off before its end: {error}");
                    return Err(Error::NoAnswer { server: self.server.clone(), cause, outcome: Outcome::NotApplied });
                }
            }
        }
    }
}
