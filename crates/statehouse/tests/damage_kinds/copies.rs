//! Copies of the directory of an open store.

use std::path::Path;
use std::time::Duration;

use statehouse::Statehouse;

/// As a killed process leaves it.
pub(super) fn copied(path: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("created");
    for entry in std::fs::read_dir(path).expect("a folder") {
        let entry = entry.expect("an entry");
        match entry.file_type().expect("a type").is_dir() {
            true => copied(&entry.path(), &to.join(entry.file_name())),
            false if entry.file_name() == "LOCK" => {}
            // A merge may remove a file meanwhile.
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name()))),
        }
    }
}

/// A copy of an open store without anything in progress, with its hash. An entry that was on its way while the files were
/// copied comes before the one that is proposed afterwards.
pub(super) fn copied_at_rest(house: &Statehouse, path: &Path, to: &Path) -> (u64, u64) {
    let applied = || house.status().expect("a status");
    let manifest = || std::fs::read(path.join("store/manifest")).expect("a manifest");
    loop {
        let before = (applied(), manifest());
        // What is due is done meanwhile.
        std::thread::sleep(Duration::from_millis(400));
        copied(path, to);
        assert_eq!(house.sessions().expire(u64::MAX), Ok(false), "an entry that changes nothing");
        if applied().applied_index == before.0.applied_index + 1 && manifest() == before.1 {
            return (before.0.applied_index, before.0.effects_hash);
        }
        std::fs::remove_dir_all(to).expect("removed");
    }
}
