//! What merges may take of a disk on which space is short.
//!
//! Keeps: what is in memory can be flushed, as far as possible. Deletions wait there too, and without them nothing could be
//! freed.

use super::{SPACE_EXTRA_BYTES, SliceSize, bottom_output, bytes_of, replaced_bytes};

/// While it is known what waits to be flushed, this part of the reserve is kept besides.
const KEPT_PART: u64 = 8;
/// Merges that free space later may take this part of what is available, even if a flush may need it: a little always remains
/// of what was deleted.
const GROWTH_PART: u64 = 8;
/// A merge leaves this part of what is available, however little that is: deletions go on meanwhile.
const LEFT_PART: u64 = 4;

/// What merges may take of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    available: u64,
    /// What is kept for flushes at most,
    reserve: u64,
    /// and what they need now.
    kept: u64,
}

impl Room {
    /// The room where so many bytes are available, and so many may be needed for flushes. If it is known how many bytes wait to
    /// be flushed now, that is enough for them.
    pub(crate) fn of(available: u64, reserve: u64, unflushed: Option<u64>) -> Self {
        let needed = unflushed.map_or(reserve, |bytes| bytes.saturating_add(bytes / 16 + reserve / KEPT_PART));
        Self { available, reserve, kept: needed.min(reserve) }
    }

    /// What a piece may take that frees nothing.
    pub(crate) fn for_others(&self) -> u64 {
        self.available.saturating_sub(self.reserve)
    }

    /// By how much all pieces together may make the store larger, until they free space.
    pub(super) fn growth(&self) -> u64 {
        self.available.saturating_sub(self.kept).max(self.available / GROWTH_PART)
    }

    /// What a piece may take that frees space, if it releases so many bytes at once. The rest comes back only when other pieces
    /// have merged what they share with it, so flushes must be possible until then.
    pub(crate) fn for_freeing(&self, released: u64) -> u64 {
        let given_back = released.saturating_add(SPACE_EXTRA_BYTES);
        let most = (self.available - self.available / LEFT_PART).min(given_back.saturating_add(self.growth()));
        most.max(self.for_others())
    }
}

/// How much stacks may grow while the files that they share are still needed by others. A merge that frees space in the end
/// takes some first, and those of all stacks together must fit into the room: otherwise they would use it up, and none of
/// the shared files could ever go.
pub(super) struct Budget {
    pub(super) room: Room,
    shared_bytes: u64,
}

impl Budget {
    pub(super) fn new(stacks: &[Vec<SliceSize>], room: Room) -> Self {
        Self { room, shared_bytes: stacks.iter().map(|stack| bytes_of(stack) - unshared_bytes(stack)).sum() }
    }

    /// Whether a window of a stack may be merged: it grows by no more than its share of the room.
    pub(super) fn allows(&self, window: &[SliceSize], to_bottom: bool) -> bool {
        let unshared = unshared_bytes(window);
        let shared = bytes_of(window) - unshared;
        let output = match to_bottom {
            true => bottom_output(window),
            false => bytes_of(window).saturating_sub(replaced_bytes(window)),
        };
        let growth = output.saturating_sub(unshared);
        u128::from(growth) * u128::from(self.shared_bytes) <= u128::from(self.room.growth()) * u128::from(shared)
    }
}

/// The bytes of the slices whose files go when they are merged.
pub(super) fn unshared_bytes(slices: &[SliceSize]) -> u64 {
    slices.iter().filter(|slice| !slice.shared).map(|slice| slice.rows.bytes()).sum()
}
