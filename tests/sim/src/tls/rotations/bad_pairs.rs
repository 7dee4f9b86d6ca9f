//! Pairs that no server may use, and what must be said of each.

use std::fs;

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use testkit::certificates::{Authority, Pair};

/// Which of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Certificate,
    Key,
    /// The authorities of clients.
    ClientCa,
}

/// What is there instead.
pub(super) enum Content {
    Bytes(Vec<u8>),
    Link(std::path::PathBuf),
    Nothing,
}

/// Makes what is bad of a good pair.
type Made = fn(&Pair, &Authority) -> Vec<(Which, Content)>;

/// A pair that cannot be used.
pub(super) struct BadPair {
    pub(super) name: &'static str,
    /// What is said of it.
    pub(super) says: &'static str,
    pub(super) made: Made,
}

/// Larger than any file of PEM.
const TOO_LARGE_BYTES: usize = 5 << 20;

const fn bad(name: &'static str, says: &'static str, made: Made) -> BadPair {
    BadPair { name, says, made }
}

/// All of them.
pub(super) const BAD_PAIRS: &[BadPair] = &[
    bad("the key of another certificate", "it is not the key of the certificate in", |_, authority| {
        vec![(Which::Key, file(&authority.server("other").key))]
    }),
    bad("expired", "its certificate has expired at 2020-01-01", |_, authority| {
        pair(&authority.sign("expired", |params| {
            (params.not_before, params.not_after) = (date_time_ymd(2019, 1, 1), date_time_ymd(2020, 1, 1));
        }))
    }),
    bad("not valid yet", "its certificate is not valid before 4000-01-01", |_, authority| {
        pair(&authority.sign("early", |params| params.not_before = date_time_ymd(4000, 1, 1)))
    }),
    bad("for clients only", "its certificate is for other uses than those of a server", |_, authority| {
        let usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        pair(&authority.sign("client", |params| params.extended_key_usages = usages))
    }),
    bad("a certificate that is cut", "it is not PEM: a section has no end", |good, _| {
        vec![(Which::Certificate, half(&good.certificate))]
    }),
    bad("a key that is cut", "its private key is cut or mistyped", |good, _| vec![(Which::Key, half(&good.key))]),
    bad("a certificate that is mistyped", "it is not PEM: a section is not base64", |good, _| {
        let text = text(&good.certificate).replacen("\nM", "\n%", 1);
        vec![(Which::Certificate, Content::Bytes(text.into()))]
    }),
    bad("an empty certificate", "it has no certificate", |_, _| vec![(Which::Certificate, Content::Bytes(Vec::new()))]),
    bad("an empty key", "it has no private key", |_, _| vec![(Which::Key, Content::Bytes(Vec::new()))]),
    bad("an encrypted key", "its key is encrypted", |good, _| {
        let text = text(&good.key).replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        vec![(Which::Key, Content::Bytes(text.into()))]
    }),
    bad("a key that is encrypted in the old way", "its key is encrypted", |good, _| {
        let head = "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n";
        vec![(Which::Key, Content::Bytes(text(&good.key).replacen("PRIVATE KEY-----", head, 1).into()))]
    }),
    bad("no certificate", "No such file", |_, _| vec![(Which::Certificate, Content::Nothing)]),
    bad("no key", "No such file", |_, _| vec![(Which::Key, Content::Nothing)]),
    bad("a link that leads nowhere", "No such file", |_, _| vec![(Which::Key, Content::Link("nowhere".into()))]),
    bad("a link that leads to itself", "symbolic links", |_, _| vec![(Which::Key, Content::Link("tls.key".into()))]),
    bad("a folder", "it is no file of PEM", |_, _| vec![(Which::Certificate, Content::Link("/".into()))]),
    bad("a device", "it is no file of PEM", |_, _| vec![(Which::Key, Content::Link("/dev/zero".into()))]),
    // Not even the administrator of the machine can read its first byte.
    bad("a file that cannot be read", "Input/output error", |_, _| {
        vec![(Which::Certificate, Content::Link("/proc/self/mem".into()))]
    }),
    bad("a file that is too large", "it is no file of PEM", |_, _| {
        vec![(Which::Certificate, Content::Bytes(vec![b'\n'; TOO_LARGE_BYTES]))]
    }),
    bad("a certificate of garbage", "it has no certificate", |_, _| vec![(Which::Certificate, garbage())]),
    bad("a key of garbage", "it has no private key", |_, _| vec![(Which::Key, garbage())]),
    bad("a certificate that is not in PEM", "it has no certificate", |good, _| {
        let found = CertificateDer::from_pem_file(&good.certificate).expect("a certificate");
        vec![(Which::Certificate, Content::Bytes(found.to_vec()))]
    }),
    bad("a request for a certificate", "it has no certificate", |_, _| {
        let key = KeyPair::generate().expect("a key");
        let request = CertificateParams::default().serialize_request(&key).and_then(|request| request.pem());
        vec![(Which::Certificate, Content::Bytes(request.expect("a request").into()))]
    }),
    bad("a public key", "it has no private key", |_, _| {
        let key = KeyPair::generate().expect("a key").public_key_pem();
        vec![(Which::Key, Content::Bytes(key.into()))]
    }),
    bad("each in the file of the other", "it has no certificate", |good, _| {
        vec![(Which::Certificate, file(&good.key)), (Which::Key, file(&good.certificate))]
    }),
    bad("a chain in the wrong order", "its certificates are in the wrong order", |good, authority| {
        let chain = text(&authority.file()) + &text(&good.certificate);
        vec![(Which::Certificate, Content::Bytes(chain.into()))]
    }),
    bad("a chain with something else in it", "number 2, is none", |good, _| {
        let chain = text(&good.certificate) + "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        vec![(Which::Certificate, Content::Bytes(chain.into()))]
    }),
    bad("authorities of clients that are empty", "it has no certificate", |_, _| {
        vec![(Which::ClientCa, Content::Bytes(Vec::new()))]
    }),
];

fn pair(made: &Pair) -> Vec<(Which, Content)> {
    vec![(Which::Certificate, file(&made.certificate)), (Which::Key, file(&made.key))]
}

fn file(path: &std::path::Path) -> Content {
    Content::Bytes(fs::read(path).expect("read"))
}

fn text(path: &std::path::Path) -> String {
    fs::read_to_string(path).expect("text")
}

fn half(path: &std::path::Path) -> Content {
    let mut bytes = fs::read(path).expect("read");
    bytes.truncate(bytes.len() / 2);
    Content::Bytes(bytes)
}

fn garbage() -> Content {
    Content::Bytes((0..4_096_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect())
}
