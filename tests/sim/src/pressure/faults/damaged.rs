//! Calls that fail while a damaged part is set apart: the list of damaged parts cannot be written, on a disk that is full
//! or broken as well.
//!
//! Would see broken: a store that stops for want of space, a refusal that a restart does not repeat, a neighbour that
//! cannot be read, a half-written list that stays.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use testkit::http::{Client, Request};
use testkit::server_process::{Launch, ServerProcess, binary};

use super::super::mounted::Mounted;
use super::super::rot::{blocks_of, copy};
use super::super::strace::{Failing, thread_named};
use super::{CALLED_WITHIN, CALLS_FOR_SPACE, Ended, FAILS_FOR, Tally, await_writes, files_in, wait_until};

/// The calls that write the list, but for `write`, with which this thread also wakes others.
const CALLS: [&str; 4] = ["openat", "fchmod", "fsync", "rename"];
const CELLS: usize = 2_000;
/// The code of the refusal.
const DAMAGED: &str = "SH-2023";
const STOPS_WITHIN: Duration = Duration::from_secs(60);
/// The scrub begins a quarter of a second after the start, and reads these few tables at once.
const FOUND_WITHIN: Duration = Duration::from_secs(4);
/// How often the scrub may be over before the block is damaged.
const SCRUB_MISSES_MAX: u32 = 10;

/// Each call fails once and every time, with each error.
pub(super) fn all_points() -> Result<Tally, String> {
    let disk = Mounted::new("tmpfs", 320)?;
    let (whole, house) = (disk.path().join("whole"), disk.path().join("house"));
    let server = Launch::serve(binary(), &whole).start()?;
    let mut cells = Cells::default();
    cells.write(&Client::to(server.address()))?;
    server.terminate(STOPS_WITHIN);
    let mut tally = Tally::default();
    for call in CALLS {
        for errno in if CALLS_FOR_SPACE.contains(&call) { &["ENOSPC", "EIO"][..] } else { &["EIO"] } {
            for every in [false, true] {
                let named = |what| format!("{call}, {errno}, every time {every}: {what}");
                let server = damaged_server(&whole, &house).map_err(named)?;
                let mut trial = Trial { house: &house, cells: cells.clone(), call, errno, every };
                tally.add(trial.run(server).map_err(named)?);
                std::fs::remove_dir_all(&house).map_err(|error| error.to_string())?;
            }
        }
    }
    Ok(tally)
}

/// Serves a copy in which a block was damaged after it was opened, since a store reads all of itself when it opens. The
/// scrub has found it, and nothing is set apart before the next write.
fn damaged_server(whole: &Path, house: &Path) -> Result<ServerProcess, String> {
    for _ in 0..SCRUB_MISSES_MAX {
        copy(whole, house, &|_| false);
        let server = Launch::serve(binary(), house).start()?;
        damage_a_block(&house.join("store"))?;
        if wait_until(FOUND_WITHIN, || server.stderr().contains("damage was found")) {
            return Ok(server);
        }
        // The scrub had read the block before.
        server.kill();
        std::fs::remove_dir_all(house).map_err(|error| error.to_string())?;
    }
    Err("the scrub does not find the damage".into())
}

/// Changes a bit in the middle of the largest table.
fn damage_a_block(store: &Path) -> Result<(), String> {
    let largest =
        files_in(store).into_iter().filter(|(name, _)| name.ends_with(".table")).max_by_key(|(_, bytes)| *bytes);
    let file = store.join(largest.ok_or("there is no table")?.0);
    let bytes = std::fs::read(&file).map_err(|error| error.to_string())?;
    let data: Vec<_> = blocks_of(&bytes).filter(|(kind, _)| *kind == "data").map(|(_, range)| range).collect();
    let block = data.get(data.len() / 2).ok_or("a table without data")?;
    let place = (block.start + block.end) / 2;
    let file = File::options().write(true).open(&file);
    let written = file.and_then(|file| file.write_all_at(&[bytes[place] ^ 1], place as u64));
    written.map_err(|error| error.to_string())
}

/// What each cell may hold: the number of the write that was acknowledged last, and those since that may have been
/// applied.
#[derive(Clone, Default)]
struct Cells {
    may_hold: Vec<Vec<u64>>,
    writes: u64,
}

