//! Every shell block of every page for users, run against the real command: `sim shell-blocks [--page docs/x.md]`.
//!
//! `sim keyed-examples` runs those of the guide for keyed state alone, and the example that the guide tells about.
//! Each page is read in an empty folder with its own server. `testkit::pages` describes what is run and compared.

use std::path::Path;

use testkit::arguments::Arguments;
use testkit::cargo::cargo;
use testkit::pages::{blocks, of_users, reader, repository};
use testkit::report::Report;
use testkit::server_process::binary;

use crate::directories::fast_directory;

/// How to count words exactly once: by curl, and by a program.
const KEYED_PAGE: &str = "docs/guides/word-count.md";
const KEYED_EXAMPLE: [&str; 7] = ["run", "--quiet", "--locked", "--package", "statehouse", "--example", "word_count"];

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

/// Runs the blocks of the guide, and the example, which checks its counts itself.
pub(crate) fn run_keyed_examples(_: &Arguments) -> Report {
    let (repository, mut tally, mut report) = (repository(), Tally::default(), Report::new("keyed"));
    let read = read(&repository, KEYED_PAGE, &binary(), &mut tally);
    read.as_ref().err().into_iter().for_each(|wrong| println!("{KEYED_PAGE}: {wrong}"));
    let figure = format!("{}-blocks-and-commands-{}-outputs", tally.commands, tally.shown);
    let goal = format!("every block of {KEYED_PAGE} runs and prints what the page shows");
    report.add("examples.curl", figure, &goal, read.is_ok() && tally.shown > 0);

    let ended = cargo().args(KEYED_EXAMPLE).current_dir(&repository).status().expect("cargo starts");
    let figure = if ended.success() { "counts-as-expected".to_owned() } else { format!("failed: {ended}") };
    report.add("examples.program", figure, "examples/word_count.rs counts each word once", ended.success());
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
