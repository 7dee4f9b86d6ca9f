//! `sim pressure-stopped [--stops N]`: a server is stopped (SIGSTOP) for longer than sessions and leases last, while
//! heartbeats lie in its socket. When it goes on, nobody has lost anything; whoever then stays silent does.
//!
//! Would see broken: an outage of the server that ends every worker's attempt.

use std::time::Duration;

use serde_json::Value as JsonValue;
use testkit::arguments::Arguments;
use testkit::http::{Client, Request};
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};

use crate::directories::fast_directory;

/// How long the server stands still; sessions and leases last two seconds.
const STOPPED: Duration = Duration::from_millis(3_500);

/// After this time without a heartbeat, both have ended.
const SILENT: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &Arguments) -> Report {
    let stops = arguments.number("stops", 10);
    let folder = fast_directory().expect("a folder");
    let server = Launch::serve(binary(), folder.path().join("house")).start().expect("the server starts");
    let mut wrong = Vec::new();
    for stop in 0..stops {
        if let Err(what) = one(&server, stop) {
            wrong.push(format!("stop {stop}: {what}"));
        }
    }
    wrong.iter().for_each(|wrong| println!("{wrong}"));
    let mut report = Report::new("pressure");
    let figure = format!("{stops}-stops-{}-wrong", wrong.len());
    let goal = format!("{stops} stops of 3.5 s end no session and no lease of 2 s; silence does");
    report.add("stopped", figure, &goal, wrong.is_empty());
    report
}

fn extend(token: &str) -> Request {
    Request::post("/v1/attempts/extend").body(format!(r#"{{"token":{token:?},"lease":"2s"}}"#))
}

fn one(server: &ServerProcess, stop: u64) -> Result<(), String> {
    let client = Client::to(server.address());
    let call = |request: Request| -> Result<(u16, JsonValue), String> {
        let answer = client.send(request).map_err(|error| error.to_string())?;
        Ok((answer.status, answer.json()))
    };
    let job = format!("jobs.{stop}");
    call(Request::put(format!("/v1/records/{job}")).body(r#"{"type":"task","fields":{}}"#))?;
    let (_, opened) = call(Request::post("/v1/sessions").body(r#"{"timeout":"2s"}"#))?;
    let member = |name: &str| opened[name].as_str().ok_or_else(|| format!("no {name}: {opened}"));
    let (session, secret) = (member("session")?, member("secret")?);
    let keep_alive =
        || Request::post(format!("/v1/sessions/{session}/keepalive")).header("Statehouse-Session-Secret", secret);
    let (_, claimed) = call(Request::post("/v1/claims").body(format!(r#"{{"name":{job:?},"lease":"2s"}}"#)))?;
    let token = claimed["claimed"][0]["token"].as_str().ok_or_else(|| format!("no claim: {claimed}"))?.to_owned();
    server.signal("STOP");
    // Sent while the server stands still: these wait in its socket.
    let address = server.address();
    let waiting: Vec<_> = [keep_alive(), extend(&token)]
        .map(|request| std::thread::spawn(move || Client::to(address).send(request).map(|answer| answer.status)))
        .into();
    std::thread::sleep(STOPPED);
    server.signal("CONT");
    for (what, waiting) in ["the session", "the lease"].into_iter().zip(waiting) {
        let status = waiting.join().expect("no panic").map_err(|error| error.to_string())?;
        if !(200..300).contains(&status) {
            return Err(format!("{what} had ended: {status}"));
        }
    }
    std::thread::sleep(SILENT);
    let (alive, _) = call(keep_alive())?;
    let (held, _) = call(
        Request::post(format!("/v1/records/{job}/extend")).body(format!(r#"{{"token":{token:?},"lease":"2s"}}"#)),
    )?;
    match (200..300).contains(&alive) || (200..300).contains(&held) {
        true => Err(format!("silence ended nothing: {alive}, {held}")),
        false => Ok(()),
    }
}
