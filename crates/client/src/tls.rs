//! TLS of a client: the authorities that it trusts, and the certificate that shows who it is.
//!
//! Touches: the files. Keeps: TLS 1.3 and nothing older; the name of the server is always compared with its certificate. Never: goes
//! on with files that cannot be used.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// Names the file with the authorities of servers.
pub const CA_FILE_VARIABLE: &str = "STATEHOUSE_CA_FILE";

/// Names the file with the certificate of the client.
pub const CERTIFICATE_FILE_VARIABLE: &str = "STATEHOUSE_CERTIFICATE_FILE";

/// Names the file with its private key.
pub const KEY_FILE_VARIABLE: &str = "STATEHOUSE_KEY_FILE";

/// The files that a client uses for servers at `https://`, all of them in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsFiles {
    /// The authorities that it trusts; without them, those of the system.
    pub ca_file: Option<PathBuf>,
    /// Its certificate, if it shows one.
    pub certificate_file: Option<PathBuf>,
    /// The private key of that certificate.
    pub key_file: Option<PathBuf>,
}

impl TlsFiles {
    /// Those that the environment names: `STATEHOUSE_CA_FILE`, `STATEHOUSE_CERTIFICATE_FILE` and `STATEHOUSE_KEY_FILE`.
    pub fn of_environment() -> Self {
        let file = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self {
            ca_file: file(CA_FILE_VARIABLE),
            certificate_file: file(CERTIFICATE_FILE_VARIABLE),
            key_file: file(KEY_FILE_VARIABLE),
        }
    }

    /// Sets [`ca_file`](Self::ca_file).
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(file.into());
        self
    }

    /// Sets [`certificate_file`](Self::certificate_file) and [`key_file`](Self::key_file).
    pub fn certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        (self.certificate_file, self.key_file) = (Some(certificate.into()), Some(key.into()));
        self
    }

    /// The authorities, for people.
    pub(crate) fn authorities(&self) -> String {
        self.ca_file.as_ref().map_or_else(|| "the system".to_owned(), |file| file.display().to_string())
    }

    /// Reads the files.
    pub(crate) fn config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| error.to_string())?;
        let builder = builder.with_root_certificates(self.roots()?);
        match (&self.certificate_file, &self.key_file) {
            (None, None) => Ok(builder.with_no_client_auth()),
            (Some(certificate), Some(key)) => {
                let pair = builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?);
                pair.map_err(|error| {
                    let (certificate, key) = (certificate.display(), key.display());
                    format!("{key} cannot be used as the key of the certificate in {certificate}: {error}")
                })
            }
            (Some(_), None) => {
                Err(format!("{CERTIFICATE_FILE_VARIABLE} is set, and {KEY_FILE_VARIABLE} is not; set both"))
            }
            (None, Some(_)) => {
                Err(format!("{KEY_FILE_VARIABLE} is set, and {CERTIFICATE_FILE_VARIABLE} is not; set both"))
            }
        }
    }

    fn roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        match &self.ca_file {
            Some(file) => {
                for certificate in certificates(file)? {
                    let refused =
                        |error| format!("{}: a certificate in it is not one of an authority: {error}", file.display());
                    roots.add(certificate).map_err(refused)?;
                }
            }
            None => {
                // Some of a system's authorities are always odd; the others count.
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err(format!(
                        "the system has no authorities of certificates; name a file with {CA_FILE_VARIABLE}"
                    ));
                }
            }
        }
        Ok(roots)
    }
}

/// For a transport that never uses TLS: trusts nobody, and reads nothing.
pub(crate) fn none() -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(&read(file)?).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => {
            Err(format!("{} has no certificate in PEM, which starts with -----BEGIN CERTIFICATE-----", file.display()))
        }
    }
}

/// The error does not repeat what is no key: it may be most of one.
fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let found = PrivateKeyDer::from_pem_slice(&read(file)?);
    found.map_err(|_| format!("{} has no private key in PEM that is not encrypted", file.display()))
}

/// Why TLS failed, in words that say where to look, and whether the server may have seen a request that was sent over it. Only the
/// server can say that it has not, and by what cannot be forged: an alert about the certificate of the client, with which its side of
/// the handshake ends.
pub(crate) fn cause(error: &rustls::Error, authorities: &str) -> (String, bool) {
    use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};
    let said = match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            let name = format!("name the file of that authority with {CA_FILE_VARIABLE}");
            format!("the certificate of the server is of an authority that is not known to {authorities}; {name}")
        }
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!("the certificate of the server is for other names: {error}"),
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "the certificate of the server has expired".to_owned()
        }
        Error::InvalidCertificate(_) => format!("the certificate of the server cannot be used: {error}"),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS; try http:// instead of https://".to_owned()
        }
        // Servers say these of the certificate of a client, after it has sent its first request, and have not looked at that.
        Error::AlertReceived(AlertDescription::UnknownCA | AlertDescription::DecryptError) => {
            return ("the server does not know the authority of this client's certificate".to_owned(), false);
        }
        Error::AlertReceived(AlertDescription::CertificateExpired) => {
            return ("the certificate of this client has expired".to_owned(), false);
        }
        Error::AlertReceived(
            AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRevoked
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRequired
            | AlertDescription::AccessDenied,
        ) => return (format!("the server refuses the certificate of this client: {error}"), false),
        Error::AlertReceived(AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure) => {
            format!("the server does not speak TLS 1.3: {error}")
        }
        Error::PeerIncompatible(_) => format!("the server does not speak TLS 1.3: {error}"),
        _ => format!("TLS failed: {error}"),
    };
    (said, true)
}
