//! The events that are counted: a source that every process can read from any place, and that is the same each time.
//!
//! Each partition has two inputs and reads them in turn, so that its place says how far it has read both. Events come out of order,
//! one in a hundred is late, and one in fifty is an earlier one once more. Never: keeps an event; each follows from the seed and
//! its place.

use statehouse::stream::Windows;
use testkit::arguments::Arguments;
use testkit::random::Random;

/// The inputs of a partition.
pub(super) const INPUTS: [&str; 2] = ["left", "right"];
pub(super) const PARTITIONS: u32 = 4;
/// In milliseconds of event time, as all times are.
pub(super) const LATENESS: i64 = 3_000;
pub(super) const WINDOW: i64 = 10_000;
/// How much later an event of an input is than the one before it, on average.
const STEP: i64 = 10;
const WORDS: u64 = 100;
/// An event comes once more after at most this many of its input.
const DOUBLE_BEHIND_MAX: u64 = 200;
/// Places within which an event can come once more.
pub(super) const DOUBLE_PLACES_MAX: u64 = 2 * (DOUBLE_BEHIND_MAX + 1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) time: i64,
    pub(super) word: String,
}

/// The events of a partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) seed: u64,
    pub(super) partition: u32,
    /// How many there are.
    pub(super) places: u64,
}

impl Source {
    /// As the parent has told a child.
    pub(super) fn from_arguments(arguments: &Arguments) -> Self {
        let partition = u32::try_from(arguments.number("partition", 0)).expect("a partition");
        Self { seed: arguments.number("source-seed", 1), partition, places: arguments.number("places", 0) }
    }

    /// The event at a place, and which input it comes from.
    pub(super) fn event(&self, place: u64) -> (usize, Event) {
        let input = place % 2;
        (usize::from(input == 1), self.event_of(input, place / 2))
    }

    fn event_of(&self, input: u64, offset: u64) -> Event {
        let mut random = self.random(input, offset);
        let behind = 1 + random.below(DOUBLE_BEHIND_MAX);
        if random.one_in(50) && behind <= offset {
            return self.original(input, offset - behind);
        }
        self.original(input, offset)
    }

    fn original(&self, input: u64, offset: u64) -> Event {
        let mut random = self.random(input + 2, offset);
        let below = |random: &mut Random, bound: u64| i64::try_from(random.below(bound)).expect("it is small");
        let mut time = i64::try_from(offset).expect("it is small") * STEP + below(&mut random, 1_000);
        // One input is behind the other: it holds the watermark back.
        time -= if input == 1 { 1_500 } else { 0 };
        if random.one_in(100) {
            time -= LATENESS + 1_000 + below(&mut random, 20_000);
        }
        // Words are not equally frequent.
        let most = 1 + random.below(WORDS);
        let word = format!("word{:02}", random.below(most));
        Event { id: offset * 2 + input, time, word }
    }

    fn random(&self, stream: u64, offset: u64) -> Random {
        let mut of_stream = Random::new(self.seed ^ (u64::from(self.partition) << 32) ^ (stream << 40));
        Random::new(of_stream.next() ^ offset)
    }

    /// How far each input was read at a place.
    pub(super) fn positions(place: u64) -> [u64; 2] {
        [place.div_ceil(2), place / 2]
    }

    /// Odd partitions have windows that overlap.
    pub(super) fn slide(&self) -> i64 {
        if self.partition % 2 == 1 { WINDOW / 2 } else { WINDOW }
    }

    pub(super) fn windows(&self) -> Windows {
        Windows::sliding(WINDOW, self.slide()).expect("valid windows")
    }
}
