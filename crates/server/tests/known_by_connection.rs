//! Who sends a request is known by its connection: by a certificate, or by a user of this machine.

mod over_tls;
mod running;

use std::io::{ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use over_tls::{Answer, OverTls, request};
use running::Running;
use socket2::{Domain, SockAddr, Socket, Type};
use statehouse::Options;
use statehouse::access::{Grant, Identity, Principal};
use statehouse_server::{Exposure, Listeners, Server};
use testkit::certificates::Pair;

const MAILER: &str = "spiffe://example.org/mailer";
const OPS: &str = "spiffe://example.org/ops";

fn principal(name: &str, grant: &str, identity: Identity) -> Principal {
    Principal::new(name).granted(Grant::parse(grant).expect("a grant")).known_as(identity)
}

fn of_uri(name: &str, grant: &str, uri: &str) -> Principal {
    principal(name, grant, Identity::parse(uri).expect("a URI"))
}

#[test]
fn exactly_one_uri_of_a_certificate_is_that_of_a_principal() {
    let served = OverTls::asking(Server::asking_for_tokens);
    let principals = served.running.house.principals();
    principals.set(&of_uri("mailer", "writer@default/cells/mail.", MAILER)).expect("set");
    principals.set(&of_uri("ops", "admin@*", OPS)).expect("set");
    let send = |pair: Option<&Pair>, headers: &str, path: &str| {
        let config = served.authority.trusted_over(&[&rustls::version::TLS13], pair);
        let answer = served.send(config, &request("PUT", path, headers, "1"));
        let detail = if answer.status < 400 { String::new() } else { answer.json()["detail"].to_string() };
        (answer.said(), detail)
    };
    let unknown = |said: &str, (answer, detail): ((u16, String), String)| {
        assert_eq!(answer, (401, "SH-6001".to_owned()), "{said}");
        assert!(detail.contains(said), "{said}: {detail}");
    };
    let client = |name: &str, uris: &[&str]| served.authority.client(name, uris);
    let mailer = client("mailer", &["spiffe://example.org/other", MAILER]);
    let written = send(Some(&mailer), "", "/v1/cells/mail.1").0.0;
    assert_eq!(written, 201);
    assert_eq!(
        send(Some(&mailer), "", "/v1/cells/other").0,
        (403, "SH-6002".to_owned()),
        "what was granted, and no more"
    );
    unknown("the request shows no token", send(None, "", "/v1/cells/mail.1"));
    unknown("no principal has a URI", send(Some(&client("none", &[])), "", "/v1/cells/mail.1"));
    unknown("no principal has a URI", send(Some(&client("prefix", &[&format!("{MAILER}/x")])), "", "/v1/cells/mail.1"));
    unknown("no principal has a URI", send(Some(&client("case", &[&MAILER.to_uppercase()])), "", "/v1/cells/mail.1"));
    unknown("more than one URI", send(Some(&client("two", &[MAILER, OPS])), "", "/v1/cells/mail.1"));

    // A token says more than a connection.
    let token = principals.issue_token("ops", std::time::Duration::from_secs(3_600)).expect("a token").to_text();
    let shows = format!("authorization: Bearer {token}\r\n");
    assert_eq!(send(Some(&mailer), &shows, "/v1/cells/other").0.0, 201);
    unknown(
        "is not known here",
        send(
            Some(&mailer),
            &shows.replace(&token, &statehouse::draw_token().expect("a token").to_text()),
            "/v1/cells/mail.1",
        ),
    );
    let whoami = served.send(
        served.authority.trusted_over(&[&rustls::version::TLS13], Some(&mailer)),
        &request("GET", "/v1/whoami", "", ""),
    );
    assert_eq!(whoami.json()["principal"], "mailer", "{}", whoami.body);

    // Each request asks again: what is taken away is gone on connections that are there.
    principals.remove("mailer").expect("removed");
    unknown("no principal has a URI", send(Some(&mailer), "", "/v1/cells/mail.1"));
    let open = served.send(
        served.authority.trusted_over(&[&rustls::version::TLS13], Some(&mailer)),
        &request("GET", "/livez", "", ""),
    );
    assert_eq!(open.status, 200, "a probe may have any certificate");
}

#[test]
fn nobody_is_known_by_a_certificate_that_was_not_asked_for() {
    let served = OverTls::start(Server::asking_for_tokens);
    served.running.house.principals().set(&of_uri("mailer", "admin@*", MAILER)).expect("set");
    let own = served.authority.client("mailer", &[MAILER]);
    let config = served.authority.trusted_over(&[&rustls::version::TLS13], Some(&own));
    assert_eq!(served.send(config, &request("GET", "/v1/cells/a", "", "")).said(), (401, "SH-6001".to_owned()));
}

fn on_socket(path: &Path) -> Running {
    let path = path.to_owned();
    Running::start_listening(
        &Options::default(),
        |house| Server::new(house).asking_for_tokens(),
        move |listeners| listeners.and_on_socket(&path).expect("a socket"),
    )
}

fn send(socket: &Path, text: &str) -> Answer {
    let mut stream = UnixStream::connect(socket).expect("a connection");
    stream.write_all(text.as_bytes()).expect("sent");
    Answer::read(&mut stream)
}

/// The user that runs this test, as the system says.
fn user() -> u32 {
    std::fs::metadata("/proc/self").expect("Linux").uid()
}

#[test]
fn a_user_of_this_machine_is_a_principal_over_a_socket_and_not_over_tcp() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("statehouse.sock");
    let mut running = on_socket(&socket);
    let mode = std::fs::symlink_metadata(&socket).expect("a socket");
    assert!(mode.file_type().is_socket());
    assert_eq!(mode.permissions().mode() & 0o777, 0o660);
    let put = request("PUT", "/v1/cells/a", "", "1");
    let stranger = send(&socket, &put);
    assert_eq!(stranger.said(), (401, "SH-6001".to_owned()));
    assert!(stranger.body.contains(&format!("user {} of this machine is no principal", user())), "{}", stranger.body);
    running.house.principals().set(&principal("me", "writer@default", Identity::User(user()))).expect("set");
    assert_eq!(send(&socket, &put).status, 201);
    assert_eq!(send(&socket, &request("GET", "/metrics", "", "")).said(), (403, "SH-6002".to_owned()));
    let over_tcp = running.client().send(testkit::http::Request::get("/v1/cells/a")).expect("an answer");
    assert_eq!(over_tcp.status, 401, "an address knows no users");
    running.end();
    assert!(!socket.exists(), "a server takes its socket with it");
}

