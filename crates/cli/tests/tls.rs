//! The real binary over TLS: its certificates, its settings, what is refused at the start, and what a hangup does.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use testkit::server_process::{Launch, ServerProcess};

const BINARY: &str = env!("CARGO_BIN_EXE_statehouse");
const PATIENCE: Duration = Duration::from_secs(60);

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(folder).env_remove("STATEHOUSE_URL").envs(environment.iter().copied());
    let Output { status, stdout, stderr } = command.output().expect("started");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

fn done(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> String {
    let ran = run(folder, environment, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
    ran.stdout
}

/// A folder with an authority, a server and a client of it.
fn certificates() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    done(folder.path(), &[], &["cert", "ca", "--dir", "certs"]);
    done(folder.path(), &[], &["cert", "server", "--dir", "certs"]);
    done(folder.path(), &[], &["cert", "client", "spiffe://example.org/mailer", "--dir", "certs", "--name", "mailer"]);
    folder
}

fn launch(folder: &Path) -> Launch {
    let file = |name: &str| folder.join("certs").join(name).into_os_string();
    Launch::serve(BINARY, folder.join("house"))
        .argument("--tls-certificate")
        .argument(file("server.pem"))
        .argument("--tls-key")
        .argument(file("server.key"))
}

fn url(server: &ServerProcess) -> String {
    format!("https://localhost:{}", server.address().port())
}

fn wait_for(what: &str, said: impl Fn() -> String) {
    let began = Instant::now();
    while !said().contains(what) {
        assert!(began.elapsed() < PATIENCE, "never: {what}: {}", said());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn wait_for_log(server: &ServerProcess, text: &str) {
    wait_for(text, || server.stderr());
}

#[test]
fn the_command_reaches_a_server_whose_authority_it_knows() {
    let folder = certificates();
    let at = folder.path();
    let server = launch(at).start().expect("ready");
    wait_for(" on https://127.0.0.1:", || server.stdout());
    let (url, ca) = (url(&server), ("STATEHOUSE_CA_FILE", "certs/ca.pem"));
    let place = ("STATEHOUSE_URL", url.as_str());
    done(at, &[ca, place], &["cell", "set", "greeting", "hello"]);
    assert!(done(at, &[ca, place], &["cell", "get", "greeting"]).contains("hello"));

    let refused = |environment: &[(&str, &str)], to: &str| {
        let environment: Vec<_> = environment.iter().copied().chain([("STATEHOUSE_URL", to)]).collect();
        let ran = run(at, &environment, &["cell", "set", "greeting", "again"]);
        assert!(ran.code == Some(5) || ran.code == Some(2), "{}", ran.stderr);
        assert!(!ran.stderr.contains("may or may not have been done"), "{}", ran.stderr);
        ran.stderr
    };
    done(at, &[], &["cert", "ca", "--dir", "others"]);
    let stranger = refused(&[("STATEHOUSE_CA_FILE", "others/ca.pem")], &url);
    assert!(stranger.contains("is of an authority that is not known to others/ca.pem"), "{stranger}");
    let port = server.address().port();
    let plain = refused(&[ca], &format!("http://127.0.0.1:{port}"));
    assert!(plain.contains("this address speaks TLS") && plain.contains("https://"), "{plain}");
    let other_name = refused(&[ca], &format!("https://127.0.0.2:{port}"));
    assert!(other_name.contains("nothing listens") || other_name.contains("for other names"), "{other_name}");
    let missing = refused(&[("STATEHOUSE_CA_FILE", "gone.pem")], &url);
    assert!(missing.contains("gone.pem: No such file"), "{missing}");
    let half = refused(&[ca, ("STATEHOUSE_CERTIFICATE_FILE", "certs/mailer.pem")], &url);
    assert!(half.contains("STATEHOUSE_KEY_FILE is not; set both"), "{half}");
}

#[test]
fn a_token_is_sent_to_another_machine_over_tls_or_where_that_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let server = Launch::serve(BINARY, at.join("house")).arguments(["--tokens", "required"]).start().expect("ready");
    // This machine, too, but not by an address that is nobody else's.
    let url = format!("http://0.0.0.0:{}", server.address().port());
    let token = ("STATEHOUSE_TOKEN_FILE", "house/root.token");
    let set = |environment: &[(&str, &str)]| {
        run(at, &[&[token, ("STATEHOUSE_URL", url.as_str())], environment].concat(), &["cell", "set", "a", "1"])
    };
    let refused = set(&[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let said = format!("the token was not sent to {url}: without TLS, everybody on the way can read it");
    assert!(refused.stderr.contains(&said), "{}", refused.stderr);
    assert!(refused.stderr.contains("use https://, or set STATEHOUSE_TOKEN_WITHOUT_TLS=allow"), "{}", refused.stderr);
    assert_eq!(set(&[("STATEHOUSE_TOKEN_WITHOUT_TLS", "yes")]).code, Some(2));
    let allowed = set(&[("STATEHOUSE_TOKEN_WITHOUT_TLS", "allow")]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    let here = format!("http://{}", server.address());
    done(at, &[token, ("STATEHOUSE_URL", &here)], &["cell", "set", "a", "1"]);
}

#[test]
fn a_certificate_for_other_names_is_refused_by_the_client() {
    let folder = certificates();
    let at = folder.path();
    done(at, &[], &["cert", "server", "state.internal", "--dir", "certs", "--name", "other"]);
    let file = |name: &str| at.join("certs").join(name).into_os_string();
    let server = Launch::serve(BINARY, at.join("house"))
        .argument("--tls-certificate")
        .argument(file("other.pem"))
        .argument("--tls-key")
        .argument(file("other.key"))
        .start()
        .expect("ready");
    let environment = [("STATEHOUSE_CA_FILE", "certs/ca.pem"), ("STATEHOUSE_URL", &url(&server))];
    let ran = run(at, &environment, &["status"]);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stderr.contains("the certificate of the server is for other names"), "{}", ran.stderr);
}

#[test]
fn a_client_is_known_by_its_certificate() {
    let folder = certificates();
    let at = folder.path();
    let ca_file = at.join("certs/ca.pem");
    let server = launch(at).argument("--tls-client-ca").argument(&ca_file).argument("--tokens").argument("required");
    let server = server.start().expect("ready");
    let (url, ca) = (url(&server), ("STATEHOUSE_CA_FILE", "certs/ca.pem"));
    let place = ("STATEHOUSE_URL", url.as_str());
    let root = ("STATEHOUSE_TOKEN_FILE", "house/root.token");
    let mailer = |environment: &[(&str, &str)], arguments: &[&str]| {
        let own = [
            ca,
            place,
            ("STATEHOUSE_CERTIFICATE_FILE", "certs/mailer.pem"),
            ("STATEHOUSE_KEY_FILE", "certs/mailer.key"),
        ];
        run(at, &[&own, environment].concat(), arguments)
    };
    let unknown = mailer(&[], &["cell", "set", "a", "1"]);
    assert_eq!(unknown.code, Some(6), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("no principal has a URI of this certificate"), "{}", unknown.stderr);
    let uri = ["--identity", "spiffe://example.org/mailer"];
    done(at, &[ca, place, root], &[&["principal", "set", "mailer", "writer@default"], &uri[..]].concat());
    let known = mailer(&[], &["token", "whoami"]);
    assert!(known.stdout.contains("mailer"), "{}{}", known.stdout, known.stderr);
    assert_eq!(mailer(&[], &["cell", "set", "a", "1"]).code, Some(0));

    done(at, &[], &["cert", "ca", "--dir", "others"]);
    done(at, &[], &["cert", "client", "spiffe://example.org/mailer", "--dir", "others"]);
    let other =
        [ca, place, ("STATEHOUSE_CERTIFICATE_FILE", "others/client.pem"), ("STATEHOUSE_KEY_FILE", "others/client.key")];
    let refused = run(at, &other, &["cell", "set", "a", "2"]);
    assert_eq!(refused.code, Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains("does not know the authority of this client's certificate"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("may or may not have been done"), "{}", refused.stderr);
    wait_for_log(&server, "client_unknown_ca");
}

#[test]
fn a_hangup_reads_certificates_again_and_does_not_stop_a_server_with_tls() {
    let folder = certificates();
    let at = folder.path();
    let mut server = launch(at).start().expect("ready");
    done(at, &[], &["cert", "server", "--dir", "certs", "--name", "newer"]);
    let replace = |from: &str, to: &str| {
        fs::rename(at.join("certs").join(from), at.join("certs").join(to)).expect("replaced");
    };
    replace("newer.key", "server.key");
    server.signal("HUP");
    wait_for_log(&server, "certificates not reloaded; the old ones stay in use");
    assert!(server.stderr().contains("it is not the key of the certificate in"), "{}", server.stderr());
    let environment = [("STATEHOUSE_CA_FILE", "certs/ca.pem"), ("STATEHOUSE_URL", &url(&server))];
    let status = run(at, &environment, &["status"]);
    assert_eq!(status.code, Some(7), "{}", status.stderr);
    assert!(status.stdout.contains("the old ones stay in use"), "{}", status.stdout);
    replace("newer.pem", "server.pem");
    server.signal("HUP");
    wait_for_log(&server, "certificates reloaded");
    assert_eq!(run(at, &environment, &["cell", "set", "a", "1"]).code, Some(0));
    assert!(server.ended().is_none(), "it goes on");
    assert!(server.terminate(PATIENCE).status.success());
}

/// A restart would not help it.
#[test]
fn a_server_with_all_the_handshakes_that_it_may_have_still_lives() {
    let folder = certificates();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let launch = launch(folder.path()).environment("NOTIFY_SOCKET", &path).environment("WATCHDOG_USEC", "400000");
    let launch = launch.environment("STATEHOUSE_LIMITS__HANDSHAKES_MAX", "1");
    let server = launch.environment("STATEHOUSE_LIMITS__HANDSHAKE_TIME_MAX", "10m").start().expect("ready");
    let mut half = TcpStream::connect(server.address()).expect("a connection");
    half.write_all(&[22, 3, 1, 0, 200, 1]).expect("sent");
    // Somebody else may have the only place at first, and the server's own question, too; each for a moment only.
    let is_heard = || {
        let mut other = TcpStream::connect(server.address()).expect("a connection");
        other.write_all(&[22, 3, 1, 0, 4, 9, 9, 9, 9]).expect("sent");
        other.set_read_timeout(Some(Duration::from_secs(1))).expect("set");
        other.read(&mut [0; 9]).is_ok()
    };
    let began = Instant::now();
    while is_heard() {
        assert!(began.elapsed() < PATIENCE, "the place is never taken");
    }
    let mut alive = 0;
    while alive < 5 {
        let mut message = [0; 4096];
        let bytes = manager.recv(&mut message).expect("the manager hears of it");
        alive += usize::from(message[..bytes].starts_with(b"WATCHDOG=1"));
    }
    assert!(!server.stderr().contains("does not answer itself"), "{}", server.stderr());
    drop(half);
}

#[test]
fn a_hangup_reads_certificates_again_whatever_becomes_of_the_settings() {
    let folder = certificates();
    let at = folder.path();
    let settings = at.join("s.toml");
    fs::write(&settings, "log = \"info\"\n").expect("written");
    let server = launch(at).argument("--config").argument(&settings).start().expect("ready");
    fs::write(&settings, "log = \"loud\"\n").expect("written");
    done(at, &[], &["cert", "server", "--dir", "certs", "--name", "newer"]);
    for (from, to) in [("newer.key", "server.key"), ("newer.pem", "server.pem")] {
        fs::rename(at.join("certs").join(from), at.join("certs").join(to)).expect("replaced");
    }
    server.signal("HUP");
    wait_for_log(&server, "the settings were refused");
    assert!(server.stderr().contains("certificates reloaded"), "{}", server.stderr());
}

#[test]
fn a_pair_that_cannot_be_used_stops_the_start_by_name_and_leaves_nothing() {
    let folder = certificates();
    let at = folder.path();
    let start = |more: &[&str]| {
        let base = ["serve", "--listen", "127.0.0.1:0", "--data", "new"];
        let ran = run(at, &[], &[&base, more].concat());
        assert!(ran.code.is_some_and(|code| code > 0) && !at.join("new").exists(), "{}", ran.stderr);
        ran.stderr
    };
    let (pem, key) = (["--tls-certificate", "certs/server.pem"], ["--tls-key", "certs/server.key"]);
    let mixed = start(&[&pem[..], &["--tls-key", "certs/mailer.key"]].concat());
    assert!(mixed.contains("certs/mailer.key: it is not the key of the certificate in certs/server.pem; "), "{mixed}");
    let swapped = start(&["--tls-certificate", "certs/server.key", "--tls-key", "certs/server.pem"]);
    assert!(swapped.contains("certs/server.key: it has no certificate; "), "{swapped}");
    let half = start(&pem);
    assert!(half.contains("server.tls_certificate is set, and server.tls_key is not; set both"), "{half}");
    let half = start(&key);
    assert!(half.contains("server.tls_key is set, and server.tls_certificate is not; set both"), "{half}");
    let alone = start(&["--tls-client-ca", "certs/ca.pem"]);
    assert!(alone.contains("server.tls_client_ca is set, and TLS is not; "), "{alone}");
}

#[test]
fn other_machines_are_let_in_with_tls_and_tokens_or_by_whoever_insists() {
    let folder = certificates();
    let at = folder.path();
    let start = |more: &[&str]| {
        let base = ["serve", "--listen", "0.0.0.0:0", "--data", "new"];
        let ran = run(at, &[], &[&base, more].concat());
        assert!(ran.code == Some(1) && !at.join("new").exists(), "{}", ran.stderr);
        ran.stderr
    };
    let tls = ["--tls-certificate", "certs/server.pem", "--tls-key", "certs/server.key"];
    let tokens_off = ["--tokens", "off"];
    assert!(start(&tokens_off).contains("would reach it without TLS and tokens; listen on 127.0.0.1"));
    assert!(start(&[&tls[..], &tokens_off].concat()).contains("would reach it without tokens; "));
    assert!(start(&[]).contains("would reach it without TLS; "));

    let wide = |insecure: bool| {
        let launch =
            Launch::program(BINARY).arguments(["serve", "--listen", "0.0.0.0:0", "--data"]).argument(at.join("house"));
        match insecure {
            true => launch.arguments(["--insecure", "--tokens", "off"]),
            false => {
                let file = |name: &str| at.join("certs").join(name).into_os_string();
                let launch = launch.argument("--tls-certificate").argument(file("server.pem"));
                launch.argument("--tls-key").argument(file("server.key"))
            }
        }
    };
    let insecure = wide(true).start().expect("ready");
    let missing = format!("other machines reach {} without TLS and tokens", insecure.address());
    wait_for_log(&insecure, &missing);
    wait_for(&format!("INSECURE: {missing}"), || insecure.stdout());
    let url_of = |scheme: &str, server: &ServerProcess| format!("{scheme}://127.0.0.1:{}", server.address().port());
    let url = url_of("http", &insecure);
    let status = run(at, &[("STATEHOUSE_URL", &url)], &["status", "-o", "json"]);
    assert!(status.code == Some(7) && status.stdout.contains("\"insecure\""), "{}", status.stdout);
    assert!(insecure.terminate(PATIENCE).status.success());

    let secure = wide(false).start().expect("ready");
    let url = url_of("https", &secure);
    let environment = [
        ("STATEHOUSE_URL", url.as_str()),
        ("STATEHOUSE_CA_FILE", "certs/ca.pem"),
        ("STATEHOUSE_TOKEN_FILE", "house/root.token"),
    ];
    let status = run(at, &environment, &["status", "-o", "json"]).stdout;
    assert!(status.contains("\"problems\"") && !status.contains("\"insecure\""), "{status}");
    assert!(!secure.stderr().contains("other machines reach"), "{}", secure.stderr());
}

#[test]
fn certificates_are_for_their_owner_and_never_replaced() {
    let folder = certificates();
    let at = folder.path();
    for file in ["ca.pem", "ca.key", "server.pem", "server.key", "mailer.pem", "mailer.key"] {
        let mode = fs::metadata(at.join("certs").join(file)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let before = fs::read(at.join("certs/server.pem")).expect("it is there");
    let refused = |arguments: &[&str], said: &str| {
        let ran = run(at, &[], arguments);
        assert!(ran.code.is_some_and(|code| code > 0) && ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
    };
    refused(&["cert", "server", "--dir", "certs"], "no file is replaced");
    refused(&["cert", "ca", "--dir", "certs"], "no file is replaced");
    fs::remove_file(at.join("certs/server.key")).expect("removed");
    refused(&["cert", "server", "--dir", "certs"], "no file is replaced");
    assert_eq!(fs::read(at.join("certs/server.pem")).expect("it is there"), before);
    assert!(!at.join("certs/server.key").exists(), "both or none");
    refused(&["cert", "server", "--dir", "nowhere"], "statehouse cert ca");
    refused(&["cert", "client", "mailer", "--dir", "certs"], "is no URI that a principal can have");
    refused(&["cert", "client", "uid:1000", "--dir", "certs"], "is no URI that a principal can have");
    refused(&["cert", "server", "--dir", "certs", "--name", "ca"], "cannot be the name of the files");
    for host in ["https://localhost", "localhost:7420", "", "a b"] {
        refused(&["cert", "server", host, "--dir", "certs", "--name", "odd"], "is no host name and no address");
    }
    done(at, &[], &["cert", "server", "*.example.org", "::1", "--dir", "certs", "--name", "wide"]);
    done(at, &[], &["cert", "ca", "--dir", "others"]);
    fs::copy(at.join("certs/ca.pem"), at.join("others/ca.pem")).expect("copied");
    refused(&["cert", "server", "--dir", "others"], "others/ca.pem and ca.key do not sign it");
    assert!(!at.join("others/server.pem").exists());
}
