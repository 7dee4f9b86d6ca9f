//! One phase of a measurement: rounds of commands, then the merging that they left behind.
//!
//! Keeps: no merging hides. Flushes and merges lag behind the commands that cause them, so the CPU time of the threads
//! in the background is taken over the whole phase, settling included, and shared by all commands of the phase. The time
//! of the other threads is taken while the command runs.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::subject::{Subject, Watched};
use crate::latency::{histogram, quantile_us};
use crate::resources::{forget_resident_peak, resident_bytes, resident_peak_bytes};
use crate::usage::{CALLER, Usage, Used};

/// Threads that a command waits for. All others flush and merge.
const FOREGROUND: [&str; 6] = [CALLER, "apply", "journal-write", "answer", "timer", "session-expire"];

fn is_foreground(thread: &str) -> bool {
    FOREGROUND.contains(&thread)
}

/// A phase that has begun.
pub(super) struct Phase {
    begun: Usage,
    commands: Vec<Command>,
}

struct Command {
    name: &'static str,
    count: u64,
    used: Used,
    latency_ns: Histogram<u64>,
}

impl Phase {
    /// Begins one, on a subject with nothing to merge.
    pub(super) fn begin(subject: &mut dyn Subject) -> Self {
        subject.watched();
        forget_resident_peak();
        Self { begun: Usage::now(), commands: Vec::new() }
    }

    /// Runs a round of a command, which returns how many those were.
    pub(super) fn round(&mut self, name: &'static str, run: impl FnOnce(&mut Histogram<u64>) -> u64) {
        let place = self.commands.iter().position(|command| command.name == name).unwrap_or_else(|| {
            self.commands.push(Command { name, count: 0, used: Used::default(), latency_ns: histogram() });
            self.commands.len() - 1
        });
        let command = &mut self.commands[place];
        let before = Usage::now();
        command.count += run(&mut command.latency_ns);
        command.used += &Usage::now().since(&before);
    }

    /// Waits until all is merged, and divides everything by the commands.
    pub(super) fn settle(self, subject: &mut dyn Subject) -> PhaseFigures {
        let resident = resident_bytes();
        let before = Usage::now();
        subject.settle();
        let after = Usage::now();
        let (settling, whole) = (after.since(&before), after.since(&self.begun));
        let background = |used: &Used| used.of_threads(|thread| !is_foreground(thread));
        let memory = Memory { resident, peak: resident_peak_bytes() };
        let count = self.commands.iter().map(|command| command.count).sum::<u64>().max(1) as f64;
        let shared: Vec<(String, f64)> = whole
            .thread_us
            .iter()
            .filter(|(thread, _)| !is_foreground(thread))
            .map(|(thread, us)| (thread.clone(), us / count))
            .collect();
        let commands = self.commands.into_iter().map(|command| {
            let own = command.used.thread_us.iter().filter(|(thread, us)| is_foreground(thread) && **us > 0.0);
            let own = own.map(|(thread, us)| (thread.clone(), us / command.count as f64));
            CommandFigures {
                name: command.name,
                count: command.count,
                per_second: command.count as f64 / command.used.seconds,
                foreground_us: own.collect(),
                background_us: shared.clone(),
                latency_ns: command.latency_ns,
            }
        });
        PhaseFigures {
            commands: commands.collect(),
            background_seconds: background(&whole) / 1e6,
            settling_seconds: background(&settling) / 1e6,
            settling_us: background(&settling) / count,
            whole_us: whole.cpu_us / count,
            written_bytes: whole.written_bytes as f64 / count,
            memory,
            watched: subject.watched().map(|watched| WatchedFigures::of(watched, whole.written_bytes)),
        }
    }
}

/// The figures of a phase; those without a unit in their name are for one command.
pub(super) struct PhaseFigures {
    pub(super) commands: Vec<CommandFigures>,
    /// CPU time of the threads in the background, in all.
    pub(super) background_seconds: f64,
    /// The part of it after the last command.
    pub(super) settling_seconds: f64,
    settling_us: f64,
    whole_us: f64,
    written_bytes: f64,
    memory: Memory,
    watched: Option<WatchedFigures>,
}

