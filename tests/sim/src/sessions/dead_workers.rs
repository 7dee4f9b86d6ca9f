//! Dead workers: many sessions hold many jobs with long leases, some die at once, and their jobs come back in time.
//!
//! `sim dead-workers [--sessions N] [--claims N] [--dead N] [--seconds S] [--steppers N] [--tick-steps N] [--small]`. All sessions are kept alive; then
//! some are not any more. Their jobs must be pending again within the session's time and a second from the last sign of
//! life, by ticks that are bounded each, while the others go on writing steps as fast as before. What the dead held is
//! told by the change feed, each job once; what the others hold must be untouched, attempt and holder. Workers of the
//! dead that wake up are refused, in their sessions and with their old claims, and the next claim of a job is its second
//! attempt.
//! What is drawn is drawn from the seed; how the workers meet the ticks is up to the machine.

mod check;
mod followed;
mod scene;
mod steps;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use statehouse::Options;
use testkit::arguments::Arguments;
use testkit::report::Report;

use check::Findings;
use followed::Followed;
use scene::Scene;
use steps::{Steps, quantile};

/// How much later than its session's time a job may come back.
const GRACE: Duration = Duration::from_secs(1);

/// How long it is waited for jobs that are late.
const LATE_MAX: Duration = Duration::from_secs(60);

/// What is to be done.
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) sessions: usize,
    /// Jobs that each session claims.
    pub(super) claims: u32,
    pub(super) dead: usize,
    /// How long a session lives without a sign of its client.
    pub(super) time: Duration,
    /// Threads that write steps for the sessions that live.
    pub(super) steppers: u64,
    /// What one tick may do, if not as by default.
    pub(super) tick_steps: Option<u32>,
}

impl Plan {
    fn dead_jobs(&self) -> usize {
        self.dead * self.claims as usize
    }
}

/// What was seen.
struct Outcome {
    findings: Findings,
    followed: Followed,
    /// From the last sign of life to the last job that was pending again; as long as it was waited if none was.
    took: Duration,
    tick_steps_max: usize,
    p99_before: Duration,
    p99_during: Duration,
}

/// Lets some of many sessions die, and checks the fate of all jobs.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let sized = |name: &str, full, few| usize::try_from(arguments.number(name, if small { few } else { full }));
    let plan = Plan {
        seed: arguments.seed(),
        sessions: sized("sessions", 1_000, 100).expect("a number of sessions"),
        claims: u32::try_from(sized("claims", 100, 50).expect("a number of jobs")).expect("few"),
        dead: sized("dead", 200, 20).expect("a number of sessions"),
        time: Duration::from_secs(arguments.number("seconds", if small { 1 } else { 3 })),
        steppers: arguments.number("steppers", 64),
        tick_steps: Some(arguments.number("tick-steps", 0))
            .filter(|steps| *steps > 0)
            .map(|steps| u32::try_from(steps).expect("few")),
    };
    let Plan { seed, sessions, claims, dead, time, .. } = &plan;
    println!("dead-workers: seed {seed}, {sessions} sessions of {time:?} with {claims} jobs each, {dead} die");
    let mut report = Report::new("sessions");
    let outcome = match work(&plan) {
        Ok(outcome) => outcome,
        Err(what) => {
            println!("dead-workers: FAILED: {what}");
            report.add("dead-workers", "failed", "20,000 jobs of 200 dead sessions pending in time", false);
            return report;
        }
    };
    judge(&mut report, &plan, &outcome, small);
    if !report_is_ok(&outcome, &plan) {
        let command = "cargo run --profile stress -p sim -- dead-workers";
        println!("replay: {command} --seed {seed} --sessions {sessions} --claims {claims} --dead {dead}");
    }
    report
}

fn report_is_ok(outcome: &Outcome, plan: &Plan) -> bool {
    outcome.findings.wrong.is_empty() && outcome.followed.jobs.len() == plan.dead_jobs()
}

