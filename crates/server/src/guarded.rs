//! The stream of one connection, with timeouts: against clients that send nothing or send a head too slowly, and
//! against clients that stop reading.
//!
//! Keeps: a head starts within `idle_time_max` and ends within `head_time_max` of that, and a write makes progress
//! within `write_stall_time_max`, or the connection is closed. hyper's own answers to input it cannot parse have no
//! body; they are held back here, and the server of the connection sends a problem instead.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::limits::ServerLimits;
use crate::transport::Socket;

/// State passed from one request to the next.
#[derive(Default)]
struct Between {
    /// Fires when a request takes too long.
    alarm: Alarm,
    /// When the last request ended.
    ended: Option<Instant>,
}

/// State shared by the stream, its requests and the task that serves it.
#[derive(Default)]
pub(crate) struct Watch {
    /// The number of requests with a complete head.
    requests: AtomicU64,
    /// Whether one of them is not fully answered yet.
    in_request: AtomicBool,
    slow_head: AtomicBool,
    stalled: AtomicBool,
    between: Mutex<Between>,
    /// The stream, once its user has ended.
    left: Mutex<Option<Socket>>,
}

impl Watch {
    /// A request's head is complete.
    pub(crate) fn begin_request(self: &Arc<Self>) -> InRequest {
        self.requests.fetch_add(1, Ordering::AcqRel);
        self.in_request.store(true, Ordering::Release);
        let alarm = std::mem::take(&mut self.between().alarm);
        InRequest { watch: self.clone(), alarm }
    }

    fn between(&self) -> MutexGuard<'_, Between> {
        self.between.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the connection was closed because a head took too long.
    pub(crate) fn head_was_slow(&self) -> bool {
        self.slow_head.load(Ordering::Acquire)
    }

    /// Whether the connection was closed because the client stopped reading.
    pub(crate) fn stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire)
    }

    /// The stream, once.
    pub(crate) fn take_stream(&self) -> Option<Socket> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Held from a request's head to the end of its answer.
pub(crate) struct InRequest {
    watch: Arc<Watch>,
    /// Fires when the request takes too long.
    pub(crate) alarm: Alarm,
}

impl Drop for InRequest {
    fn drop(&mut self) {
        *self.watch.between() = Between { alarm: std::mem::take(&mut self.alarm), ended: Some(Instant::now()) };
        self.watch.in_request.store(false, Ordering::Release);
    }
}

/// A connection's stream with timeouts for heads, idle time and writes.
pub(crate) struct Guarded {
    stream: Option<Socket>,
    watch: Arc<Watch>,
    limits: Arc<ServerLimits>,
    /// When the current head started, and how many were complete before it.
    head: Option<(Instant, u64)>,
    read_alarm: Alarm,
    /// Since when a write has been waiting for the client.
    stalled_since: Option<Instant>,
    /// What the system had taken by then of what TLS holds.
    flushed_bytes: u64,
    write_alarm: Alarm,
    /// When the connection started, or a stalled write last made progress.
    quiet_since: Instant,
}

