//! Word count by event time, exactly once, while operators and their server are killed and operators are moved.
//!
//! `sim keyed-exactly-once --events N --kills K --moves M [--seed S]`. A real server has the state; operators are processes that own a
//! partition each, read a source that can be read again, commit counts by merges with the positions of their inputs, keep the
//! latest event of each word by versions alone, say how far they are in a cell, and write closed windows to files. Events come out
//! of order, late, and twice; answers are lost. Operators are killed with SIGKILL and started again, or replaced while they go on
//! (some are stopped first and wake up later), and the server is killed too. Afterwards every count and every file equals what is
//! computed from the events directly.
//! Would see broken: D1, D2, D3, O1, R2 for keyed state; a commit that is torn; windows that close too early; a sink that loses a file.
//!
//! The canaries are short runs with one protection left out each: versions, positions in the commit of the counts, the fence, numbers
//! of commits. Each must finish and come out wrong, and a control with all protections that is otherwise the same must come out
//! right. Without the fence, numbers still keep the counts: what goes wrong is what only the fence protects, the cell that says how
//! far a partition is, and owners meet others at their numbers.

mod check;
mod events;
mod latest;
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

/// The canaries and their control are small: what is left out goes wrong soon.
const CANARY: Size = Size { events: 72_000, kills: 12, moves: 12, server_kills: 1 };

/// Runs the test, then the control and the canaries.
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
    for mode in [Mode::Control].into_iter().chain(Mode::CANARIES) {
        add_small(&mut report, mode, phase(mode, CANARY, seed));
    }
    report
}

/// The lines of the run with all protections; false if one is short.
fn add_figures(report: &mut Report, size: Size, done: &Done, found: &Found) -> bool {
    let Done { kills, moves, server_kills, refused, collisions, .. } = done;
    let figure = format!(
        "{}-events-{}-late-{}-doubled-{kills}-kills-{moves}-moves-{server_kills}-server-kills-{}-wrong",
        found.counted + found.late + found.doubled,
        found.late,
        found.doubled,
        found.keys_wrong + found.steps_back
    );
    let are_done = (*kills, *moves, *server_kills) == (size.kills, size.moves, size.server_kills);
    let right = found.keys_wrong + found.steps_back == 0 && *collisions == 0;
    let counts = are_done && right && found.late > 0 && found.doubled > 0;
    report.add("exactly-once", figure, "every count equals the one computed from the events", counts);
    let figure = format!("{}-files-{}-missing-{}-wrong", found.files, found.files_missing, found.files_wrong);
    let files = found.files > 0 && found.files_missing + found.files_wrong == 0;
    report.add("exactly-once.sink", figure, "a file for each closed window: none twice, none missing", files);
    // One that had just finished its partition when it was replaced writes nothing more.
    let zombies = refused + 2 >= *moves && (*refused > 0 || *moves == 0);
    let figure = format!("{refused}-of-{moves}-refused-{collisions}-collisions");
    report.add("exactly-once.zombies", figure, "whoever goes on after it was replaced is refused", zombies);
    counts && files && zombies
}

/// The line of the control or of a canary. A canary that does not finish has found nothing.
fn add_small(report: &mut Report, mode: Mode, outcome: Result<(Done, Found), String>) {
    let name = match mode {
        Mode::Control => "exactly-once.control".to_owned(),
        _ => format!("exactly-once.canary-{}", mode.word()),
    };
    let (done, found) = match outcome {
        Ok(finished) => finished,
        Err(wrong) => {
            println!("exactly-once: {}: {wrong}", mode.word());
            report.add(&name, "not-finished", "the run comes to its end", false);
            return;
        }
    };
    let Done { refused, collisions, .. } = done;
    let Found { keys_wrong, steps_back, .. } = found;
    match mode {
        Mode::Control => {
            let figure = format!("{keys_wrong}-wrong-counts-{steps_back}-steps-back-{collisions}-collisions");
            let goal = "nothing wrong with all protections, in a run as the canaries'";
            report.add(&name, figure, goal, found.is_right() && collisions == 0 && refused > 0);
        }
        Mode::Unfenced => {
            let figure = format!("found-{steps_back}-steps-back-{collisions}-collisions-{refused}-refused");
            let goal = "steps back and collisions without fences, nobody refused";
            report.add(&name, figure, goal, steps_back > 0 && collisions > 0 && refused == 0);
        }
        _ => {
            let goal = format!("a wrong count with {}", mode.word());
            report.add(&name, format!("found-{keys_wrong}-wrong-counts"), &goal, keys_wrong > 0);
        }
    }
}

fn phase(mode: Mode, size: Size, seed: u64) -> Result<(Done, Found), String> {
    let began = Instant::now();
    let mut scene = Scene::start(mode, size, seed)?;
    let compared = scene.run().and_then(|()| Found::in_scene(&scene));
    let found = match compared {
        Ok(found) => found,
        Err(wrong) if matches!(mode, Mode::Protected | Mode::Control) => {
            return Err(format!("{wrong}; {} is kept", scene.keep().display()));
        }
        Err(wrong) => return Err(wrong),
    };
    println!("exactly-once: {}: {:?}, {:.1} s", mode.word(), scene.done(), began.elapsed().as_secs_f64());
    found.wrong.iter().take(10).for_each(|wrong| println!("exactly-once: {}: {wrong}", mode.word()));
    let done = scene.stop()?;
    Ok((done, found))
}
