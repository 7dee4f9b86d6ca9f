//! Event-time windows: which ones an event belongs to, and which ones are over.
//!
//! Touches: nothing. Keeps: windows are aligned to time 0 and follow from the time of an event alone, so a replay computes the
//! same ones. Never: reads a clock.

use std::ops::RangeInclusive;

/// A window: event times from its start up to its end, which belongs to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Window {
    /// The first event time in it.
    pub start: i64,
    /// The first event time after it.
    pub end: i64,
}

impl Window {
    /// Whether an event of this time is in it.
    pub fn contains(&self, time: i64) -> bool {
        self.start <= time && time < self.end
    }

    /// Whether no event in it can still arrive in time.
    pub fn is_closed_by(&self, watermark: i64) -> bool {
        self.end <= watermark
    }

    /// Its start as bytes, in the order of time: the beginning of the keys that keep its state. [`Windows::of_key`] reads it.
    ///
    /// ```
    /// use statehouse::stream::Windows;
    /// let minutes = Windows::tumbling(60)?;
    /// let window = minutes.of(75).next().expect("one");
    /// let key = [&window.key()[..], b"hello"].concat();
    /// assert_eq!(minutes.of_key(&key), Some((window, &b"hello"[..])));
    /// # Ok::<(), statehouse::stream::InvalidWindows>(())
    /// ```
    pub fn key(&self) -> [u8; KEY_BYTES] {
        key_of_start(self.start)
    }
}

/// The length of [`Window::key`].
const KEY_BYTES: usize = 8;

/// With the sign bit flipped, negative times come first.
const SIGN: u64 = 1 << 63;

fn key_of_start(start: i64) -> [u8; KEY_BYTES] {
    (start.cast_unsigned() ^ SIGN).to_be_bytes()
}

/// How event time is cut into windows: all of one size, each beginning a slide after the one before.
///
/// Times are integers in any unit. A window ends where it is [closed](Window::is_closed_by) by the
/// [watermark](crate::stream::Watermarks).
///
/// ```
/// use statehouse::stream::Windows;
/// let minutes = Windows::tumbling(60)?;
/// let window = minutes.of(75).next().expect("every event is in one");
/// assert_eq!((window.start, window.end), (60, 120));
/// // A minute long, and a new one every 20 seconds: every event is in three.
/// let sliding = Windows::sliding(60, 20)?;
/// assert_eq!(sliding.of(75).map(|window| window.start).collect::<Vec<_>>(), [20, 40, 60]);
/// # Ok::<(), statehouse::stream::InvalidWindows>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    size: i64,
    slide: i64,
}

/// Windows that cannot be: an event would be in none of them, or in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("windows need 1 <= slide <= size, not size {size} and slide {slide}")]
#[non_exhaustive]
pub struct InvalidWindows {
    /// The size.
    pub size: i64,
    /// The slide.
    pub slide: i64,
}

/// The most windows that [`Windows::closed_between`] gives.
pub const CLOSED_WINDOWS_MAX: u128 = 10_000;

/// A watermark has closed more windows at once than anybody should look through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{count} closed windows exceed closed_windows_max = {CLOSED_WINDOWS_MAX}: look for state before the first open window instead"
)]
#[non_exhaustive]
pub struct TooManyWindows {
    /// How many it has closed.
    pub count: u128,
}

impl Windows {
    /// Windows of this size, one after the other: every event is in one.
    pub fn tumbling(size: i64) -> Result<Self, InvalidWindows> {
        Self::sliding(size, size)
    }

    /// Windows of this size that begin a slide apart: every event is in `size / slide` of them, rounded up or down.
    pub fn sliding(size: i64, slide: i64) -> Result<Self, InvalidWindows> {
        if slide < 1 || size < slide { Err(InvalidWindows { size, slide }) } else { Ok(Self { size, slide }) }
    }

    /// The windows that an event of this time is in, by start.
    pub fn of(&self, time: i64) -> impl Iterator<Item = Window> + use<> {
        self.numbered(self.first_ending_after(time)..=i128::from(time.div_euclid(self.slide)))
    }

