//! What the appenders were answered, and the comparison with what was read.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::reader::Stretch;

/// Of each run, what became of each append.
pub(super) struct Answers {
    runs: Vec<Answered>,
}

#[derive(Default)]
struct Answered {
    /// The highest sequence that an appender was answered.
    highest: AtomicU64,
    /// Digests of events by sequence.
    digests: Mutex<BTreeMap<u64, u64>>,
}

/// Tells events apart. Digests of many are added up, so that any stretch of a run can be compared.
pub(super) fn digest(seq: u64, key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seq, key).hash(&mut hasher);
    hasher.finish()
}

impl Answers {
    pub(super) fn new(runs: usize) -> Self {
        Self { runs: (0..runs).map(|_| Answered::default()).collect() }
    }

    /// An event was appended and answered with a sequence.
    pub(super) fn enter(&self, run: usize, seq: u64, key: &str) -> Result<(), String> {
        let answered = &self.runs[run];
        let before = answered.digests.lock().expect("no thread panics here").insert(seq, digest(seq, key));
        answered.highest.fetch_max(seq, Ordering::SeqCst);
        match before {
            None => Ok(()),
            Some(_) => Err(format!("sequence {seq} of run {run} was given out twice")),
        }
    }

    /// The highest sequence that was answered so far.
    pub(super) fn highest(&self, run: usize) -> u64 {
        self.runs[run].highest.load(Ordering::SeqCst)
    }

    /// Compares what was read with what was answered, when all appenders have ended.
    pub(super) fn compare(&self, stretches: &[Stretch]) -> Result<(), String> {
        let mut sums = Vec::new();
        for (run, answered) in self.runs.iter().enumerate() {
            let digests = answered.digests.lock().expect("no thread panics here");
            let mut upto = vec![0_u64];
            for (place, (seq, digest)) in (1..).zip(digests.iter()) {
                if *seq != place {
                    return Err(format!("nobody was answered sequence {place} of run {run}"));
                }
                upto.push(upto[upto.len() - 1].wrapping_add(*digest));
            }
            sums.push(upto);
        }
        for stretch in stretches {
            let upto = &sums[stretch.run];
            let sum = |seq: u64| upto.get(usize::try_from(seq).expect("it fits")).copied();
            let (Some(first), Some(last)) = (sum(stretch.after), sum(stretch.upto)) else {
                return Err(format!("more was read than was appended: {stretch:?} of {}", upto.len() - 1));
            };
            if last.wrapping_sub(first) != stretch.digests {
                return Err(format!("other events were read than were appended: {stretch:?}"));
            }
        }
        Ok(())
    }
}
