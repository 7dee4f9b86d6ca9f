//! The command: it serves, and stops when it is asked to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

#[test]
fn dev_serves_and_stops() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_statehouse"))
        .args(["dev", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let first = lines.next().expect("a line").expect("text");
    let address = first.rsplit_once("http://").expect("an address").1.to_owned();
    assert!(lines.next().expect("a line").expect("text").starts_with("ready in "));
    let mut stream = TcpStream::connect(&address).expect("a connection");
    let request =
        "PUT /v1/cells/greeting HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 7\r\n\r\n\"hello\"";
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("\"version\":1"), "{answer}");
    assert!(answer.ends_with("}\n"), "the next prompt begins a line: {answer:?}");
    let second =
        Command::new(env!("CARGO_BIN_EXE_statehouse")).args(["dev", "--listen", &address]).output().expect("started");
    let said = String::from_utf8(second.stderr).expect("text");
    assert!(said.contains(&format!("another program listens on {address}")), "{said}");
    let stopped = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    assert!(stopped.success());
    assert!(child.wait().expect("ended").success(), "exit 0");
}

/// As a person starts it: on a terminal, which `script` makes, and stopped with ctrl-c.
#[test]
fn dev_serves_a_person_at_a_terminal() {
    // `exec`, as ctrl-c reaches the shell as well, and some shells would then say that they were interrupted.
    let command = format!("exec {} dev --listen 127.0.0.1:0", env!("CARGO_BIN_EXE_statehouse"));
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script, of util-linux, is there");
    let mut said = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    while !said.contains("curl http://") {
        let line = lines.next().unwrap_or_else(|| panic!("it ended: {said}")).expect("text");
        said += &format!("{}\n", line.trim_end());
    }
    assert!(said.contains("INFO started") && !said.contains('{'), "people get no JSON: {said}");
    child.stdin.take().expect("its input").write_all(b"\x03").expect("ctrl-c");
    said.extend(lines.map_while(Result::ok));
    assert!(child.wait().expect("ended").success(), "exit 0: {said}");
}

#[test]
fn other_addresses_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("house");
    let output = Command::new(env!("CARGO_BIN_EXE_statehouse"))
        .args(["serve", "--listen", "0.0.0.0:0", "--data"])
        .arg(&data)
        .output()
        .expect("started");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("0.0.0.0:0 is not a loopback address"), "{said}");
    assert!(!data.exists(), "a start that is refused leaves nothing");
}
