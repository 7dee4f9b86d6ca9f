//! What this process has used so far, by thread: CPU time, and bytes written to disk.
//!
//! Touches: `/proc/self`. Keeps: a thread is known by its number, so that two of the same name are added up. Never:
//! counts a thread that ended between two readings; the total of the process has it.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::ops::AddAssign;
use std::time::Instant;

/// The thread that started the process, whatever the program is called.
pub const CALLER: &str = "caller";

/// One reading.
pub struct Usage {
    at: Instant,
    cpu_seconds: f64,
    /// Name and CPU time in ns, by number.
    threads: BTreeMap<u32, (String, u64)>,
    written_bytes: u64,
}

/// The difference of two readings.
#[derive(Clone, Debug, Default)]
pub struct Used {
    /// Time that passed.
    pub seconds: f64,
    /// CPU time of the whole process in µs, in steps of 10 ms.
    pub cpu_us: f64,
    /// CPU time of each thread in µs, by name.
    pub thread_us: BTreeMap<String, f64>,
    /// Bytes that the process sent to the disk, pages at a time.
    pub written_bytes: u64,
}

impl Usage {
    /// A reading.
    pub fn now() -> Self {
        let listed = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let threads = listed.filter_map(|entry| {
            let number: u32 = entry.file_name().to_str()?.parse().ok()?;
            let read = |file: &str| read_to_string(entry.path().join(file)).ok();
            let name = if number == std::process::id() { CALLER.to_owned() } else { read("comm")?.trim().to_owned() };
            let nanoseconds = read("schedstat")?.split_whitespace().next()?.parse().ok()?;
            Some((number, (name, nanoseconds)))
        });
        Self {
            at: Instant::now(),
            threads: threads.collect(),
            cpu_seconds: crate::resources::cpu_seconds(),
            written_bytes: written_bytes(),
        }
    }

    /// What was used between an earlier reading and this one.
    pub fn since(&self, earlier: &Self) -> Used {
        let mut thread_us = BTreeMap::new();
        for (number, (name, now)) in &self.threads {
            let before = earlier.threads.get(number).map_or(0, |(_, before)| *before);
            *thread_us.entry(name.clone()).or_default() += now.saturating_sub(before) as f64 / 1e3;
        }
        Used {
            seconds: self.at.duration_since(earlier.at).as_secs_f64(),
            cpu_us: (self.cpu_seconds - earlier.cpu_seconds) * 1e6,
            thread_us,
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
        }
    }
}

impl Used {
    /// CPU time in µs of the threads with such names.
    pub fn of_threads(&self, is_such: impl Fn(&str) -> bool) -> f64 {
        self.thread_us.iter().filter(|(name, _)| is_such(name)).map(|(_, us)| us).sum()
    }
}

impl AddAssign<&Used> for Used {
    fn add_assign(&mut self, more: &Used) {
        self.seconds += more.seconds;
        self.cpu_us += more.cpu_us;
        self.written_bytes += more.written_bytes;
        for (name, us) in &more.thread_us {
            *self.thread_us.entry(name.clone()).or_default() += us;
        }
    }
}

fn written_bytes() -> u64 {
    let io = read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes:"));
    line.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_busy_thread_is_found_by_its_name() {
        let before = Usage::now();
        let (done, is_done) = channel();
        let (end, ending) = channel::<()>();
        let work = move || {
            let started = Instant::now();
            while started.elapsed() < Duration::from_millis(200) {
                std::hint::black_box(started);
            }
            done.send(()).expect("the test waits");
            // The thread must still be there when it is counted.
            let _ = ending.recv();
        };
        let thread = std::thread::Builder::new().name("busy".into()).spawn(work).expect("a thread");
        is_done.recv().expect("the thread works");
        let used = Usage::now().since(&before);
        drop(end);
        thread.join().expect("it ends");
        assert!(used.seconds >= 0.2, "{used:?}");
        // Less than 200 ms if the machine is busy, but never nothing.
        let busy_us = used.of_threads(|name| name == "busy");
        assert!(busy_us > 1_000.0 && busy_us <= used.seconds * 1e6, "{used:?}");
    }
}
