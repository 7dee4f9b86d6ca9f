//! The real binary as a service: what it tells the service manager, what it answers while it starts, and how it reads its settings
//! again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value as JsonValue;
use testkit::server_process::{Launch, ServerProcess};

const BINARY: &str = env!("CARGO_BIN_EXE_statehouse");
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A service manager: the socket that it listens on, and what it has heard.
struct Manager {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Manager {
    fn listen(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        Self { socket, heard: Vec::new() }
    }

    /// Takes what has arrived.
    fn listen_on(&mut self) {
        let mut message = [0; 4096];
        while let Ok(bytes) = self.socket.recv(&mut message) {
            self.heard.push(String::from_utf8(message[..bytes].to_vec()).expect("text"));
        }
    }

    fn count(&mut self, line: &str) -> usize {
        self.listen_on();
        self.heard.iter().filter(|message| message.lines().any(|said| said == line)).count()
    }

    /// Waits until it has heard a line so often.
    fn wait_for(&mut self, line: &str, times: usize) {
        wait_for(line, || self.count(line) >= times);
    }
}

fn wait_for(what: &str, mut happens: impl FnMut() -> bool) {
    let began = Instant::now();
    while !happens() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An answer, or nothing if nobody listens.
fn get(address: SocketAddr, path: &str, more: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(address) else { return String::new() };
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn body(answer: &str) -> JsonValue {
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_else(|_| panic!("JSON: {answer}"))
}

/// A server with a settings file that a test can write again.
struct Configured {
    server: ServerProcess,
    file: PathBuf,
    data: PathBuf,
    _folder: tempfile::TempDir,
}

impl Configured {
    fn start(settings: &str, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, data) = (folder.path().join("s.toml"), folder.path().join("house"));
        write(&file, &data, settings);
        let launch = Launch::program(BINARY)
            .asking_nobody()
            .arguments(["serve", "--listen", "127.0.0.1:0", "--config"])
            .argument(&file);
        let launch = environment.iter().fold(launch, |launch, (name, value)| launch.environment(name, value));
        Self { server: launch.start().expect("ready"), file, data, _folder: folder }
    }

    /// Writes other settings, and waits until the server has said something about them.
    fn reload(&self, settings: &str, says: &str) {
        write(&self.file, &self.data, settings);
        let before = self.server.stderr().matches(says).count();
        self.server.signal("HUP");
        wait_for(says, || self.server.stderr().matches(says).count() > before);
    }

    fn get(&self, path: &str) -> String {
        get(self.server.address(), path, "")
    }

    fn problems(&self, name: &str) -> JsonValue {
        body(&self.get("/status"))[name].clone()
    }
}

fn write(file: &Path, data: &Path, settings: &str) {
    std::fs::write(file, format!("data = {data:?}\n{settings}")).expect("written");
}

const TAKEN: &str = "the settings were read again";
const REFUSED: &str = "the settings were refused";

#[test]
fn a_hangup_changes_what_can_change_and_names_what_cannot() {
    let configured = Configured::start("log = \"error\"\n[server]\nhosts = [\"one.internal\"]\n", &[]);
    let of = |host: &str| {
        let mut stream = TcpStream::connect(configured.server.address()).expect("a connection");
        let request = format!("GET /v1/spaces HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok()).expect("a status")
    };
    assert_eq!((of("one.internal"), of("two.internal")), (200, 421));
    assert_eq!(configured.server.stderr(), "", "there is no error");
    let changed =
        "log = \"info\"\nmemory = \"300MiB\"\n[server]\nhosts = [\"two.internal\"]\n[limits]\nheaders_max = 7\n";
    configured.reload(changed, TAKEN);
    assert_eq!((of("one.internal"), of("two.internal")), (421, 200));
    let said = configured.server.stderr();
    let warnings: Vec<JsonValue> = said
        .lines()
        .map(|line| serde_json::from_str::<JsonValue>(line).expect("JSON"))
        .filter(|line| line["level"] == "WARN")
        .collect();
    let named: Vec<_> = warnings.iter().filter_map(|warning| warning["setting"].as_str()).collect();
    assert_eq!(named, ["memory", "limits.headers_max"], "{said}");
    assert!(said.contains("\"changed\":\"log, server.hosts\""), "{said}");
    let notes = configured.problems("notes");
    assert_eq!(
        (&notes[0]["problem"], &notes[0]["object"]),
        (&"settings_wait".into(), &"memory, limits.headers_max".into())
    );
    // Below a warning nothing is said any more, and that includes this.
    configured.reload("log = \"warn\"\nmemory = \"300MiB\"\n", "this setting has changed");
    wait_for("the hosts are gone", || of("two.internal") == 421);
    assert_eq!(configured.server.stderr().matches(TAKEN).count(), 1);
}

#[test]
fn settings_with_a_mistake_change_nothing_and_are_a_problem() {
    let configured = Configured::start("log = \"info\"\n[server]\nhosts = [\"one.internal\"]\n", &[]);
    let status = |host: &str| get(configured.server.address(), "/v1/spaces", "").replace("localhost", host);
    assert!(status("localhost").starts_with("HTTP/1.1 200"));
    configured.reload("log = \"loud\"\n[server]\nhosts = [\"two.internal\"]\n", REFUSED);
    let problems = configured.problems("problems");
    let text = problems[0]["text"].as_str().expect("a problem");
    assert!(
        problems[0]["problem"] == "settings_refused" && text.contains("loud") && text.contains("s.toml:2"),
        "{problems}"
    );
    configured.reload("[server]\norigins = [\"https://app.example\"]\n", REFUSED);
    let text = configured.problems("problems")[0]["text"].to_string();
    assert!(text.contains("server.tokens"), "pages are let in with a token only: {text}");
    // One that cannot be read at all.
    std::fs::remove_file(&configured.file).expect("removed");
    configured.server.signal("HUP");
    wait_for("a third refusal", || configured.server.stderr().matches(REFUSED).count() == 3);
    let scraped = configured.get("/metrics");
    assert!(scraped.contains("statehouse_reloads_total{result=\"refused\"} 3"), "{scraped}");
    configured.reload("log = \"info\"\n[server]\nhosts = [\"one.internal\"]\n", TAKEN);
    assert_eq!(configured.problems("problems"), serde_json::json!([]));
    assert!(configured.server.terminate(PATIENCE).status.success());
}

#[test]
fn the_service_manager_is_told_what_a_server_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let mut manager = Manager::listen(&path);
    let environment = [("NOTIFY_SOCKET", path.to_str().expect("text")), ("WATCHDOG_USEC", "400000")];
    let configured = Configured::start("log = \"info\"\n", &environment);
    manager.wait_for("READY=1", 1);
    let serving = format!("STATUS=serving on http://{}", configured.server.address());
    assert_eq!(manager.count(&serving), 1, "{:?}", manager.heard);
    assert!(manager.heard[0].starts_with("STATUS=opening the directory: "), "{:?}", manager.heard);
    manager.wait_for("WATCHDOG=1", 3);

    configured.reload("log = \"info\"\n", TAKEN);
    manager.wait_for("READY=1", 2);
    let reloading = manager.heard.iter().find(|message| message.starts_with("RELOADING=1\n")).expect("it reloads");
    let at = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC=")).expect("when");
    let uptime = std::fs::read_to_string("/proc/uptime").expect("uptime");
    let uptime: f64 = uptime.split(' ').next().and_then(|seconds| seconds.parse().ok()).expect("seconds");
    let at = at.parse::<f64>().expect("a number") / 1e6;
    assert!(at <= uptime && at > uptime - PATIENCE.as_secs_f64(), "{at} of {uptime}");

    configured.server.signal("TERM");
    manager.wait_for("STOPPING=1", 1);
}

/// A restart would not help it.
#[test]
fn a_server_with_all_the_connections_that_it_may_have_still_lives() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let mut manager = Manager::listen(&path);
    let environment = [
        ("NOTIFY_SOCKET", path.to_str().expect("text")),
        ("WATCHDOG_USEC", "400000"),
        ("STATEHOUSE_LIMITS__CONNECTIONS_MAX", "1"),
    ];
    let configured = Configured::start("log = \"info\"\n", &environment);
    // The server's own question may have the only place at first.
    let mut only = None;
    wait_for("the only connection", || {
        let mut stream = TcpStream::connect(configured.server.address()).expect("a connection");
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
        let mut answer = [0; 16];
        let held = stream.read(&mut answer).is_ok() && answer.starts_with(b"HTTP/1.1 200");
        only = held.then_some(stream);
        held
    });
    let before = manager.count("WATCHDOG=1");
    manager.wait_for("WATCHDOG=1", before + 3);
    assert!(get(configured.server.address(), "/livez", "").contains("SH-2010"), "it says so to everybody");
    drop(only);
}

#[test]
fn a_start_says_how_far_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, path) = (folder.path().join("house"), folder.path().join("notify"));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let launch = Launch::program(BINARY)
        .asking_nobody()
        .arguments(["serve", "--listen", &address.to_string(), "--data"])
        .argument(&data);
    let server = launch.start().expect("ready");
    // Something to replay: nothing is flushed before a kill.
    let value = format!("\"{}\"", "x".repeat(4_000));
    let mut stream = TcpStream::connect(address).expect("a connection");
    for number in 0..2_000 {
        let head =
            format!("PUT /v1/cells/c{number} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n", value.len());
        stream.write_all((head + &value).as_bytes()).expect("sent");
        let mut answer = [0; 4096];
        let read = stream.read(&mut answer).expect("an answer");
        assert!(answer[..read].starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer[..read]));
    }
    server.kill();

    let mut manager = Manager::listen(&path);
    let mut starting = launch.environment("NOTIFY_SOCKET", &path).start_opening().expect("started");
    let (began, mut percents, mut ratios) = (Instant::now(), Vec::new(), Vec::new());
    loop {
        let answer = get(address, "/startupz", "");
        if answer.starts_with("HTTP/1.1 200") {
            break;
        }
        if answer.starts_with("HTTP/1.1 503") {
            let said = body(&answer);
            percents.push(said["percent"].as_u64().expect("a percentage"));
            let number = |name: &str| said[name].as_u64().unwrap_or_else(|| panic!("{name}: {said}"));
            assert!(number("replayed_bytes") <= number("bytes_to_replay"), "{said}");
            let refused = get(address, "/v1/cells/c1", "");
            if !refused.starts_with("HTTP/1.1 200") {
                assert!(refused.contains("SH-2022") && refused.to_lowercase().contains("\nretry-after: "), "{refused}");
            }
            let scraped = get(address, "/metrics", "");
            ratios.extend(
                scraped
                    .lines()
                    .find_map(|line| line.strip_prefix("statehouse_replay_progress_ratio ")?.parse::<f64>().ok()),
            );
        }
        assert!(began.elapsed() < PATIENCE, "it does not start");
    }
    assert!(percents.is_sorted() && percents.iter().all(|percent| *percent <= 100), "{percents:?}");
    let between = percents.iter().filter(|percent| (1..100).contains(*percent)).count();
    assert!(between > 1, "it counts up: {percents:?}");
    assert!(ratios.is_sorted() && ratios.iter().any(|ratio| *ratio > 0.0), "{ratios:?}");
    assert!(get(address, "/metrics", "").contains("statehouse_replay_progress_ratio 1"));
    starting.await_ready().expect("ready");
    manager.wait_for("READY=1", 1);
    assert!(
        manager.heard[0].starts_with("STATUS=opening the directory: 0 % of the journal replayed"),
        "{:?}",
        manager.heard
    );
}