fn judge(report: &mut Report, plan: &Plan, outcome: &Outcome, small: bool) {
    let Outcome { findings, followed, took, tick_steps_max, p99_before, p99_during } = outcome;
    for what in findings.wrong.iter().take(10) {
        println!("dead-workers: WRONG: {what}");
    }
    let back = followed.jobs.len();
    let in_time = back == plan.dead_jobs() && *took <= plan.time + GRACE && findings.not_pending == 0;
    let figure = format!("{back}-jobs-pending-after-{:.2}s", took.as_secs_f64());
    report.add("dead-workers.back", figure, "20,000 jobs of 200 dead sessions within session time + 1 s", in_time);
    let most = followed.by_commit.values().copied().max().unwrap_or(0);
    let figure = format!("{most}-in-one-of-{}-ticks", followed.by_commit.len());
    let bounded = most > 0 && most <= *tick_steps_max;
    report.add("dead-workers.ticks", figure, "no tick gives back more than tick_steps_max (256)", bounded);
    let figure = format!("{}-untouched-{}-wrong", findings.untouched, findings.wrong.len());
    let untouched = (plan.sessions - plan.dead) * plan.claims as usize;
    let ok = findings.untouched == untouched && findings.wrong.is_empty();
    report.add("dead-workers.others", figure, "80,000 jobs of others, same attempt and holder", ok);
    let figure = format!("{}-refused-{}-second-attempts", findings.refused, findings.second_attempts);
    let ok = findings.refused > 0 && findings.second_attempts > 0 && findings.wrong.is_empty();
    report.add("dead-workers.fenced", figure, "who wakes up is refused, the next claim is attempt 2", ok);
    let ratio = p99_during.as_secs_f64() / p99_before.as_secs_f64().max(1e-6);
    println!("dead-workers: steps of others: p99 {p99_before:.1?} before, {p99_during:.1?} while jobs came back");
    // A small run has too few steps for a quantile that says something.
    if !small {
        report.add("dead-workers.p99", format!("{ratio:.2}x"), "<=3 times the p99 before", ratio <= 3.0);
    }
}

/// Ends the threads of a scene, however its use ends.
struct Over<'scene>(&'scene Scene);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.stepped.store(true, Ordering::SeqCst);
        self.0.stop.store(true, Ordering::SeqCst);
    }
}

fn work(plan: &Plan) -> Result<Outcome, String> {
    let text = |error: statehouse::Error| error.to_string();
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let house = Options::default().open(directory.path().join("house")).map_err(text)?;
    let mut limits = house.limits().map_err(text)?;
    if let Some(steps) = plan.tick_steps {
        limits.tick_steps_max = steps;
        house.set_limits(limits).map_err(text)?;
    }
    let tick_steps_max = limits.tick_steps_max as usize;
    let scene = Scene::set(&house, plan).map_err(text)?;
    let began = Instant::now();
    let cursor = house.changes().newest().map_err(text)?;
    let (steps, followed, findings) = std::thread::scope(|scope| {
        let keeper = scope.spawn(|| scene.keep_alive());
        let _over = Over(&scene);
        let stepper = |one: u64| steps::write(&scene, plan.seed.wrapping_add(one), began);
        let steppers: Vec<_> = (0..plan.steppers).map(|one| scope.spawn(move || stepper(one))).collect();
        // For half of their time all live, so that there is enough of what was before.
        std::thread::sleep(plan.time / 2);
        scene.dying.store(true, Ordering::SeqCst);
        let until = Instant::now() + plan.time + LATE_MAX;
        let followed = followed::follow(&house, cursor, plan.dead_jobs(), until).map_err(text)?;
        scene.stepped.store(true, Ordering::SeqCst);
        let steps: Vec<Steps> = steppers.into_iter().map(|thread| thread.join().unwrap_or_default()).collect();
        // The living are kept alive until it was looked at what they hold.
        let mut findings = check::look(&house, &scene, plan, &followed).map_err(text)?;
        scene.stop.store(true, Ordering::SeqCst);
        if let Ok(Err(error)) = keeper.join() {
            findings.wrong.push(format!("a sign of life was refused: {error}"));
        }
        Ok::<_, String>((steps, followed, findings))
    })?;
    let mut findings = findings;
    let last_sign = scene.last_sign().ok_or("the dead never died")?;
    let since = |seen: Option<Instant>| seen.map_or(plan.time + LATE_MAX, |seen| seen.duration_since(last_sign));
    let (first, took) = (since(followed.first_seen), since(followed.last_seen));
    println!("dead-workers: the first job was back after {first:.2?}, the last after {took:.2?}");
    let over = (last_sign + plan.time).duration_since(began);
    let back = (last_sign + took).duration_since(began);
    let all: Vec<_> = steps.iter().flat_map(|steps| &steps.taken).collect();
    let before = all.iter().filter(|step| step.ended() < over).map(|step| step.took).collect();
    let during = all.iter().filter(|step| step.ended() >= over && step.began < back).map(|step| step.took).collect();
    findings.wrong.extend(steps.iter().flat_map(|steps| steps.errors.iter().cloned()));
    println!("dead-workers: {} steps, {findings}", all.len());
    let (p99_before, p99_during) = (quantile(before, 0.99), quantile(during, 0.99));
    drop(scene);
    house.close().map_err(text)?;
    Ok(Outcome { findings, followed, took, tick_steps_max, p99_before, p99_during })
}
