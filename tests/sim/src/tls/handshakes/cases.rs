//! What clients do that break a handshake, and what they hear of it.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{ExtendedKeyUsagePurpose, date_time_ymd};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use testkit::certificates::{Authority, Pair};

use super::{HANDSHAKE_TIME_MAX, HANDSHAKES_MAX, odd_clients};

/// The longest wait of a client for what it is told.
const HEARD_TIME_MAX: Duration = Duration::from_secs(60);

/// The beginning of a handshake, and of its first message.
const HALF_A_HELLO: &[u8] = &[22, 3, 1, 0, 200, 1];

/// A way to break a handshake.
pub(super) struct Case {
    /// What it is called by the server.
    pub(super) cause: &'static str,
    /// The same for people.
    pub(super) name: &'static str,
    pub(super) breaks: fn(&Scene) -> Broken,
}

/// A handshake that was broken.
pub(super) struct Broken {
    /// The address of the client.
    pub(super) from: SocketAddr,
    /// Others that were broken on the way.
    pub(super) besides: Vec<(&'static str, f64)>,
    /// What is not as it must be.
    pub(super) wrong: Option<String>,
}

const fn case(cause: &'static str, name: &'static str, breaks: fn(&Scene) -> Broken) -> Case {
    Case { cause, name, breaks }
}

/// All of them.
pub(super) const CASES: &[Case] = &[
    case("plain_http", "a request without TLS", |scene| {
        scene.says(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", Expected::Text("SH-1046"))
    }),
    case("plain_http", "the beginning of a request", |scene| scene.says(b"OPTIONS", Expected::Text("https://"))),
    case("no_tls", "bytes of another protocol", |scene| scene.says(&[0, 1, 2, 3], Expected::Nothing)),
    case("no_tls", "a greeting of SSH", |scene| scene.says(b"SSH-2.0-OpenSSH_9.2\r\n", Expected::Nothing)),
    case("no_tls", "a hello of SSL 2", |scene| scene.says(&[0x80, 46, 1, 0, 2, 0, 21, 0, 0], Expected::Nothing)),
    case("no_common_version", "TLS 1.2 and nothing newer", |scene| {
        scene.shakes(scene.authority.trusted_over(&[&rustls::version::TLS12], None), "ProtocolVersion")
    }),
    case("no_common_cipher", "a cipher that the server does not have", |scene| {
        scene.shakes(odd_clients::with_another_cipher(&scene.authority), "HandshakeFailure")
    }),
    case("no_common_cipher", "a group that the server does not have", |scene| {
        scene.shakes(odd_clients::with_another_group(&scene.authority), "HandshakeFailure")
    }),
    case("no_common_protocol", "HTTP/2 only", |scene| {
        let mut config = scene.authority.trusted();
        config.alpn_protocols = vec![b"h2".to_vec()];
        scene.shakes(config, "NoApplicationProtocol")
    }),
    case("server_unknown_ca", "another authority", |scene| scene.shakes(scene.other.trusted(), "UnknownIssuer")),
    case("server_certificate_refused", "another name", |scene| {
        scene.shakes_as(scene.authority.trusted(), "other.example", "not valid for name")
    }),
    case("client_unknown_ca", "a certificate of another authority", |scene| {
        scene.shows(&scene.other.client("stranger", &["spiffe://example.org/a"]), "UnknownCA")
    }),
    case("client_unknown_ca", "a certificate of another authority with the same name", |scene| {
        scene.shows(&scene.namesake.client("stranger", &["spiffe://example.org/a"]), "UnknownCA")
    }),
    case("client_key_wrong", "a certificate whose key it does not have", |scene| {
        let [shown, other] = ["shown", "other"].map(|name| scene.authority.client(name, &["spiffe://example.org/a"]));
        scene.shakes(odd_clients::with_the_key_of(&scene.authority, &shown, &other), "DecryptError")
    }),
    case("client_certificate_expired", "a certificate that has expired", |scene| {
        scene.shows(&scene.dated("expired", 2019, 2020), "CertificateExpired")
    }),
    case("client_certificate_early", "a certificate that is not valid yet", |scene| {
        scene.shows(&scene.dated("early", 3000, 3001), "alert")
    }),
    case("client_certificate_invalid", "a certificate for servers", |scene| {
        let usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        scene.shows(&scene.authority.sign("server-only", |params| params.extended_key_usages = usages), "alert")
    }),
    case("timed_out", "silence", |scene| scene.says(&[], Expected::Nothing)),
    case("timed_out", "half a hello", |scene| scene.says(HALF_A_HELLO, Expected::Nothing)),
    case("no_turn", "others all the time", Scene::has_no_turn),
    case("closed", "nothing", |scene| scene.leaves(&[])),
    case("closed", "half a hello", |scene| scene.leaves(HALF_A_HELLO)),
    case("malformed", "a message of an unknown kind", |scene| {
        scene.says(&[22, 3, 1, 0, 4, 9, 0, 0, 0], Expected::Alert)
    }),
    case("malformed", "a record that is too large", |scene| {
        scene.says(&[22, 3, 1, 0xff, 0xff, 1, 0, 0xff, 0xff], Expected::Alert)
    }),
    case("malformed", "an empty record", |scene| scene.says(&[22, 3, 1, 0, 0], Expected::Alert)),
];

/// What a client hears before the connection is closed.
enum Expected {
    Nothing,
    /// An alert of TLS.
    Alert,
    /// A text with this in it.
    Text(&'static str),
}

/// The record of an alert begins with this byte.
const ALERT: u8 = 21;

/// A server, and authorities of certificates.
pub(super) struct Scene {
    address: SocketAddr,
    /// The one that the server and its clients know.
    authority: Authority,
    /// One that nobody knows.
    other: Authority,
    /// One that nobody knows, with the name of the one that all know.
    namesake: Authority,
}

impl Scene {
    pub(super) fn new(address: SocketAddr, authority: Authority) -> Self {
        Self { address, authority, other: Authority::new("others"), namesake: Authority::new("handshakes") }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("a connection");
        stream.set_read_timeout(Some(HEARD_TIME_MAX)).expect("a timeout");
        stream
    }

    fn dated(&self, name: &str, from: i32, to: i32) -> Pair {
        self.authority.sign(name, |params| {
            (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
        })
    }

    /// Sends these bytes, and listens until the server closes the connection.
    fn says(&self, bytes: &[u8], expected: Expected) -> Broken {
        let mut stream = self.connect();
        let from = stream.local_addr().expect("an address");
        stream.write_all(bytes).expect("sent");
        let mut heard = Vec::new();
        let read = stream.read_to_end(&mut heard);
        // A connection that is closed with something unread is reset.
        let is_closed = read.as_ref().map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true);
        let is_right = is_closed
            && match expected {
                Expected::Nothing => heard.is_empty(),
                Expected::Alert => heard.first() == Some(&ALERT),
                Expected::Text(text) => String::from_utf8_lossy(&heard).contains(text),
            };
        let wrong = (!is_right).then(|| format!("it hears {:?}, {read:?}", String::from_utf8_lossy(&heard)));
        Broken { from, besides: Vec::new(), wrong }
    }

    /// Sends these bytes and nothing more.
    fn leaves(&self, bytes: &[u8]) -> Broken {
        let mut stream = self.connect();
        let from = stream.local_addr().expect("an address");
        stream.write_all(bytes).expect("sent");
        stream.shutdown(Shutdown::Write).expect("shut");
        let _ = stream.read_to_end(&mut Vec::new());
        Broken { from, besides: Vec::new(), wrong: None }
    }

    fn shows(&self, pair: &Pair, hears: &str) -> Broken {
        self.shakes(self.authority.trusted_over(&[&rustls::version::TLS13], Some(pair)), hears)
    }

    fn shakes(&self, config: ClientConfig, hears: &str) -> Broken {
        self.shakes_as(config, "localhost", hears)
    }

    /// Shakes hands and sends a request; what it hears of that has this in it.
    fn shakes_as(&self, config: ClientConfig, name: &'static str, hears: &str) -> Broken {
        let name = ServerName::try_from(name).expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
        let stream = self.connect();
        let from = stream.local_addr().expect("an address");
        let mut stream = StreamOwned::new(connection, stream);
        let sent = stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let heard = match sent.and_then(|()| stream.read_to_string(&mut String::new())) {
            Ok(_) => "an answer".to_owned(),
            Err(error) => error.to_string(),
        };
        let wrong = (!heard.contains(hears)).then(|| format!("it hears {heard:?}, not {hears:?}"));
        Broken { from, besides: Vec::new(), wrong }
    }

    /// Connects, and says something only when others, who came later, have every turn.
    fn has_no_turn(&self) -> Broken {
        let mut first = self.connect();
        let from = first.local_addr().expect("an address");
        std::thread::sleep(HANDSHAKE_TIME_MAX / 2);
        let mut others: Vec<_> = (0..HANDSHAKES_MAX).map(|_| self.connect()).collect();
        others.iter_mut().for_each(|other| other.write_all(HALF_A_HELLO).expect("sent"));
        std::thread::sleep(HANDSHAKE_TIME_MAX / 8);
        first.write_all(HALF_A_HELLO).expect("sent");
        let _ = first.read_to_end(&mut Vec::new());
        for mut other in others {
            let _ = other.read_to_end(&mut Vec::new());
        }
        Broken { from, besides: vec![("timed_out", HANDSHAKES_MAX as f64)], wrong: None }
    }
}
