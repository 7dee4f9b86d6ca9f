//! A folder: the calls, and what a killed process leaves.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::Folder;
use super::reader::FileReader;
use super::staged::Staged;
use crate::{Objects, ObjectsError, suite};

fn open(folder: &Path) -> Objects {
    Objects::open(folder.to_str().unwrap()).unwrap()
}

fn opened() -> (TempDir, Objects) {
    let scratch = tempfile::tempdir().unwrap();
    let objects = open(&scratch.path().join("a/b"));
    (scratch, objects)
}

/// The files that are being written.
fn staged(scratch: &TempDir) -> Vec<fs::DirEntry> {
    let folder = scratch.path().join("a/b/.objects/staged");
    fs::read_dir(folder).unwrap().map(Result::unwrap).collect()
}

#[test]
fn every_call_does_as_documented() {
    let (scratch, objects) = opened();
    suite::run(&objects);
    assert_eq!(staged(&scratch).len(), 0);
    // Nor is an empty folder left.
    let left: Vec<_> =
        fs::read_dir(scratch.path().join("a/b")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".objects"]);
}

#[test]
fn what_is_created_is_for_its_owner_only() {
    let (scratch, objects) = opened();
    objects.create("c/d", b"bytes").unwrap();
    for (path, expected) in
        [("a", 0o700), ("a/b", 0o700), ("a/b/c", 0o700), ("a/b/.objects", 0o700), ("a/b/c/d", 0o600)]
    {
        let mode = fs::metadata(scratch.path().join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, expected, "{path}");
    }
}

#[test]
fn what_a_killed_process_was_writing_is_removed_by_the_next_opening() {
    let (scratch, objects) = opened();
    // Without its lock, as a kill leaves it: half of a file, and one that was linked and not yet removed.
    fs::write(scratch.path().join("a/b/.objects/staged/left"), b"half").unwrap();
    objects.create("whole", b"whole").unwrap();
    fs::hard_link(scratch.path().join("a/b/whole"), scratch.path().join("a/b/.objects/staged/linked")).unwrap();
    fs::create_dir_all(scratch.path().join("a/b/empty/folder")).unwrap();
    let mut writer = objects.writer("being.written").unwrap();
    writer.write_all(b"half").unwrap();
    assert_eq!(staged(&scratch).len(), 3);

    let again = open(&scratch.path().join("a/b"));
    assert_eq!(staged(&scratch).len(), 1);
    assert_eq!(again.list("").unwrap(), [("whole".to_owned(), 5)]);
    assert_eq!(again.folders("").unwrap(), [""; 0]);
    writer.write_all(b"half").unwrap();
    assert_eq!(writer.finish().unwrap(), 8);
    assert_eq!(again.read("being.written", 8).unwrap(), b"halfhalf");
}

#[test]
fn what_no_object_can_be_named_like_is_not_listed() {
    let (scratch, objects) = opened();
    let root = scratch.path().join("a/b");
    objects.create("c/d", b"").unwrap();
    fs::create_dir(root.join("lost+found")).unwrap();
    fs::write(root.join("lost+found/e"), b"").unwrap();
    fs::write(root.join("c/with space"), b"").unwrap();
    std::os::unix::fs::symlink("/", root.join("root")).unwrap();
    assert_eq!(objects.list("").unwrap(), [("c/d".to_owned(), 0)]);
    assert_eq!(objects.folders("").unwrap(), ["c"]);
}

#[test]
fn a_name_is_an_object_or_a_folder_of_others() {
    let (_scratch, objects) = opened();
    objects.create("a/b", b"").unwrap();
    for (name, said) in [("a", "is a directory"), ("a/b/c", "not a directory")] {
        let refused = objects.create(name, b"").unwrap_err();
        assert!(matches!(&refused, ObjectsError::Failed { .. }), "{refused}");
        let message = refused.to_string().to_lowercase();
        assert!(message.contains(said) && message.contains("choose a name"), "{message}");
        assert_eq!(objects.size(name).unwrap(), None);
        assert!(matches!(objects.reader(name), Err(ObjectsError::Missing { .. })));
        objects.delete(name).unwrap();
    }
    assert_eq!(objects.list("").unwrap().len(), 1);
}

#[test]
fn a_folder_that_cannot_be_opened_is_refused_by_name() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, b"").unwrap();
    let refused = Objects::open(file.to_str().unwrap()).unwrap_err().to_string();
    assert!(refused.contains(file.to_str().unwrap()), "{refused}");
}

#[test]
fn only_one_of_many_writers_of_a_name_succeeds_among_deletions() {
    let (_scratch, objects) = opened();
    for round in 0..20 {
        let name = format!("folder/{round}");
        let created = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|n: u8| {
                    scope.spawn({
                        let (objects, name) = (objects.clone(), name.clone());
                        move || {
                            let created = objects.create(&name, &[n; 10]);
                            // Takes the folder away from the others, if it is empty.
                            objects.delete(&format!("folder/{}", round - 1)).unwrap();
                            created.map(|()| n)
                        }
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });
        let winners: Vec<u8> = created.iter().filter_map(|created| created.as_ref().ok().copied()).collect();
        assert_eq!(winners.len(), 1, "{created:?}");
        assert!(
            created.iter().all(|created| matches!(created, Ok(_) | Err(ObjectsError::Exists { .. }))),
            "{created:?}"
        );
        assert_eq!(objects.read(&name, 10).unwrap(), [winners[0]; 10]);
    }
}

#[test]
fn after_a_failed_write_nothing_appears() {
    let (scratch, _objects) = opened();
    let folder = Folder::open(scratch.path().join("a/b"), "target").unwrap();
    // A file that was opened for reading fails to be written.
    let mut broken = Staged::new(Arc::clone(&folder.files), "a").unwrap();
    broken.break_file();
    let failed = broken.write(b"bytes").unwrap_err();
    assert!(matches!(ObjectsError::from_io(&failed), Some(ObjectsError::Failed { doing: "write", .. })), "{failed}");
    assert!(broken.write(b"bytes").is_err());
    assert!(broken.publish().is_err());
    assert_eq!(staged(&scratch).len(), 0);
}

#[test]
fn a_disk_that_fails_while_it_is_read_names_the_object() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _into: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("input/output error"))
        }
    }
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::open(scratch.path().join("a/b"), "target").unwrap();
    let failed = FileReader::new(Arc::clone(&folder.files), "a", Broken).read(&mut [0]).unwrap_err();
    let found = ObjectsError::from_io(&failed);
    assert!(matches!(found, Some(ObjectsError::Failed { doing: "read", name, .. }) if name == "a"), "{failed}");
}

#[test]
fn a_large_object_passes_through() {
    let (_scratch, objects) = opened();
    let piece: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[1]).collect();
    let mut writer = objects.writer("large").unwrap();
    for _ in 0..64 {
        writer.write_all(&piece).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), 64 << 20);
    let mut reader = objects.reader("large").unwrap();
    let mut read = vec![0; 1 << 20];
    for _ in 0..64 {
        reader.read_exact(&mut read).unwrap();
        assert!(read == piece);
    }
    assert_eq!(reader.read(&mut read).unwrap(), 0);
}
