//! Limits of time, and how the server stops, through a real socket.
#![allow(clippy::disallowed_methods, reason = "these limits are times of a real client")]

mod limited;
mod running;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use limited::{parse, put, read_one, served, waiting};
use serde_json::json;

#[test]
fn heads_and_bodies_have_times() {
    let served = served(|limits| {
        limits.head_time_max = Duration::from_millis(400);
        limits.body_time_max = Duration::from_millis(400);
    });
    let slowly = |parts: [&str; 2], pause_ms: u64| {
        let mut stream = served.connect();
        let began = Instant::now();
        stream.write_all(parts[0].as_bytes()).expect("sent");
        std::thread::sleep(Duration::from_millis(pause_ms));
        let _ = stream.write_all(parts[1].as_bytes());
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        (parse(&answer), began.elapsed())
    };
    let head = ["GET /livez HTTP/1.1\r\nhost: localhost\r\n", "connection: close\r\n\r\n"];
    assert_eq!(slowly(head, 100).0.status, 200);
    let (refused, took) = slowly([head[0], ""], 0);
    assert_eq!((refused.status, refused.code(), refused.beyond()), (408, "SH-1043", ("head_time_max", 400, None)));
    assert!(took > Duration::from_millis(390) && took < Duration::from_millis(1300), "{took:?}");
    let body =
        ["PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 3\r\n\r\n\"a", "\""];
    assert_eq!(slowly(body, 100).0.status / 100, 2);
    let (refused, took) = slowly([body[0], ""], 0);
    assert_eq!((refused.status, refused.code(), refused.beyond()), (408, "SH-1043", ("body_time_max", 400, None)));
    assert!(took > Duration::from_millis(390) && took < Duration::from_millis(1300), "{took:?}");
}

