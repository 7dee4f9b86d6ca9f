//! A server's address, with connections to it that are kept alive. Shared by threads; each request has a connection alone.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use contract::{Error, Failure, FailureKind};
use wire::routes::{ALL, Found, Scope, find};

use super::connection::Connection;
use super::events::Events;
use super::message::{Request, Response};
use super::refusals::refusal;
use super::routes::Called;

/// See the module. A clone is the same client.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    /// Added to every query: `space`, `branch`, `group`.
    place: Vec<(String, String)>,
}

struct Shared {
    server: Mutex<Server>,
    called: Arc<Called>,
}

struct Server {
    address: SocketAddr,
    idle: Vec<Connection>,
}

impl Client {
    /// A client that notes in `called` which routes it calls.
    pub fn new(address: SocketAddr, called: Arc<Called>) -> Self {
        let server = Mutex::new(Server { address, idle: Vec::new() });
        Self { shared: Arc::new(Shared { server, called }), place: Vec::new() }
    }

    /// A client of its own.
    pub fn to(address: SocketAddr) -> Self {
        Self::new(address, Arc::default())
    }

    /// The same client in a place: `within("space", "tenant")`, `within("branch", ..)`, `within("group", ..)`.
    pub fn within(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.place.push((name.to_owned(), value.to_owned()));
        client
    }

    /// Whether [`within`](Self::within) said something of a name.
    pub fn is_within(&self, name: &str) -> bool {
        self.place.iter().any(|(place, _)| place == name)
    }

    /// The server has moved: it was started anew. Old connections are not used again.
    pub fn moved_to(&self, address: SocketAddr) {
        let mut server = self.shared.server.lock().expect("no panic");
        *server = Server { address, idle: Vec::new() };
    }

    /// Where the server is.
    pub fn address(&self) -> SocketAddr {
        self.shared.server.lock().expect("no panic").address
    }

    /// Sends a request as it is, without the client's place.
    pub fn send_plain(&self, request: &Request) -> io::Result<Response> {
        let (address, idle) = {
            let mut server = self.shared.server.lock().expect("no panic");
            (server.address, server.idle.pop())
        };
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(address)?,
        };
        let response = connection.send(request)?;
        self.shared.called.note(request.method, &request.path, response.status);
        if connection.is_reusable() {
            let mut server = self.shared.server.lock().expect("no panic");
            if server.address == address {
                server.idle.push(connection);
            }
        }
        Ok(response)
    }

    /// Sends a request in the client's place.
    pub fn send(&self, request: Request) -> io::Result<Response> {
        self.send_plain(&self.placed(request))
    }

    /// Sends a request and hangs up without an answer. Whether it arrives, nobody knows.
    pub fn abandon(&self, request: Request) {
        let request = self.placed(request);
        if let Ok(mut connection) = Connection::open(self.address()) {
            // There is nothing to do about it.
            let _ = connection.write(&request);
        }
    }

    /// Sends a request; a refusal is the error that it stands for.
    pub fn call(&self, request: Request) -> Result<Response, Error> {
        let response = self.send(request).map_err(unreachable)?;
        if response.is_success() { Ok(response) } else { Err(refusal(&response)) }
    }

    /// Begins to follow server-sent events, on a connection of their own.
    pub fn follow(&self, request: Request) -> io::Result<Events> {
        let request = self.placed(request);
        let mut connection = Connection::open(self.address())?;
        let head = connection.stream(&request)?;
        self.shared.called.note(request.method, &request.path, head.status);
        Events::new(connection, head)
    }

    fn placed(&self, request: Request) -> Request {
        // A route refuses a place that means nothing to it.
        let path = request.path.split('?').next().unwrap_or_default();
        let scope = match find(request.method, path) {
            Found::Route(place, _) => ALL[place].scope,
            _ => Scope::Group,
        };
        let honoured = |name: &str| match name {
            "space" => scope >= Scope::Space,
            "branch" => scope >= Scope::Branch,
            _ => scope >= Scope::Group,
        };
        let place = self.place.iter().filter(|(name, _)| honoured(name));
        place.fold(request, |request, (name, value)| request.query(name, value))
    }
}

/// Nobody knows what became of a request whose answer did not come.
fn unreachable(error: io::Error) -> Error {
    Failure::unknown(FailureKind::Closed, format!("no answer: {error}")).into()
}
