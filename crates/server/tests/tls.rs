//! Connections over TLS, through real sockets: what is spoken, what is refused, and the cause of each broken handshake.

mod over_tls;
mod running;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use over_tls::{Answer, OverTls, eventually, request};
use rcgen::{ExtendedKeyUsagePurpose, date_time_ymd};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, StreamOwned};
use testkit::certificates::{Authority, Pair, connect};

/// A cause, and what a client does to be one.
type Broken<'served> = (&'static str, Box<dyn Fn() + 'served>);

fn plain(served: &OverTls) -> TcpStream {
    let stream = TcpStream::connect(served.running.address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream
}

/// What a client hears of a connection that is refused, if it hears anything.
fn refused(served: &OverTls, config: ClientConfig) -> String {
    refused_as(served, config, "localhost")
}

fn refused_as(served: &OverTls, config: ClientConfig, name: &'static str) -> String {
    let name = ServerName::try_from(name).expect("a name");
    let connection = ClientConnection::new(std::sync::Arc::new(config), name).expect("a client");
    let mut stream = StreamOwned::new(connection, plain(served));
    let sent = stream.write_all(request("GET", "/livez", "", "").as_bytes());
    let heard = sent.and_then(|()| stream.read_to_string(&mut String::new()));
    heard.expect_err("refused").to_string()
}

#[test]
fn requests_are_answered_over_tls_and_only_over_its_newest_version() {
    let served = OverTls::start(|server| server);
    let mut config = served.authority.trusted();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut stream = connect(served.running.address, config);
    for value in ["1", "2"] {
        let body = format!("PUT /v1/cells/a HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n{value}");
        stream.write_all(body.as_bytes()).expect("sent over the same connection");
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("an answer");
        assert!(head.starts_with(b"HTTP/1.1 20"), "{}", String::from_utf8_lossy(&head));
        while !matches!(stream.conn.process_new_packets(), Ok(state) if state.plaintext_bytes_to_read() == 0) {
            let mut rest = [0; 4096];
            assert!(stream.read(&mut rest).expect("the rest") > 0);
        }
    }
    assert_eq!(stream.conn.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(stream.conn.tls13_tickets_received(), 0, "no session outlives its handshake");
    let large = "x".repeat(900_000);
    let put = served.send(served.authority.trusted(), &request("PUT", "/v1/cells/large", "", &format!("\"{large}\"")));
    assert_eq!(put.status, 201, "{}", put.body);
    assert!(served.get("/v1/cells/large").body.contains(&large));
}

#[test]
fn a_page_of_this_server_may_send_requests_over_tls_and_others_may_not() {
    let served = OverTls::start(|server| server);
    let port = served.running.address.port();
    let from = |origin: &str| {
        let text =
            format!("GET /status HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\norigin: {origin}\r\n\r\n");
        served.send(served.authority.trusted(), &text).said()
    };
    assert_eq!(from(&format!("https://localhost:{port}")).0, 200);
    for other in [format!("http://localhost:{port}"), "https://localhost".to_owned(), "https://evil.example".to_owned()]
    {
        assert_eq!(from(&other), (403, "SH-1061".to_owned()), "{other}");
    }
}

#[test]
fn each_broken_handshake_names_its_cause() {
    let served = OverTls::asking(|server| server);
    let other = Authority::new("another");
    let trusting = |pair: &Pair| served.authority.trusted_over(&[&rustls::version::TLS13], Some(pair));
    let named = |pair: Pair| refused(&served, trusting(&pair));
    let dated = |name: &str, from: (i32, u8, u8), to: (i32, u8, u8)| {
        served.authority.sign(name, |params| {
            params.not_before = date_time_ymd(from.0, from.1, from.2);
            params.not_after = date_time_ymd(to.0, to.1, to.2);
        })
    };
    let broken: Vec<Broken<'_>> = vec![
        (
            "plain_http",
            Box::new(|| {
                let mut stream = plain(&served);
                stream.write_all(request("GET", "/livez", "", "").as_bytes()).expect("sent");
                let answer = Answer::read(&mut stream);
                assert_eq!(answer.said(), (400, "SH-1046".to_owned()));
                assert!(answer.body.contains("https://"), "{}", answer.body);
            }),
        ),
        (
            "no_tls",
            Box::new(|| {
                let mut stream = plain(&served);
                stream.write_all(&[0, 1, 2, 3]).expect("sent");
                assert_eq!(stream.read(&mut [0; 9]).expect("closed"), 0);
            }),
        ),
        (
            "no_common_version",
            Box::new(|| {
                let old = served.authority.trusted_over(&[&rustls::version::TLS12], None);
                let heard = refused(&served, old);
                assert!(heard.contains("ProtocolVersion"), "{heard}");
            }),
        ),
        (
            "no_common_protocol",
            Box::new(|| {
                let mut config = served.authority.trusted();
                config.alpn_protocols = vec![b"h2".to_vec()];
                let heard = refused(&served, config);
                assert!(heard.contains("NoApplicationProtocol"), "{heard}");
            }),
        ),
        (
            "server_unknown_ca",
            Box::new(|| {
                let heard = refused(&served, other.trusted());
                assert!(heard.contains("UnknownIssuer"), "{heard}");
            }),
        ),
        (
            "server_certificate_refused",
            Box::new(|| {
                let heard = refused_as(&served, served.authority.trusted(), "other.example");
                assert!(heard.contains("not valid for name"), "{heard}");
            }),
        ),
        (
            "client_unknown_ca",
            Box::new(|| {
                let heard = named(other.client("stranger", &["spiffe://example.org/a"]));
                assert!(heard.contains("UnknownCA"), "{heard}");
            }),
        ),
        (
            "client_certificate_expired",
            Box::new(|| {
                let heard = named(dated("expired", (2019, 1, 1), (2020, 1, 1)));
                assert!(heard.contains("CertificateExpired"), "{heard}");
            }),
        ),
        (
            "client_certificate_early",
            Box::new(|| {
                let heard = named(dated("early", (3000, 1, 1), (3001, 1, 1)));
                assert!(heard.contains("alert"), "{heard}");
            }),
        ),
        (
            "client_certificate_invalid",
            Box::new(|| {
                let heard = named(served.authority.sign("server-only", |params| {
                    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
                }));
                assert!(heard.contains("alert"), "{heard}");
            }),
        ),
        ("closed", Box::new(|| drop(plain(&served)))),
        (
            "closed",
            Box::new(|| {
                let mut stream = plain(&served);
                stream.write_all(&[22, 3, 1, 0, 200, 1]).expect("sent");
                stream.shutdown(std::net::Shutdown::Write).expect("shut");
                let _ = stream.read(&mut [0; 99]);
            }),
        ),
        (
            "malformed",
            Box::new(|| {
                let mut stream = plain(&served);
                stream.write_all(&[22, 3, 1, 0, 4, 9, 9, 9, 9]).expect("sent");
                let _ = stream.read(&mut [0; 99]);
            }),
        ),
    ];
    for (cause, break_it) in &broken {
        let before = served.failed(cause);
        break_it();
        // The server learns of some of them after the client does.
        eventually(cause, || served.failed(cause) == before + 1.0);
    }
    let all: f64 = served.scrape().iter().filter(|(name, _)| name.contains("handshakes_failed")).map(|(_, n)| n).sum();
    assert_eq!(all, broken.len() as f64, "each has one cause");
}

#[test]
fn a_handshake_ends_in_time_and_a_silent_client_takes_no_turn() {
    let served = OverTls::held(|limits| {
        limits.handshakes_max = 1;
        limits.handshake_time_max = Duration::from_secs(5);
    });
    let handshakes = &served.running.server.load().handshakes;
    let silent = plain(&served);
    let mut half = plain(&served);
    half.write_all(&[22, 3, 1, 0, 200, 1]).expect("sent");
    eventually("one is under way", || handshakes.used() == 1);
    let mut waits = plain(&served);
    waits.write_all(&[22, 3, 1, 0, 200, 1]).expect("sent");
    let gone = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).expect("set");
        let read = stream.read(&mut [0; 1]);
        !matches!(&read, Err(error) if error.kind() == ErrorKind::WouldBlock)
    };
    eventually("all three have arrived", || served.running.server.load().connections.used() == 3);
    served.running.advance(Duration::from_millis(4_900));
    std::thread::sleep(Duration::from_millis(100));
    assert!(!gone(&silent) && !gone(&half) && !gone(&waits), "they have time");
    assert_eq!(handshakes.used(), 1);
    served.running.advance(Duration::from_millis(200));
    for stream in [&silent, &half, &waits] {
        eventually("its time is over", || gone(stream));
    }
    eventually("nothing is under way", || handshakes.used() == 0);
    let count = |cause| served.failed(cause);
    assert_eq!(count("timed_out") + count("no_turn"), 3.0);
    assert!(count("timed_out") >= 2.0, "the silent one and the half one");
    let refused = served.scrape()["statehouse_limit_refused_total{limit=\"handshakes_max\"}"];
    assert_eq!(refused, count("no_turn"), "it is refused by the name of its limit");
    assert_eq!(served.scrape()["statehouse_limit_max{limit=\"handshakes_max\"}"], 1.0);
}

