//! Limits of time, and how the server stops, through a real socket. The server's time is held: it passes when a test says so.

mod holding;
mod limited;
mod running;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use holding::holdable;
use limited::{Served, held, is_silent, parse, put, read_one, wait_for, waiting};
use serde_json::json;
use statehouse::Options;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A connection on which something was sent.
fn sent(served: &Served, bytes: &str) -> TcpStream {
    let mut stream = served.connect();
    stream.write_all(bytes.as_bytes()).expect("sent");
    stream
}

/// All that a connection still brings.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("an end");
    rest
}

#[test]
fn heads_and_bodies_have_times() {
    let served = held(&Options::default(), |limits| {
        limits.head_time_max = ms(400);
        limits.body_time_max = ms(400);
    });
    let head = ["GET /livez HTTP/1.1\r\nhost: localhost\r\n", "connection: close\r\n\r\n"];
    let body =
        ["PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 3\r\n\r\n\"a", "\""];
    for ([first, second], limit) in [(head, "head_time_max"), (body, "body_time_max")] {
        let mut in_time = sent(&served, first);
        let late = sent(&served, first);
        served.pass(399);
        in_time.write_all(second.as_bytes()).expect("sent");
        assert_eq!(parse(&rest(in_time)).status / 100, 2, "{limit}");
        assert!(is_silent(&late), "its time is not over: {limit}");
        served.pass(1);
        let refused = parse(&rest(late));
        assert_eq!((refused.status, refused.code(), refused.beyond()), (408, "SH-1043", (limit, 400, None)));
    }
}

#[test]
fn drops_of_a_head_do_not_win_time() {
    let served = held(&Options::default(), |limits| limits.head_time_max = ms(400));
    let mut stream = sent(&served, "G");
    for _ in 0..7 {
        served.pass(50);
        stream.write_all(b"G").expect("sent");
        assert!(is_silent(&stream), "its time is not over");
    }
    served.pass(50);
    assert_eq!(parse(&rest(stream)).beyond(), ("head_time_max", 400, None), "each letter came in time");
}

#[test]
fn idle_connections_end() {
    let (options, holder) = holdable(Options::default());
    let served = held(&options, |limits| limits.idle_time_max = ms(500));
    // One is answered at once, the other waits for the store; the clock begins after both.
    let writes = "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\n\r\n1";
    for request in ["GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n", writes] {
        let mut stream = served.connect();
        for pause_ms in [0, 499, 499] {
            served.pass(pause_ms);
            stream.write_all(request.as_bytes()).expect("sent");
            assert_eq!(read_one(&mut stream).status / 100, 2, "each request begins the time anew");
        }
        served.pass(499);
        assert!(is_silent(&stream), "its time is not over, after {request}");
        served.pass(1);
        assert!(rest(stream).is_empty(), "without a word, after {request}");
    }
    // One request, sent with the connection, and nothing else that could begin a clock. The store takes longer than the idle time.
    let store = holder.hold(&served.0.house);
    let mut stream = sent(&served, writes);
    wait_for("it is worked on", || served.load().requests.used() == 1);
    served.pass(700);
    drop(store);
    assert_eq!(read_one(&mut stream).status / 100, 2);
    served.pass(499);
    assert!(is_silent(&stream), "its time begins with the answer");
    // The timer that was set while the store was busy is the one that ends it.
    served.pass(701);
    assert!(rest(stream).is_empty());
}

/// The end of an answer waits in a buffer when nothing is worked on any more.
#[test]
fn an_answer_that_is_taken_slowly_is_not_cut_by_the_idle_time() {
    let served = held(&Options::default(), |limits| {
        limits.idle_time_max = ms(500);
        limits.send_buffer_bytes_max = 16 << 10;
    });
    // One of these sizes is a little more than the system takes at once.
    let sizes = (1..60).map(|step| step << 13);
    let ask = |size: usize| {
        served.send(put(&format!("/v1/cells/c{size}"), &format!("\"{}\"", "x".repeat(size))));
        (size, sent(&served, &format!("GET /v1/cells/c{size} HTTP/1.1\r\nhost: localhost\r\n\r\n")))
    };
    let mut asked: Vec<_> = sizes.map(ask).collect();
    for (size, stream) in &asked {
        assert_eq!(stream.peek(&mut [0]).expect("an answer begins"), 1, "{size}");
    }
    served.pass(1_200);
    for (size, stream) in &mut asked {
        let value = read_one(stream).body["value"].as_str().map(str::len);
        assert_eq!(value, Some(*size), "the whole answer");
    }
    served.pass(500);
    for (size, stream) in asked {
        assert!(rest(stream).is_empty(), "it ends behind the answer: {size}");
    }
}

