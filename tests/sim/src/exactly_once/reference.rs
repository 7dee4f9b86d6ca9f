//! What must come out, computed from the events directly: without the library's windows, and in one go.

use std::collections::{BTreeMap, HashSet};

use super::events::{LATENESS, Source, WINDOW};

/// What a partition must have counted.
#[derive(Debug, Default)]
pub(super) struct Expected {
    /// Files of the sink: their names and contents.
    pub(super) files: BTreeMap<String, String>,
    /// Keys that are left in the partition, with their values.
    pub(super) keys: BTreeMap<String, i64>,
}

impl Expected {
    pub(super) fn of(source: &Source) -> Self {
        let mut windows: BTreeMap<i64, BTreeMap<String, u64>> = BTreeMap::new();
        let mut keys: BTreeMap<String, i64> = BTreeMap::new();
        let mut seen = HashSet::new();
        let mut highest = [None; 2];
        for name in ["late", "doubled", "counted"] {
            keys.insert(format!("n/{name}"), 0);
        }
        for place in 0..source.places {
            let (input, event) = source.event(place);
            let latest = keys.entry(format!("e/{}", event.word)).or_insert(event.time);
            *latest = event.time.max(*latest);
            let is_late = highest[0].min(highest[1]).is_some_and(|highest: i64| event.time < highest - LATENESS);
            let fate = if !seen.insert(event.id) {
                "doubled"
            } else if is_late {
                "late"
            } else {
                highest[input] = highest[input].max(Some(event.time));
                *keys.entry(format!("t/{}", event.word)).or_default() += 1;
                keys.insert(format!("l/{}", event.word), i64::try_from(place).expect("it is small"));
                let mut start = event.time.div_euclid(source.slide()) * source.slide();
                while event.time < start + WINDOW {
                    *windows.entry(start).or_default().entry(event.word.clone()).or_default() += 1;
                    start -= source.slide();
                }
                "counted"
            };
            *keys.entry(format!("n/{fate}")).or_default() += 1;
        }
        for (name, highest) in ["h/left", "h/right"].into_iter().zip(highest) {
            keys.extend(highest.map(|highest| (name.to_owned(), highest)));
        }
        let lines =
            |words: BTreeMap<String, u64>| words.iter().map(|(word, count)| format!("{word} {count}\n")).collect();
        let files = windows.into_iter().map(|(start, words)| (file_of(start), lines(words)));
        Self { files: files.collect(), keys }
    }
}

/// The name of the file of a window.
pub(super) fn file_of(start: i64) -> String {
    format!("window{start:+013}")
}
