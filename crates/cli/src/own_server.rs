//! A connection of a server to itself, as any client makes one.
//!
//! Never: sends anything that is secret. Over TLS it does not ask whose certificate the server shows: it only wants to know whether
//! it answers, and whoever listens at the address of this process is this process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// What is sent and received over.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// How to reach a server from its own process.
#[derive(Clone)]
pub(crate) struct OwnServer {
    address: SocketAddr,
    tls: Option<TlsConnector>,
}

impl OwnServer {
    /// The server that listens on an address.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self { address: on_this_machine(address), tls: None }
    }

    /// The same over TLS.
    pub(crate) fn over_tls(self) -> Result<Self, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let config = config.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)));
        Ok(Self { tls: Some(Arc::new(config.with_no_client_auth()).into()), ..self })
    }

    pub(crate) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(self.address).await?;
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some(tls) => Ok(Box::new(tls.connect(ServerName::from(self.address.ip()), stream).await?)),
        }
    }
}

/// Where to reach a server that listens on every address.
fn on_this_machine(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        // As it is, with the interface of a link-local one.
        _ => {}
    }
    address
}

/// Takes every certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_listens_here() {
        let same = ["127.0.0.2:1", "[fe80::1%2]:1"].map(|same| (same, same));
        for (listens, here) in [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:1", "[::1]:1")].into_iter().chain(same) {
            assert_eq!(on_this_machine(listens.parse().expect("an address")), here.parse().expect("an address"));
        }
    }
}
