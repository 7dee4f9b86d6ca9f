//! An answer that is taken as it comes, for what is too large to be held.
//!
//! Keeps: an answer that breaks off, or brings nothing for [`STALLED_MAX`], is a failure and never an end.

use std::time::Duration;

use client::operations::Download;
use client::{Call, Error};
use hyper::body::Bytes;
use statehouse::shell::Suggested;

use crate::exit::{Exit, Failure};

/// How long a server may bring nothing. It reads everything once before the first byte of a backup.
const STALLED_MAX: Duration = Duration::from_secs(1_800);

/// An answer whose head has come.
pub(crate) struct Streaming {
    download: Download,
}

impl Streaming {
    /// Sends a request; a refusal is a failure.
    pub(crate) async fn begin(call: Call) -> Result<Self, Failure> {
        let begun = tokio::time::timeout(STALLED_MAX, call.download()).await;
        Ok(Self { download: begun.map_err(|_| stalled())?? })
    }

    /// The next bytes; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let next = tokio::time::timeout(STALLED_MAX, self.download.next()).await;
        next.map_err(|_| stalled())?.map_err(|error| match error {
            Error::NoAnswer { cause, .. } => Failure::new(Exit::Unavailable, cause).next("nothing was kept; ask again"),
            other => other.into(),
        })
    }
}

fn stalled() -> Failure {
    let message = format!("the server brought nothing for {} s", STALLED_MAX.as_secs());
    Failure::new(Exit::Unavailable, message).run("see how it is doing", Suggested::new(["statehouse", "status"]))
}
