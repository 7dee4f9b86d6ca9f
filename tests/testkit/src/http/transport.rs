//! The transport below every client of the tests, typed or not: it follows a server that restarts elsewhere, and records
//! every call.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use client::tls::TlsFiles;
use client::transport::{Answering, HttpTransport, Transport};
use hyper::Request;
use hyper::body::Bytes;

use super::routes::Called;

/// A server's address and connections to it. Clones share both, and move together.
#[derive(Clone)]
pub struct NotingTransport {
    shared: Arc<Shared>,
}

struct Shared {
    server: Mutex<Server>,
    /// For a server that speaks TLS.
    tls: Option<TlsFiles>,
    called: Arc<Called>,
}

#[derive(Clone)]
struct Server {
    address: SocketAddr,
    transport: Arc<HttpTransport>,
}

impl Server {
    fn at(address: SocketAddr, tls: Option<&TlsFiles>) -> Self {
        let transport = match tls {
            None => HttpTransport::new(&format!("http://{address}")),
            Some(files) => HttpTransport::with_tls(&format!("https://{address}"), files),
        };
        Self { address, transport: Arc::new(transport.expect("an address, and files that can be used")) }
    }
}

impl NotingTransport {
    /// A transport that records in `called` which routes are called, over TLS if there are files for it.
    pub fn new(address: SocketAddr, tls: Option<TlsFiles>, called: Arc<Called>) -> Self {
        let server = Mutex::new(Server::at(address, tls.as_ref()));
        Self { shared: Arc::new(Shared { server, tls, called }) }
    }

    /// Moves to a restarted server. Old connections are not used again.
    pub fn moved_to(&self, address: SocketAddr) {
        *self.shared.server.lock().expect("no panic") = Server::at(address, self.shared.tls.as_ref());
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.server().address
    }

    fn server(&self) -> Server {
        self.shared.server.lock().expect("no panic").clone()
    }
}

impl Transport for NotingTransport {
    fn send(&self, request: Request<Bytes>) -> Answering<'_> {
        let transport = self.server().transport;
        Box::pin(async move {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let response = transport.send(request).await?;
            self.shared.called.note(method.as_str(), &path, response.status().as_u16());
            Ok(response)
        })
    }

    fn named(&self) -> String {
        self.server().transport.named()
    }

    fn is_private(&self) -> bool {
        self.server().transport.is_private()
    }
}