#[test]
fn a_client_that_stops_reading_is_closed_and_one_that_reads_slowly_is_not() {
    let served = OverTls::held(|limits| {
        limits.connections_max = 1;
        limits.send_buffer_bytes_max = 16 << 10;
        limits.write_stall_time_max = Duration::from_millis(500);
    });
    let value = format!("\"{}\"", "x".repeat(900_000));
    let send = |text: &str| {
        eventually("there is room", || served.running.server.load().connections.used() == 0);
        served.send(served.authority.trusted(), text)
    };
    for name in 0..8 {
        assert_eq!(send(&request("PUT", &format!("/v1/cells/c{name}"), "", &value)).status, 201);
    }
    let list = || {
        eventually("there is room", || served.running.server.load().connections.used() == 0);
        let mut stream = connect(served.running.address, served.authority.trusted());
        stream.write_all(request("GET", "/v1/cells?prefix=c&limit=100", "", "").as_bytes()).expect("sent");
        let mut first = [0; 1];
        stream.read_exact(&mut first).expect("an answer begins");
        stream
    };
    let pass = |ms: u64| {
        for _ in 0..ms / 50 {
            served.running.advance(Duration::from_millis(50));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let mut slow = list();
    std::thread::sleep(Duration::from_millis(200));
    pass(400);
    assert_eq!(served.running.server.load().connections.used(), 1, "it is served until then");
    pass(600);
    eventually("it holds nothing then", || served.running.server.load().connections.used() == 0);
    let mut taken = Vec::new();
    let end = slow.read_to_end(&mut taken);
    assert!(end.is_err() && taken.len() < 4_000_000, "it did not get all of it: {} bytes", taken.len());

    let mut steady = list();
    let mut taken = 0;
    loop {
        let mut part = vec![0; 200_000];
        match steady.read(&mut part).expect("it goes on") {
            0 => break,
            read => taken += read,
        }
        if taken % 5 == 0 {
            pass(50);
        }
    }
    assert!(taken > 4_000_000, "{taken} bytes");
}
