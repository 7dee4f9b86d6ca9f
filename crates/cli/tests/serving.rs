//! The real binary: its settings, what it logs, and how it stops.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value as JsonValue;
use testkit::server_process::{Ended, Launch, ServerProcess};

const BINARY: &str = env!("CARGO_BIN_EXE_statehouse");
/// Longer than any of these stops takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

fn send(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn get(address: SocketAddr, path: &str) -> String {
    send(address, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
}

/// Waits for what must happen.
fn wait_for(what: &str, mut happens: impl FnMut() -> bool) {
    let began = Instant::now();
    while !happens() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a server has logged something.
fn wait_for_log(server: &ServerProcess, text: &str) {
    wait_for(text, || server.stderr().contains(text));
}

/// Sends a signal, and waits until the server has taken it and has answered a request after that.
fn signal_and_wait(server: &ServerProcess, name: &str) {
    server.signal(name);
    wait_for("the signal is delivered", || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
        let mut pending = status.lines().filter(|line| line.starts_with("SigPnd:") || line.starts_with("ShdPnd:"));
        pending.all(|line| line.ends_with("\t0000000000000000"))
    });
    assert!(get(server.address(), "/livez").starts_with("HTTP/1.1 200"), "{}", server.stderr());
}

/// A request whose body is not complete, so that it is under way: the server holds memory for the part that has come.
fn half_a_request(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    stream
        .write_all(b"PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 3\r\n\r\n\"a")
        .expect("sent");
    wait_for("a part of it is read", || {
        let metrics = get(address, "/metrics");
        let held =
            metrics.lines().find_map(|line| line.strip_prefix("statehouse_memory_bytes{component=\"requests\"} "));
        held.expect("a metric").trim() != "0"
    });
    stream
}

/// Waits until it has ended by itself.
fn wait_for_end(mut server: ServerProcess) -> Ended {
    wait_for("its end", || server.ended().is_some());
    server.kill()
}

fn refused(arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } =
        Command::new(BINARY).args(arguments).envs(environment.iter().copied()).output().expect("started");
    (status.code(), String::from_utf8(stderr).expect("text"))
}

#[test]
fn a_stop_answers_what_is_under_way_and_ends_with_0() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Launch::serve(BINARY, directory.path().join("house")).start().expect("ready");
    let address = server.address();
    let mut under_way = half_a_request(address);
    server.signal("TERM");
    wait_for_log(&server, "draining");
    let ready = get(address, "/readyz");
    assert!(ready.starts_with("HTTP/1.1 503") && ready.contains("false"), "{ready}");
    assert!(get(address, "/v1/cells/c").contains("SH-2016"), "new requests are refused by name");
    under_way.write_all(b"\"").expect("sent");
    let mut answer = String::new();
    under_way.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    let ended = wait_for_end(server);
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);

    let lines: Vec<JsonValue> = ended
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("JSON: {line}")))
        .collect();
    let messages: Vec<_> = lines.iter().filter_map(|line| line["message"].as_str()).collect();
    assert_eq!(messages, ["starting", "started", "ready", "draining", "stopped"], "one line for each change of state");
    assert!(lines[0]["memory"].as_str().expect("text").starts_with("memory "), "{}", lines[0]);
    assert!(!ended.stdout.contains("memory "), "the memory is said once: {}", ended.stdout);

    let again = Launch::serve(BINARY, directory.path().join("house")).start().expect("ready");
    assert!(get(again.address(), "/v1/cells/c").contains("\"a\""), "what was answered is there");
    assert!(again.terminate(PATIENCE).status.success());
}

#[test]
fn a_server_says_that_it_has_started_when_the_directory_is_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let house = directory.path().join("house");
    let server = Launch::serve(BINARY, &house).start().expect("ready");
    wait_for_log(&server, "\"started\"");
    let data = house.to_str().expect("UTF-8");
    let (code, said) = refused(&["serve", "--listen", "127.0.0.1:0", "--data", data], &[]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("starting") && said.contains("SH-2020") && !said.contains("started"), "{said}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Launch::serve(BINARY, directory.path().join("house"))
        .environment("STATEHOUSE_LIMITS__DRAIN_TIME_MAX", "1h")
        .start()
        .expect("ready");
    let _under_way = half_a_request(server.address());
    server.signal("TERM");
    wait_for_log(&server, "draining");
    server.signal("INT");
    assert_eq!(wait_for_end(server).status.code(), Some(1));
}