#[derive(Clone, Copy)]
struct Memory {
    resident: u64,
    peak: u64,
}

struct WatchedFigures {
    write_amplification: f64,
    longest_commit: Duration,
}

impl WatchedFigures {
    fn of(watched: Watched, written_bytes: u64) -> Self {
        Self {
            write_amplification: written_bytes as f64 / watched.given_bytes.max(1) as f64,
            longest_commit: watched.longest_commit,
        }
    }
}

/// The figures of a command.
pub(super) struct CommandFigures {
    pub(super) name: &'static str,
    pub(super) count: u64,
    per_second: f64,
    foreground_us: Vec<(String, f64)>,
    background_us: Vec<(String, f64)>,
    latency_ns: Histogram<u64>,
}

impl CommandFigures {
    /// CPU µs of all threads, the share of merging included.
    pub(super) fn cpu_us(&self) -> f64 {
        sum(&self.foreground_us) + sum(&self.background_us)
    }

    /// Commands a second while they were sent; what is merged after the last is not in it.
    pub(super) fn per_second(&self) -> f64 {
        self.per_second
    }

    /// CPU µs of flushing and merging, its share of the phase.
    pub(super) fn background_us(&self) -> f64 {
        sum(&self.background_us)
    }

    /// Whether single commands were timed.
    pub(super) fn has_latencies(&self) -> bool {
        !self.latency_ns.is_empty()
    }

    pub(super) fn quantile_us(&self, quantile: f64) -> f64 {
        quantile_us(&self.latency_ns, quantile)
    }
}

fn sum(threads: &[(String, f64)]) -> f64 {
    threads.iter().map(|(_, us)| us).sum()
}

impl PhaseFigures {
    /// The most memory that was resident during the phase.
    pub(super) fn resident_peak(&self) -> u64 {
        self.memory.peak
    }

    /// Prints all of it, each line with the size that it was measured at.
    pub(super) fn print(&self, size: u64) {
        for command in &self.commands {
            let name = command.name;
            println!(
                "{size:>9} {name:>7}: {:>8.0}/s  cpu {:>6.2} us: {}",
                command.per_second,
                command.cpu_us(),
                thread_list(command.foreground_us.iter().chain(&command.background_us)),
            );
            if !command.has_latencies() {
                continue;
            }
            println!(
                "{size:>9} {name:>7}: p50 {:>8.1} us  p99 {:>8.1} us  p99.9 {:>8.1} us  max {:>9.1} us",
                command.quantile_us(0.5),
                command.quantile_us(0.99),
                command.quantile_us(0.999),
                command.quantile_us(1.0),
            );
        }
        let names: Vec<&str> = self.commands.iter().map(|command| command.name).collect();
        println!(
            "{size:>9} {:>7}: whole process {:.2} us cpu a command, of it {:.2} in the background after the last; background {:.2} s in all; written {:.0} B a command; resident {} MiB, peak {} MiB",
            names.join("+"),
            self.whole_us,
            self.settling_us,
            self.background_seconds,
            self.written_bytes,
            self.memory.resident >> 20,
            self.memory.peak >> 20,
        );
        if let Some(watched) = &self.watched {
            println!(
                "{size:>9} {:>7}: written {:.2} times what the store was given; its longest commit {:.1} ms",
                names.join("+"),
                watched.write_amplification,
                watched.longest_commit.as_secs_f64() * 1e3,
            );
        }
    }
}

fn thread_list<'list>(threads: impl Iterator<Item = &'list (String, f64)>) -> String {
    // A thread that hardly did anything is noise.
    let shown = threads.filter(|(_, us)| *us >= 0.005).map(|(thread, us)| format!("{thread} {us:.2}"));
    shown.collect::<Vec<_>>().join(", ")
}
