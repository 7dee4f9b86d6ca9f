//! Keys of runs.

use kv::{Key, KeyRange};

use super::things::OwnedId;
use super::{
    HeldKey, Keys, Kind, ShardKind, ThingId, push_escaped, push_group, push_name, take_group_and_name, take_name,
};

/// The rows of a run besides its head, which are removed when it is deleted.
pub const RUN_ROWS: [Kind; 4] = [Kind::RunEvent, Kind::RunKey, Kind::RunEventId, Kind::RunStep];

impl Keys {
    /// The head of a run.
    pub fn run(&self, run: &ThingId<'_>) -> HeldKey {
        HeldKey::new(self.thing(Kind::Run, run))
    }

    fn run_prefix(&self, kind: Kind, run: &ThingId<'_>) -> Key {
        let mut key = self.group_prefix(kind, run);
        push_name(&mut key, run.name.as_bytes());
        key
    }

    /// An event, by its sequence.
    pub fn run_event(&self, run: &ThingId<'_>, seq: u64) -> HeldKey {
        let mut key = self.run_prefix(Kind::RunEvent, run);
        key.extend_from_slice(&seq.to_be_bytes());
        HeldKey::new(key)
    }

    /// The events after a sequence.
    pub fn run_events_after(&self, run: &ThingId<'_>, seq: u64) -> KeyRange {
        KeyRange::prefix(&self.run_prefix(Kind::RunEvent, run)).after(&self.run_event(run, seq))
    }

    /// An event's sequence, by its idempotency key.
    pub fn run_key(&self, run: &ThingId<'_>, idempotency_key: &str) -> Key {
        let mut key = self.run_prefix(Kind::RunKey, run);
        key.extend_from_slice(idempotency_key.as_bytes());
        key
    }

    /// An event's sequence, by its id.
    pub fn run_event_id(&self, run: &ThingId<'_>, event_id: &str) -> Key {
        let mut key = self.run_prefix(Kind::RunEventId, run);
        key.extend_from_slice(event_id.as_bytes());
        key
    }

    /// A step of a run's projection.
    pub fn run_step(&self, run: &ThingId<'_>, step: &str) -> HeldKey {
        let mut key = self.run_prefix(Kind::RunStep, run);
        key.extend_from_slice(step.as_bytes());
        HeldKey::new(key)
    }

    /// All rows of one kind of a run.
    pub fn run_rows(&self, kind: Kind, run: &ThingId<'_>) -> KeyRange {
        KeyRange::prefix(&self.run_prefix(kind, run))
    }

    /// The runs of a status and a type in a bucket, by when they last got an event.
    pub fn run_index_prefix(&self, bucket: u16, space: u32, branch: u32, status: u8, run_type: &str) -> Key {
        let mut key = self.run_status_prefix(bucket, space, branch, status);
        push_name(&mut key, run_type.as_bytes());
        key
    }

    /// The runs of a status in a bucket.
    pub fn run_status_prefix(&self, bucket: u16, space: u32, branch: u32, status: u8) -> Key {
        let mut key = self.branch_prefix(Kind::RunIndex, bucket, space, branch);
        key.push(status);
        key
    }

    /// A run among those of its status and type.
    pub fn run_index(&self, run: &ThingId<'_>, status: u8, run_type: &str, at_us: u64) -> Key {
        let mut key = self.run_index_prefix(run.bucket, run.space, run.branch, status, run_type);
        key.extend_from_slice(&at_us.to_be_bytes());
        push_group(&mut key, run.group);
        push_name(&mut key, run.name.as_bytes());
        key
    }

    /// The number of runs of a type in each status.
    pub fn run_counts(&self, space: u32, branch: u32, run_type: &str) -> Key {
        let mut key = self.run_counts_prefix(space, branch);
        push_name(&mut key, run_type.as_bytes());
        key
    }

    fn run_counts_prefix(&self, space: u32, branch: u32) -> Key {
        let mut key = self.shard_row(ShardKind::RunCounts);
        key.extend_from_slice(&space.to_be_bytes());
        key.extend_from_slice(&branch.to_be_bytes());
        key
    }

