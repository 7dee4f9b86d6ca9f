//! A certificate, its key and the authorities of clients: read from files, and checked before they are used.
//!
//! Touches: the files. Keeps: an error names the file, what is wrong with it, and one safe next step, and never repeats what the
//! files have.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{Error, InconsistentKeys, RootCertStore, ServerConfig};

use super::client_verifier::ClientVerifier;
use super::{names, provider, shown};
use crate::dates::wall_now;

/// The only protocol over TLS.
const PROTOCOL: &[u8] = b"http/1.1";

/// Much larger than any chain or bundle; a device would not end.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The files of a server's certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities of client certificates; without them, no client is asked for one.
    pub client_ca: Option<PathBuf>,
}

/// Why files cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {wrong}; {next}", file.display())]
pub struct TlsError {
    file: PathBuf,
    wrong: String,
    next: &'static str,
}

impl TlsError {
    fn new(file: &Path, wrong: impl Into<String>, next: &'static str) -> Self {
        Self { file: file.to_owned(), wrong: wrong.into(), next }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

/// What was read, ready for handshakes.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) config: Arc<ServerConfig>,
    /// Until when the certificate is valid.
    pub(super) not_after: SystemTime,
}

impl TlsFiles {
    /// Every file.
    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Reads and checks the files.
    pub(super) fn load(&self) -> Result<Loaded, TlsError> {
        let chain = certificates(&self.certificate)?;
        let not_after = check_chain(&self.certificate, &chain)?;
        let key = private_key(&self.key)?;
        let provider = provider();
        let key = provider.key_provider.load_private_key(key).map_err(|error| self.unusable(&error))?;
        let certified = CertifiedKey::new(chain, key);
        match certified.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(_) if place_of_key(&certified).is_some() => return Err(self.in_wrong_order()),
            Err(error) => return Err(self.unusable(&error)),
        }
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| self.unusable(&error))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let roots = Arc::new(authorities(file)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).allow_unauthenticated();
                let verifier = verifier.build().map_err(|error| {
                    TlsError::new(file, error.to_string(), "put at least one certificate of an authority into it")
                })?;
                builder.with_client_cert_verifier(Arc::new(ClientVerifier(verifier)))
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // A session that is resumed skips the check of the client's certificate, so none is.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.max_early_data_size = 0;
        Ok(Loaded { config: Arc::new(config), not_after })
    }

    fn in_wrong_order(&self) -> TlsError {
        TlsError::new(
            &self.certificate,
            format!(
                "its certificates are in the wrong order: the first one is not that of the key in {}",
                self.key.display()
            ),
            "put the certificate of the server first, and those between it and its authority behind it",
        )
    }

    /// The certificate and the key were both read, and do not work.
    fn unusable(&self, error: &Error) -> TlsError {
        match error {
            Error::InconsistentKeys(_) => TlsError::new(
                &self.key,
                format!("it is not the key of the certificate in {}", self.certificate.display()),
                "give the key that the certificate was made with, or have another certificate made",
            ),
            Error::InvalidCertificate(_) => TlsError::new(
                &self.certificate,
                format!("its first certificate cannot be used by a server: {error}"),
                "have another one made, of X.509 version 3",
            ),
            _ => TlsError::new(
                &self.key,
                format!("it has a key that cannot be used: {error}"),
                "make an ECDSA key on P-256 or P-384, an Ed25519 key, or an RSA key of 2,048 bits or more",
            ),
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |error: std::io::Error| {
        TlsError::new(file, error.to_string(), "check the path, and that the server may read the file")
    };
    let found = std::fs::metadata(file).map_err(failed)?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(TlsError::new(file, "it is no file of PEM", "check the path"));
    }
    std::fs::read(file).map_err(failed)
}

/// The certificates of a file; at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const NEXT: &str = "put certificates in PEM into it, which start with -----BEGIN CERTIFICATE-----";
    let text = read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| TlsError::new(file, format!("it is not PEM: {}", said(&error)), NEXT))?;
    match found.is_empty() {
        true => Err(TlsError::new(file, "it has no certificate", NEXT)),
        false => Ok(found),
    }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    const NEXT: &str = "put one private key in PEM into it, not encrypted";
    let text = read(file)?;
    let has = |sign: &[u8]| text.windows(sign.len()).any(|window| window == sign);
    // As PKCS #8 has it, and as OpenSSL wrote it before.
    if has(b"BEGIN ENCRYPTED") || has(b"Proc-Type: 4,ENCRYPTED") {
        return Err(TlsError::new(file, "its key is encrypted, and nobody is there to enter a password", NEXT));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        PemError::NoItemsFound => TlsError::new(file, "it has no private key", NEXT),
        // What is wrong with a key is not repeated: it could be a part of it.
        _ => TlsError::new(file, "its private key is cut or mistyped", NEXT),
    })
}

/// What is wrong with PEM, in words without its text.
fn said(error: &PemError) -> &'static str {
    match error {
        PemError::MissingSectionEnd { .. } => "a section has no end",
        PemError::IllegalSectionStart { .. } => "a section starts in a wrong way",
        PemError::Base64Decode(_) => "a section is not base64",
        PemError::SectionTooLarge => "a section is too large",
        _ => "it cannot be read",
    }
}

/// Where in a chain the certificate of its key is.
fn place_of_key(certified: &CertifiedKey) -> Option<usize> {
    let alone =
        |certificate: &CertificateDer<'static>| CertifiedKey::new(vec![certificate.clone()], certified.key.clone());
    certified.cert.iter().position(|certificate| alone(certificate).keys_match().is_ok())
}

/// Refuses a chain that no client would accept now. Returns until when its first certificate is valid.
fn check_chain(file: &Path, chain: &[CertificateDer<'_>]) -> Result<SystemTime, TlsError> {
    const ANOTHER: &str = "have another one made";
    for (place, certificate) in chain.iter().enumerate() {
        match names::check_readable(certificate) {
            Ok(()) => {}
            // Old authorities have such certificates, and nobody needs them here.
            Err(webpki::Error::UnsupportedCertVersion) if place > 0 => {}
            Err(error) => {
                let wrong = format!("what is marked as a certificate in it, number {}, is none: {error}", place + 1);
                return Err(TlsError::new(file, wrong, "have another one made, of X.509 version 3"));
            }
        }
    }
    let unreadable = || TlsError::new(file, "the time for which its certificate is valid cannot be read", ANOTHER);
    let first = chain.first().ok_or_else(unreadable)?;
    let (not_before, not_after) = names::validity(first).ok_or_else(unreadable)?;
    let now = wall_now();
    if now < not_before {
        let wrong = format!("its certificate is not valid before {}, and it is {} here", shown(not_before), shown(now));
        return Err(TlsError::new(file, wrong, "check the clock of this machine, or have another one made"));
    }
    if now > not_after {
        let wrong = format!("its certificate has expired at {}, and it is {} here", shown(not_after), shown(now));
        return Err(TlsError::new(file, wrong, ANOTHER));
    }
    if !names::is_for_servers(first, not_after) {
        let next = "have one made for servers, with the extended key usage serverAuth";
        return Err(TlsError::new(file, "its certificate is for other uses than those of a server", next));
    }
    Ok(not_after)
}

fn authorities(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| {
            let wrong = format!("a certificate in it is not one of an authority: {error}");
            TlsError::new(file, wrong, "put only certificates of authorities into it")
        })?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests;
