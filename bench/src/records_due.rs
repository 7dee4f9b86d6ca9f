//! Due work costs only itself: a sweep and a claim take as long among a million records as among ten thousand, as long
//! on a queue that has processed a million tasks as on a new one, and the same right after a reopening.

use std::path::Path;
use std::time::{Duration, Instant};

use kernel::{Body, ClaimNext, RecordAct, TtlArgument, ValueRef};
use testkit::arguments::Arguments;
use testkit::report::Report;

use bench::bare_kernel::{AppliedEntry, BareKernel, ENTRY_COMMANDS, all_done, claimed};

/// Records that become due at once.
const DUE: u64 = 100;

/// The rows of an expiry: the record's row, its due entry, and the entry of its tombstone.
const ROWS_OF_EXPIRY: u64 = 3;

/// Sweeps, and rounds of claims.
const ROUNDS: u64 = 40;

/// Claims per round: enough to include a share of the read-ahead.
const ROUND_CLAIMS: u64 = 100;

/// Claims before the first round: by then the initial read-ahead is used up, and the memory left by the loading is
/// freed.
const CLAIMS_BEFORE: u64 = 4_000;

/// Times that a directory is opened again.
const REOPENINGS: u64 = 9;

/// Tasks in the queue that is compared with the worn one.
const QUEUED: u64 = 10_000;

const QUEUE: &str = "jobs.work.";
const YEAR_US: u64 = 365 * 24 * 3_600 * 1_000_000;
const SECOND_US: u64 = 1_000_000;

/// A duration in a warm state, and after a reopening.
struct Pair {
    warm: Duration,
    reopened: Duration,
}

pub fn run(arguments: &Arguments) -> Report {
    let small = arguments.flag("small");
    let most = arguments.number("records", if small { 20_000 } else { 1_000_000 });
    let cycles = arguments.number("cycles", if small { 20_000 } else { 1_000_000 });
    let directory = tempfile::tempdir().expect("a directory");
    let mut counts = vec![QUEUED, (most / 10).max(QUEUED), most];
    counts.dedup();

    let mut report = Report::new("records");
    let sweeps: Vec<Pair> = counts.iter().map(|count| sweep(directory.path(), *count)).collect();
    compare(&mut report, "due.sweep", "100 due of 1,000,000 against 10,000", &sweeps);
    let claims: Vec<Pair> = counts.iter().map(|count| claim(directory.path(), *count)).collect();
    compare(&mut report, "due.claim", "1 of 1,000,000 ready against 10,000", &claims);
    worn(&mut report, directory.path(), cycles, claims.first().expect("ten thousand").warm);
    report
}

fn compare(report: &mut Report, item: &str, what: &str, pairs: &[Pair]) {
    let (first, last) = (pairs.first().expect("the fewest"), pairs.last().expect("the most"));
    let mut add = |item: &str, first: Duration, last: Duration, when: &str| {
        let ratio = last.as_secs_f64() / first.as_secs_f64();
        report.add(item, format!("{ratio:.2}x"), &format!("<=2: {what}{when}"), ratio <= 2.0);
    };
    add(item, first.warm, last.warm, "");
    add(&format!("{item}-reopened"), first.reopened, last.reopened, ", right after a reopening");
}

/// A tick that expires a hundred records among many that expire much later.
fn sweep(directory: &Path, records: u64) -> Pair {
    let mut kernel = BareKernel::create(&directory.join(format!("sweep-{records}")));
    kernel.put("kept.", 0..records, None, TtlArgument::After(YEAR_US));
    kernel.settle();
    let mut due_before = 0;
    let mut put_due = |kernel: &mut BareKernel| {
        kernel.put("due.", due_before..due_before + DUE, None, TtlArgument::After(SECOND_US));
        due_before += DUE;
    };
    let tick = |kernel: &mut BareKernel| {
        kernel.advance(Duration::from_secs(2));
        let applied = kernel.apply(&[Body::Tick]);
        assert_eq!(applied.command_rows as u64, DUE * ROWS_OF_EXPIRY, "all that is due, and nothing else");
        applied.took
    };
    let warm = undisturbed((0..ROUNDS).map(|_| {
        put_due(&mut kernel);
        tick(&mut kernel)
    }));
    let mut reopened = Vec::new();
    for _ in 0..REOPENINGS {
        put_due(&mut kernel);
        let (again, _) = kernel.reopen();
        kernel = again;
        reopened.push(tick(&mut kernel));
    }
    let reopened = undisturbed(reopened.into_iter());
    println!("sweep of {DUE} among {records:>8}: {warm:>9.1?}, right after a reopening {reopened:>9.1?}");
    Pair { warm, reopened }
}

