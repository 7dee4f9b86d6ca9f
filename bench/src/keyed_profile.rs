//! Where the CPU time of durable commits of 100 puts goes: by thread, and by part of the product.
//!
//! `bench profile --op keyed [--callers N]`. Threads are read from the system. Parts are crates and modules of the functions in which
//! `perf` finds the process; without it, or where it may not look, only threads are printed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bench::keyed_work::{COMMIT_PUTS, Keys, operators, run as run_operators};
use bench::usage::Usage;
use statehouse::Statehouse;

/// Samples a second of each thread that runs.
const FREQUENCY: &str = "997";

/// Parts with less of the time than this are left out, in percent.
const SHOWN_MIN: f64 = 0.5;

/// Lets operators commit, and prints where the time went.
pub fn run(house: &Statehouse, directory: &Path, callers: u32, keys: u64, duration: Duration) {
    let mut operators = operators(house, callers);
    let of_each = keys / u64::from(callers);
    operators.iter_mut().for_each(|operator| operator.load(0..of_each));
    house.flush().expect("flush");
    house.settle().expect("settle");
    let samples = directory.join("samples");
    let sampler = start_sampler(&samples);
    let before = Usage::now();
    let committed = run_operators(house, &mut operators, Keys::all(of_each), duration);
    let used = Usage::now().since(&before);
    let put = committed.keys_per_second * used.seconds;
    println!(
        "{callers} operators: {:.0} keys/s in commits of {COMMIT_PUTS}, {:.2} us CPU a key",
        committed.keys_per_second,
        used.cpu_us / put
    );
    // Operators have threads of their own, which have ended.
    let of_threads: f64 = used.thread_us.values().sum();
    let mut threads: Vec<_> = used.thread_us.into_iter().collect();
    threads.push(("operators".to_owned(), (used.cpu_us - of_threads).max(0.0)));
    threads.sort_by(|one, other| other.1.total_cmp(&one.1));
    for (thread, us) in threads.iter().filter(|(_, us)| us * 100.0 / used.cpu_us >= SHOWN_MIN) {
        println!("  thread {thread:<20} {:>6.3} us a key {:>5.1} %", us / put, us * 100.0 / used.cpu_us);
    }
    match sampler.map(|sampler| parts(sampler, &samples)) {
        Some(Ok(parts)) => parts.iter().for_each(|(part, share)| println!("  part   {part:<36} {share:>5.1} %")),
        Some(Err(why)) => println!("perf: {why}"),
        None => println!("perf is not installed: no parts"),
    }
}

fn start_sampler(samples: &Path) -> Option<Child> {
    let mut perf = Command::new("perf");
    perf.args(["record", "--quiet", "-F", FREQUENCY, "-p", &std::process::id().to_string(), "-o"]).arg(samples);
    perf.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
}

/// Ends the sampling, and returns the parts with their shares in percent, the largest first.
fn parts(mut sampler: Child, samples: &Path) -> Result<Vec<(String, f64)>, String> {
    let text = |error: std::io::Error| error.to_string();
    // It writes the rest of its file once it is interrupted.
    Command::new("kill").args(["-INT", &sampler.id().to_string()]).status().map_err(text)?;
    sampler.wait().map_err(text)?;
    let mut report = Command::new("perf");
    report.args(["report", "--stdio", "--no-children", "--sort", "symbol", "--fields", "overhead,symbol", "-i"]);
    let output = report.arg(samples).stderr(Stdio::null()).output().map_err(text)?;
    let parts = shares(&String::from_utf8_lossy(&output.stdout));
    if parts.is_empty() { Err("it found nothing; it may not be allowed to look".to_owned()) } else { Ok(parts) }
}

/// Adds up the lines `PERCENT% [k] SYMBOL` of a report by part.
fn shares(report: &str) -> Vec<(String, f64)> {
    let mut parts: BTreeMap<String, f64> = BTreeMap::new();
    for line in report.lines().filter(|line| !line.starts_with('#')) {
        let Some((share, symbol)) = line.trim().split_once('%') else { continue };
        let Ok(share) = share.parse::<f64>() else { continue };
        *parts.entry(part_of(symbol.trim())).or_default() += share;
    }
    let mut parts: Vec<_> = parts.into_iter().filter(|(_, share)| *share >= SHOWN_MIN).collect();
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    parts
}

/// The part that a symbol belongs to: the crate and its first module of ours, the crate of others, the kernel of the system.
fn part_of(symbol: &str) -> String {
    let Some(name) = symbol.strip_prefix("[.]").map(str::trim) else { return "the system's kernel".to_owned() };
    let name = name.trim_start_matches(['<', '&', '[']);
    let mut path = name.split("::").map(|part| part.split(['<', '>', ' ']).next().unwrap_or(part));
    match (path.next().unwrap_or(name), path.next()) {
        (own, Some(module)) if own.starts_with("statehouse") => format!("{own}::{module}"),
        (other, Some(_)) => other.to_owned(),
        (_, None) if name.contains("_rjem") || name.contains("alloc") => "the allocator".to_owned(),
        (_, None) => "C libraries".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_added_up_by_part() {
        let report = "# Overhead  Symbol\n\n\
                      30.00%  [.] statehouse_kernel::keyed::update::run\n\
                      10.00%  [.] <statehouse_kernel::keyed::Row as core::fmt::Debug>::fmt\n\
                      20.00%  [k] __x64_sys_fdatasync\n\
                      5.00%  [.] core::ptr::drop_in_place\n\
                      4.00%  [.] _rjem_malloc\n\
                      3.00%  [.] __memcmp_avx2\n\
                      0.01%  [.] tokio::runtime::run\n";
        let expected = [
            ("statehouse_kernel::keyed", 40.0),
            ("the system's kernel", 20.0),
            ("core", 5.0),
            ("the allocator", 4.0),
            ("C libraries", 3.0),
        ];
        assert_eq!(shares(report), expected.map(|(part, share)| (part.to_owned(), share)));
    }
}
