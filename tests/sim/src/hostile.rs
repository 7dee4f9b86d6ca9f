//! Hostile clients against a real server process in 512 MiB: each is refused by name, the server is never killed, and a
//! well-behaved client hardly notices.
//!
//! - [`limit`]: limits the memory of the process, with what the machine offers.
//! - [`attacks`]: the hostile requests, and the required answers.
//! - [`honest`]: the well-behaved client, and how long its requests take.
//!
//! Touches: its own server process, and a control group under this program's. Never: counts a silently closed connection as
//! a refusal where a code was promised.

mod attacks;
pub(crate) mod honest;
pub(crate) mod limit;

use std::time::Duration;

use testkit::arguments::Arguments;
use testkit::report::Report;
use testkit::server_process::binary;

use self::attacks::Tally;
use self::honest::Honest;
use self::limit::Limited;

/// The memory limit of the process.
const MEMORY_BYTES: u64 = 512 << 20;

/// `sim hostile [--each 200] [--readers 1000] [--idle 2000] [--seconds 10]`: the number of clients of each kind, of slow
/// readers of streams and of idle connections, and how long the well-behaved client is measured beforehand.
pub(crate) fn run(arguments: &Arguments) -> Report {
    server::descriptors::raise(&mut server::limits::ServerLimits::default());
    let each = arguments.number("each", 200);
    let (readers, idle) = (arguments.number("readers", 1000), arguments.number("idle", 2000));
    let seconds = Duration::from_secs(arguments.number("seconds", 10));
    // Not on a memory file system: that would count towards the server's limit.
    let directory = tempfile::tempdir().expect("a directory");
    let limited = Limited::start(&binary(), &directory.path().join("house"), MEMORY_BYTES);
    let address = limited.server.address();
    println!("{}", limited.server.stdout().lines().find(|line| line.starts_with("memory ")).unwrap_or_default());

    let mut honest = Honest::start(address);
    std::thread::sleep(seconds);
    let before = honest.so_far();
    let mut tally = Tally::default();
    attacks::at_once(address, each, &mut tally);
    attacks::slowly(address, each, &mut tally);
    attacks::half_open(address, each, &mut tally);
    attacks::slow_readers(address, readers, &mut tally);
    attacks::idle(address, idle, &mut tally);
    let during = honest.so_far();
    let failures = honest.stop();
    tally.print();

    let ended = limited.stop();
    let ratio = during.p99.as_secs_f64() / before.p99.as_secs_f64();
    println!("a client that behaves: before {before}, meanwhile {during}, {failures} failures");
    let mut report = Report::new("server");
    let refused = format!("{}-of-{}-as-promised", tally.by_name(), tally.expected());
    report.add(
        "hostile",
        refused,
        "each refused by its name, cut or ended, as promised",
        tally.by_name() == tally.expected(),
    );
    let alive = format!("{}-honest-failures-{}", failures, if ended.is_alive { "never-killed" } else { "killed" });
    report.add(
        "hostile.alive",
        alive,
        "no failure of a client that behaves, never killed",
        failures == 0 && ended.is_alive,
    );
    let figure = format!("{}MiB-in-{}", ended.peak_bytes >> 20, ended.by);
    report.add("hostile.memory", figure, "<=512MiB", ended.peak_bytes <= MEMORY_BYTES && ended.is_alive);
    // A small run has too few requests for a meaningful percentile.
    let small = seconds < Duration::from_secs(5);
    report.add("hostile.p99", format!("{ratio:.2}x"), "<=3 times the p99 before", small || ratio <= 3.0);
    report
}
