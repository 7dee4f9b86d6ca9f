//! Tests that need the inside of the store.

mod damage;
mod failures;
mod full_disk;
mod golden;
mod merges;
mod tables;
mod weighing;

/// A directory in memory where there is one: these tests sync often, and do not depend on what a disk does.
fn directory() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a directory")
}
