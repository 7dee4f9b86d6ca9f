//! Clients that offer what no server has, and one that shows a certificate whose key it has not.

use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::crypto::{ActiveKeyExchange, CryptoProvider, SharedSecret, SupportedKxGroup, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CipherSuite, CipherSuiteCommon, ClientConfig, NamedGroup, RootCertStore, SupportedCipherSuite, Tls13CipherSuite,
};
use testkit::certificates::{Authority, Pair};

/// A group that this program knows, under the name of another.
#[derive(Debug)]
struct Renamed(&'static dyn SupportedKxGroup);

/// The other name: ring does not have it.
const OTHER_GROUP: NamedGroup = NamedGroup::secp521r1;

impl SupportedKxGroup for Renamed {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        Ok(Box::new(RenamedExchange(self.0.start()?)))
    }

    fn name(&self) -> NamedGroup {
        OTHER_GROUP
    }
}

struct RenamedExchange(Box<dyn ActiveKeyExchange>);

impl ActiveKeyExchange for RenamedExchange {
    fn complete(self: Box<Self>, peer_pub_key: &[u8]) -> Result<SharedSecret, rustls::Error> {
        self.0.complete(peer_pub_key)
    }

    fn pub_key(&self) -> &[u8] {
        self.0.pub_key()
    }

    fn group(&self) -> NamedGroup {
        OTHER_GROUP
    }
}

/// A client whose keys are agreed on in a group that no server here has.
pub(super) fn with_another_group(authority: &Authority) -> ClientConfig {
    static GROUP: Renamed = Renamed(ring::kx_group::X25519);
    config(authority, CryptoProvider { kx_groups: vec![&GROUP], ..ring::default_provider() })
}

/// A client whose only cipher no server here has.
pub(super) fn with_another_cipher(authority: &Authority) -> ClientConfig {
    let known = ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().expect("it is of TLS 1.3");
    let common = CipherSuiteCommon {
        suite: CipherSuite::TLS13_AES_128_CCM_SHA256,
        hash_provider: known.common.hash_provider,
        confidentiality_limit: known.common.confidentiality_limit,
    };
    let other =
        Tls13CipherSuite { common, hkdf_provider: known.hkdf_provider, aead_alg: known.aead_alg, quic: known.quic };
    // A suite lives as long as the program, and this is made once in a case.
    let other = SupportedCipherSuite::Tls13(Box::leak(Box::new(other)));
    config(authority, CryptoProvider { cipher_suites: vec![other], ..ring::default_provider() })
}

fn config(authority: &Authority, provider: CryptoProvider) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.file()).expect("a file")).expect("an authority");
    let builder = ClientConfig::builder_with_provider(Arc::new(provider));
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).expect("a version");
    builder.with_root_certificates(roots).with_no_client_auth()
}

/// A client that shows a certificate, and signs with the key of another.
pub(super) fn with_the_key_of(authority: &Authority, shown: &Pair, other: &Pair) -> ClientConfig {
    let key = PrivateKeyDer::from_pem_file(&other.key).expect("a key");
    let key = ring::sign::any_supported_type(&key).expect("a key that signs");
    let chain = vec![CertificateDer::from_pem_file(&shown.certificate).expect("a certificate")];
    let resolver: Arc<dyn ResolvesClientCert> = Arc::new(SingleCertAndKey::from(CertifiedKey::new(chain, key)));
    let mut config = authority.trusted();
    config.client_auth_cert_resolver = resolver;
    config
}