#[test]
fn a_hangup_answers_what_is_under_way_and_a_second_one_does_not_cut_it() {
    // A server without settings to read again.
    let server = Launch::dev(BINARY).start().expect("ready");
    let mut under_way = half_a_request(server.address());
    server.signal("HUP");
    wait_for_log(&server, "draining");
    signal_and_wait(&server, "HUP");
    under_way.write_all(b"\"").expect("sent");
    let mut answer = String::new();
    under_way.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    let ended = wait_for_end(server);
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("hung up") && ended.stderr.contains("stopped"), "{}", ended.stderr);
}

/// As on a terminal that is closed.
#[test]
fn a_stop_does_not_need_a_place_to_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Launch::program("/bin/sh")
        .asking_nobody()
        .arguments(["-c", "exec \"$@\" 2>/dev/full", "sh", BINARY, "serve", "--listen", "127.0.0.1:0", "--data"])
        .argument(directory.path().join("house"))
        .start()
        .expect("ready");
    server.signal("TERM");
    assert_eq!(wait_for_end(server).status.code(), Some(0));
}

#[test]
fn a_hangup_is_nothing_to_a_server_that_was_started_to_ignore_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Launch::program("/bin/sh")
        .asking_nobody()
        .arguments(["-c", "trap '' HUP; exec \"$@\"", "sh", BINARY, "serve", "--listen", "127.0.0.1:0", "--data"])
        .argument(directory.path().join("house"))
        .start()
        .expect("ready");
    signal_and_wait(&server, "HUP");
    assert!(server.ended().is_none() && get(server.address(), "/readyz").starts_with("HTTP/1.1 200"));
    let ended = server.terminate(PATIENCE);
    assert!(ended.status.code() == Some(0) && !ended.stderr.contains("hung up"), "{}", ended.stderr);
}

#[test]
fn a_name_is_answered_to_when_it_is_listed() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Launch::serve(BINARY, directory.path().join("house"))
        .environment("STATEHOUSE_SERVER__HOSTS", "state.internal")
        .start()
        .expect("ready");
    let of = |host: &str| {
        send(server.address(), &format!("GET /v1/spaces HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"))
    };
    assert!(of("State.Internal:7420").starts_with("HTTP/1.1 200") && of("localhost").starts_with("HTTP/1.1 200"));
    let refused = of("evil.example");
    assert!(refused.starts_with("HTTP/1.1 421") && refused.contains("SH-1060"), "{refused}");
    wait_for("the names", || server.stdout().contains("answers to state.internal, localhost"));
}

#[test]
fn the_drain_has_a_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Launch::serve(BINARY, directory.path().join("house"))
        .environment("STATEHOUSE_LIMITS__DRAIN_TIME_MAX", "500ms")
        .start()
        .expect("ready");
    let _under_way = half_a_request(server.address());
    let began = Instant::now();
    server.signal("TERM");
    let ended = wait_for_end(server);
    let took = began.elapsed();
    assert_eq!(ended.status.code(), Some(0));
    // Half a minute is what it waits when nobody says anything.
    assert!(took >= Duration::from_millis(500) && took < Duration::from_secs(25), "{took:?}");
}

#[test]
fn settings_come_from_a_file_the_environment_and_flags() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("s.toml");
    let data = directory.path().join("house");
    let text = format!("data = {:?}\nlog = \"warn\"\nmemory = \"300MiB\"\n[limits]\nurl_bytes_max = 100\n", data);
    std::fs::write(&file, text).expect("written");
    let server = Launch::program(BINARY)
        .asking_nobody()
        .arguments(["serve", "--listen", "127.0.0.1:0", "--config"])
        .argument(&file)
        .environment("STATEHOUSE_LIMITS__HEADERS_MAX", "2")
        .start()
        .expect("ready");
    let long = get(server.address(), &format!("/livez?{}", "x".repeat(100)));
    assert!(long.contains("url_bytes_max = 100"), "{long}");
    let many = send(server.address(), "GET /livez HTTP/1.1\r\nhost: localhost\r\na: 1\r\nconnection: close\r\n\r\n");
    assert!(many.contains("headers_max = 2"), "{many}");
    let ended = server.terminate(PATIENCE);
    assert_eq!(ended.stderr, "", "nothing below a warning");
}

