//! A journal whose segments are small, so that a test has several of them.

use std::path::Path;

use statehouse_journal::{SegmentFiles, SegmentOptions};

pub const ID: u64 = 77;

pub fn small() -> SegmentOptions {
    SegmentOptions::default().file_bytes_target(16 << 10)
}

pub fn create(directory: &Path) -> SegmentFiles {
    SegmentFiles::create(directory, ID, &small()).expect("created")
}

pub fn open(directory: &Path) -> SegmentFiles {
    SegmentFiles::open(directory, ID, &small()).expect("opened")
}
