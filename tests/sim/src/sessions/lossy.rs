//! Lossy: exactly once over a line that loses, doubles, delays and reorders.
//!
//! `sim lossy --clients N --increments N [--seed S]`. Clients add to counters, each in a session of its own, through a
//! line with a virtual clock: one request in ten is lost, one in ten comes a second time up to a minute later, one answer
//! in ten is lost, and everything takes a random time. A client has several requests under way and sends what is not
//! answered again. On the way the store is closed and opened once, and some sessions end before their clients are done.
//! Afterwards every counter holds exactly what was added, each increment was answered another value, and nothing was
//! executed of a session that had ended. Would see broken: E1, E2, E4.
//! Then a short run in which clients have no sessions: there the sum must be wrong, or this would not find it anywhere.
//! Keeps: the same seed gives the same messages at the same virtual times.

mod client;
mod findings;
mod line;
mod run;
mod store;

use std::time::Instant;

use testkit::arguments::Arguments;
use testkit::report::Report;

use findings::Findings;
use run::Plan;
use store::Way;

/// Increments of the run that must be wrong.
const CANARY_INCREMENTS: u64 = 2_000;

/// Runs the clients over a lossy line, with sessions and without.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let (clients, increments) = (arguments.number("clients", 64), arguments.number("increments", 10_000));
    let clients = usize::try_from(clients).expect("few").max(1);
    println!("lossy: seed {seed}, {increments} increments by {clients} clients");
    let sound = phase("in sessions", &Plan { seed, clients, increments, way: Way::InSessions });
    let canary_increments = CANARY_INCREMENTS.min(increments);
    let plain = phase("plain", &Plan { seed, clients, increments: canary_increments, way: Way::Plain });

    let goal = i64::try_from(increments).expect("it fits");
    let traffic = sound.traffic;
    // A line that did nothing has tried nothing.
    let tried = [traffic.lost_requests, traffic.doubled, traffic.lost_answers, sound.tally.repeats];
    let ok = sound.errors.is_empty() && sound.sum == goal && tried.into_iter().all(|count| count > 0);
    let expired_ok = sound.errors.is_empty() && sound.ended > 0 && sound.tally.expired > 0;
    if !ok || !expired_ok {
        let command = "cargo run --profile stress -p sim --";
        println!("replay: {command} lossy --seed {seed} --clients {clients} --increments {increments}");
    }
    let mut report = Report::new("sessions");
    let verdict = if ok { "each counted once" } else { "not each counted once" };
    let figure = format!("{} increments, {} requests sent, {verdict}, seed {seed}", sound.sum, traffic.sent);
    report.add("lossy", figure, "200,000 increments by 64 clients, each counted once", ok);
    let verdict = if expired_ok { "none executed" } else { "not shown that none was executed" };
    let figure = format!("{} requests of {} sessions that had ended, {verdict}", sound.tally.expired, sound.ended);
    report.add("lossy-expired", figure, "some, none executed", expired_ok);
    let found = plain.errors.is_empty() && plain.sum != i64::try_from(canary_increments).expect("it fits");
    let verdict = if found { "found" } else { "not found" };
    let figure = format!("{verdict}, {} instead of {canary_increments}", plain.sum);
    report.add("lossy-canary", figure, "a wrong sum without sessions", found);
    report
}

fn phase(name: &str, plan: &Plan) -> Findings {
    let started = Instant::now();
    let findings = run::run(plan).unwrap_or_else(Findings::failed);
    println!("lossy: {name}: {findings}, {:.1} s", started.elapsed().as_secs_f64());
    for error in findings.errors.iter().take(10) {
        println!("lossy: {name}: {error}");
    }
    findings
}
