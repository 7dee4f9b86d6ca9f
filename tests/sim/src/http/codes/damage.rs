//! Codes of the environment: a full disk, damaged bytes, a directory that is already open, an entry whose apply panics.

use std::path::{Path, PathBuf};

use testkit::http::{Client, Request};
use testkit::server_process::{Launch, binary};

use super::Found;
use crate::running::fast_directory;

/// Provokes SH-2003, SH-2004, SH-2005, SH-2007, SH-2012 and SH-2020, each in its own server.
pub(super) fn bring_about(found: &mut Found) {
    let directory = fast_directory().expect("a directory");
    let path = directory.path().join("house");
    a_disk_that_is_full(&path, found);
    a_directory_that_is_open(&path, found);
    bytes_that_were_damaged(&path, found);
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

/// Limits the size of the process's files, which looks like a full disk to the server.
fn a_disk_that_is_full(path: &Path, found: &mut Found) {
    // The size is in units of 512 bytes. With the signal ignored, the write returns an error.
    let script = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" serve --listen 127.0.0.1:0 --data \"$1\"";
    let launch = Launch::program("/bin/sh").arguments(["-c", script]).argument(binary()).argument(path);
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
        other => found.wrong.push(format!("SH-2003 was to be answered by a full disk, not {other:?}")),
    }
}

fn a_directory_that_is_open(path: &Path, found: &mut Found) {
    let server = Launch::serve(binary(), path).start().expect("a server, after its disk was full");
    said(found, "SH-2020", Launch::serve(binary(), path).start().map(drop));
    // The parent folder holds a data directory but is not one.
    said(found, "SH-2005", Launch::serve(binary(), path.parent().unwrap_or(path)).start().map(drop));
    drop(server);
}

fn bytes_that_were_damaged(path: &Path, found: &mut Found) {
    let journal = largest(path).expect("a journal");
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

/// The largest file under a directory.
fn largest(path: &Path) -> Option<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).ok()?.flatten() {
            let metadata = entry.metadata().ok()?;
            match metadata.is_dir() {
                true => directories.push(entry.path()),
                false => files.push((metadata.len(), entry.path())),
            }
        }
    }
    files.into_iter().max().map(|(_, path)| path)
}
