//! What an operator meets: starts that are refused say why and leave nothing, files belong to their owner, and a server answers while it starts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use testkit::server_process::Launch;

const BINARY: &str = env!("CARGO_BIN_EXE_statehouse");
const PATIENCE: Duration = Duration::from_secs(60);

fn run(arguments: &[&str]) -> Output {
    Command::new(BINARY).args(arguments).env_remove("STATEHOUSE_URL").output().expect("started")
}

fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = run(arguments);
    (status.code(), String::from_utf8(stderr).expect("text"))
}

fn get(address: SocketAddr, path: &str, header: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(address) else { return String::new() };
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{header}connection: close\r\n\r\n");
    let mut answer = String::new();
    let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    answer
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_level_that_there_is_not_is_refused_with_those_that_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("house");
    let output = Command::new(BINARY)
        .args(["serve", "--listen", "127.0.0.1:0", "--data", text(&data)])
        .env("STATEHOUSE_LOG", "verbose")
        .output()
        .expect("started");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("STATEHOUSE_LOG: \"verbose\" is not a level; write one of off, error, warn, info"), "{said}");
    assert!(!data.exists());
}

#[test]
fn a_port_that_is_taken_is_found_before_anything_is_logged_or_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let data = folder.path().join("house");
    let (code, said) = refused(&["serve", "--listen", &address, "--data", text(&data)]);
    assert_eq!(code, Some(1));
    assert!(said.contains("another program listens on") && !said.contains("started"), "{said}");
    assert!(!data.exists(), "nothing is made");
}

#[test]
fn what_cannot_be_opened_says_why_and_what_helps() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = |name: &str| folder.path().join(name);
    let serve = |data: &Path| refused(&["serve", "--listen", "127.0.0.1:0", "--log", "error", "--data", text(data)]);
    std::fs::create_dir(inside("theirs")).expect("made");
    std::fs::write(inside("theirs/thesis.txt"), "kept").expect("written");
    let (code, said) = serve(&inside("theirs"));
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("is not empty: it holds \"thesis.txt\"") && !said.contains("--url"), "{said}");
    assert_eq!(std::fs::read_dir(inside("theirs")).expect("there").count(), 1, "nothing was put beside it");
    let (_, said) = serve(&inside("theirs/thesis.txt"));
    assert!(said.contains("is a file; name a folder"), "{said}");
    let (_, said) = serve(&inside("theirs/thesis.txt/house"));
    assert!(said.contains("a part of the path is a file") || said.contains("Not a directory"), "{said}");

    let server = Launch::serve(BINARY, inside("house")).start().expect("ready");
    let (code, said) = serve(&inside("house"));
    assert_eq!(code, Some(5));
    assert!(
        said.contains(&format!("is already open, in process {}", server.id())) && said.contains("SH-2020"),
        "{said}"
    );
    let backup = inside("b");
    let url = format!("http://{}", server.address());
    let taken = run(&["backup", "create", text(&backup), "--url", &url]);
    let said = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(taken.status.success() && said.is_empty(), "silent without a terminal: {said}");
    let (code, said) = refused(&["backup", "restore", text(&backup), text(&inside("theirs"))]);
    assert_eq!(code, Some(5));
    assert!(said.contains("already exists and holds 1 entry") && !said.contains("talk to"), "{said}");
    drop(server);
    // The superuser may do everything.
    if !rustix_is_root() {
        std::fs::set_permissions(inside("house"), std::fs::Permissions::from_mode(0o500)).expect("closed");
        let (_, said) = serve(&inside("house"));
        assert!(said.contains("this user may not") && !said.contains("--url"), "{said}");
        std::fs::set_permissions(inside("house"), std::fs::Permissions::from_mode(0o700)).expect("opened");
    }
}

fn rustix_is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id");
    output.stdout == b"0\n"
}