/// A server that accepts nothing any more, with as many waiting connections as its socket takes.
fn hung_server(path: &Path) -> Vec<Socket> {
    let address = SockAddr::unix(path).expect("a path");
    let socket = || Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
    let listener = socket();
    listener.bind(&address).expect("bound");
    listener.listen(1).expect("listening");
    let mut sockets = vec![listener];
    loop {
        let waiting = socket();
        waiting.set_nonblocking(true).expect("set");
        match waiting.connect(&address) {
            Ok(()) => sockets.push(waiting),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return sockets,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_socket_is_replaced_only_where_nobody_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("statehouse.sock");
    let bind = move |path: PathBuf| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let exposure = Exposure { has_tls: false, asks_for_tokens: false, is_insecure_allowed: false };
        runtime.block_on(async {
            let listeners = Listeners::bind(([127, 0, 0, 1], 0).into(), exposure).await.expect("a port");
            listeners.and_on_socket(&path).map(drop).map_err(|error| error.to_string())
        })
    };
    // Left behind by a process that died.
    drop(UnixListener::bind(&socket).expect("a socket"));
    assert!(socket.exists());
    bind(socket.clone()).expect("nobody answers");
    assert!(!socket.exists(), "and it is removed in the end");
    let other = UnixListener::bind(&socket).expect("a socket");
    let refused = bind(socket.clone()).expect_err("somebody listens");
    assert!(refused.starts_with(&format!("another program listens on {}; ", socket.display())), "{refused}");
    assert!(UnixStream::connect(&socket).is_ok(), "the other one still answers");
    drop(other);
    std::fs::remove_file(&socket).expect("removed");
    let hung = hung_server(&socket);
    let (bound, outcome) = std::sync::mpsc::channel();
    let path = socket.clone();
    std::thread::spawn(move || bound.send(bind(path)));
    let refused = outcome.recv_timeout(Duration::from_secs(60)).expect("an answer at once").expect_err("it listens");
    assert!(refused.starts_with("another program listens on "), "{refused}");
    drop(hung);
    let file = folder.path().join("file");
    std::fs::write(&file, "mine").expect("written");
    let refused = bind(file.clone()).expect_err("a file");
    assert!(refused.contains("is no socket, and is not replaced; "), "{refused}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "mine");
    let long = folder.path().join("x".repeat(120));
    let refused = bind(long).expect_err("too long");
    assert!(refused.contains("of at most 100 bytes"), "{refused}");
    let names: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(names.len(), 2, "nothing is left behind: {names:?}");
}
