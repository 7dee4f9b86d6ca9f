//! A connection before its first request: TLS, where the server speaks it.
//!
//! Keeps: a handshake ends within `handshake_time_max` of the connection, at most `handshakes_max` are under way, and a client that
//! sends nothing takes none of their places. Whoever speaks plain HTTP is told so in plain HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;

use super::failures::Cause;
use super::{Tls, names};
use crate::limits::ServerLimits;
use crate::load::Load;
use crate::transport::{Arrived, MeteredTcp, Peer, Socket};

/// The first byte of every TLS connection: a record of a handshake.
const HANDSHAKE_RECORD: u8 = 22;

/// As many as the longest method has, and the space behind it.
const FIRST_BYTES: usize = 8;

/// How many bytes TLS holds for a client that is slow to read, besides what the system does.
const UNSENT_BYTES_MAX: usize = 16 << 10;

/// A connection that does not reach HTTP.
pub(crate) enum Refused {
    /// It speaks plain HTTP to a server that speaks TLS.
    PlainHttp(TcpStream),
    /// Nothing can be said, or has been said by TLS itself. What the client has sent is still to be read.
    Said(TcpStream),
    /// There is nobody to tell.
    Gone,
}

/// The stream of a connection, and what it says about its sender.
pub(crate) async fn open(
    arrived: Arrived,
    tls: Option<&Arc<Tls>>,
    load: &Load,
    limits: &ServerLimits,
) -> Result<(Socket, Peer), Refused> {
    match (arrived, tls) {
        (Arrived::Unix(stream), _) => {
            let user = stream.peer_cred().map_err(|_| Refused::Gone)?.uid();
            Ok((Socket::Unix(stream), Peer::User(user)))
        }
        (Arrived::Tcp(stream, _), None) => {
            stream.set_nodelay(true).map_err(|_| Refused::Gone)?;
            Ok((Socket::Tcp(stream), Peer::Tcp))
        }
        (Arrived::Tcp(stream, from), Some(tls)) => {
            stream.set_nodelay(true).map_err(|_| Refused::Gone)?;
            let deadline = Instant::now() + limits.handshake_time_max;
            // On the heap, because a connection is as large as the largest future inside it, and most have no TLS.
            Box::pin(Handshake { tls, load, deadline, from }.shake(stream)).await
        }
    }
}

struct Handshake<'server> {
    tls: &'server Tls,
    load: &'server Load,
    deadline: Instant,
    from: SocketAddr,
}

impl Handshake<'_> {
    async fn shake(self, stream: TcpStream) -> Result<(Socket, Peer), Refused> {
        let mut first = [0; FIRST_BYTES];
        let peeked = timeout_at(self.deadline, stream.peek(&mut first)).await;
        match peeked {
            Err(_) => return Err(self.failed(Cause::TimedOut, None, Refused::Gone)),
            Ok(Err(error)) => return Err(self.failed(Cause::of(&error), Some(&error), Refused::Gone)),
            Ok(Ok(0)) => return Err(self.failed(Cause::Closed, None, Refused::Gone)),
            Ok(Ok(bytes)) if begins_request(&first[..bytes]) => {
                return Err(self.failed(Cause::PlainHttp, None, Refused::PlainHttp(stream)));
            }
            Ok(Ok(_)) if first[0] != HANDSHAKE_RECORD => {
                return Err(self.failed(Cause::NoTls, None, Refused::Said(stream)));
            }
            Ok(Ok(_)) => {}
        }
        let Ok(Some(_turn)) = timeout_at(self.deadline, self.load.handshakes.wait()).await else {
            self.load.handshakes.note_refused();
            return Err(self.failed(Cause::NoTurn, None, Refused::Gone));
        };
        let acceptor = TlsAcceptor::from(self.tls.config());
        let accept = acceptor.accept_with(MeteredTcp::new(stream), |connection| {
            connection.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        });
        match timeout_at(self.deadline, accept.into_fallible()).await {
            Err(_) => Err(self.failed(Cause::TimedOut, None, Refused::Gone)),
            Ok(Err((error, stream))) => {
                let cause = Cause::of(&error);
                Err(self.failed(cause, Some(&error), Refused::Said(stream.stream)))
            }
            Ok(Ok(stream)) => {
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                let certificate = match shown.map(names::of_client) {
                    None => None,
                    Some(Some(certificate)) => Some(certificate),
                    Some(None) => {
                        let stream = stream.into_inner().0.stream;
                        return Err(self.failed(Cause::ClientCertificateInvalid, None, Refused::Said(stream)));
                    }
                };
                Ok((Socket::Tls(Box::new(stream)), Peer::Tls(certificate)))
            }
        }
    }

    fn failed(&self, cause: Cause, error: Option<&io::Error>, refused: Refused) -> Refused {
        self.tls.failures().note(cause, self.from, error);
        refused
    }
}

/// Whether these are the first bytes of a request: of its method, which is in capitals and ends with a space.
fn begins_request(first: &[u8]) -> bool {
    let mut method = first.split(|byte| *byte == b' ').next().unwrap_or_default().iter();
    first.first().is_some_and(u8::is_ascii_uppercase) && method.all(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_begins_with_a_method() {
        for request in ["G", "GET / HT", "OPTIONS ", "PROPPATC"] {
            assert!(begins_request(request.as_bytes()), "{request}");
        }
        for other in ["", " GET", "get / ht", "SSH-2.0-", "\u{16}\u{3}\u{1}", "220 mail"] {
            assert!(!begins_request(other.as_bytes()), "{other}");
        }
    }
}
