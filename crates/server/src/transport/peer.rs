//! What a connection says about its sender, before any request: the certificate of a client, or a user of this machine.

use std::time::{Duration, SystemTime};

use contract::access::Identity;

/// What the system tells of every user that the server's user namespace does not map, all of them alike: under `PrivateUsers=` of
/// systemd, that is everybody but root and the server itself. Nobody can be known by it.
pub(crate) const UNMAPPED_USER: u32 = 65_534;

/// How a connection came, and who is at its other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Over TCP: whoever reaches the address.
    Tcp,
    /// Over TLS, perhaps with a certificate that the handshake has verified.
    Tls(Option<ClientCertificate>),
    /// Over a socket of this machine, from a process of this user.
    User(u32),
}

/// What matters of a certificate that a client has proved to be its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientCertificate {
    /// The URIs among its subject alternative names.
    pub(crate) uris: Vec<Identity>,
    /// Until when it is valid. A connection can last longer.
    pub(crate) not_after: SystemTime,
}

impl Peer {
    /// Whether nobody between the two ends can read or change what is sent.
    pub(crate) fn is_over_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

impl ClientCertificate {
    /// Until when it is valid, µs since 1970 in UTC.
    pub(crate) fn not_after_us(&self) -> u64 {
        let since = self.not_after.duration_since(SystemTime::UNIX_EPOCH);
        since.ok().map(|since: Duration| since.as_micros()).and_then(|us| u64::try_from(us).ok()).unwrap_or(0)
    }
}