#[test]
fn serve_asks_for_a_token_unless_it_is_told_otherwise() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("a house");
    let launch = Launch::program(BINARY).arguments(["serve", "--listen", "127.0.0.1:0", "--data"]).argument(&data);
    let server = launch.start().expect("ready");
    let refused = get(server.address(), "/v1/cells/c");
    assert!(refused.starts_with("HTTP/1.1 401") && refused.contains("SH-6001"), "{refused}");
    // It says where the first token is, as a line for a shell.
    wait_for("the file", || server.stdout().contains("root.token"));
    let said = server.stdout();
    let export = said.lines().find_map(|line| line.split_once("first administrator: ")).expect("the line").1;
    let url = format!("http://{}", server.address());
    let script = format!("{export}; exec \"$@\"");
    let words = [BINARY, "cell", "set", "c", "1"];
    let written = Command::new("/bin/sh")
        .args(["-c", &script, "sh"])
        .args(words)
        .env("STATEHOUSE_URL", url)
        .output()
        .expect("started");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    server.terminate(PATIENCE);
    // The next start makes nobody.
    let server = launch.start().expect("ready");
    assert!(get(server.address(), "/v1/cells/c").starts_with("HTTP/1.1 401"));
    let ended = server.terminate(PATIENCE);
    assert!(!ended.stdout.contains("first administrator"), "{}", ended.stdout);
    let server = launch.arguments(["--tokens", "off"]).start().expect("ready");
    assert!(get(server.address(), "/v1/cells/c").starts_with("HTTP/1.1 200"));
}

#[test]
fn dev_asks_nobody_unless_it_is_told_to() {
    let server = Launch::dev(BINARY).start().expect("ready");
    assert!(get(server.address(), "/v1/cells/c").starts_with("HTTP/1.1 404"));
    let server = Launch::dev(BINARY).arguments(["--tokens", "required"]).start().expect("ready");
    assert!(get(server.address(), "/v1/cells/c").starts_with("HTTP/1.1 401"));
}

#[test]
fn mistakes_are_usage_errors_and_name_the_place() {
    let (code, said) = refused(&["serve", "--data", "/nowhere"], &[("STATEHOUSE_LISTEN", "127.0.0.1:0")]);
    assert_eq!(code, Some(2));
    assert!(said.contains("did you mean STATEHOUSE_SERVER__LISTEN?"), "{said}");
    let (code, said) = refused(&["serve"], &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--data DIR"), "{said}");
    let (code, said) = refused(&["dev", "--memory", "much"], &[]);
    assert_eq!(code, Some(2));
    assert!(said.contains("--memory: \"much\" is not a number of bytes"), "{said}");
}

#[test]
fn dev_keeps_what_it_is_told_to_and_says_what_to_try() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = directory.path().join("kept");
    let launch = Launch::program(BINARY).arguments(["dev", "--random-ports", "--keep"]).argument(&kept);
    let server = launch.start().expect("ready");
    let body = "\"hello\"";
    let put = format!(
        "PUT /v1/cells/greeting HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 7\r\n\r\n{body}"
    );
    assert!(send(server.address(), &put).starts_with("HTTP/1.1 2"));
    let ended = server.terminate(PATIENCE);
    assert_eq!(ended.stdout.lines().filter(|line| line.starts_with("  curl ")).count(), 3, "{}", ended.stdout);
    let server = launch.start().expect("ready");
    assert!(get(server.address(), "/v1/cells/greeting").contains("hello"));
}

#[test]
fn a_disk_that_is_low_refuses_writes_with_507() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Launch::serve(BINARY, directory.path().join("house"))
        .environment("STATEHOUSE_DISK__LOW_PERCENT", "100")
        .environment("STATEHOUSE_DISK__LOW_BYTES", "1000TiB")
        .start()
        .expect("ready");
    let address = server.address();
    let put = "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 1\r\n\r\n1";
    let refused = send(address, put);
    assert!(refused.starts_with("HTTP/1.1 507") && refused.contains("SH-2015"), "{refused}");
    let delete = send(address, "DELETE /v1/cells/c HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    assert!(!delete.contains("SH-2015"), "{delete}");
    assert!(get(address, "/readyz").starts_with("HTTP/1.1 200"), "it is ready: reads and deletes go on");
    wait_for_log(&server, "disk low");
}

#[test]
fn a_server_stops_while_its_settings_cannot_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    // Whoever opens it waits until somebody writes.
    let settings = folder.path().join("s.toml");
    assert!(Command::new("mkfifo").arg(&settings).status().expect("mkfifo").success());
    let written = settings.clone();
    let writer = std::thread::spawn(move || std::fs::write(written, "log = \"info\"\n").expect("written"));
    let launch = Launch::serve(BINARY, folder.path().join("house")).argument("--config").argument(&settings);
    let server = launch.start().expect("ready");
    writer.join().expect("it was read");
    signal_and_wait(&server, "HUP");
    std::thread::sleep(Duration::from_millis(200));
    server.signal("TERM");
    assert_eq!(wait_for_end(server).status.code(), Some(0));
}