    /// The windows that a watermark closes when it rises from `before` to `now`, by start, whether they hold something or not; at
    /// most [`CLOSED_WINDOWS_MAX`]. There are more from the beginning of time on, and up to its end, where the watermark is when all
    /// inputs are finished: whoever has to expect that looks for state before [`first_open`](Self::first_open) instead.
    ///
    /// ```
    /// use statehouse::stream::Windows;
    /// let minutes = Windows::tumbling(60)?;
    /// assert_eq!(minutes.closed_between(59, 185)?.map(|window| window.start).collect::<Vec<_>>(), [0, 60, 120]);
    /// assert_eq!(minutes.closed_between(185, 239)?.count(), 0);
    /// assert!(minutes.closed_between(185, i64::MAX).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn closed_between(
        &self,
        before: i64,
        now: i64,
    ) -> Result<impl Iterator<Item = Window> + use<>, TooManyWindows> {
        let (first, open) = (self.first_ending_after(before), self.first_ending_after(now));
        match u128::try_from(open - first) {
            Ok(count) if count > CLOSED_WINDOWS_MAX => Err(TooManyWindows { count }),
            _ => Ok(self.numbered(first..=open - 1)),
        }
    }

    /// The first window that a watermark leaves open. All keys of state that are below its [`key`](Window::key) belong to closed
    /// windows.
    ///
    /// ```
    /// use statehouse::stream::Windows;
    /// let minutes = Windows::tumbling(60)?;
    /// assert_eq!(minutes.first_open(119).start, 60);
    /// assert_eq!(minutes.first_open(120).start, 120);
    /// # Ok::<(), statehouse::stream::InvalidWindows>(())
    /// ```
    pub fn first_open(&self, watermark: i64) -> Window {
        self.at(self.first_ending_after(watermark))
    }

    /// The window of a key of state and the rest of the key; none if it does not begin with the [`key`](Window::key) of one of
    /// these windows.
    pub fn of_key<'key>(&self, key: &'key [u8]) -> Option<(Window, &'key [u8])> {
        let (start, rest) = key.split_first_chunk::<KEY_BYTES>()?;
        let start = (u64::from_be_bytes(*start) ^ SIGN).cast_signed();
        let is_aligned = start.rem_euclid(self.slide) == 0;
        is_aligned.then(|| (self.at(i128::from(start.div_euclid(self.slide))), rest))
    }

    /// The number of the first window whose end is after a time.
    fn first_ending_after(&self, time: i64) -> i128 {
        (i128::from(time) - i128::from(self.size)).div_euclid(i128::from(self.slide)) + 1
    }

    fn numbered(&self, numbers: RangeInclusive<i128>) -> impl Iterator<Item = Window> + use<> {
        let windows = *self;
        numbers.map(move |number| windows.at(number))
    }

    /// The window of a number. At the ends of time it is cut off.
    fn at(&self, number: i128) -> Window {
        let start = number * i128::from(self.slide);
        Window { start: in_time(start), end: in_time(start + i128::from(self.size)) }
    }
}

fn in_time(time: i128) -> i64 {
    i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(windows: impl Iterator<Item = Window>) -> Vec<i64> {
        windows.map(|window| window.start).collect()
    }

    /// Windows found by looking at each that could be it.
    fn naive(size: i64, slide: i64, wanted: impl Fn(i64, i64) -> bool) -> Vec<i64> {
        (-100..=100).map(|number| number * slide).filter(|start| wanted(*start, start + size)).collect()
    }

    #[test]
    fn windows_are_those_that_a_search_finds() {
        for (size, slide) in [(10, 10), (10, 5), (10, 3), (10, 1), (1, 1), (7, 4)] {
            let windows = Windows::sliding(size, slide).expect("valid");
            for time in -40..40 {
                let expected = naive(size, slide, |start, end| start <= time && time < end);
                assert_eq!(starts(windows.of(time)), expected, "{size} {slide} {time}");
                assert!(windows.of(time).all(|window| window.contains(time)));
                for now in -40..40 {
                    let expected = naive(size, slide, |_, end| time < end && end <= now);
                    assert_eq!(
                        starts(windows.closed_between(time, now).expect("few")),
                        expected,
                        "{size} {slide} {time} {now}"
                    );
                }
                let open = naive(size, slide, |_, end| end > time);
                assert_eq!(windows.first_open(time).start, open[0], "{size} {slide} {time}");
                assert!(!windows.first_open(time).is_closed_by(time));
            }
        }
    }

    #[test]
    fn keys_are_in_the_order_of_time() {
        let windows = Windows::tumbling(10).expect("valid");
        let keys: Vec<_> = (-30..30).map(|time| windows.of(time).next().expect("one").key()).collect();
        assert!(keys.is_sorted());
        for time in -30..30 {
            let window = windows.of(time).next().expect("one");
            assert_eq!(windows.of_key(&window.key()), Some((window, &b""[..])));
        }
        assert_eq!(windows.of_key(&key_of_start(5)), None, "no window begins there");
        assert_eq!(windows.of_key(b"short"), None);
    }

    #[test]
    fn the_ends_of_time_are_no_trap() {
        let windows = Windows::sliding(10, 4).expect("valid");
        for time in [i64::MIN, i64::MIN + 3, i64::MAX - 3, i64::MAX] {
            let counted = windows.of(time).count();
            assert!((2..=3).contains(&counted), "{time}: {counted}");
            let _ = windows.first_open(time);
        }
        assert_eq!(windows.first_open(i64::MAX).end, i64::MAX);
        for (before, now) in [(i64::MIN, 0), (0, i64::MAX), (i64::MIN, i64::MAX)] {
            let refused = windows.closed_between(before, now).map(Iterator::count).expect_err("too many");
            assert!(refused.to_string().contains("exceed closed_windows_max = 10000"), "{refused}");
        }
        assert_eq!(windows.closed_between(i64::MAX, i64::MIN).map(Iterator::count), Ok(0));
        assert_eq!(windows.closed_between(i64::MAX - 4, i64::MAX).map(Iterator::count), Ok(1));
        assert_eq!(windows.closed_between(0, 4 * 10_000).map(Iterator::count), Ok(10_000));
        assert!(windows.closed_between(0, 4 * 10_001).is_err());
    }

    #[test]
    fn windows_with_gaps_are_refused() {
        let refused = Windows::sliding(10, 11).expect_err("gaps").to_string();
        assert_eq!(refused, "windows need 1 <= slide <= size, not size 10 and slide 11");
        assert!(Windows::tumbling(0).is_err() && Windows::sliding(5, 0).is_err() && Windows::tumbling(-1).is_err());
    }
}
