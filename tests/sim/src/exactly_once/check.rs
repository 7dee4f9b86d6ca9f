//! Compares what was counted and written with what must be.

use std::collections::BTreeMap;

use client::HistoryPage;
use statehouse::stream::sinks::FileSink;
use testkit::http::block_on;
use wire::keyed::ScanKeys;

use super::mode::{MAP, group_of};
use super::operator::PLACE_CELL;
use super::reference::Expected;
use super::scene::Scene;

/// What a run has left.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) counted: i64,
    pub(super) late: i64,
    pub(super) doubled: i64,
    pub(super) files: usize,
    /// Keys of the state that are otherwise than they must be.
    pub(super) keys_wrong: usize,
    pub(super) files_missing: usize,
    /// Files that are otherwise than they must be, or must not be there.
    pub(super) files_wrong: usize,
    /// How often a partition said that it is less far than it had said before.
    pub(super) steps_back: usize,
    /// The first of them, in words.
    pub(super) wrong: Vec<String>,
}

impl Found {
    /// Compares all partitions.
    pub(super) fn in_scene(scene: &Scene) -> Result<Self, String> {
        let mut found = Self::default();
        for source in scene.sources() {
            let expected = Expected::of(&source);
            let keys = keys_of(scene, &group_of(source.partition))?;
            let number = |name: &str| keys.get(name).copied().unwrap_or(0);
            found.counted += number("n/counted");
            found.late += number("n/late");
            found.doubled += number("n/doubled");
            let (missing, wrong) = found.compare(&format!("partition {}", source.partition), &keys, &expected.keys);
            found.keys_wrong += missing + wrong;
            let told = places_told(scene, &group_of(source.partition))?;
            found.steps_back += told.windows(2).filter(|two| two[1] < two[0]).count();
            if told.last().copied() != i64::try_from(source.places).ok() {
                found.wrong.push(format!("partition {} is said to be at {:?}", source.partition, told.last()));
                found.keys_wrong += 1;
            }
            let folder = scene.sink_of(source.partition);
            let ids = FileSink::open(&folder).and_then(|sink| sink.ids()).map_err(|error| error.to_string())?;
            let read = |id: String| Ok((id.clone(), std::fs::read_to_string(folder.join(id))?));
            let files: std::io::Result<BTreeMap<String, String>> = ids.into_iter().map(read).collect();
            let files = files.map_err(|error| error.to_string())?;
            found.files += files.len();
            let (missing, wrong) = found.compare(&folder.display().to_string(), &files, &expected.files);
            found.files_missing += missing;
            found.files_wrong += wrong;
        }
        Ok(found)
    }

    /// How many are missing, and how many are wrong or too many.
    fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        place: &str,
        found: &BTreeMap<String, T>,
        expected: &BTreeMap<String, T>,
    ) -> (usize, usize) {
        let missing: Vec<_> = expected.keys().filter(|name| !found.contains_key(*name)).collect();
        let wrong: Vec<_> = found.iter().filter(|(name, value)| expected.get(*name) != Some(*value)).collect();
        self.wrong.extend(missing.iter().take(3).map(|name| format!("{place}: {name} is missing")));
        let told = wrong.iter().take(3);
        self.wrong.extend(told.map(|(name, value)| {
            let expected = expected.get(*name).map_or_else(|| "nothing".to_owned(), beginning);
            format!("{place}: {name} is {}, not {expected}", beginning(value))
        }));
        (missing.len(), wrong.len())
    }

    pub(super) fn is_right(&self) -> bool {
        self.keys_wrong + self.files_missing + self.files_wrong + self.steps_back == 0
    }
}

/// As much of it as a line takes.
fn beginning(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").chars().take(60).collect()
}

/// Everything that the owners of a group have said about how far it is, in order.
fn places_told(scene: &Scene, group: &str) -> Result<Vec<i64>, String> {
    let client = scene.follower().client.group(group);
    let (mut told, mut page) = (Vec::new(), HistoryPage::default());
    loop {
        let history = block_on(client.cells().history(PLACE_CELL, page)).map_err(|error| error.to_string())?;
        for version in history.versions {
            told.push(version.value.0.as_integer().ok_or("a place is no integer")?);
        }
        page.before = history.next_before;
        if page.before.is_none() {
            told.reverse();
            return Ok(told);
        }
    }
}

/// All keys of a group's partition with their integers.
fn keys_of(scene: &Scene, group: &str) -> Result<BTreeMap<String, i64>, String> {
    let client = scene.follower().client.group(group);
    let mut keys = BTreeMap::new();
    let mut scan = ScanKeys::default();
    loop {
        let page = block_on(client.maps().scan(MAP, &scan)).map_err(|error| error.to_string())?;
        for key in page.keys {
            let name = String::from_utf8(key.key.0).map_err(|error| error.to_string())?;
            keys.insert(name, key.value.0.as_integer().ok_or("a key holds no integer")?);
        }
        scan.cursor = page.cursor;
        if scan.cursor.is_none() {
            return Ok(keys);
        }
    }
}