impl Guarded {
    pub(crate) fn new(stream: Socket, watch: Arc<Watch>, limits: Arc<ServerLimits>) -> Self {
        Self {
            stream: Some(stream),
            watch,
            limits,
            head: None,
            read_alarm: Alarm::default(),
            stalled_since: None,
            flushed_bytes: 0,
            write_alarm: Alarm::default(),
            quiet_since: Instant::now(),
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut Socket>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Bytes arrived: a head starts, unless they belong to a request or to a head in progress.
    fn note_read(&mut self) {
        let requests = self.watch.requests.load(Ordering::Acquire);
        let known = self.head.is_some_and(|(_, before)| before == requests);
        if !known {
            let begins = !self.watch.in_request.load(Ordering::Acquire);
            self.head = begins.then(|| (Instant::now(), requests));
        }
    }

    /// Nothing arrived: ready with an error after too long, or if a head in progress takes too long.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let requests = self.watch.requests.load(Ordering::Acquire);
        self.head = self.head.filter(|(_, before)| *before == requests);
        if let Some((began, _)) = self.head {
            ready!(self.read_alarm.poll(context, began + self.limits.head_time_max));
            self.watch.slow_head.store(true, Ordering::Release);
            return Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "the head of the request took too long"));
        }
        let idle_time_max = self.limits.idle_time_max;
        if self.watch.in_request.load(Ordering::Acquire) || self.stalled_since.is_some() {
            // Nobody reads again when the answer is written, because this read is already waiting: the alarm wakes it.
            let _ = self.read_alarm.poll(context, Instant::now() + idle_time_max);
            return Poll::Pending;
        }
        let since = self.watch.between().ended.map_or(self.quiet_since, |ended| ended.max(self.quiet_since));
        ready!(self.read_alarm.poll(context, since + idle_time_max));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "no request arrived for too long"))
    }

    /// A write is done that may have been waiting.
    fn note_written(&mut self) {
        if self.stalled_since.take().is_some() {
            self.quiet_since = Instant::now();
        }
    }

    fn poll_stall(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let flushed_bytes = self.stream.as_ref().map_or(0, Socket::flushed_bytes);
        if std::mem::replace(&mut self.flushed_bytes, flushed_bytes) != flushed_bytes {
            self.stalled_since = None;
        }
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        ready!(self.write_alarm.poll(context, since + self.limits.write_stall_time_max));
        self.watch.stalled.store(true, Ordering::Release);
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "the client stopped reading"))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let mut left = self.watch.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = self.stream.take();
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match self.stream()?.poll_read(context, buffer) {
            Poll::Ready(read) => {
                if buffer.filled().len() > before {
                    self.note_read();
                }
                Poll::Ready(read)
            }
            Poll::Pending => self.poll_patience(context).map(Err),
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut ours = bytes;
        if !self.watch.in_request.load(Ordering::Acquire) {
            match automatic_answer(bytes) {
                Some(0) => return Poll::Ready(Ok(bytes.len())),
                Some(begin) => ours = &bytes[..begin],
                None => {}
            }
        }
        match self.stream()?.poll_write(context, ours) {
            Poll::Ready(written) => {
                self.note_written();
                Poll::Ready(written)
            }
            Poll::Pending => self.poll_stall(context).map(Err),
        }
    }

    /// TLS holds what the system does not take, so a client that stops reading can hold up a flush.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.stream()?.poll_flush(context) {
            Poll::Ready(flushed) => {
                self.note_written();
                Poll::Ready(flushed)
            }
            Poll::Pending => self.poll_stall(context).map(Err),
        }
    }

    /// The server of the connection closes it, and may send something before.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Where hyper's own answer to an unparsable request starts in the output. It is the last thing written, and has no
/// body; ours always have one.
fn automatic_answer(bytes: &[u8]) -> Option<usize> {
    const LENGTH_MAX: usize = 256;
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let tail = bytes.len().saturating_sub(LENGTH_MAX);
    let begin = tail + bytes[tail..].windows(7).rposition(|window| window == b"HTTP/1.")?;
    let text = std::str::from_utf8(&bytes[begin..]).ok()?;
    let status = text.split(' ').nth(1)?;
    let automatic = ["400", "414", "431"].contains(&status)
        && text.contains("\r\nconnection: close\r\n")
        && text.contains("\r\ncontent-length: 0\r\n");
    automatic.then_some(begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_of_hyper_itself_are_held_back() {
        let automatic = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\
                         date: Sun, 15 Nov 2026 10:00:00 GMT\r\n\r\n";
        let ours = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(automatic_answer(automatic.as_bytes()), Some(0));
        assert_eq!(automatic_answer(format!("{ours}{automatic}").as_bytes()), Some(ours.len()));
        assert_eq!(automatic_answer(ours.as_bytes()), None);
        assert_eq!(automatic_answer(automatic.replace("431", "304").as_bytes()), None);
        assert_eq!(automatic_answer(b"\r\n\r\n"), None);
    }
}
