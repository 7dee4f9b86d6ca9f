//! Serial: threads run conflicting transactions; a checker looks for a cycle among the committed ones.
//!
//! `sim serial --seconds N [--seed S]`. Afterwards the same again for a short while with the kernel's guards switched
//! off, and with snapshot isolation: there the checker must find a cycle, or it would not find one anywhere.
//! What the threads do is drawn from the seed; how they meet is up to the machine.
//!
//! Keeps: T1 (committed transactions are serialisable), and that the serial order is that of the commit numbers and of
//! time: who begins after another's commit was answered sees it.

mod checker;
mod cycles;
mod record;
mod workload;

use std::time::Duration;

use statehouse::Isolation;

use checker::Findings;
use testkit::arguments::Arguments;
use testkit::report::Report;

/// Threads that run transactions.
pub(crate) const THREADS: u64 = 16;

/// How long a run that must find a violation takes.
const CANARY: Duration = Duration::from_secs(2);

/// Runs the transactions and checks them for cycles.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let seconds = arguments.number("seconds", 5);
    println!("serial: seed {seed}, {seconds} s on {THREADS} threads");
    let sound = phase("serialisable", seed, Duration::from_secs(seconds), Isolation::Serialisable);
    kernel::canary::skip_guards(true);
    let unguarded = phase("with guards off", seed + 1, CANARY, Isolation::Serialisable);
    kernel::canary::skip_guards(false);
    let snapshot = phase("with snapshot isolation", seed + 2, CANARY, Isolation::Snapshot);

    let ok = sound.is_sound() && sound.conflicts > 0 && sound.commits > 0;
    if !ok {
        let command = "cargo run --profile stress -p sim --";
        println!("replay: {command} serial --seed {seed} --seconds {seconds}");
    }
    let found = |findings: &Findings| {
        if findings.cycles > 0 { "found" } else { "not-found" }
    };
    let mut report = Report::new("cells");
    let mut figure = format!("{}-commits-{}-cycles", sound.commits, sound.cycles);
    for (count, what) in
        [(sound.out_of_order, "out-of-order"), (sound.stale, "stale"), (sound.errors.len() as u64, "errors")]
    {
        if count > 0 {
            figure += &format!("-{count}-{what}");
        }
    }
    report.add("serial", figure, "no cycle in 30 s on 16 threads", ok);
    report.add("serial-canary", found(&unguarded), "violation found with guards off", unguarded.cycles > 0);
    report.add("serial-snapshot", found(&snapshot), "write skew found with snapshot isolation", snapshot.cycles > 0);
    report
}

fn phase(name: &str, seed: u64, length: Duration, isolation: Isolation) -> Findings {
    let findings = match workload::run(seed, length, isolation) {
        Ok(ran) => checker::check(&ran),
        Err(error) => Findings { errors: vec![error], ..Findings::default() },
    };
    println!("serial: {name}: {findings}");
    findings
}