#[test]
fn drops_of_a_head_do_not_win_time() {
    let served = served(|limits| limits.head_time_max = Duration::from_millis(400));
    let mut stream = served.connect();
    let began = Instant::now();
    let mut sent = 0;
    while stream.write_all(b"G").is_ok() && began.elapsed() < Duration::from_secs(5) {
        sent += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(sent < 40, "{sent} letters, each in time");
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn idle_connections_end() {
    let served = served(|limits| limits.idle_time_max = Duration::from_millis(500));
    // One is answered at once, the other waits for the store; the clock begins after both.
    let writes = "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n1";
    for request in ["GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", writes] {
        let mut stream = served.connect();
        for pause_ms in [0, 250, 300] {
            std::thread::sleep(Duration::from_millis(pause_ms));
            stream.write_all(request.as_bytes()).expect("sent");
            assert_eq!(read_one(&mut stream).status / 100, 2, "each request begins the time anew");
        }
        let began = Instant::now();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("an end");
        assert!(rest.is_empty(), "without a word");
        let took = began.elapsed();
        assert!(took > Duration::from_millis(400) && took < Duration::from_millis(900), "{took:?} after {request}");
    }
    // One request, sent with the connection, and nothing else that could begin a clock.
    let mut stream = served.connect();
    stream.write_all(writes.as_bytes()).expect("sent");
    assert_eq!(read_one(&mut stream).status / 100, 2);
    assert_eq!(stream.read(&mut [0]).expect("an end"), 0);
}

/// The end of an answer waits in a buffer when nothing is worked on any more.
#[test]
fn an_answer_that_is_taken_slowly_is_not_cut_by_the_idle_time() {
    let served = served(|limits| {
        limits.idle_time_max = Duration::from_millis(500);
        limits.send_buffer_bytes_max = 16 << 10;
    });
    // One of these sizes is a little more than the system takes at once.
    let sizes = (1..60).map(|step| step << 13);
    let ask = |size: usize| {
        served.send(put(&format!("/v1/cells/c{size}"), &format!("\"{}\"", "x".repeat(size))));
        let mut stream = served.connect();
        let request = format!("GET /v1/cells/c{size} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        (size, stream)
    };
    let mut asked: Vec<_> = sizes.map(ask).collect();
    std::thread::sleep(Duration::from_millis(1_200));
    std::thread::scope(|scope| {
        for (size, stream) in &mut asked {
            scope.spawn(move || {
                let mut answer = Vec::new();
                stream.read_to_end(&mut answer).expect("an answer, and an end");
                assert!(answer.len() > *size, "{} bytes of an answer with {size}", answer.len());
            });
        }
    });
}

#[test]
fn requests_have_a_time_beyond_their_wait() {
    let served = served(|limits| {
        limits.request_time_max = Duration::ZERO;
        limits.wait_time_max = Duration::from_millis(200);
    });
    // A timer's tick is a millisecond; a value of a MiB is not on disk by then.
    let refused = served.put(&format!("\"{}\"", "x".repeat(1_000_000)));
    assert_eq!((refused.status, refused.code(), refused.beyond()), (504, "SH-2013", ("request_time_max", 0, None)));
    assert_eq!(refused.body["outcome"], "unknown");
}

#[test]
fn who_takes_nothing_is_cut() {
    let served = served(|limits| {
        limits.connections_max = 1;
        limits.send_buffer_bytes_max = 16 << 10;
        limits.write_stall_time_max = Duration::from_millis(500);
    });
    let value = json!("x".repeat(1_000_000)).to_string();
    for name in 0..8 {
        let written = served.send_soon(&put(&format!("/v1/cells/c{name}"), &value));
        assert_eq!(written.status / 100, 2);
    }
    // The server has to note that the last connection has ended: there is room for one.
    std::thread::sleep(Duration::from_millis(500));
    let mut slow = served.connect();
    slow.write_all(b"GET /v1/cells?prefix=c&limit=100 HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(served.get("/livez").code(), "SH-2010", "it is served until then");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(served.get_soon("/livez").status, 200, "and holds nothing then");
    let mut taken = Vec::new();
    let end = slow.read_to_end(&mut taken);
    assert!(end.is_err() || taken.len() < 4_000_000, "it did not get all of it");

    // One that takes a little at a time gets all of it.
    std::thread::sleep(Duration::from_millis(500));
    let mut steady = served.connect();
    steady
        .write_all(b"GET /v1/cells?prefix=c&limit=100 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .expect("sent");
    let mut taken = Vec::new();
    let mut part = vec![0; 500_000];
    loop {
        let read = steady.read(&mut part).expect("it goes on");
        if read == 0 {
            break;
        }
        taken.extend_from_slice(&part[..read]);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(taken.len() > 4_000_000, "{} bytes", taken.len());
}

#[test]
fn a_stop_answers_what_is_under_way_and_refuses_the_rest_by_name() {
    let mut served = served(|_| {});
    let mut held = waiting(&served, 1);
    let mut idle = served.connect();
    idle.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
    assert_eq!(read_one(&mut idle).status, 200);
    let mut slow = served.connect();
    let half = "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n\"a";
    slow.write_all(half.as_bytes()).expect("sent");
    std::thread::sleep(Duration::from_millis(100));
    served.0.begin_stop();
    std::thread::sleep(Duration::from_millis(100));
    let refused = served.put("1");
    assert_eq!((refused.status, refused.code()), (503, "SH-2016"));
    let ready = served.get("/readyz");
    assert_eq!((ready.status, &ready.body["ready"]), (503, &json!(false)));
    assert_eq!(served.get("/livez").status, 200);
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).expect("an end");
    assert!(rest.is_empty(), "an idle connection ends");
    slow.write_all(b"\"").expect("sent");
    assert_eq!(read_one(&mut slow).status / 100, 2, "what is under way is answered");
    let told = read_one(&mut held[0]);
    assert_eq!((told.status, &told.body["claimed"]), (200, &json!([])), "whoever waits is told to ask again");
    served.0.end();
    assert!(TcpStream::connect(served.0.address).is_err(), "nobody listens");
}

#[test]
fn a_stop_waits_no_longer_than_it_may() {
    let mut served = served(|limits| limits.drain_time_max = Duration::from_millis(500));
    let mut slow = served.connect();
    slow.write_all(b"PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n\"a").expect("sent");
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    served.0.end();
    let took = began.elapsed();
    assert!(took > Duration::from_millis(450) && took < Duration::from_secs(4), "{took:?}");
}
