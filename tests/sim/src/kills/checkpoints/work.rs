//! What the operator does: commits that follow from their numbers, and what they give.

use std::collections::BTreeMap;

use statehouse::keyed::{KeysRange, Merge, OwnedPartition, Partition};
use statehouse::{Error, Value};
use testkit::random::Random;

use super::text;

pub(super) const OPERATOR: &str = "checkpointed";

/// Updates in a commit.
const UPDATES: u64 = 100;

/// Half of them are merged, the others put.
const KEYS: u64 = 2_000;

/// Every so many commits the seal follows.
const SEAL_EACH: u64 = 16;

/// One update.
enum Step {
    Put(i64),
    Delete,
    Add(i64),
    Remove,
}

fn steps(number: u64) -> impl Iterator<Item = (String, Step)> {
    let mut random = Random::new(number);
    (0..UPDATES).map(move |_| {
        let (key, less) = (random.below(KEYS), random.one_in(8));
        let integer = random.below(1_000).cast_signed();
        let step = match (key < KEYS / 2, less) {
            (true, true) => Step::Remove,
            (true, false) => Step::Add(integer),
            (false, true) => Step::Delete,
            (false, false) => Step::Put(integer),
        };
        (format!("{key:04}"), step)
    })
}

/// Does the next commit.
pub(super) fn commit(partition: &mut OwnedPartition, number: u64) -> Result<(), Error> {
    let mut commit = partition.commit().advance("in", number);
    let mut seen = std::collections::BTreeSet::new();
    for (key, step) in steps(number) {
        // A key that was put with this version would be a conflict the second time.
        let is_put = matches!(step, Step::Put(_) | Step::Delete);
        if is_put && !seen.insert(key.clone()) {
            continue;
        }
        commit = match step {
            Step::Put(integer) => commit.put(key.as_bytes(), integer, number),
            Step::Delete => commit.delete(key.as_bytes(), number),
            Step::Add(integer) => commit.merge(key.as_bytes(), Merge::Add, integer),
            Step::Remove => commit.remove(key.as_bytes()),
        };
    }
    if number.is_multiple_of(SEAL_EACH) {
        commit = commit.seal(number - 3);
    }
    commit.run().map(drop)
}

/// What commits give, one after the other.
#[derive(Default)]
pub(super) struct Work {
    number: u64,
    keys: BTreeMap<String, i64>,
}

impl Work {
    /// What the commits up to this one give. Numbers only rise.
    pub(super) fn up_to(&mut self, number: u64) -> &BTreeMap<String, i64> {
        while self.number < number {
            self.number += 1;
            let mut seen = std::collections::BTreeSet::new();
            for (key, step) in steps(self.number) {
                let is_put = matches!(step, Step::Put(_) | Step::Delete);
                if is_put && !seen.insert(key.clone()) {
                    continue;
                }
                match step {
                    Step::Put(integer) => drop(self.keys.insert(key, integer)),
                    Step::Delete | Step::Remove => drop(self.keys.remove(&key)),
                    Step::Add(integer) => *self.keys.entry(key).or_default() += integer,
                }
            }
        }
        &self.keys
    }
}

/// What a partition holds.
pub(super) fn found(partition: &Partition) -> Result<BTreeMap<String, i64>, String> {
    let (mut keys, mut range) = (BTreeMap::new(), KeysRange::default().limit(1_000));
    loop {
        let page = partition.scan(&range).map_err(text)?;
        for (key, found) in page.keys {
            let Value::Integer(integer) = found.value else { return Err("a key that nobody has put".into()) };
            keys.insert(String::from_utf8(key).map_err(text)?, integer);
        }
        match page.next_after {
            Some(after) => range = range.after(&after),
            None => return Ok(keys),
        }
    }
}
