//! How a load reaches a server: its address, whether over TLS, and the token that it shows.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// What requests are sent and answers read over.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A server, and how to reach it.
#[derive(Clone)]
pub struct Reaching {
    address: SocketAddr,
    tls: Option<TlsConnector>,
    authorization: Option<String>,
}

impl From<SocketAddr> for Reaching {
    fn from(address: SocketAddr) -> Self {
        Self { address, tls: None, authorization: None }
    }
}

impl Reaching {
    /// The same over TLS, where the certificate is of an authority whose own is in a file.
    pub fn over_tls(self, authority: &Path) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority).expect("a certificate")).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("TLS").with_root_certificates(roots).with_no_client_auth();
        Self { tls: Some(Arc::new(config).into()), ..self }
    }

    /// The same with a token.
    pub fn showing(self, token: &str) -> Self {
        Self { authorization: Some(format!("Bearer {token}")), ..self }
    }

    /// The header that says who sends a request.
    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// A connection.
    pub async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some(tls) => Ok(Box::new(tls.connect(ServerName::from(self.address.ip()), stream).await?)),
        }
    }
}
