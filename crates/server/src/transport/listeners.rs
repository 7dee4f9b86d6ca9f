//! Where a server listens, and what it refuses to listen on.
//!
//! Keeps: other machines reach a server only over TLS and with tokens, unless whoever starts it insists.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::tls::Tls;
use super::unix_socket::UnixSocket;
use crate::serving::ServeError;

/// What protects a server that other machines can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// Whether it speaks TLS.
    pub has_tls: bool,
    /// Whether requests must show who sends them.
    pub asks_for_tokens: bool,
    /// Whether it may be reached without one of them.
    pub is_insecure_allowed: bool,
}

impl Exposure {
    /// Refuses an address beyond this machine that is not protected. Returns what is missing if that is allowed, as text for
    /// people; none if nothing is missing.
    pub fn check(self, address: SocketAddr) -> Result<Option<String>, ServeError> {
        if address.ip().is_loopback() {
            return Ok(None);
        }
        let missing = match (self.has_tls, self.asks_for_tokens) {
            (true, true) => return Ok(None),
            (false, false) => "TLS and tokens",
            (false, true) => "TLS",
            (true, false) => "tokens",
        };
        match self.is_insecure_allowed {
            true => Ok(Some(format!("other machines reach {address} without {missing}"))),
            false => Err(ServeError::NotLoopback { address, missing }),
        }
    }
}

/// The sockets that a server listens on.
#[derive(Debug)]
pub struct Listeners {
    tcp: TcpListener,
    tls: Option<Arc<Tls>>,
    unix: Option<UnixSocket>,
    insecure: Option<String>,
}

impl From<TcpListener> for Listeners {
    fn from(tcp: TcpListener) -> Self {
        Self { tcp, tls: None, unix: None, insecure: None }
    }
}

impl Listeners {
    /// Listens on an address, if that is protected as it must be.
    pub async fn bind(address: SocketAddr, exposure: Exposure) -> Result<Self, ServeError> {
        exposure.check(address)?;
        let tcp = TcpListener::bind(address).await.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse(address),
            _ => error.into(),
        })?;
        // With the port that it has got.
        let insecure = exposure.check(tcp.local_addr()?)?;
        Ok(Self { insecure, ..Self::from(tcp) })
    }

    /// Speaks TLS on the address, and nothing else.
    pub fn over_tls(self, tls: Arc<Tls>) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Listens on a socket in the file system, too. Its file is removed when the server has stopped.
    pub fn and_on_socket(self, path: &Path) -> Result<Self, ServeError> {
        Ok(Self { unix: Some(UnixSocket::bind(path)?), ..self })
    }

    /// The address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// The socket in the file system.
    pub fn socket(&self) -> Option<&Path> {
        self.unix.as_ref().map(UnixSocket::path)
    }

    /// The certificates of the address.
    pub fn tls(&self) -> Option<&Arc<Tls>> {
        self.tls.as_ref()
    }

    /// What protection is missing, for people.
    pub fn insecure(&self) -> Option<&str> {
        self.insecure.as_deref()
    }

    /// How much the system buffers for each connection that is accepted from here on.
    pub(crate) fn set_send_buffer_size(&self, bytes: usize) -> io::Result<()> {
        socket2::SockRef::from(&self.tcp).set_send_buffer_size(bytes)?;
        match &self.unix {
            Some(unix) => socket2::SockRef::from(&unix.listener).set_send_buffer_size(bytes),
            None => Ok(()),
        }
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> io::Result<Arrived> {
        let Some(unix) = &self.unix else {
            return self.tcp.accept().await.map(|(stream, from)| Arrived::Tcp(stream, from));
        };
        tokio::select! {
            accepted = self.tcp.accept() => accepted.map(|(stream, from)| Arrived::Tcp(stream, from)),
            accepted = unix.listener.accept() => accepted.map(|(stream, _)| Arrived::Unix(stream)),
        }
    }
}

/// A connection that was accepted, and has sent nothing yet.
pub(crate) enum Arrived {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_this_machine_there_are_tls_and_tokens_or_somebody_insists() {
        let check = |address: &str, has_tls, asks_for_tokens, is_insecure_allowed| {
            let exposure = Exposure { has_tls, asks_for_tokens, is_insecure_allowed };
            exposure.check(address.parse().expect("an address"))
        };
        for here in ["127.0.0.1:1", "127.8.0.1:1", "[::1]:1"] {
            assert!(matches!(check(here, false, false, false), Ok(None)), "{here}");
        }
        for beyond in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1"] {
            assert!(matches!(check(beyond, true, true, false), Ok(None)), "{beyond}");
            for (tls, tokens, missing) in
                [(false, false, "TLS and tokens"), (false, true, "TLS"), (true, false, "tokens")]
            {
                let refused = check(beyond, tls, tokens, false).expect_err("not protected").to_string();
                assert!(refused.contains(beyond) && refused.contains(&format!("without {missing};")), "{refused}");
                let allowed = check(beyond, tls, tokens, true).expect("somebody insists").expect("missing");
                assert!(allowed.contains(beyond) && allowed.ends_with(&format!("without {missing}")), "{allowed}");
            }
        }
    }
}