    /// The counts of all types of runs of a branch.
    pub fn all_run_counts(&self, space: u32, branch: u32) -> KeyRange {
        KeyRange::prefix(&self.run_counts_prefix(space, branch))
    }

    /// The type in a key of [`run_counts`](Self::run_counts).
    pub fn read_run_counts(&self, key: &[u8], space: u32, branch: u32) -> Option<String> {
        let (run_type, rest) = take_name(key.strip_prefix(self.run_counts_prefix(space, branch).as_slice())?)?;
        rest.is_empty().then_some(run_type)
    }
}

/// Reads the key after [`Keys::run_status_prefix`]: the type, the time and the run.
pub fn read_run_index(suffix: &[u8], space: u32, branch: u32) -> Option<(String, u64, OwnedId)> {
    let (run_type, rest) = take_name(suffix)?;
    let (at_us, rest) = rest.split_first_chunk::<8>()?;
    let (group, name, rest) = take_group_and_name(rest)?;
    let id = OwnedId { space, branch, group, name };
    rest.is_empty().then_some((run_type, u64::from_be_bytes(*at_us), id))
}

/// The key after the entries of a kind in a status, and before those of the next, relative to
/// [`Keys::run_status_prefix`].
pub fn behind_kind(run_type: &str) -> Key {
    let mut key = Key::default();
    push_escaped(&mut key, run_type.as_bytes());
    // A name ends with 00 00, and a longer name continues with at least 00 ff or 01.
    key.extend_from_slice(&[0x00, 0x01]);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_kind_is_behind_its_runs_and_before_the_next_kind() {
        let keys = Keys::new(1, crate::BucketRange::ALL);
        let prefix = keys.run_status_prefix(5, 1, 2, 2).len();
        let run = ThingId { bucket: 5, space: 1, branch: 2, group: Some("g"), name: "hi" };
        let kinds = ["", "a", "a\0", "a\u{1}", "ab", "b"];
        for (place, kind) in kinds.iter().enumerate() {
            for (other, name) in kinds.iter().enumerate() {
                let key = keys.run_index(&run, 2, name, u64::MAX);
                assert_eq!(key[prefix..] < *behind_kind(kind), other <= place, "{name:?} and the end of {kind:?}");
            }
        }
    }

    /// Part of the stored format; `docs/formats/keys.md`.
    #[test]
    fn golden_keys_of_runs() {
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let keys = Keys::new(1, crate::BucketRange::ALL);
        let run = ThingId { bucket: 5, space: 1, branch: 2, group: None, name: "hi" };
        let rest = "0000000100000002".to_owned() + "0068690000";
        assert_eq!(hex(&keys.run(&run)), format!("0000000100050f{rest}"));
        assert_eq!(hex(&keys.run_event(&run, 258)), format!("00000001000510{rest}0000000000000102"));
        assert_eq!(hex(&keys.run_key(&run, "k")), format!("00000001000511{rest}6b"));
        assert_eq!(hex(&keys.run_event_id(&run, "k")), format!("00000001000512{rest}6b"));
        assert_eq!(hex(&keys.run_step(&run, "s")), format!("00000001000514{rest}73"));
        let index = keys.run_index(&run, 2, "t", 258);
        assert_eq!(
            hex(&index),
            "0000000100051300000001".to_owned() + "0000000202" + "740000" + "0000000000000102" + "0068690000"
        );
        let prefix = keys.run_status_prefix(5, 1, 2, 2);
        assert_eq!(read_run_index(&index[prefix.len()..], 1, 2), Some(("t".into(), 258, OwnedId::from(&run))));
        let counts = keys.run_counts(1, 2, "t");
        assert_eq!(hex(&counts), "00000001ffff00000b".to_owned() + "0000000100000002" + "740000");
        assert_eq!(keys.read_run_counts(&counts, 1, 2).as_deref(), Some("t"));
        assert!(keys.run_events_after(&run, 1).contains(&keys.run_event(&run, 2)));
        assert!(!keys.run_events_after(&run, 2).contains(&keys.run_event(&run, 2)));
    }
}
