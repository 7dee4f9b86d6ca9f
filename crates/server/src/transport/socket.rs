//! The stream of one connection, whatever it comes over.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// A stream of bytes to a client.
pub(crate) enum Socket {
    Tcp(TcpStream),
    /// On the heap: it is many times as large as the others.
    Tls(Box<TlsStream<MeteredTcp>>),
    Unix(UnixStream),
}

impl Socket {
    /// How many bytes the system has taken of what TLS holds ready for it. Without TLS a write that is not finished holds nothing
    /// back, so there is nothing to count.
    pub(crate) fn flushed_bytes(&self) -> u64 {
        match self {
            Self::Tls(stream) => stream.get_ref().0.written_bytes,
            Self::Tcp(_) | Self::Unix(_) => 0,
        }
    }

    /// Has the system forget what it still holds for this client as soon as the socket is closed.
    pub(crate) fn forget_unsent(&self) {
        let tcp = match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => &stream.get_ref().0.stream,
            // The system holds nothing for a client that has gone.
            Self::Unix(_) => return,
        };
        let _ = socket2::SockRef::from(tcp).set_linger(Some(Duration::ZERO));
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

/// TCP under TLS, with a count of what was written. TLS takes bytes before the system does, so only this count shows whether a slow
/// client still reads.
pub(crate) struct MeteredTcp {
    pub(super) stream: TcpStream,
    written_bytes: u64,
}

impl MeteredTcp {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, written_bytes: 0 }
    }

    fn note(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.written_bytes += *bytes as u64;
        }
    }
}

impl AsyncRead for MeteredTcp {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for MeteredTcp {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(&written);
        written
    }

    /// TLS says why a handshake fails in one write of several parts, and does not try again.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
