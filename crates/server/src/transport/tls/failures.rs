//! Why handshakes fail: counted by cause, and logged.
//!
//! Keeps: every failure is counted, and however many there are, the log has at most one line for each cause in [`LOG_EVERY`].

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use tokio::time::Instant;

/// How often the log says that handshakes fail for one cause.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Makes the causes, their names, and the list of them.
macro_rules! causes {
    ($($cause:ident = $name:literal, $said:literal;)*) => {
        /// Why a handshake fails.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Cause {
            $(#[doc = $said] $cause,)*
        }

        /// The name of every cause, as a label of a metric.
        pub(crate) const CAUSES: &[&str] = &[$($name),*];

        impl Cause {
            /// Its name.
            pub(crate) fn name(self) -> &'static str {
                CAUSES[self as usize]
            }

            /// The same for people.
            fn said(self) -> &'static str {
                [$($said),*][self as usize]
            }
        }
    };
}

causes! {
    PlainHttp = "plain_http", "the client speaks HTTP without TLS";
    NoTls = "no_tls", "the client does not speak TLS";
    NoCommonVersion = "no_common_version", "the client does not speak TLS 1.3";
    NoCommonCipher = "no_common_cipher", "the client and the server have no algorithm in common";
    NoCommonProtocol = "no_common_protocol", "the client does not speak HTTP/1.1 over TLS";
    ServerUnknownCa = "server_unknown_ca", "the client does not know the authority of this server's certificate";
    ServerCertificateRefused = "server_certificate_refused", "the client refuses this server's certificate";
    ClientUnknownCa = "client_unknown_ca", "the certificate of the client is of an authority that is not in tls_client_ca";
    ClientKeyWrong = "client_key_wrong", "the client does not have the key of the certificate that it shows";
    ClientCertificateExpired = "client_certificate_expired", "the certificate of the client has expired";
    ClientCertificateEarly = "client_certificate_early", "the certificate of the client is not valid yet";
    ClientCertificateInvalid = "client_certificate_invalid", "the certificate of the client cannot be used";
    TimedOut = "timed_out", "the handshake took longer than handshake_time_max";
    NoTurn = "no_turn", "handshakes_max others were under way for all of handshake_time_max";
    Closed = "closed", "the client closed the connection in the middle";
    Malformed = "malformed", "the client broke the protocol";
    Other = "other", "another reason";
}

impl Cause {
    /// The cause of what the TLS library returns.
    pub(crate) fn of(error: &io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        match (inner, error.kind()) {
            (Some(error), _) => Self::of_protocol(error),
            (None, io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
                Self::Closed
            }
            _ => Self::Other,
        }
    }

    fn of_protocol(error: &Error) -> Self {
        match error {
            Error::PeerIncompatible(PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon) => {
                Self::ClientCertificateInvalid
            }
            Error::PeerIncompatible(
                PeerIncompatible::SupportedVersionsExtensionRequired
                | PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled,
            )
            | Error::AlertReceived(AlertDescription::ProtocolVersion) => Self::NoCommonVersion,
            Error::PeerIncompatible(_) | Error::AlertReceived(AlertDescription::HandshakeFailure) => {
                Self::NoCommonCipher
            }
            Error::NoApplicationProtocol => Self::NoCommonProtocol,
            Error::AlertReceived(AlertDescription::UnknownCA) => Self::ServerUnknownCa,
            Error::AlertReceived(
                AlertDescription::BadCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::AccessDenied,
            ) => Self::ServerCertificateRefused,
            Error::AlertReceived(AlertDescription::CloseNotify | AlertDescription::UserCanceled) => Self::Closed,
            Error::InvalidCertificate(error) => Self::of_certificate(error),
            Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::PeerMisbehaved(_)
            | Error::DecryptError
            | Error::PeerSentOversizedRecord
            | Error::AlertReceived(_) => Self::Malformed,
            _ => Self::Other,
        }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::ClientCertificateExpired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::ClientCertificateEarly,
            CertificateError::UnknownIssuer => Self::ClientUnknownCa,
            // Of the handshake: `client_verifier` calls that of an authority otherwise.
            CertificateError::BadSignature => Self::ClientKeyWrong,
            _ => Self::ClientCertificateInvalid,
        }
    }
}

