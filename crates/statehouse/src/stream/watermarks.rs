//! Watermarks: how far event time has come, by what the inputs have brought.
//!
//! Touches: nothing. Keeps: a watermark never falls; the same events in the same order give the same answers. Never: reads a clock:
//! an input that is silent holds the watermark back until it goes on or is finished.

use std::collections::BTreeMap;

/// Whether an event came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// All its windows are open.
    InTime,
    /// It is older than the watermark: it must have no effect.
    Late,
}

/// How far event time has come in several inputs.
///
/// The watermark of an input is the highest event time that it has brought, minus the lateness that is allowed. That of all is the
/// lowest one: events from before it are late.
///
/// An operator keeps the highest time of each input in its state, in the commits that count the events, and
/// [restores](Self::restore) it when it takes over. It goes on as the one before would have, provided that it reads its inputs in
/// the same order.
///
/// ```
/// use statehouse::stream::{Arrival, Watermarks};
/// let mut watermarks = Watermarks::new(["left", "right"], 10);
/// assert_eq!(watermarks.observe("left", 100), Arrival::InTime);
/// assert_eq!(watermarks.watermark(), None); // nothing is known of the other input
/// watermarks.observe("right", 60);
/// assert_eq!(watermarks.watermark(), Some(50));
/// assert_eq!(watermarks.observe("left", 49), Arrival::Late);
/// assert_eq!(watermarks.observe("left", 50), Arrival::InTime);
/// assert_eq!(watermarks.late(), 1);
/// watermarks.finish("right");
/// assert_eq!(watermarks.watermark(), Some(90));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watermarks {
    lateness: i64,
    inputs: BTreeMap<String, Progress>,
    late: u64,
}

/// How far an input has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    highest: Option<i64>,
    finished: bool,
}

impl Watermarks {
    /// Watermarks of these inputs, which have brought nothing yet. An event may be as much older as `lateness` than the newest of
    /// its input; a negative lateness is none.
    pub fn new<I: Into<String>>(inputs: impl IntoIterator<Item = I>, lateness: i64) -> Self {
        let inputs = inputs.into_iter().map(|input| (input.into(), Progress::default())).collect();
        Self { lateness: lateness.max(0), inputs, late: 0 }
    }

    /// An event of an input: in time, or late, which is counted and changes nothing else.
    ///
    /// # Panics
    /// If the input is not one of those given.
    pub fn observe(&mut self, input: &str, time: i64) -> Arrival {
        if self.watermark().is_some_and(|watermark| time < watermark) {
            self.late += 1;
            return Arrival::Late;
        }
        self.restore(input, time);
        Arrival::InTime
    }

    /// Goes on from the highest event time of an input, as [`highest`](Self::highest) gave it before. A lower one changes nothing.
    ///
    /// ```
    /// use statehouse::stream::{Arrival, Watermarks};
    /// let mut before = Watermarks::new(["topic-a"], 5);
    /// before.observe("topic-a", 100);
    /// let mut after = Watermarks::new(["topic-a"], 5);
    /// after.restore("topic-a", before.highest("topic-a").expect("an event"));
    /// assert_eq!(after.observe("topic-a", 94), Arrival::Late);
    /// ```
    ///
    /// # Panics
    /// If the input is not one of those given.
    pub fn restore(&mut self, input: &str, highest: i64) {
        let progress = self.progress_mut(input);
        progress.highest = progress.highest.max(Some(highest));
    }

    /// An input that will bring nothing more, and holds nothing back. When all are finished, every window is closed.
    ///
    /// # Panics
    /// If the input is not one of those given.
    pub fn finish(&mut self, input: &str) {
        self.progress_mut(input).finished = true;
    }

    /// The highest event time of an input; none before its first event.
    pub fn highest(&self, input: &str) -> Option<i64> {
        self.inputs.get(input)?.highest
    }

    /// The watermark: the lowest one of the inputs. None while there is an input that has brought nothing.
    pub fn watermark(&self) -> Option<i64> {
        let of_input = |progress: &Progress| match (progress.finished, progress.highest) {
            (true, _) => Some(i64::MAX),
            (false, highest) => highest.map(|highest| highest.saturating_sub(self.lateness)),
        };
        self.inputs.values().map(of_input).min().flatten()
    }

    /// Events that came too late, since this value was made. An operator adds them to its state, where they are counted once.
    pub fn late(&self) -> u64 {
        self.late
    }

    fn progress_mut(&mut self, input: &str) -> &mut Progress {
        self.inputs.get_mut(input).unwrap_or_else(|| panic!("{input:?} is no input of these watermarks"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_event_changes_nothing_but_its_count() {
        let mut watermarks = Watermarks::new(["a", "b"], 10);
        watermarks.observe("a", 100);
        watermarks.observe("b", 200);
        let before = watermarks.clone();
        assert_eq!(watermarks.observe("b", 89), Arrival::Late);
        assert_eq!(watermarks, Watermarks { late: 1, ..before });
    }

    #[test]
    fn a_watermark_never_falls() {
        let mut watermarks = Watermarks::new(["a", "b"], 7);
        let mut highest = None;
        for step in 0..1_000_i64 {
            watermarks.observe(if step % 3 == 0 { "a" } else { "b" }, step + (step * 7919) % 50);
            assert!(watermarks.watermark() >= highest, "at {step}");
            highest = watermarks.watermark();
        }
        watermarks.finish("a");
        watermarks.finish("b");
        assert_eq!(watermarks.watermark(), Some(i64::MAX));
    }

    #[test]
    fn a_restored_one_goes_on_as_the_one_before() {
        let events: Vec<_> = (0..200_i64).map(|n| (if n % 2 == 0 { "a" } else { "b" }, (n * 37) % 90 + n)).collect();
        let mut whole = Watermarks::new(["a", "b"], 20);
        let arrivals: Vec<_> = events.iter().map(|(input, time)| whole.observe(input, *time)).collect();
        assert!(arrivals.contains(&Arrival::Late) && arrivals.contains(&Arrival::InTime));
        for cut in 0..events.len() {
            let mut first = Watermarks::new(["a", "b"], 20);
            for (input, time) in &events[..cut] {
                first.observe(input, *time);
            }
            let mut second = Watermarks::new(["a", "b"], 20);
            for input in ["a", "b"] {
                first.highest(input).into_iter().for_each(|highest| second.restore(input, highest));
            }
            let rest: Vec<_> = events[cut..].iter().map(|(input, time)| second.observe(input, *time)).collect();
            assert_eq!(rest, arrivals[cut..], "cut at {cut}");
        }
    }

    #[test]
    fn without_inputs_nothing_is_late() {
        assert_eq!(Watermarks::new([""; 0], 1).watermark(), None);
    }
}
