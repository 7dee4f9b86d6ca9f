//! `sim backups [--small] [--seconds S] [--damages N] [--seed S]`: backups and exports of a server under load.
//!
//! Clients write cells, records with TTLs, claims that are completed, failed and held, and runs, through a real server.
//! Meanwhile the command takes backups and exports, in a terminal (tmux) and without one. Then each backup is verified and restored
//! elsewhere, and must be equal by hash; each export is imported, and must be exported as the same bytes; what is read from the
//! store, from the restored and from the imported one is compared, and every index row of the imported one with what a rebuild gives.
//! Last, bytes are flipped and files cut, at random: always noticed, and nothing left behind.
//! Would see broken: a backup that is not of one commit, rows that an import forgets, a damage that passes.

mod damage;
mod load;
mod reading;
mod scene;

use std::time::Duration;

use testkit::arguments::Arguments;
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use load::Load;
use scene::Scene;

/// How long a server may take to stop.
const STOP_MAX: Duration = Duration::from_secs(60);

/// Requests that are answered before the first ones are taken: something of every kind is there, and the files are small.
const EARLY: u64 = 600;

/// One damage of a large file for as many of a small one: what comes before it is read and restored each time.
const LARGE_EACH: u64 = 20;

/// Times that a backup and an export are taken in a terminal while there is load.
const TURNS: usize = 2;

pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let (seconds, damages) = if arguments.flag("small") { (2, 12) } else { (20, 200) };
    let (seconds, damages) = (arguments.number("seconds", seconds), arguments.number("damages", damages));
    println!("backups: seed {seed}, {seconds} s of load, {damages} damages each");
    let folder = tempfile::tempdir().expect("a folder");
    let scene = Scene::new(binary(), folder.path());
    let server = Launch::serve(scene.program(), scene.path("house")).start().expect("the server starts");
    let url = format!("http://{}", server.address());

    let load = Load::start(server.address(), seed);
    load.await_answers(EARLY);
    scene.take("early", &url);
    let mut names = vec!["early".to_owned()];
    std::thread::sleep(Duration::from_secs(seconds));
    let before = load.answered();
    let mut bars = 0;
    let mut silent = 0;
    for turn in 0..TURNS {
        let (seen, piped) = (format!("seen-{turn}"), format!("piped-{turn}"));
        bars += usize::from(scene.shows_a_bar(&format!("backup create {seen}.shbackup --url {url}")));
        bars += usize::from(scene.shows_a_bar(&format!("export {seen}.jsonl --url {url}")));
        silent += usize::from(scene.is_silent(&["backup", "create", &format!("{piped}.shbackup"), "--url", &url]));
        silent += usize::from(scene.is_silent(&["export", &format!("{piped}.jsonl"), "--url", &url]));
        names.extend([seen, piped]);
    }
    let during = load.answered() - before;
    let total = load.stop();
    println!("backups: {total} requests answered, {during} of them while backups and exports were taken");
    // What was to expire soon has done so before the last ones are taken, which are of the same state.
    std::thread::sleep(load::SHORT_TTL + Duration::from_secs(1));
    scene.take("last", &url);
    names.push("last".to_owned());
    let stopped = server.terminate(STOP_MAX);
    assert!(stopped.status.success(), "the server stops when it is asked to: {stopped:?}");

    let mut report = Report::new("server");
    let equal = names.iter().filter(|name| found(name, "backup", scene.restore(name))).count();
    let goal = format!("{} restored elsewhere, equal by hash, {during} requests meanwhile", names.len());
    report.add("backups.restored", format!("{equal}-equal"), &goal, equal == names.len() && during > 0);
    let same = names.iter().filter(|name| found(name, "export", scene.import(name))).count();
    let goal = format!(
        "{} imported, exported again as the same bytes, and released, every row as a rebuild gives it",
        names.len()
    );
    report.add("backups.imported", format!("{same}-equal"), &goal, same == names.len());
    let read = reading::compare(&scene);
    match &read {
        Ok(counts) => println!("backups: read and compared {counts:?}"),
        Err(difference) => println!("backups: {difference}"),
    }
    let figure = read.as_ref().map_or(0, reading::Counts::total);
    let goal = "versions, histories, fields, TTLs, claims and events read the same from all three";
    report.add("backups.read", format!("{figure}-things"), goal, read.is_ok() && figure > 0);
    let in_large = damages.div_ceil(LARGE_EACH);
    let missed = damage::missed(&scene, "early", seed, damages) + damage::missed(&scene, "last", seed, in_large);
    let goal = format!(
        "{damages} flips and {damages} cuts of a small backup and export, {in_large} of large ones: all noticed, nothing left"
    );
    report.add("backups.damage", format!("{missed}-missed"), &goal, missed == 0);
    let goal = format!("{} bars with a percentage seen in tmux, silent without a terminal", 2 * TURNS);
    let ok = (bars, silent) == (2 * TURNS, 2 * TURNS);
    report.add("backups.bars", format!("{bars}-seen-{silent}-silent"), &goal, ok);
    report
}

/// Says what was wrong.
fn found(name: &str, what: &str, done: Result<(), String>) -> bool {
    if let Err(wrong) = &done {
        println!("backups: the {what} {name}: {wrong}");
    }
    done.is_ok()
}
