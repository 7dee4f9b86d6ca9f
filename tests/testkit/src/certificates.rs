//! An authority of certificates, what it signs, and clients over TLS.
//!
//! Touches: files in a temporary folder. Keeps: every certificate and its key are in files, as servers and clients read them.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use tempfile::TempDir;

/// The longest wait of a client for bytes.
const READ_TIME_MAX: Duration = Duration::from_secs(60);

/// An authority, and the folder for what it signs.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// A certificate and its key, in files.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate, in PEM.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Authority {
    /// A new authority of this name.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("written");
        Self { issuer, folder }
    }

    /// The file of its certificate.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Signs a certificate, and writes it and its key over what is there.
    pub fn sign(&self, name: &str, with: impl FnOnce(&mut CertificateParams)) -> Pair {
        self.sign_for(name, &KeyPair::generate().expect("a key"), with)
    }

    fn sign_for(&self, name: &str, key: &KeyPair, with: impl FnOnce(&mut CertificateParams)) -> Pair {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        with(&mut params);
        let made = params.signed_by(key, &self.issuer).expect("a certificate");
        let file = |extension: &str| self.folder.path().join(format!("{name}.{extension}"));
        let pair = Pair { certificate: file("pem"), key: file("key") };
        std::fs::write(&pair.certificate, made.pem()).expect("written");
        std::fs::write(&pair.key, key.serialize_pem()).expect("written");
        pair
    }

    /// A certificate of a server on this machine.
    pub fn server(&self, name: &str) -> Pair {
        self.server_with(name, &KeyPair::generate().expect("a key"))
    }

    /// The same with a key of any kind.
    pub fn server_with(&self, name: &str, key: &KeyPair) -> Pair {
        self.sign_for(name, key, |params| {
            params.subject_alt_names = vec![
                SanType::DnsName("localhost".try_into().expect("ASCII")),
                SanType::IpAddress([127, 0, 0, 1].into()),
            ];
        })
    }

    /// A certificate of a client with these URIs.
    pub fn client(&self, name: &str, uris: &[&str]) -> Pair {
        let uri = |uri: &&str| SanType::URI((*uri).try_into().expect("ASCII"));
        self.sign(name, |params| params.subject_alt_names = uris.iter().map(uri).collect())
    }

    /// What a client trusts that trusts this authority.
    pub fn trusted(&self) -> ClientConfig {
        self.trusted_over(&[&rustls::version::TLS13], None)
    }

    /// The same, with other versions, or a certificate.
    pub fn trusted_over(&self, versions: &[&'static SupportedProtocolVersion], pair: Option<&Pair>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("an authority");
        config(roots, versions, pair)
    }
}

/// A client that trusts these authorities.
pub fn config(
    roots: RootCertStore,
    versions: &[&'static SupportedProtocolVersion],
    pair: Option<&Pair>,
) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).expect("versions");
    let builder = builder.with_root_certificates(roots);
    match pair {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let chain = CertificateDer::pem_file_iter(&pair.certificate).expect("a file").collect::<Result<_, _>>();
            let key = PrivateKeyDer::from_pem_file(&pair.key).expect("a key");
            builder.with_client_auth_cert(chain.expect("certificates"), key).expect("a pair")
        }
    }
}

/// A connection over TLS; the handshake comes with the first bytes.
pub fn connect(address: SocketAddr, config: ClientConfig) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(READ_TIME_MAX)).expect("a timeout");
    StreamOwned::new(connection, stream)
}
