//! A shard that is appended to rarely, and keeps its last entry only. A log in files writes that entry again before it frees
//! the file that it is in.

use std::sync::Arc;

use journal::{EntryLog, Position};

use super::driver::Driver;
use super::shard::Wanted;

/// Where the quiet shard is among the shards.
pub(super) const QUIET: usize = 0;

impl Driver<'_> {
    /// The quiet shard was appended to: it gives up the entries before.
    pub(super) fn rest_quiet(&mut self, log: &Arc<dyn EntryLog>) {
        self.cut_to(log, QUIET, self.shards[QUIET].last().index);
        self.quiet_file = self.subject.file_numbers().map(|(_, newest)| newest);
    }

    /// Every file that can have had the entry is gone: it was moved. It is still what it was, also after opening, and the
    /// next one is appended behind it.
    pub(super) fn check_moved(&mut self) {
        let (Some(newest_then), Some((oldest, _))) = (self.quiet_file, self.subject.file_numbers()) else { return };
        if oldest <= newest_then {
            return;
        }
        self.checked.moved += 1;
        if self.random.one_in(2) {
            self.reopen();
        }
        let log = self.subject.log();
        let shard = &self.shards[QUIET];
        let last = shard.last();
        shard.check_ends(&*log);
        shard.check_read(&*log, last.index, usize::MAX);
        let wanted = Wanted { after: Position { hash: !last.hash, ..last }, history: shard.history() };
        self.check_refused(&log, QUIET, wanted);
        self.append_to(&log, &[QUIET]);
    }
}
