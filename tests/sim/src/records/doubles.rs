//! Doubles: workers die, stall past their leases and come back, and no effect is counted twice or lost.
//!
//! `sim doubles --workers N --jobs N [--seconds-max S] [--seed S]`. Each job is a record in a group of its own, and its
//! effect is a cell of that group, written in the commit that also completes the job, fenced by the attempt. A cell's
//! version counts its writes, so that two effects cannot look like one. Afterwards the store is opened again, and every
//! job must be completed with one effect, by the attempt that the record says.
//! Then a short run with the kernel's fences switched off and the effect in a commit of its own: there effects must be
//! found twice, or this would not find one anywhere.
//! What the workers do is drawn from the seed; how they meet is up to the machine.

mod findings;
mod worker;

use std::time::{Duration, Instant};

use statehouse::Options;
use testkit::arguments::Arguments;
use testkit::report::Report;

use findings::Findings;
use worker::{Effect, Plan};

/// Jobs of the run that must find doubles.
const CANARY_JOBS: u64 = 1_000;

/// Runs the workers, with fences and without.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let (workers, jobs) = (arguments.number("workers", 64), arguments.number("jobs", 2_000));
    let length = Duration::from_secs(arguments.number("seconds-max", 600));
    println!("doubles: seed {seed}, {jobs} jobs for {workers} workers");
    let sound = phase("fenced", &Plan { seed, workers, jobs, length, effect: Effect::WithCompletion });
    kernel::canary::skip_fences(true);
    let plan = Plan { seed: seed + 1, workers, jobs: CANARY_JOBS.min(jobs), length, effect: Effect::Apart };
    let unfenced = phase("with fences off", &plan);
    kernel::canary::skip_fences(false);

    // Without rescues and fenced writes nothing was tried.
    let ok = sound.is_sound(jobs) && sound.rescues() > 0 && sound.fenced > 0;
    if !ok {
        let command = "cargo run --profile stress -p sim --";
        println!("replay: {command} doubles --seed {seed} --workers {workers} --jobs {jobs}");
    }
    let mut report = Report::new("records");
    let figure = format!(
        "{}-jobs-{}-attempts-{}-rescues-{}-fenced-{}-doubles-{}-lost",
        sound.jobs,
        sound.attempts,
        sound.rescues(),
        sound.fenced,
        sound.doubles,
        sound.lost
    );
    report.add("doubles", figure, "100,000 jobs by 64 workers, each effect once, none lost", ok);
    let found = if unfenced.doubles > 0 { "found" } else { "not-found" };
    report.add("doubles-canary", found, "doubles found with fences off", unfenced.doubles > 0);
    report
}

fn phase(name: &str, plan: &Plan) -> Findings {
    let started = Instant::now();
    let findings = work(plan).unwrap_or_else(Findings::failed);
    let seconds = started.elapsed().as_secs_f64();
    println!("doubles: {name}: {findings}, {seconds:.1} s");
    findings
}

/// Runs the workers in a new directory, and looks at what they left.
fn work(plan: &Plan) -> Result<Findings, String> {
    let text = |error: statehouse::Error| error.to_string();
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = directory.path().join("house");
    let house = Options::default().open(&path).map_err(text)?;
    worker::submit(&house, plan.jobs).map_err(text)?;
    let ran = worker::run(&house, plan);
    house.close().map_err(text)?;
    drop(house);
    let house = Options::default().open(&path).map_err(text)?;
    let findings = Findings::look(&house, plan.jobs, ran).map_err(text)?;
    house.close().map_err(text)?;
    Ok(findings)
}
