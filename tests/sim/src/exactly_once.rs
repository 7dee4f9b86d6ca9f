//! Word count by event time, exactly once, while operators and their server are killed and operators are moved.
//!
//! `sim keyed-exactly-once --events N --kills K --moves M [--seed S]`. A real server has the state; operators are processes that own a
//! partition each, read a source that can be read again, commit counts by merges with the positions of their inputs, and write
//! closed windows to files. Events come out of order, late, and twice; answers are lost. Operators are killed with SIGKILL and
//! started again, or replaced while they go on (some are stopped first and wake up later), and the server is killed too.
//! Afterwards every count and every file equals what is computed from the events directly.
//! Would see broken: D2, D3, O1, R2 for keyed state; a commit that is torn; windows that close too early; a sink that loses a file.
//! The canaries are short runs with one protection left out each: numbers of commits, positions in the commit of the counts, the
//! fence. Each must come out wrong, or this test could not find a double count.

mod check;
mod events;
mod mode;
mod operator;
mod reference;
mod scene;
mod server;

use std::time::Instant;

use testkit::arguments::Arguments;
use testkit::report::Report;

use check::Found;
use mode::Mode;
use scene::{Done, Scene, Size};

pub(crate) use operator::child;

/// Canaries are small: what they leave out goes wrong soon.
const CANARY_EVENTS: u64 = 24_000;

/// Runs the test, then the canaries.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let (events, kills) = (arguments.number("events", 5_000_000), arguments.number("kills", 200));
    let moves = arguments.number("moves", 50);
    let size = Size { events, kills, moves, server_kills: 1 + kills / 10 };
    println!("exactly-once: seed {seed}, {size:?}");
    let mut report = Report::new("keyed");
    let ok = match phase(Mode::Protected, size, seed) {
        Ok((done, found)) => add_figures(&mut report, size, &done, &found),
        Err(wrong) => {
            println!("exactly-once: {wrong}");
            report.add("exactly-once", "not-finished", "every event is counted", false);
            false
        }
    };
    if !ok {
        println!(
            "replay: cargo run --profile stress -p sim -- keyed-exactly-once --events {events} --kills {kills} --moves {moves} --seed {seed}"
        );
    }
    let small = Size { events: CANARY_EVENTS, kills: 0, moves: 0, server_kills: 0 };
    for (mode, size) in [
        (Mode::FreshNumbers, small),
        (Mode::PositionsApart, Size { kills: 12, ..small }),
        // Two must be at work at the same time for a while.
        (Mode::Unfenced, Size { events: 3 * CANARY_EVENTS, moves: 12, ..small }),
    ] {
        let found = match phase(mode, size, seed) {
            Ok((_, found)) if found.is_right() => "not-found".to_owned(),
            Ok((_, found)) => format!("found-{}-wrong-counts", found.keys_wrong),
            // The sink, or the parent, has noticed something.
            Err(wrong) => {
                println!("exactly-once: {}: {wrong}", mode.word());
                "found".to_owned()
            }
        };
        let goal = format!("a wrong count with {}", mode.word());
        report.add(&format!("exactly-once.canary-{}", mode.word()), &found, &goal, found != "not-found");
    }
    report
}

/// The lines of the run with all protections; false if one is short.
fn add_figures(report: &mut Report, size: Size, done: &Done, found: &Found) -> bool {
    let Done { kills, moves, server_kills, refused, .. } = done;
    let figure = format!(
        "{}-events-{}-late-{}-doubled-{kills}-kills-{moves}-moves-{server_kills}-server-kills-{}-wrong",
        found.counted + found.late + found.doubled,
        found.late,
        found.doubled,
        found.keys_wrong
    );
    let are_done = (*kills, *moves, *server_kills) == (size.kills, size.moves, size.server_kills);
    let counts = are_done && found.keys_wrong == 0 && found.late > 0 && found.doubled > 0;
    report.add("exactly-once", figure, "every count equals the one computed from the events", counts);
    let figure = format!("{}-files-{}-missing-{}-wrong", found.files, found.files_missing, found.files_wrong);
    let files = found.files > 0 && found.files_missing + found.files_wrong == 0;
    report.add("exactly-once.sink", figure, "a file for each closed window: none twice, none missing", files);
    // One that had just finished its partition when it was replaced writes nothing more.
    let zombies = refused + 2 >= *moves && (*refused > 0 || *moves == 0);
    let figure = format!("{refused}-of-{moves}-refused");
    report.add("exactly-once.zombies", figure, "whoever goes on after it was replaced is refused", zombies);
    counts && files && zombies
}

fn phase(mode: Mode, size: Size, seed: u64) -> Result<(Done, Found), String> {
    let began = Instant::now();
    let mut scene = Scene::start(mode, size, seed)?;
    let compared = scene.run().and_then(|()| Found::in_scene(&scene, mode));
    let found = match compared {
        Ok(found) => found,
        Err(wrong) if mode == Mode::Protected => return Err(format!("{wrong}; {} is kept", scene.keep().display())),
        Err(wrong) => return Err(wrong),
    };
    println!("exactly-once: {}: {:?}, {:.1} s", mode.word(), scene.done(), began.elapsed().as_secs_f64());
    found.wrong.iter().take(10).for_each(|wrong| println!("exactly-once: {}: {wrong}", mode.word()));
    let done = scene.stop()?;
    Ok((done, found))
}
