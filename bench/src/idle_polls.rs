//! Long polls that get nothing: after many of them, the server takes no more memory than after the first tenth.
//!
//! Each kind of thing that can be waited for over HTTP, each poll for another name where it has one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bench::resources::resident_bytes_of;
use testkit::arguments::Arguments;
use testkit::http::Client;
use testkit::http::message::Request;
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

/// Polls under way at once.
const AT_ONCE: u64 = 256;

/// A record that somebody holds all the time.
const HELD: &str = "busy.held";

/// Runs with one event, to which nothing is added.
const RUNS: u64 = 1_000;

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let polls = arguments.number("polls", if small { 2_560 } else { 100_000 });
    let seconds = arguments.number("seconds", if small { 5 } else { 600 });
    let directory = tempfile::tempdir().expect("a directory");
    let server = Launch::serve(binary(), directory.path().join("house")).start().expect("a server");
    let client = Client::to(server.address());
    let session = prepare(&client);
    let wait = Duration::from_secs(seconds) * u32::try_from(AT_ONCE).expect("few") / u32::try_from(polls).expect("few");

    let (started, done, next) = (Instant::now(), AtomicU64::new(0), AtomicU64::new(0));
    // Resident bytes after every tenth of the polls.
    let mut resident = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let number = next.fetch_add(1, Ordering::Relaxed)
                    && number < polls
                {
                    poll(&client, &session, number, wait);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for tenth in 1..=10 {
            while done.load(Ordering::Relaxed) < polls * tenth / 10 {
                std::thread::sleep(Duration::from_millis(20));
            }
            resident.push(resident_bytes_of(server.id()));
        }
    });
    let elapsed = started.elapsed().as_secs();
    let mebibytes: Vec<_> = resident.iter().map(|bytes| format!("{:.1}", *bytes as f64 / f64::from(1 << 20))).collect();
    println!("{polls} polls of {wait:?} in {elapsed} s; resident MiB after each tenth: {}", mebibytes.join(", "));
    let ended = server.terminate(Duration::from_secs(30));
    println!("the server ended: {ended:?}");

    let mut report = Report::new("inside");
    let ratio = resident[9] as f64 / resident[0] as f64;
    let figure = format!("{polls}-polls-in-{elapsed}s-{ratio:.3}x-resident");
    report.add("polls", figure, "<=1.05 times its memory after the first tenth", ratio <= 1.05);
    report
}

/// Makes what polls wait for; returns the session and its secret.
fn prepare(client: &Client) -> [String; 2] {
    let send = |request: Request| {
        let response = client.send(&request).expect("an answer");
        assert!(response.is_success(), "{} {}: {}", request.method, request.path, response.text());
        response
    };
    send(Request::put(format!("/v1/records/{HELD}")).body(r#"{"type":"task","fields":{}}"#));
    send(Request::post("/v1/claims").body(format!(r#"{{"name":"{HELD}","worker":"holder","lease":"2h"}}"#)));
    for run in 0..RUNS {
        let event =
            r#"{"eventType":"Progress","idempotencyKey":"1","emittedAt":"2026-02-11T10:00:00Z","eventData":{}}"#;
        send(Request::post(format!("/v1/runs/run-{run}/events")).body(event));
    }
    let opened = send(Request::post("/v1/sessions").body(r#"{"timeout":"1h"}"#)).json();
    ["session", "secret"].map(|member| opened[member].as_str().expect("text").to_owned())
}

/// Waits for something that does not come.
fn poll(client: &Client, [session, secret]: &[String; 2], number: u64, wait: Duration) {
    let wait = format!("{}ms", wait.as_millis());
    let claim = |what: String| Request::post("/v1/claims").body(format!(r#"{{{what},"worker":"w","wait":"{wait}"}}"#));
    let request = match number % 5 {
        0 => claim(format!(r#""prefix":"jobs.{number}.""#)),
        1 => claim(format!(r#""name":"{HELD}""#)),
        2 => Request::get(format!("/v1/runs/run-{}/events", number % RUNS)).query("after", 1).query("follow", &wait),
        3 => Request::get("/v1/changes").query("prefix", format!("things.{number}")).query("follow", &wait),
        _ => Request::get(format!("/v1/sessions/{session}/pushes"))
            .query("wait", &wait)
            .header("statehouse-session-secret", secret),
    };
    let response = client.send(&request).expect("an answer");
    // A record that somebody holds is refused, at the end.
    assert!(
        matches!(response.status, 200 | 409),
        "{} {}: {} {}",
        request.method,
        request.path,
        response.status,
        response.text()
    );
}
