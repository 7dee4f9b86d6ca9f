//! Measures whole TLS 1.3 handshakes in memory, on one thread, and bytes from a server to a client: `tls-providers [SECONDS]`, built with
//! `--features ring` or `--features aws-lc-rs`.
//!
//! The certificates are what `statehouse cert` makes: ECDSA on P-256. Time is counted on the server's side alone, and without what a
//! network would take.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, RootCertStore, ServerConfig, ServerConnection};

#[cfg(feature = "aws-lc-rs")]
use rustls::crypto::aws_lc_rs as library;
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
use rustls::crypto::ring as library;

/// The bytes of one write.
const CHUNK: usize = 16 << 10;

struct Pair {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

fn pair(provider: CryptoProvider, asks: bool) -> Pair {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
    let signed = || {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let made = params.signed_by(&key, &issuer).expect("a certificate");
        let key: PrivateKeyDer<'static> = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        (vec![made.der().clone()], key)
    };
    let mut roots = RootCertStore::empty();
    roots.add(issuer.der().clone()).expect("an authority");
    let (roots, provider) = (Arc::new(roots), Arc::new(provider));
    let versions = &[&rustls::version::TLS13];
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(versions);
    let builder = builder.expect("TLS 1.3");
    let builder = match asks {
        false => builder.with_no_client_auth(),
        true => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        }
    };
    let (chain, key) = signed();
    let mut server = builder.with_single_cert(chain, key).expect("a pair");
    server.send_tls13_tickets = 0;
    server.session_storage = Arc::new(NoServerSessionStorage {});
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).expect("TLS 1.3");
    let builder = builder.with_root_certificates(roots);
    let (chain, key) = signed();
    let client = match asks {
        false => builder.with_no_client_auth(),
        true => builder.with_client_auth_cert(chain, key).expect("a pair"),
    };
    Pair { client: Arc::new(client), server: Arc::new(server) }
}

/// Moves what one side has written to the other, which reads it.
fn pass<A, B>(from: &mut ConnectionCommon<A>, to: &mut ConnectionCommon<B>, wire: &mut Vec<u8>) {
    wire.clear();
    while from.wants_write() {
        from.write_tls(wire).expect("memory");
    }
    let mut rest = wire.as_slice();
    while !rest.is_empty() {
        to.read_tls(&mut rest).expect("memory");
        to.process_new_packets().expect("what the other side says");
    }
}

/// A whole handshake; the time that the server takes for it.
fn handshake(pair: &Pair, wire: &mut Vec<u8>) -> (ClientConnection, ServerConnection, Duration) {
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = ClientConnection::new(pair.client.clone(), name).expect("a client");
    let mut first = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut first).expect("memory");
    }
    let began = Instant::now();
    let mut server = ServerConnection::new(pair.server.clone()).expect("a server");
    server.read_tls(&mut first.as_slice()).expect("memory");
    server.process_new_packets().expect("a hello");
    let mut took = began.elapsed();
    pass(&mut server, &mut client, wire);
    wire.clear();
    while client.wants_write() {
        client.write_tls(wire).expect("memory");
    }
    let began = Instant::now();
    let mut rest = wire.as_slice();
    while !rest.is_empty() {
        server.read_tls(&mut rest).expect("memory");
        server.process_new_packets().expect("the end of a handshake");
    }
    took += began.elapsed();
    assert!(!server.is_handshaking() && !client.is_handshaking());
    (client, server, took)
}

fn handshakes(name: &str, pair: &Pair, seconds: Duration) {
    let mut wire = Vec::new();
    for _ in 0..50 {
        handshake(pair, &mut wire);
    }
    let (began, mut of_server, mut count) = (Instant::now(), Duration::ZERO, 0_u32);
    while began.elapsed() < seconds {
        let (client, server, took) = handshake(pair, &mut wire);
        black_box((client, server));
        of_server += took;
        count += 1;
    }
    let each = of_server / count;
    println!("{name:<44} {:>8.0} a second, {} us each", f64::from(count) / of_server.as_secs_f64(), each.as_micros());
}

fn bytes(pair: &Pair, seconds: Duration) {
    use std::io::{Read, Write};
    let mut wire = Vec::new();
    let (mut client, mut server, _) = handshake(pair, &mut wire);
    let (chunk, mut heard) = (vec![7; CHUNK], vec![0; CHUNK]);
    let (began, mut of_server, mut count) = (Instant::now(), Duration::ZERO, 0_u64);
    while began.elapsed() < seconds {
        let now = Instant::now();
        server.writer().write_all(&chunk).expect("memory");
        wire.clear();
        while server.wants_write() {
            server.write_tls(&mut wire).expect("memory");
        }
        of_server += now.elapsed();
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).expect("memory");
            client.process_new_packets().expect("bytes");
        }
        client.reader().read_exact(&mut heard).expect("all of them");
        count += CHUNK as u64;
    }
    let rate = count as f64 / of_server.as_secs_f64() / f64::from(1 << 20);
    println!("{:<44} {rate:>8.0} MiB a second", "bytes to a client");
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let seconds = Duration::from_secs(seconds);
    for group in library::default_provider().kx_groups {
        let of_group = || CryptoProvider { kx_groups: vec![group], ..library::default_provider() };
        let name = format!("{:?}", group.name());
        handshakes(&format!("{name}, no client certificate"), &pair(of_group(), false), seconds);
        handshakes(&format!("{name}, a client certificate"), &pair(of_group(), true), seconds);
    }
    bytes(&pair(library::default_provider(), false), seconds);
}