impl Cells {
    fn path(number: usize) -> String {
        format!("/v1/cells/damaged.{number}")
    }

    fn content(number: usize, write: u64) -> String {
        format!("cell {number}, write {write}, {}", "x".repeat(number % 90))
    }

    /// Writes every cell once.
    fn write(&mut self, client: &Client) -> Result<(), String> {
        self.may_hold.resize(CELLS, Vec::new());
        self.writes += 1;
        for (number, may_hold) in self.may_hold.iter_mut().enumerate() {
            let body = format!(r#"{{"value":"{}"}}"#, Self::content(number, self.writes));
            let answer = client.send(Request::put(Self::path(number)).body(body)).map_err(|error| error.to_string())?;
            match (answer.status, answer.text()) {
                (200..=299, _) => *may_hold = vec![self.writes],
                (500, text) if text.contains(DAMAGED) => {}
                (429 | 503 | 504 | 507, text) if text.contains("SH-") => may_hold.push(self.writes),
                (status, text) => return Err(format!("a write was answered {status}: {text}")),
            }
        }
        Ok(())
    }

    /// Reads every cell. Returns those that are damaged.
    fn verify(&self, client: &Client) -> Result<Vec<usize>, String> {
        let mut damaged = Vec::new();
        for (number, may_hold) in self.may_hold.iter().enumerate() {
            let answer = client.send(Request::get(Self::path(number))).map_err(|error| error.to_string())?;
            let text = answer.text();
            match answer.status {
                200 if may_hold.iter().any(|write| text.contains(&Self::content(number, *write))) => {}
                500 if text.contains(DAMAGED) => damaged.push(number),
                status => return Err(format!("{} is answered {status}: {text}", Self::path(number))),
            }
        }
        Ok(damaged)
    }
}

struct Trial<'a> {
    house: &'a Path,
    cells: Cells,
    call: &'a str,
    errno: &'a str,
    every: bool,
}

impl Trial<'_> {
    fn run(&mut self, mut server: ServerProcess) -> Result<Ended, String> {
        let (ended, damaged) = self
            .meet_the_damage(&mut server)
            .map_err(|what| format!("{what}\nthe server said:\n{}", server.stderr()))?;
        server.kill();
        let server = Launch::serve(binary(), self.house).start()?;
        let client = Client::to(server.address());
        // What was not set apart before is met now.
        self.cells.write(&client)?;
        let after = self.cells.verify(&client).map_err(|what| format!("after a restart: {what}"))?;
        if after.is_empty() || after.len() > CELLS / 2 {
            return Err(format!("{} cells of {CELLS} are damaged", after.len()));
        }
        if ended == Ended::WentOn && after != damaged {
            return Err(format!("damaged were {damaged:?}, and after a restart {after:?}"));
        }
        match files_in(self.house).iter().find(|(name, _)| name.ends_with(".new")) {
            Some((name, _)) => Err(format!("{name} is left over")),
            None => Ok(ended),
        }
    }

    /// Writes every cell, while the call fails in the thread that sets damaged parts apart. Returns what is damaged then.
    fn meet_the_damage(&mut self, server: &mut ServerProcess) -> Result<(Ended, Vec<usize>), String> {
        let thread = thread_named(server.id(), "apply")?;
        let client = Client::to(server.address());
        let called = std::thread::scope(|scope| {
            let failing = Failing::calls(thread, self.call, self.errno, 1, self.every)?;
            let writer = scope.spawn(|| self.cells.write(&client));
            let called = wait_until(CALLED_WITHIN, || failing.failed() > 0);
            if called && self.every {
                std::thread::sleep(FAILS_FOR);
            }
            drop(failing);
            writer.join().expect("no panic")?;
            Ok::<_, String>(called)
        })?;
        if let Some(ended) = server.ended() {
            return Err(format!("the server ended: {ended}"));
        }
        if !called {
            return Err("the call was not made: nothing was set apart".into());
        }
        let ended = await_writes(&client, false)?;
        match (self.errno, ended) {
            ("ENOSPC", Ended::Stopped) => Err("the server has stopped for want of space".into()),
            ("EIO", Ended::WentOn) => Err("it goes on without the list".into()),
            _ => Ok((ended, self.cells.verify(&client)?)),
        }
    }
}
