//! Loads take turns, so that what else the machine does meets all of them.

use std::time::Duration;

use hdrhistogram::Histogram;
use testkit::arguments::Arguments;

use super::load::Load;
use super::reaching::Reaching;
use super::requests::{BATCH, Operation};

/// Connections that fill a queue.
const FILLERS: usize = 64;

/// How often each of two loads has its turn, and for how long.
#[derive(Clone, Copy)]
pub struct Turns {
    pub count: u64,
    pub length: Duration,
}

impl Turns {
    /// `--rounds` and `--milliseconds`; otherwise `full`, or `small` with `--small`.
    pub fn read(arguments: &Arguments, full: (u64, u64), small: (u64, u64)) -> Self {
        let (count, ms) = if arguments.flag("small") { small } else { full };
        let length = Duration::from_millis(arguments.number("milliseconds", ms));
        Self { count: arguments.number("rounds", count), length }
    }

    /// How many there are of what is done so often in a second, with the half turn before the first.
    pub fn all_of(self, per_second: u64) -> u64 {
        let ms = u64::try_from(self.length.as_millis()).expect("a short time");
        per_second * ms * (self.count + 1) / 1_000
    }
}

/// What one turn measured.
pub struct Measured {
    pub per_second: f64,
    pub latency_ns: Histogram<u64>,
}

/// How a turn ended.
pub enum Turn {
    Whole(Measured),
    /// It took the last job of the queue before its time was over, after so many of them.
    RanDry(u64),
}

/// A turn in which there was always a job to claim. One that takes the last is not counted: the queue of that server is
/// filled for several such turns, and the turn is repeated. How fast a machine is need not be known to measure it.
pub fn whole(reaching: &Reaching, mut turn: impl FnMut() -> Turn) -> Measured {
    loop {
        match turn() {
            Turn::Whole(measured) => return measured,
            Turn::RanDry(jobs) => put_tasks(reaching.clone(), (jobs + BATCH as u64) * 4),
        }
    }
}

/// Writes at least `count` tasks.
pub fn put_tasks(reaching: impl Into<Reaching>, count: u64) {
    let mut load = Load::connect(reaching, Operation::PutTask, FILLERS);
    let mut written = 0;
    while written < count {
        written += load.run(Duration::from_millis(100)).latency_ns.len();
    }
}