/// Claims one task at a time from a queue of this size.
fn claim(directory: &Path, tasks: u64) -> Pair {
    let mut kernel = BareKernel::create(&directory.join(format!("claim-{tasks}")));
    kernel.put(QUEUE, 0..tasks, Some("task"), TtlArgument::Persist);
    kernel.settle();
    let mut reopened = Vec::new();
    for _ in 0..REOPENINGS {
        let (again, _) = kernel.reopen();
        kernel = again;
        reopened.push(claim_next(&mut kernel, 1).took);
    }
    let reopened = undisturbed(reopened.into_iter());
    // After the reopenings, because it takes most of the smallest queue.
    let warm = measure_claims(&mut kernel);
    println!("claim of 1 among {tasks:>8} ready: {warm:>7.1?}, the first after a reopening {reopened:>9.1?}");
    Pair { warm, reopened }
}

/// The same on a queue that many tasks went through before.
fn worn(report: &mut Report, directory: &Path, cycles: u64, fresh: Duration) {
    let mut kernel = BareKernel::create(&directory.join("worn"));
    kernel.put(QUEUE, 0..QUEUED, Some("task"), TtlArgument::Persist);
    let mut done = 0;
    while done < cycles {
        kernel.put(QUEUE, QUEUED + done..QUEUED + done + ENTRY_COMMANDS, Some("task"), TtlArgument::Persist);
        let mut claims = Vec::new();
        while (claims.len() as u64) < ENTRY_COMMANDS {
            let left = ENTRY_COMMANDS - claims.len() as u64;
            claims.extend(claimed(&claim_next(&mut kernel, u32::try_from(left).expect("a thousand at most"))));
        }
        let complete =
            |attempt| RecordAct::Complete { attempt, fields: vec![("result", Some(ValueRef::Text("sent")))] };
        let bodies: Vec<Body<'_>> = claims.iter().map(|(name, attempt)| kernel.act(name, complete(*attempt))).collect();
        all_done(&kernel.apply(&bodies));
        done += ENTRY_COMMANDS;
    }
    let warm = measure_claims(&mut kernel);
    let ratio = warm.as_secs_f64() / fresh.as_secs_f64();
    println!("claim of 1 among {QUEUED} ready, after {done} others: {warm:.1?}, on a new queue {fresh:.1?}");
    report.add(
        "due.claim-worn",
        format!("{ratio:.2}x"),
        "<=2: after 1,000,000 others against a new queue",
        ratio <= 2.0,
    );

    let (mut kernel, opening) = kernel.reopen();
    let started = Instant::now();
    let applied = claim_next(&mut kernel, 1);
    assert_eq!(claimed(&applied).len(), 1, "a task is ready");
    let first = started.elapsed();
    println!("after a reopening: {opening:.1?} to open, {first:.1?} for the first claim");
    let both = (opening + first).as_secs_f64();
    report.add("due.reopen", format!("{both:.3}s"), "<1s: opening and first claim, 1,000,000 worked off", both < 1.0);
}

/// The time of one claim, from some rounds.
fn measure_claims(kernel: &mut BareKernel) -> Duration {
    let round = |kernel: &mut BareKernel| -> Duration {
        let claims = (0..ROUND_CLAIMS).map(|_| {
            let applied = claim_next(kernel, 1);
            assert_eq!(claimed(&applied).len(), 1, "a task is ready");
            applied.took
        });
        claims.sum()
    };
    for _ in 0..CLAIMS_BEFORE {
        assert_eq!(claimed(&claim_next(kernel, 1)).len(), 1, "a task is ready");
    }
    undisturbed((0..ROUNDS).map(|_| round(kernel))) / u32::try_from(ROUND_CLAIMS).expect("few")
}

fn claim_next(kernel: &mut BareKernel, records_max: u32) -> AppliedEntry {
    let (space, branch) = (kernel.space, kernel.branch);
    let claim =
        ClaimNext { space, branch, prefix: QUEUE, records_max, worker: "worker-1", lease_us: None, waits: false };
    kernel.apply(&[Body::ClaimNext(claim)])
}

/// The lower quartile: other load on the machine makes some rounds longer, and none shorter.
fn undisturbed(times: impl Iterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times[times.len() / 4]
}
