//! Every shell block of every page for users, run against the real command: `sim shell-blocks [--page docs/x.md]`.
//!
//! Each page is read in an empty folder with its own server. `testkit::pages` describes what is run and compared.

use std::path::Path;

use testkit::arguments::Arguments;
use testkit::pages::{blocks, of_users, reader, repository};
use testkit::report::Report;
use testkit::server_process::binary;

use crate::directories::fast_directory;

#[derive(Default)]
struct Tally {
    pages: usize,
    commands: usize,
    shown: usize,
    not_run: usize,
    failed: usize,
}

/// Runs the shell blocks of every page, or of one.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let repository = repository();
    let statehouse = binary();
    let mut tally = Tally::default();
    for page in of_users(&repository) {
        if arguments.text("page").is_none_or(|only| only == page)
            && let Err(wrong) = read(&repository, &page, &statehouse, &mut tally)
        {
            tally.failed += 1;
            println!("{page}: {wrong}");
        }
    }
    let Tally { pages, commands, shown, not_run, failed } = tally;
    let figure = format!(
        "{pages} pages, {commands} blocks and commands, {shown} outputs, {not_run} not run, {failed} pages failed"
    );
    let mut report = Report::new("server");
    let goal = "every shell block runs and prints what its page shows";
    report.add("shell-blocks", figure, goal, failed == 0 && commands > 0);
    report
}

fn read(repository: &Path, page: &str, statehouse: &Path, tally: &mut Tally) -> Result<(), String> {
    let text = std::fs::read_to_string(repository.join(page)).map_err(|error| error.to_string())?;
    let blocks = blocks::of(&text)?;
    for (line, reason) in &blocks.not_run {
        println!("{page}: line {line} is not run: {reason}");
        tally.not_run += 1;
    }
    if blocks.steps.is_empty() {
        return Ok(());
    }
    let directory = fast_directory().map_err(|error| error.to_string())?;
    let done = reader::run(&blocks, statehouse, directory.path())?;
    let shown = done.iter().filter(|done| done.step.prints.is_some()).count();
    let took = done.last().map_or(0.0, |done| done.after.as_secs_f64());
    println!("{page}: {} blocks and commands, {shown} outputs as shown, {took:.1} s", done.len());
    tally.pages += 1;
    tally.commands += done.len();
    tally.shown += shown;
    Ok(())
}
