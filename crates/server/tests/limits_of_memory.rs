//! Limits of the memory for requests and listings, through a real socket.

mod limited;
mod running;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use limited::{served, wait_for};

#[test]
fn memory_for_requests_has_a_limit() {
    // Three times its bytes, and one value.
    let served = served(|limits| limits.request_memory_bytes_max = 31 << 10);
    let of = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    assert_eq!(served.put(&of(10_560)).status / 100, 2);
    let refused = served.put(&of(10_561));
    let beyond = ("request_memory_bytes_max", 31 << 10, Some(10_561 * 3 + 64));
    assert_eq!((refused.status, refused.code(), refused.beyond()), (413, "SH-1047", beyond));
    let dense = served.put(&format!("[{}0]", "{\"\":0},".repeat(100)));
    assert_eq!((dense.status, dense.code()), (413, "SH-1047"), "what grows when it is parsed counts as it will be");
}

#[test]
fn memory_that_others_hold_is_waited_for() {
    let served = served(|limits| limits.request_memory_bytes_max = 31 << 10);
    let body = format!("\"{}\"", "x".repeat(10_000));
    let mut half = served.connect();
    let head = "PUT /v1/cells/half HTTP/1.1\r\nhost: localhost\r\ncontent-length: 20000\r\n\r\n";
    half.write_all(format!("{head}{}", "x".repeat(16_000)).as_bytes()).expect("sent");
    wait_for("the half is held", || served.load().memory_bytes() >= 16_000);
    let refused = served.put(&body);
    assert_eq!((refused.status, refused.code()), (429, "SH-2014"));
    drop(half);
    wait_for("the half is given back", || served.load().memory_bytes() == 0);
    assert_eq!(served.put(&body).status / 100, 2, "what is given back can be used");
}

#[test]
fn listings_that_nobody_reads_leave_memory_to_others() {
    let served = served(|limits| {
        limits.request_memory_bytes_max = 32 << 20;
        limits.send_buffer_bytes_max = 16 << 10;
        // Nobody is cut while this goes on, however long it takes.
        limits.write_stall_time_max = Duration::from_secs(3_600);
    });
    let large = format!("\"{}\"", "x".repeat(1_000_000));
    for name in 0..5 {
        let written = served.send(limited::put(&format!("/v1/cells/c{name}"), &large));
        assert_eq!(written.status, 201);
    }
    let list = "GET /v1/cells?prefix=c HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut unread: Vec<TcpStream> = (0..20).map(|_| served.connect()).collect();
    for stream in &mut unread {
        stream.write_all(list.as_bytes()).expect("sent");
    }
    let statuses = unread.iter_mut().map(|stream| {
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("an answer");
        String::from_utf8_lossy(&status[9..]).into_owned()
    });
    let statuses: Vec<_> = statuses.collect();
    let count = |wanted: &str| statuses.iter().filter(|status| *status == wanted).count();
    assert_eq!((count("200") + count("429"), count("200") <= 3, count("200") > 0), (20, true, true), "{statuses:?}");
    // Those that were not refused hold their memory as long as nobody reads on.
    let write = |size: usize| served.put(&format!("\"{}\"", "x".repeat(size))).code().to_owned();
    assert_eq!((write(10), write(1_000_000)), (String::new(), String::new()), "writes have memory of their own");
    let refused = served.get("/v1/cells?prefix=c");
    assert_eq!((refused.status, refused.code()), (429, "SH-2014"));
    assert_eq!(
        (refused.beyond().0, refused.body["outcome"].as_str()),
        ("request_memory_bytes_max", Some("not_applied"))
    );
    drop(unread);
    assert_eq!(served.get_soon("/v1/cells?prefix=c").status, 200, "what is given back can be used");
}
