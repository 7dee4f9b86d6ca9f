//! Updates of keys, put together before they are sent.

use contract::keyed::limits::{KEYED_POSITIONS_MAX, KEYED_UPDATES_MAX};
use contract::keyed::{LogicalTime, Merge};
use contract::{Error, Rejection, Value, names};
use kernel::ValueRef;
use kernel::keyed::command::Commit;
use kernel::keyed::updates::{Updates, UpdatesWriter};

/// Updates of keys of one map, applied in order. At most 10,000, within the bytes of a transaction.
#[derive(Debug, Default)]
pub struct MapUpdates {
    writer: UpdatesWriter,
    /// Why they cannot be sent: the first reason.
    wrong: Option<Rejection>,
}

impl MapUpdates {
    /// Without updates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a value with a version.
    pub fn put(mut self, key: &[u8], value: impl Into<Value>, version: impl Into<LogicalTime>) -> Self {
        self.add_put(key, &value.into(), version.into());
        self
    }

    /// Deletes a key with a version.
    pub fn delete(mut self, key: &[u8], version: impl Into<LogicalTime>) -> Self {
        self.add_delete(key, version.into());
        self
    }

    /// Merges an integer into a key with a version, in an ordered map.
    pub fn merge_at(mut self, key: &[u8], merge: Merge, operand: i64, version: impl Into<LogicalTime>) -> Self {
        self.add_merge_at(key, merge, operand, version.into());
        self
    }

    /// [`put`](Self::put), in a loop.
    pub fn add_put(&mut self, key: &[u8], value: &Value, version: LogicalTime) {
        self.check_key(key);
        self.writer.put(key, ValueRef::from(value), version);
    }

    /// [`delete`](Self::delete), in a loop.
    pub fn add_delete(&mut self, key: &[u8], version: LogicalTime) {
        self.check_key(key);
        self.writer.delete(key, version);
    }

    /// [`merge_at`](Self::merge_at), in a loop.
    pub fn add_merge_at(&mut self, key: &[u8], merge: Merge, operand: i64, version: LogicalTime) {
        self.check_key(key);
        self.writer.merge_at(key, merge, operand, version);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.writer.count()
    }

    /// [`MapCommit::merge`], in a loop. Outside of a numbered commit it is refused.
    pub fn add_merge(&mut self, key: &[u8], merge: Merge, operand: i64) {
        self.check_key(key);
        self.writer.merge(key, merge, operand);
    }

    /// [`MapCommit::remove`], in a loop. Outside of a numbered commit it is refused.
    pub fn add_remove(&mut self, key: &[u8]) {
        self.check_key(key);
        self.writer.remove(key);
    }

    fn check_key(&mut self, key: &[u8]) {
        if self.wrong.is_none() {
            self.wrong = names::check_key(key).err();
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone().into());
        }
        Ok(Rejection::check_limit("keyed_updates_max", KEYED_UPDATES_MAX, self.count())?)
    }

    pub(super) fn as_updates(&self) -> Updates<'_> {
        self.writer.updates()
    }
}

/// A numbered commit of a map: updates, merges, the positions of inputs, and a seal, all or nothing. Sent again, it gets its first
/// answer. The order of its updates belongs to it, that of its positions does not.
#[derive(Debug)]
pub struct MapCommit {
    number: u64,
    positions: Vec<(String, u64)>,
    seal: Option<LogicalTime>,
    pub(super) updates: MapUpdates,
}

impl MapCommit {
    /// The commit of this number, which is one more than that of the commit before; the first is 1.
    pub fn numbered(number: u64) -> Self {
        Self { number, positions: Vec::new(), seal: None, updates: MapUpdates::new() }
    }

    /// Adds updates with versions.
    pub fn updates(mut self, add: impl FnOnce(MapUpdates) -> MapUpdates) -> Self {
        self.updates = add(self.updates);
        self
    }

    /// Merges an integer into a key, which counts once however often the commit is sent.
    pub fn merge(mut self, key: &[u8], merge: Merge, operand: i64) -> Self {
        self.updates.add_merge(key, merge, operand);
        self
    }

    /// Removes a merged key.
    pub fn remove(mut self, key: &[u8]) -> Self {
        self.updates.add_remove(key);
        self
    }

    /// Says how far an input was read, once for each input, in any order. Positions never go back.
    pub fn advance(mut self, input: impl Into<String>, position: u64) -> Self {
        self.add_position(input.into(), position);
        self
    }

    /// Raises the seal, after the updates of this commit.
    pub fn seal(mut self, version: impl Into<LogicalTime>) -> Self {
        self.set_seal(version.into());
        self
    }

    pub(super) fn add_position(&mut self, input: String, position: u64) {
        self.positions.push((input, position));
    }

    pub(super) fn set_seal(&mut self, version: LogicalTime) {
        self.seal = Some(version);
    }

    pub(super) fn set_number(&mut self, number: u64) {
        self.number = number;
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        Rejection::check_limit("keyed_positions_max", KEYED_POSITIONS_MAX, self.positions.len())?;
        self.positions.iter().try_for_each(|(input, _)| names::check_input(input))?;
        if self.sorted_positions().windows(2).any(|pair| pair[0].0 == pair[1].0) {
            let (what, reason) = ("a list of positions", "it names an input twice");
            return Err(Rejection::InvalidName { what, reason }.into());
        }
        self.updates.check()
    }

    /// By input. They form a set, and whoever sends a commit again need not remember in which order they were listed.
    fn sorted_positions(&self) -> Vec<(&str, u64)> {
        let mut positions: Vec<_> = self.positions.iter().map(|(input, at)| (input.as_str(), *at)).collect();
        positions.sort_unstable();
        positions
    }

    pub(super) fn as_commit(&self) -> Commit<'_> {
        Commit {
            number: self.number,
            positions: self.sorted_positions(),
            seal: self.seal,
            updates: self.updates.as_updates(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_updates_and_positions_fit_into_a_commit_as_the_limits_allow() {
        let refused = |error: Error| error.to_string();
        let mut updates = MapUpdates::new();
        (0..KEYED_UPDATES_MAX).for_each(|_| updates.add_delete(b"k", LogicalTime::from(1)));
        updates.check().expect("as many as fit");
        updates.add_delete(b"k", LogicalTime::from(1));
        let error = refused(updates.check().unwrap_err());
        assert!(error.contains("10001 exceeds keyed_updates_max = 10000"), "{error}");
        let mut commit = MapCommit::numbered(1);
        (0..KEYED_POSITIONS_MAX).for_each(|place| commit.add_position(place.to_string(), 1));
        commit.check().expect("as many as fit");
        commit.add_position("one more".to_owned(), 1);
        let error = refused(commit.check().unwrap_err());
        assert!(error.contains("1001 exceeds keyed_positions_max = 1000"), "{error}");
    }

    #[test]
    fn the_order_of_positions_does_not_matter_and_an_input_has_one() {
        let positions = |inputs: &[(&str, u64)]| {
            let commit = inputs.iter().fold(MapCommit::numbered(1), |commit, (input, at)| commit.advance(*input, *at));
            commit.check().map(|()| format!("{:?}", commit.as_commit().positions))
        };
        let one = positions(&[("b", 1), ("a", 2)]).expect("two inputs");
        assert_eq!(positions(&[("a", 2), ("b", 1)]).expect("two inputs"), one);
        let error = positions(&[("a", 1), ("b", 1), ("a", 2)]).unwrap_err().to_string();
        assert!(error.contains("names an input twice [SH-1001]"), "{error}");
    }
}
