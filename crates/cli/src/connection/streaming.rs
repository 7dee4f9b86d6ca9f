//! Answers too large for memory, read as they arrive.
//!
//! Keeps: an answer that breaks off, or sends nothing for [`STALLED_MAX`], is a failure, never an end.

use std::time::Duration;

use client::operations::Download;
use client::{Call, Error};
use hyper::body::Bytes;
use statehouse::shell::Suggested;

use crate::exit::{Exit, Failure};

/// How long a server may send nothing. Before the first byte of a backup it reads the whole store once.
const STALLED_MAX: Duration = Duration::from_secs(1_800);

/// An answer whose headers have arrived.
pub(crate) struct Streaming {
    download: Download,
}

impl Streaming {
    /// Sends the request; a refusal is a failure.
    pub(crate) async fn begin(call: Call) -> Result<Self, Failure> {
        let begun = tokio::time::timeout(STALLED_MAX, call.download()).await;
        Ok(Self { download: begun.map_err(|_| stalled())?? })
    }

    /// The next bytes; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let next = tokio::time::timeout(STALLED_MAX, self.download.next()).await;
        next.map_err(|_| stalled())?.map_err(|error| match error {
            Error::NoAnswer { cause, .. } => {
                Failure::new(Exit::Unavailable, cause).next("nothing was written; try again")
            }
            other => other.into(),
        })
    }
}

fn stalled() -> Failure {
    let message = format!("the server sent nothing for {} s", STALLED_MAX.as_secs());
    Failure::new(Exit::Unavailable, message).run("see how it is doing", Suggested::new(["statehouse", "status"]))
}
