//! Draws what is done to a record, and values.

use kernel::{RecordAct, TtlArgument, ValueRef};

use super::Generator;
use crate::model::records::names::{FIELDS, STATES};
use crate::model::reference::Id;

static LARGE: [u8; 4_000] = [7; 4_000];

/// Texts that an index cannot tell apart.
const LONG: [&str; 2] = [
    "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr\
     rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr\
     rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrry",
    "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr\
     rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr\
     rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrz",
];

impl<'draw> Generator<'draw> {
    pub(super) fn act(&mut self, id: &Id) -> RecordAct<'draw> {
        match self.random.below(100) {
            0..=21 => RecordAct::Put {
                record_type: match self.random.below(12) {
                    0 => Some("task"),
                    1 => Some("mail"),
                    2 => Some("no such type"),
                    _ => None,
                },
                ttl: self.ttl(),
                fields: self.fields().into_iter().filter_map(|(field, value)| Some((field, value?))).collect(),
            },
            22..=36 => RecordAct::Patch { must_exist: self.random.one_in(2), fields: self.fields() },
            37..=49 => {
                let state = self.random.pick(&["state", "status"]);
                let field = if self.random.one_in(2) { state } else { self.random.pick(&FIELDS) };
                let new = if self.random.one_in(8) { None } else { Some(self.value(field)) };
                RecordAct::Swap { field, expected: self.expected(id, field), new }
            }
            50..=57 => {
                let by = if self.random.one_in(30) { i64::MAX } else { self.small() };
                RecordAct::Increment { field: self.random.pick(&FIELDS), by }
            }
            58..=62 => RecordAct::Delete,
            63..=68 => RecordAct::Touch { ttl: self.ttl() },
            69..=77 => RecordAct::Claim { worker: self.worker(), lease_us: self.lease() },
            78..=83 => RecordAct::Extend { attempt: self.attempt(id), lease_us: self.lease() },
            84..=87 => RecordAct::Release { attempt: self.attempt(id) },
            88..=93 => RecordAct::Complete { attempt: self.attempt(id), fields: self.fields() },
            _ => RecordAct::Fail { attempt: self.attempt(id), fields: self.fields() },
        }
    }

    pub(super) fn worker(&mut self) -> &'static str {
        self.random.pick(&["", "w1", "w2"])
    }

    pub(super) fn lease(&mut self) -> Option<u64> {
        self.random.pick(&[None, None, Some(0), Some(300), Some(4_000), Some(40_000)])
    }

    fn ttl(&mut self) -> TtlArgument {
        match self.random.below(4) {
            0 => TtlArgument::Persist,
            1 => TtlArgument::Keep,
            2 if self.beside.is_some() && self.random.one_in(2) => TtlArgument::WithSession,
            _ => TtlArgument::After(self.random.pick(&[0, 1, 700, 6_000, 50_000, 90_000_000])),
        }
    }

    /// The attempt that the record is at, mostly.
    pub(super) fn attempt(&mut self, id: &Id) -> u64 {
        let attempt = self.reference.records.get(id).map_or(0, |kept| kept.attempt);
        match self.random.below(8) {
            0 => attempt + 1,
            1 => attempt.saturating_sub(1),
            _ => attempt,
        }
    }

    fn small(&mut self) -> i64 {
        i64::try_from(self.random.below(9)).expect("small") - 3
    }

    fn fields(&mut self) -> Vec<(&'draw str, Option<ValueRef<'draw>>)> {
        let mut fields = Vec::new();
        for _ in 0..self.random.below(4) {
            let field = self.random.pick(&FIELDS);
            fields.push((field, if self.random.one_in(6) { None } else { Some(self.value(field)) }));
        }
        fields
    }

    /// A value that a field could hold; now and then one that it could not.
    pub(super) fn value(&mut self, field: &str) -> ValueRef<'draw> {
        if !self.random.one_in(8) {
            match field {
                "state" | "status" => return ValueRef::Text(self.random.pick(&STATES)),
                "worker" => return ValueRef::Text(self.worker()),
                "timeout_at" => {
                    let ms = self.reference.wall_us / 1_000 + self.random.below(30);
                    return ValueRef::Integer(i64::try_from(ms).unwrap_or(i64::MAX) - 4);
                }
                "n" | "size" | "count" | "priority" => return ValueRef::Integer(self.small()),
                "to" => return ValueRef::Text(self.random.pick(&["", "a", "ab", "a\u{0}", LONG[0], LONG[1]])),
                "blob" => return ValueRef::Bytes(self.bytes()),
                _ => {}
            }
        }
        match self.random.below(6) {
            0 => ValueRef::Null,
            1 => ValueRef::Boolean(true),
            2..=3 => ValueRef::Integer(self.small()),
            4 => ValueRef::Text(self.random.pick(&["a", "b", "pending"])),
            _ => ValueRef::Bytes(self.bytes()),
        }
    }

    /// Some are longer than what is stored in the record's own row, or than what an index holds.
    fn bytes(&mut self) -> &'static [u8] {
        &LARGE[..self.random.pick(&[0, 1, 3, 255, 256, 257, 1_024, 1_025, 4_000])]
    }

    /// What a field holds, mostly.
    pub(super) fn expected(&mut self, id: &Id, field: &str) -> Option<ValueRef<'draw>> {
        if self.random.one_in(5) {
            return (!self.random.one_in(3)).then(|| self.value(field));
        }
        let kept = self.reference.records.get(id)?;
        let live = kept.live.as_ref()?;
        match field {
            "state" | "status" if live.record_type.is_some() => Some(ValueRef::Text(&live.state)),
            "worker" if live.record_type.is_some() => live.worker.as_deref().map(ValueRef::Text),
            _ => live.fields.get(field).map(|(value, _)| ValueRef::from(value)),
        }
    }
}
