//! What is written at once, by the size of the disk: a small disk gets small flushes, merges and journal files.
//!
//! Keeps: what flushes and merges need is known before, and is a small part of any disk. Everything that is in memory can
//! be flushed and one merge can be done in the space that is kept free, so deleting always gives space back.

use std::path::Path;

use crate::options::Options;

/// A flush has at most this part of the disk; so has a merge.
const WRITTEN_AT_ONCE_PART: u64 = 32;
/// The journal has about this part of it before the store is flushed.
const REPLAY_PART: u64 = 16;
/// A file of the journal has this part of it.
const JOURNAL_FILE_PART: u64 = 128;

const WRITTEN_AT_ONCE_MIN: u64 = 1 << 20;
const REPLAY_MIN: u64 = 4 << 20;
const JOURNAL_FILE_MIN: u64 = 1 << 20;

/// Whoever wants more than this in memory does without the guarantee.
const NEEDED_BYTES_MAX: u64 = 1 << 30;

/// What merging needs besides the bytes that it reads.
const MERGE_EXTRA_BYTES: u64 = 4 << 20;

/// Lowers what is written at once to what fits the disk of `path`. If the system does not tell its size, it is large.
pub(crate) fn fit(options: &Options, path: &Path) -> Options {
    let existing = path.ancestors().find(|ancestor| ancestor.exists());
    // A relative path has an empty ancestor: the current folder.
    let folder = existing.unwrap_or(Path::new("."));
    match rustix::fs::statvfs(folder) {
        Ok(stat) => fit_to(options, stat.f_blocks * stat.f_frsize),
        Err(_) => options.clone(),
    }
}

fn fit_to(options: &Options, disk_bytes: u64) -> Options {
    let part = |part: u64, least: u64| (disk_bytes / part).max(least);
    let mut fitted = options.clone();
    let at_once = part(WRITTEN_AT_ONCE_PART, WRITTEN_AT_ONCE_MIN);
    let in_memory = usize::try_from(at_once).unwrap_or(usize::MAX);
    fitted.overlay.table_bytes_max = options.overlay.table_bytes_max.min(in_memory);
    fitted.storage.table_bytes_target = options.storage.table_bytes_target.min(at_once);
    // Flushes come first: a merge leaves what they need.
    fitted.storage.space_reserve_bytes = fitted.overlay.memory_bytes_max().min(NEEDED_BYTES_MAX);
    fitted.replay_bytes_max = options.replay_bytes_max.min(part(REPLAY_PART, REPLAY_MIN));
    let file = part(JOURNAL_FILE_PART, JOURNAL_FILE_MIN);
    fitted.journal_files.file_bytes_target = options.journal_files.file_bytes_target.min(file);
    fitted
}

/// The bytes without which the store could not write what it has in memory, and then merge.
pub(crate) fn needed_bytes(options: &Options) -> u64 {
    let merge = options.storage.table_bytes_target + MERGE_EXTRA_BYTES;
    let needed = options.overlay.memory_bytes_max().saturating_add(merge + 2 * options.journal_files.file_bytes_target);
    needed.min(NEEDED_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_store_needs_is_a_small_part_of_any_disk() {
        for disk_mib in [320, 500, 1_000, 2_000, 6_000, 100_000] {
            let fitted = fit_to(&Options::default(), disk_mib << 20);
            let needed = needed_bytes(&fitted);
            assert!(needed < (disk_mib << 20) / 5, "{disk_mib} MiB: {} MiB", needed >> 20);
            assert!(fitted.replay_bytes_max <= (disk_mib << 20) / 8, "{disk_mib} MiB");
        }
    }

    #[test]
    fn a_large_disk_changes_nothing() {
        let (options, fitted) = (Options::default(), fit_to(&Options::default(), 1 << 40));
        assert_eq!(fitted.overlay.table_bytes_max, options.overlay.table_bytes_max);
        assert_eq!(fitted.storage.table_bytes_target, options.storage.table_bytes_target);
        assert_eq!(fitted.replay_bytes_max, options.replay_bytes_max);
        assert_eq!(fitted.journal_files.file_bytes_target, options.journal_files.file_bytes_target);
        assert_eq!(needed_bytes(&fitted), needed_bytes(&options));
    }
}
