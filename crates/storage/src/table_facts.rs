//! What a table holds, kept in the table and in the manifest.

use kv::{DecodeError, Key, Reader, Writer};

/// The number, size and content of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableFacts {
    pub(crate) number: u64,
    pub(crate) file_bytes: u64,
    pub(crate) rows: RowCounts,
    pub(crate) smallest: Key,
    pub(crate) largest: Key,
}

/// Rows counted: of a table, or of the part of it that lies in one range of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    /// Values and tombstones.
    pub(crate) rows: u64,
    pub(crate) tombstones: u64,
    /// Bytes of keys and values.
    pub(crate) live_bytes: u64,
    /// Bytes of the keys of tombstones.
    pub(crate) tombstone_bytes: u64,
}

impl RowCounts {
    /// A tombstone or a value counts at least this, so that rows with short keys are not free.
    const ROW_BYTES: u64 = 4;

    pub(crate) fn add_row(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.rows += 1;
        let key = key.len() as u64 + Self::ROW_BYTES;
        match value {
            Some(value) => self.live_bytes += key + value.len() as u64,
            None => {
                self.tombstones += 1;
                self.tombstone_bytes += key;
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.tombstones += other.tombstones;
        self.live_bytes += other.live_bytes;
        self.tombstone_bytes += other.tombstone_bytes;
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.live_bytes + self.tombstone_bytes
    }

    /// About these counts times `part / whole`. Rounded up, so that no tombstone is forgotten.
    pub(crate) fn share(&self, part: u64, whole: u64) -> Self {
        let scale = |count: u64| {
            let scaled = (u128::from(count) * u128::from(part)).div_ceil(u128::from(whole.max(1)));
            u64::try_from(scaled).unwrap_or(count).min(count)
        };
        Self {
            rows: scale(self.rows).max(1),
            tombstones: scale(self.tombstones),
            live_bytes: scale(self.live_bytes).max(1),
            tombstone_bytes: scale(self.tombstone_bytes),
        }
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.varint(self.rows).varint(self.tombstones).varint(self.live_bytes).varint(self.tombstone_bytes);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let counts = Self {
            rows: reader.varint()?,
            tombstones: reader.varint()?,
            live_bytes: reader.varint()?,
            tombstone_bytes: reader.varint()?,
        };
        // The sums of all tables stay far away from an overflow.
        let plausible = |count: u64| count < 1 << 48;
        let all = [counts.rows, counts.live_bytes, counts.tombstone_bytes];
        if counts.rows == 0 || counts.tombstones > counts.rows || !all.into_iter().all(plausible) {
            return Err(DecodeError { what: "impossible counts of rows" });
        }
        Ok(counts)
    }
}