/// A terminal of its own, closed on drop.
struct Terminal(String);

impl Terminal {
    fn open(name: &str, command: &str) -> Self {
        let terminal = Self(format!("statehouse-{name}-{}", std::process::id()));
        terminal.tmux(&["new-session", "-d", "-x", "80", "-y", "24", command]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let done =
            Command::new("tmux").args(["-L", &self.0, "-f", "/dev/null"]).args(arguments).output().expect("tmux");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_hangup_ends_a_server_when_its_terminal_was_closed_and_not_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, log) = (folder.path().join("house"), folder.path().join("log"));
    let command = format!("exec {BINARY} serve --listen 127.0.0.1:0 --data {} 2>{}", data.display(), log.display());
    let terminal = Terminal::open("hangup", &command);
    let has_logged = |text: &str| std::fs::read_to_string(&log).is_ok_and(|said| said.contains(text));
    wait_for("it is ready", || has_logged("\"ready\""));
    let id = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]);
    assert!(Command::new("kill").args(["-HUP", &id]).status().expect("kill").success());
    wait_for("it reads its settings", || has_logged(TAKEN));
    assert!(!has_logged("hung up"));
    drop(terminal);
    wait_for("it ends", || has_logged("\"stopped\""));
    assert!(has_logged("hung up: stopping"));
}
