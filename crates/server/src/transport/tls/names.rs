//! What is read in a certificate: when it is valid, and the URIs among its subject alternative names.

use std::time::{Duration, SystemTime};

use contract::access::Identity;
use contract::limits::IDENTITIES_MAX;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage};

use crate::transport::ClientCertificate;

/// Refuses what is no certificate.
pub(super) fn check_readable(certificate: &CertificateDer<'_>) -> Result<(), Error> {
    EndEntityCert::try_from(certificate).map(drop)
}

/// Whether a certificate says that it is for servers, or does not say what it is for. It is asked at a time when it is valid, which is
/// compared before.
pub(super) fn is_for_servers(certificate: &CertificateDer<'_>, at: SystemTime) -> bool {
    let at = UnixTime::since_unix_epoch(at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return false };
    // Nobody has signed it here, so it is refused in any case.
    let refused = certificate.verify_for_usage(&[], &[], &[], at, KeyUsage::server_auth(), None, None).map(drop);
    !matches!(refused, Err(Error::RequiredEkuNotFoundContext(_) | Error::EmptyEkuExtension))
}

/// From when to when a certificate is valid; none if it is no certificate.
///
/// The library tells these times only when it refuses a certificate because of them, and compares them before anything else: so it is
/// asked about the beginning and the end of time.
pub(super) fn validity(certificate: &CertificateDer<'_>) -> Option<(SystemTime, SystemTime)> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let refused_at = |at: Duration| {
        let at = UnixTime::since_unix_epoch(at);
        certificate.verify_for_usage(&[], &[], &[], at, KeyUsage::server_auth(), None, None).map(drop).err()
    };
    let not_before = match refused_at(Duration::ZERO) {
        Some(Error::CertNotValidYet { not_before, .. }) => not_before.as_secs(),
        _ => 0,
    };
    let Some(Error::CertExpired { not_after, .. }) = refused_at(Duration::from_secs(u64::MAX)) else { return None };
    let at = |seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    Some((at(not_before)?, at(not_after.as_secs())?))
}

/// What matters of the certificate of a client that a handshake has verified. None if it cannot be used: it has more URIs than a
/// principal can have, and of which of them a sender is known must not depend on those that are looked at.
pub(super) fn of_client(certificate: &CertificateDer<'_>) -> Option<ClientCertificate> {
    let (_, not_after) = validity(certificate)?;
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    let uris = parsed.valid_uri_names().take(IDENTITIES_MAX + 1).map(|uri| Identity::Uri(uri.to_owned()));
    let uris: Vec<_> = uris.collect();
    (uris.len() <= IDENTITIES_MAX).then_some(ClientCertificate { uris, not_after })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SanType, date_time_ymd};

    use super::*;

    fn made(with: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        with(&mut params);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").der().clone()
    }

    #[test]
    fn the_times_of_a_certificate_are_read() {
        let at = |days: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400);
        let made = made(|params| {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        });
        assert_eq!(validity(&made), Some((at(11_323), at(11_688))));
        assert_eq!(validity(&CertificateDer::from(vec![48, 3, 1, 2, 3])), None);
        assert_eq!(validity(&CertificateDer::from(Vec::new())), None);
    }

    #[test]
    fn the_uris_of_a_client_are_read_and_nothing_else() {
        let uri = |uri: &str| SanType::URI(uri.try_into().expect("ASCII"));
        let two = made(|params| {
            params.subject_alt_names.extend([uri("spiffe://example.org/a"), uri("spiffe://example.org/b")]);
        });
        let found = of_client(&two).expect("a certificate");
        let expected = ["spiffe://example.org/a", "spiffe://example.org/b"];
        assert_eq!(found.uris, expected.map(|uri| Identity::Uri(uri.to_owned())));
        let with = |count: usize| {
            made(|params| {
                params.subject_alt_names.extend((0..count).map(|number| uri(&format!("a:{number}"))));
            })
        };
        assert_eq!(of_client(&with(IDENTITIES_MAX)).map(|found| found.uris.len()), Some(IDENTITIES_MAX));
        assert_eq!(of_client(&with(IDENTITIES_MAX + 1)), None, "one of the others could be known, too");
    }
}
