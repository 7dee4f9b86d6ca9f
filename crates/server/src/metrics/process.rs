//! Metrics of the process from the system: memory, file descriptors, CPU time. Left out where there is no `/proc`.

use std::fs;

use super::list::{CPU_SECONDS, MAX_FDS, OPEN_FDS, RESIDENT_MEMORY};
use super::text::Scrape;

/// The unit of CPU time in `/proc`: hundredths of a second, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) fn write(scrape: &mut Scrape) {
    if let Some(bytes) = resident_bytes() {
        scrape.whole(&RESIDENT_MEMORY, &[], bytes);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is the directory listing itself.
        scrape.whole(&OPEN_FDS, &[], (open.count() as u64).saturating_sub(1));
    }
    if let Some(max) = max_fds() {
        scrape.whole(&MAX_FDS, &[], max);
    }
    if let Some(seconds) = cpu_seconds() {
        scrape.real(&CPU_SECONDS, &[], seconds);
    }
}

/// The resident memory of the process, in bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

fn max_fds() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?.parse().ok()
}

fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may contain spaces; it ends with the last bracket.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS_PER_SECOND)
}