#[test]
fn files_belong_to_their_owner_whatever_the_umask_is_and_no_link_is_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = |name: &str| folder.path().join(name);
    let victim = inside("victim");
    std::fs::write(&victim, "kept").expect("written");
    for planted in ["b.shbackup.partial", "e.jsonl.partial"] {
        symlink(&victim, inside(planted)).expect("planted");
    }
    let script = "umask 000; exec \"$0\" \"$@\"";
    let started = Launch::program("/bin/sh").asking_nobody().arguments([
        "-c",
        script,
        BINARY,
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
    ]);
    let server = started.argument(inside("house")).start().expect("ready");
    let url = format!("http://{}", server.address());
    let command = |arguments: &[&str]| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script, BINARY]).args(arguments).env("XDG_CONFIG_HOME", inside("config"));
        shell.env("STATEHOUSE_URL", &url).current_dir(folder.path()).output().expect("started")
    };
    for arguments in [
        &["cell", "set", "a", "1"][..],
        &["backup", "create", "b.shbackup"],
        &["backup", "restore", "b.shbackup", "restored"],
        &["export", "e.jsonl"],
        &["import", "e.jsonl", "--data", "imported"],
        &["config", "init", "--to", "s.toml"],
        &["ctx", "add", "here", &url],
    ] {
        let done = command(arguments);
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    drop(server);
    assert_eq!(std::fs::read_to_string(&victim).expect("there"), "kept");
    let mut left = vec![folder.path().to_owned()];
    while let Some(path) = left.pop() {
        let found = std::fs::symlink_metadata(&path).expect("there");
        let ours = path != folder.path() && path != victim && !found.is_symlink();
        assert!(!ours || found.permissions().mode() & 0o077 == 0, "{} is open to others", path.display());
        if found.is_dir() {
            left.extend(std::fs::read_dir(&path).expect("there").map(|entry| entry.expect("an entry").path()));
        }
    }
}

#[test]
fn there_is_no_banner_between_the_lines_of_a_json_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = std::fs::File::create(folder.path().join("log")).expect("a file");
    let mut child = Command::new(BINARY)
        .args(["dev", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::from(log.try_clone().expect("a second one")))
        .stderr(Stdio::from(log))
        .spawn()
        .expect("started");
    let said = || std::fs::read_to_string(folder.path().join("log")).expect("the log");
    let began = Instant::now();
    while !said().contains("\"ready\"") {
        assert!(began.elapsed() < PATIENCE, "{}", said());
        std::thread::sleep(Duration::from_millis(10));
    }
    let stopped = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    assert!(stopped.success() && child.wait().expect("ended").success());
    for line in said().lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
}

#[test]
fn a_server_answers_while_it_replays_and_every_answer_has_an_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("house");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let launch = Launch::program(BINARY)
        .asking_nobody()
        .arguments(["serve", "--listen", &address.to_string(), "--data"])
        .argument(&data);
    let server = launch.start().expect("ready");
    let page = get(address, "/", "accept: text/html,*/*\r\n");
    assert!(page.contains("content-type: text/html") && page.contains("<a href=\"/docs\">"), "{page}");
    let page = get(address, "/", "");
    assert!(page.contains("content-type: text/plain") && page.contains("/status"), "{page}");
    for path in ["/livez", "/v1/cells/none", "/nowhere"] {
        let answer = get(address, path, "");
        assert!(answer.contains("\nstatehouse-request-id: "), "{answer}");
    }
    assert!(get(address, "/nowhere", "").contains("GET / lists where to find things"));
    // Something to replay: nothing is flushed before a kill.
    let entry = format!("\"{}\"", "x".repeat(4_000));
    let body = format!("content-length: {}\r\nconnection: keep-alive\r\n\r\n{entry}", entry.len());
    let mut stream = TcpStream::connect(address).expect("a connection");
    for number in 0..2_000 {
        let head = format!("PUT /v1/cells/c{number} HTTP/1.1\r\nhost: {address}\r\n{body}");
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = [0; 4096];
        let read = stream.read(&mut answer).expect("an answer");
        assert!(answer[..read].starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer[..read]));
    }
    server.kill();

    let mut child = Command::new(BINARY)
        .args(["serve", "--tokens", "off", "--log", "error", "--listen", &address.to_string(), "--data", text(&data)])
        .stdout(Stdio::null())
        .spawn()
        .expect("started");
    let (began, mut starting) = (Instant::now(), Vec::new());
    loop {
        let answer = get(address, "/startupz", "");
        if answer.starts_with("HTTP/1.1 200") {
            break;
        }
        if answer.starts_with("HTTP/1.1 503") {
            starting.push(answer);
            let refused = get(address, "/v1/cells/c1", "");
            assert!(refused.contains("SH-2022") || refused.starts_with("HTTP/1.1 200"), "{refused}");
            assert!(get(address, "/livez", "").starts_with("HTTP/1.1 200"));
        }
        assert!(began.elapsed() < PATIENCE, "it does not start");
    }
    assert!(!starting.is_empty(), "it was asked before it was ready");
    assert!(starting.iter().all(|answer| answer.contains("\"started\":false") && answer.contains("entries_to_replay")));
    assert!(get(address, "/v1/cells/c1999", "").starts_with("HTTP/1.1 200"), "and it serves what was acknowledged");
    child.kill().expect("ours");
    child.wait().expect("ended");
}
