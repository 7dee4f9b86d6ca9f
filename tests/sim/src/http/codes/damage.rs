//! Codes of the environment: a disk that fails, damaged bytes, a directory that is already open, an entry whose apply panics.

use std::path::Path;

use testkit::http::{Client, Request};
use testkit::server_process::{Launch, binary};

use super::Found;
use crate::directories::fast_directory;

/// Provokes SH-2003, SH-2004, SH-2005, SH-2007, SH-2012 and SH-2020, each in its own server.
pub(super) fn bring_about(found: &mut Found) {
    let directory = fast_directory().expect("a directory");
    let path = directory.path().join("house");
    a_disk_that_fails(&path, found);
    // Before a server opens it again: that one would flush the values and cut them off the journal.
    bytes_that_were_damaged(&path, found);
    a_directory_that_is_open(&directory.path().join("open"), found);
    more_streams_than_there_may_be(found);
    an_entry_that_panics(found);
}

/// Returned for a later write, and printed by a server that does not start.
fn an_entry_that_panics(found: &mut Found) {
    let directory = fast_directory().expect("a directory");
    let this = std::env::current_exe().expect("the path of this program");
    let launch = || {
        let launch = Launch::program(&this).arguments(["serve-machine", "--panic-at", "planted", "--data"]);
        launch.argument(directory.path().join("house"))
    };
    let server = launch().start().expect("a server");
    let client = Client::to(server.address());
    // The write itself may get an unknown outcome.
    client.send(Request::put("/v1/cells/planted").body("1")).expect("an answer");
    let behind = client.send(Request::put("/v1/cells/behind").body("1")).expect("an answer");
    server.kill();
    match (behind.status, behind.text()) {
        (503, text) if text.contains("SH-2007") => {
            said(found, "SH-2007", launch().start().map(drop));
            found.answered.insert("SH-2007".to_owned(), 503);
        }
        other => found.wrong.push(format!("SH-2007 was to be answered behind an entry that panics, not {other:?}")),
    }
}

fn more_streams_than_there_may_be(found: &mut Found) {
    let launch = Launch::dev(binary()).environment("STATEHOUSE_LIMITS__STREAMS_MAX", "1");
    let server = launch.start().expect("a server");
    let client = Client::to(server.address());
    let follow = || client.follow(Request::get("/v1/changes?follow=true")).expect("an answer");
    let (_first, second) = (follow(), follow());
    match (second.head().status, second.head().text()) {
        (429, text) if text.contains("SH-2012") => drop(found.answered.insert("SH-2012".to_owned(), 429)),
        other => found.wrong.push(format!("SH-2012 was to be answered to a second stream, not {other:?}")),
    }
}

/// Lets the syncs of the journal fail from the tenth on, as a broken disk does. A full disk stops nothing. With `-D` the
/// server is the child, not the tracer.
fn a_disk_that_fails(path: &Path, found: &mut Found) {
    let inject =
        ["-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO:when=10+"];
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data"];
    let launch =
        Launch::program("strace").asking_nobody().arguments(inject).argument(binary()).arguments(serve).argument(path);
    let server = launch.start().expect("a server");
    let client = Client::to(server.address());
    let value = format!("\"{}\"", "x".repeat(100_000));
    let refused = (0..100).find_map(|number| {
        let response =
            client.send(Request::put(format!("/v1/cells/full.{number}")).body(value.clone())).expect("an answer");
        (!response.is_success()).then_some(response)
    });
    match refused {
        Some(response) if response.text().contains("SH-2003") => {
            found.answered.insert("SH-2003".to_owned(), response.status);
        }
        other => found.wrong.push(format!("SH-2003 was to be answered by a disk that fails, not {other:?}")),
    }
}

fn a_directory_that_is_open(path: &Path, found: &mut Found) {
    let server = Launch::serve(binary(), path).start().expect("a server");
    said(found, "SH-2020", Launch::serve(binary(), path).start().map(drop));
    // The parent folder holds a data directory but is not one.
    said(found, "SH-2005", Launch::serve(binary(), path.parent().unwrap_or(path)).start().map(drop));
    drop(server);
}

fn bytes_that_were_damaged(path: &Path, found: &mut Found) {
    let segments = std::fs::read_dir(path.join("journal/segments")).expect("a journal");
    let journal = segments.flatten().map(|entry| entry.path()).min().expect("the oldest segment");
    let mut bytes = std::fs::read(&journal).expect("the journal");
    // In the middle of acknowledged data: each value has a hundred thousand bytes.
    bytes[400_000..400_064].fill(0xff);
    std::fs::write(&journal, bytes).expect("written");
    said(found, "SH-2004", Launch::serve(binary(), path).start().map(drop));
}

/// A server that does not start says why.
fn said(found: &mut Found, code: &str, started: Result<(), String>) {
    match started {
        Err(said) if said.contains(code) => drop(found.answered.insert(code.to_owned(), 0)),
        other => found.wrong.push(format!("{code} was to be said by a server that does not start, not {other:?}")),
    }
}