/// The failures of a server.
pub(crate) struct Failures {
    counts: [AtomicU64; CAUSES.len()],
    /// When the log last said each cause, and how many there were then.
    logged: Mutex<[Option<(Instant, u64)>; CAUSES.len()]>,
}

impl Default for Failures {
    fn default() -> Self {
        Self { counts: std::array::from_fn(|_| AtomicU64::new(0)), logged: Mutex::default() }
    }
}

impl fmt::Debug for Failures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.counts()).finish()
    }
}

impl Failures {
    /// Counts a failure, and logs it unless the log has just said the same.
    pub(super) fn note(&self, cause: Cause, peer: SocketAddr, error: Option<&io::Error>) {
        let count = self.counts[cause as usize].fetch_add(1, Ordering::Relaxed) + 1;
        let Some(since) = self.turn_to_log(cause, count) else { return };
        let (detail, error) = (cause.said(), error.map(ToString::to_string));
        tracing::warn!(cause = cause.name(), %peer, count = since, error, "tls handshake failed: {detail}");
    }

    /// How many there were since the last time, if it is time to log them.
    fn turn_to_log(&self, cause: Cause, count: u64) -> Option<u64> {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let last = &mut logged[cause as usize];
        if last.is_some_and(|(at, _)| at.elapsed() < LOG_EVERY) {
            return None;
        }
        let before = last.replace((Instant::now(), count)).map_or(0, |(_, before)| before);
        Some(count.saturating_sub(before))
    }

    /// Each cause and how often it was one.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CAUSES.iter().copied().zip(self.counts.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn every_failure_is_counted_and_few_are_logged() {
        let failures = Failures::default();
        let turns =
            |of: &[(Cause, u64)]| of.iter().map(|(cause, count)| failures.turn_to_log(*cause, *count)).collect();
        let first: Vec<_> = turns(&[(Cause::Closed, 1), (Cause::Closed, 2), (Cause::TimedOut, 1), (Cause::Closed, 3)]);
        assert_eq!(first, [Some(1), None, Some(1), None]);
        tokio::time::advance(LOG_EVERY).await;
        let second: Vec<_> = turns(&[(Cause::Closed, 4), (Cause::Closed, 5)]);
        assert_eq!(second, [Some(3), None], "those that were not said are said together");
        for _ in 0..3 {
            failures.note(Cause::Malformed, ([127, 0, 0, 1], 1).into(), None);
        }
        assert!(failures.counts().any(|counted| counted == ("malformed", 3)));
    }

    #[test]
    fn what_no_test_client_does_has_its_cause_too() {
        let of = |error: Error| Cause::of(&io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(of(Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon)), Cause::NoCommonCipher);
        assert_eq!(of(Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon)), Cause::NoCommonCipher);
        assert_eq!(of(Error::AlertReceived(AlertDescription::CertificateExpired)), Cause::ServerCertificateRefused);
        assert_eq!(of(Error::InvalidCertificate(CertificateError::BadEncoding)), Cause::ClientCertificateInvalid);
        assert_eq!(of(Error::DecryptError), Cause::Malformed);
        assert_eq!(of(Error::FailedToGetRandomBytes), Cause::Other);
        assert_eq!(Cause::of(&io::ErrorKind::ConnectionReset.into()), Cause::Closed);
        assert_eq!(Cause::of(&io::ErrorKind::PermissionDenied.into()), Cause::Other);
    }

    #[test]
    fn causes_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = CAUSES.iter().collect();
        assert_eq!(names.len(), CAUSES.len());
        assert_eq!((Cause::PlainHttp.name(), Cause::Other.name()), ("plain_http", "other"));
    }
}
