//! Backups and exports through a real socket.

#![allow(clippy::disallowed_methods, reason = "tests wait by the machine's clock")]

mod running;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use running::Running;
use statehouse::{Options, backup, export, import};
use statehouse_server::Server;

fn served() -> Running {
    Running::start(&Options::default(), Server::new)
}

/// Sends a request and reads the head of the answer.
fn begin(address: SocketAddr, request: &str, body: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let length = body.len();
    let head =
        format!("{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).expect("sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    (stream, String::from_utf8(head).expect("text").to_lowercase())
}

fn get(address: SocketAddr, path: &str) -> (String, Vec<u8>) {
    let (mut stream, head) = begin(address, &format!("GET {path}"), "");
    let mut body = Vec::new();
    stream.read_to_end(&mut body).expect("a body");
    if head.contains("transfer-encoding: chunked") {
        body = unchunked(&body);
    }
    (head, body)
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n").expect("the length of a chunk");
        let length = std::str::from_utf8(&bytes[..end]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let length = length.expect("a length");
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&bytes[end + 2..end + 2 + length]);
        bytes = &bytes[end + 2 + length + 2..];
    }
}

#[test]
fn a_backup_is_streamed_whole_and_a_check_of_it_is_heard() {
    let served = served();
    for number in 0..40 {
        served.house.cells().set(&format!("cell/{number}"), "x".repeat(100_000)).expect("written");
    }
    let (head, body) = get(served.address, "/v1/backup");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let said = backup::Manifest::peek(&body[..200]).expect("a manifest comes first");
    assert_eq!(said.file_bytes(), body.len() as u64);
    let checked = backup::verify(&mut body.as_slice(), &mut |_| {}).expect("whole");
    assert!(head.contains(&format!("statehouse-commit: {}\r\n", checked.manifest.commit)), "{head}");
    let path = served.folder.path().join("restored");
    backup::restore(&path, &mut body.as_slice(), &mut |_| {}).expect("restored");
    assert_eq!(backup::image_of_directory(&path).expect("an image"), checked.image_sha256);

    let said =
        |store: String| begin(served.address, "POST /v1/backup/verified", &format!("{{\"store\":\"{store}\"}}")).1;
    assert!(said(format!("{:016x}", served.house.id())).starts_with("http/1.1 200"));
    assert!(said("0".repeat(16)).starts_with("http/1.1 400"), "of another store");
}

#[test]
fn a_second_backup_is_refused_by_name_until_the_first_is_over() {
    let served = served();
    for number in 0..24 {
        // More than the server and both sockets keep, so that the first one cannot end unseen.
        served.house.cells().set(&format!("cell/{number}"), vec![7; 1 << 20]).expect("written");
    }
    let (first, head) = begin(served.address, "GET /v1/backup", "");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let (head, body) = get(served.address, "/v1/backup");
    let body = String::from_utf8(body).expect("text");
    assert!(head.starts_with("http/1.1 429") && head.contains("retry-after"), "{head}");
    assert!(body.contains("backups_running_max") && body.contains("SH-2001"), "{body}");

    drop(first);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let (head, body) = get(served.address, "/v1/backup");
        if head.starts_with("http/1.1 200") {
            backup::verify(&mut body.as_slice(), &mut |_| {}).expect("whole");
            break;
        }
        assert!(Instant::now() < deadline, "a client that has gone holds up nobody");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_export_is_streamed_whole_for_all_spaces_or_one() {
    let served = served();
    served.house.cells().set("here", "x".repeat(600_000)).expect("written");
    served.house.create_space("shop").expect("a space").cells().set("there", 1).expect("written");
    let mut expected = Vec::new();
    export::write(&served.house, None, &mut expected, &mut |_| {}).expect("exported");
    let (head, body) = get(served.address, "/v1/export");
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: application/jsonl"), "{head}");
    assert!(body == expected, "the same lines as the library's");
    let path = served.folder.path().join("imported");
    import::read(&path, &mut body.as_slice(), &mut |_| {}).expect("imported");

    let (_, shop) = get(served.address, "/v1/export?space=shop");
    let shop = String::from_utf8(shop).expect("text");
    assert!(shop.contains("\"there\"") && !shop.contains("\"here\""), "{shop}");
    let (head, body) = get(served.address, "/v1/export?space=nowhere");
    assert!(head.starts_with("http/1.1 404"), "{head} {}", String::from_utf8_lossy(&body));
}
