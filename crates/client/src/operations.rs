//! What an operator asks: how the server is doing, and copies of everything.

use contract::Outcome;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use wire::operations::{StatusAnswer, Version};
use wire::routes::{BACKUP_CREATE, EXPORT_CREATE, Route, SERVER_READY, SERVER_STATUS, SERVER_VERSION};

use crate::call::{Call, refused_stream};
use crate::client::Client;
use crate::error::Error;
use crate::transport::AnswerBody;

impl Client {
    /// Which release the server is, and which contracts it keeps.
    pub async fn version(&self) -> Result<Version, Error> {
        Call::new(self, SERVER_VERSION, &[]).read(self).await
    }

    /// Whether it can serve now.
    pub async fn is_ready(&self) -> Result<bool, Error> {
        let probe = Call::new(self, SERVER_READY, &[]);
        Ok(probe.begin(self, None).await?.status().is_success())
    }

    /// How it is doing, in one screen.
    pub async fn status(&self) -> Result<StatusAnswer, Error> {
        Call::new(self, SERVER_STATUS, &[]).read(self).await
    }

    /// A backup of everything, as it comes.
    pub async fn backup(&self) -> Result<Download, Error> {
        self.download(BACKUP_CREATE).await
    }

    /// Everything, or the client's space, as lines of JSON, as they come.
    pub async fn export(&self) -> Result<Download, Error> {
        self.download(EXPORT_CREATE).await
    }

    async fn download(&self, route: Route) -> Result<Download, Error> {
        let response = Call::new(self, route, &[]).begin(self, None).await?;
        match response.status().is_success() {
            true => Ok(Download { body: response.into_body() }),
            false => Err(refused_stream(response).await),
        }
    }
}

/// A file that is being sent. One that was cut is an error, never a short file.
pub struct Download {
    body: AnswerBody,
}

impl Download {
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
                    let cause = format!("the file broke off: {error}");
                    return Err(Error::NoAnswer { cause, outcome: Outcome::NotApplied });
                }
            }
        }
    }
}
