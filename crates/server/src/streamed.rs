//! An answer written by a thread while it is sent: chunk by chunk, never more than a few ahead of the client.
//!
//! Keeps: a client that reads nothing for [`STALLED_MAX`] is disconnected, because its answer holds a view of the
//! store; one that may not have the answer any more gets no further chunk. An unfinished answer breaks the connection, so
//! that nobody mistakes it for a complete one.

use std::io::{self, Write};
use std::time::Duration;

use axum::body::{Body, Bytes};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::Server;
use crate::access::LastingRequest;

/// How long a client may stop reading.
pub const STALLED_MAX: Duration = Duration::from_secs(60);

/// The size of a chunk.
const CHUNK_BYTES: usize = 256 << 10;

/// Chunks that may wait for the client.
const CHUNKS_AHEAD: usize = 4;

/// Memory that an answer holds while its client does not read.
pub(crate) const AHEAD_BYTES: usize = CHUNK_BYTES * (CHUNKS_AHEAD + 2);

type Chunk = Result<Bytes, io::Error>;

/// Runs `write` on a thread that may block, and sends its output as the body of an answer to the caller of `server`.
pub(crate) fn body(server: &Server, write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static) -> Body {
    let (sender, receiver) = mpsc::channel::<Chunk>(CHUNKS_AHEAD);
    let (runtime, download) = (Handle::current(), server.begin_download());
    tokio::task::spawn_blocking(move || {
        let mut out = ChunkWriter { runtime, sender, download, chunk: Vec::with_capacity(CHUNK_BYTES) };
        let written = write(&mut out).and_then(|()| out.send());
        if let Err(error) = written {
            tracing::warn!(%error, "an answer was cut short");
            let _ = out.runtime.block_on(tokio::time::timeout(STALLED_MAX, out.sender.send(Err(error))));
        }
    });
    Body::from_stream(ReceiverStream::new(receiver))
}

struct ChunkWriter {
    runtime: Handle,
    sender: mpsc::Sender<Chunk>,
    /// None if nobody is asked who it is.
    download: Option<LastingRequest>,
    chunk: Vec<u8>,
}

impl ChunkWriter {
    fn send(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = Bytes::from(std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES)));
        let sent = self.runtime.block_on(async {
            let sent = tokio::time::timeout(STALLED_MAX, self.sender.send(Ok(chunk)));
            match &self.download {
                Some(download) => download.end().run_until_cancelled(sent).await,
                None => Some(sent.await),
            }
        });
        match sent {
            Some(Ok(Ok(()))) => Ok(()),
            None => Err(io::Error::new(io::ErrorKind::PermissionDenied, "its sender may not have it any more")),
            Some(Ok(Err(_))) => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the client has disconnected")),
            Some(Err(_)) => {
                let message = format!("the client read nothing for {} s", STALLED_MAX.as_secs());
                Err(io::Error::new(io::ErrorKind::TimedOut, message))
            }
        }
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..taken]);
        if self.chunk.len() == CHUNK_BYTES {
            self.send()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
