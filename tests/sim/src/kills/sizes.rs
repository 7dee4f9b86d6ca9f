//! How large tables and files get in one directory whose process is killed; the parent draws it and tells the child.

use std::path::Path;

use statehouse::Options;
use testkit::arguments::Arguments;
use testkit::random::Random;

use super::child::Running;

#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    table_bytes: u64,
    replay_bytes: u64,
    file_bytes: u64,
}

impl Sizes {
    pub(super) fn draw(random: &mut Random) -> Self {
        Self {
            table_bytes: *random.choose(&[6_000, 40_000, 300_000, 64 << 20]),
            replay_bytes: *random.choose(&[3_000, 30_000, 300_000, 128 << 20]),
            file_bytes: *random.choose(&[4_096, 32_768, 262_144, 32 << 20]),
        }
    }

    /// Starts a child that is told them, its round, and a seed.
    pub(super) fn start(self, test: &str, path: &Path, round: u64, random: &mut Random) -> Result<Running, String> {
        let Self { table_bytes, replay_bytes, file_bytes } = self;
        let options = [
            ("round", round),
            ("seed", random.next() >> 1),
            ("table-bytes", table_bytes),
            ("replay-bytes", replay_bytes),
            ("file-bytes", file_bytes),
        ];
        Running::start(test, path, &options)
    }

    /// What the parent said.
    pub(super) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            table_bytes: arguments.number("table-bytes", 64 << 20),
            replay_bytes: arguments.number("replay-bytes", 128 << 20),
            file_bytes: arguments.number("file-bytes", 32 << 20),
        }
    }

    pub(super) fn options(self) -> Options {
        let mut options = Options::default().buckets(8).replay_bytes_max(self.replay_bytes);
        let table_bytes = usize::try_from(self.table_bytes).expect("it fits");
        options.overlay.table_bytes_max = table_bytes;
        options.journal_files.file_bytes_target = self.file_bytes;
        options.storage.cache_bytes_max = 4 << 20;
        options
    }
}