#[test]
fn requests_have_a_time_beyond_their_wait() {
    let (options, holder) = holdable(Options::default());
    let served = held(&options, |limits| limits.request_time_max = ms(300));
    let claim = r#"{"prefix":"nothing.","wait":"200ms"}"#;
    let head = "HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length";
    let claim = format!("POST /v1/claims {head}: {}\r\n\r\n{claim}", claim.len());
    let store = holder.hold(&served.0.house);
    let written = sent(&served, &put("/v1/cells/c", "1"));
    let claimed = sent(&served, &claim);
    wait_for("both are worked on", || (served.load().requests.used(), served.load().waits.used()) == (1, 1));
    served.pass(299);
    assert!(is_silent(&written), "its time is not over");
    served.pass(1);
    let refused = parse(&rest(written));
    assert_eq!((refused.status, refused.code(), refused.beyond()), (504, "SH-2013", ("request_time_max", 300, None)));
    assert_eq!(refused.body["outcome"], "unknown");
    served.pass(199);
    assert!(is_silent(&claimed), "a wait comes on top");
    served.pass(1);
    let refused = parse(&rest(claimed));
    assert_eq!((refused.status, refused.beyond()), (504, ("request_time_max", 500, None)));
    drop(store);
}

#[test]
fn who_takes_nothing_is_cut() {
    let served = held(&Options::default(), |limits| {
        limits.connections_max = 1;
        limits.send_buffer_bytes_max = 16 << 10;
        limits.write_stall_time_max = ms(500);
    });
    let value = json!("x".repeat(1_000_000)).to_string();
    for name in 0..8 {
        let written = served.send_soon(&put(&format!("/v1/cells/c{name}"), &value));
        assert_eq!(written.status / 100, 2);
    }
    // The server has to note that the last connection has ended: there is room for one.
    let list = |connection: &str| {
        wait_for("there is room", || served.load().connections.used() == 0);
        let head = format!("host: localhost\r\nconnection: {connection}\r\n\r\n");
        let stream = sent(&served, &format!("GET /v1/cells?prefix=c&limit=100 HTTP/1.1\r\n{head}"));
        assert_eq!(stream.peek(&mut [0]).expect("an answer begins"), 1);
        stream
    };
    let mut slow = list("keep-alive");
    served.pass(499);
    assert_eq!(served.get("/livez").code(), "SH-2010", "it is served until then");
    served.pass(500);
    assert_eq!(served.get_soon("/livez").status, 200, "and holds nothing then");
    let mut taken = Vec::new();
    let end = slow.read_to_end(&mut taken);
    assert!(end.is_err() || taken.len() < 4_000_000, "it did not get all of it");

    // One that takes a little at a time gets all of it.
    let steady = list("close");
    let mut taken = 0;
    loop {
        let read = (&steady).take(500_000).read_to_end(&mut Vec::new()).expect("it goes on");
        if read == 0 {
            break;
        }
        taken += read;
        // The system tells the server of a part that was taken when it is a sixteenth of its buffer: of every few parts, one is.
        served.pass(100);
    }
    assert!(taken > 4_000_000, "{taken} bytes");
}

#[test]
fn a_stop_answers_what_is_under_way_and_refuses_the_rest_by_name() {
    let mut served = held(&Options::default(), |_| {});
    let mut waits = waiting(&served, 1);
    let mut idle = sent(&served, "GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(read_one(&mut idle).status, 200);
    let mut slow = sent(&served, "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n\"a");
    served.settle();
    served.0.begin_stop();
    wait_for("it stops", || served.get("/readyz").status == 503);
    let refused = served.put("1");
    assert_eq!((refused.status, refused.code()), (503, "SH-2016"));
    let ready = served.get("/readyz");
    assert_eq!((ready.status, &ready.body["ready"]), (503, &json!(false)));
    assert_eq!(served.get("/livez").status, 200);
    assert!(rest(idle).is_empty(), "an idle connection ends");
    slow.write_all(b"\"").expect("sent");
    assert_eq!(read_one(&mut slow).status / 100, 2, "what is under way is answered");
    let told = read_one(&mut waits[0]);
    assert_eq!((told.status, &told.body["claimed"]), (200, &json!([])), "whoever waits is told to ask again");
    served.0.end();
    assert!(TcpStream::connect(served.0.address).is_err(), "nobody listens");
}

#[test]
fn a_stop_waits_no_longer_than_it_may() {
    let mut served = held(&Options::default(), |limits| limits.drain_time_max = ms(500));
    let _slow = sent(&served, "PUT /v1/cells/c HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n\"a");
    served.settle();
    served.0.begin_stop();
    wait_for("it stops", || served.get("/readyz").status == 503);
    served.pass(499);
    assert!(!served.0.has_ended(), "its time is not over");
    served.0.advance(ms(1));
    wait_for("it has ended", || served.0.has_ended());
    served.0.end();
}
