//! A journal on a real disk of a few MiB that is full to the last byte. Mounting one takes root; without that, these
//! tests check nothing and say so.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use statehouse_journal::{Disk, DiskFile, EntryLog, JournalError, RealDisk, SegmentFiles, SegmentOptions};
use tempfile::TempDir;

const ID: u64 = 17;
const DISK_BYTES: u64 = 8 << 20;

/// A disk of its own, unmounted when it is dropped.
struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// A tmpfs, or an ext4 in a file; none if it cannot be mounted here.
    fn mount(kind: &str) -> Option<Self> {
        let disk = Self { folder: tempfile::tempdir().unwrap() };
        let run = |command: &str, arguments: &[&str]| {
            let output = Command::new(command).args(arguments).output();
            output.is_ok_and(|output| output.status.success())
        };
        let (image, path) = (disk.folder.path().join("image"), disk.path());
        let (image, path) = (image.to_str().unwrap(), path.to_str().unwrap());
        fs::create_dir(path).unwrap();
        let mounted = match kind {
            "tmpfs" => run("mount", &["-t", "tmpfs", "-o", &format!("size={DISK_BYTES}"), "tmpfs", path]),
            _ => {
                File::create(image).unwrap().set_len(DISK_BYTES).unwrap();
                run("mkfs.ext4", &["-q", "-m", "0", image]) && run("mount", &["-o", "loop", image, path])
            }
        };
        if !mounted {
            println!("{kind} cannot be mounted here: nothing was checked");
        }
        mounted.then_some(disk)
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// Takes everything that is free.
    fn fill(&self) {
        let mut ballast = File::options().append(true).create(true).open(self.path().join("ballast")).unwrap();
        for bytes in [1 << 16, 1 << 12, 1 << 9, 1] {
            while ballast.write_all(&vec![1; bytes]).is_ok() {}
            ballast.sync_all().unwrap();
        }
    }

    fn free(&self) {
        fs::remove_file(self.path().join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).output();
    }
}

fn payload(index: u64) -> Vec<u8> {
    format!("entry {index}; ").repeat(1 + usize::try_from(index % 400).unwrap()).into_bytes()
}

/// Appends until there is no room, and returns the last entry.
fn append_until_full(files: &SegmentFiles, mut last: u64) -> u64 {
    loop {
        match files.append(1, 1, &[&payload(last + 1)]) {
            Ok(index) => last = index,
            Err(JournalError::NoSpace { .. }) => return last,
            Err(error) => panic!("after entry {last}: {error}"),
        }
        files.upkeep().unwrap();
    }
}

fn check(files: &SegmentFiles, first: u64, last: u64) {
    assert_eq!((files.first_index(1), files.last_index(1)), (Some(first), Some(last)));
    let entries = files.read(1, first, usize::MAX).unwrap();
    assert_eq!(entries.len() as u64, last - first + 1);
    assert!((first..).zip(entries).all(|(index, (entry, _))| entry.payload == payload(index)));
    files.verify().unwrap();
}

fn open(journal: &Path) -> SegmentFiles {
    SegmentFiles::open(journal, ID, &SegmentOptions::default()).unwrap()
}

fn a_full_disk_is_survived(kind: &str) {
    let Some(disk) = SmallDisk::mount(kind) else { return };
    let path = disk.path().join("too-large");
    let file = RealDisk.create(&path).unwrap();
    DiskFile::write_at(&file, b"kept", 0).unwrap();
    assert!(file.allocate(DISK_BYTES * 2).is_err());
    file.sync_all().unwrap();
    let (length, sectors) = (file.metadata().unwrap().len(), file.metadata().unwrap().blocks());
    assert!(length == 4 && sectors <= 8, "{kind}: what cannot be reserved takes {length} bytes, {sectors} sectors");
    fs::remove_file(path).unwrap();

    let journal = disk.path().join("journal");
    fs::create_dir(&journal).unwrap();
    let files = SegmentFiles::create(&journal, ID, &SegmentOptions::default()).unwrap();
    let last = append_until_full(&files, 0);
    assert!(last > 500, "{kind}: full after {last} entries");
    disk.fill();
    assert_eq!(append_until_full(&files, last), last);
    check(&files, 1, last);
    // Neither the watermark nor opening needs a single byte.
    files.settle().unwrap();
    drop(files);
    for _ in 0..2 {
        let files = open(&journal);
        check(&files, 1, last);
        assert!(matches!(files.append(1, 1, &[&payload(last + 1)]), Err(JournalError::NoSpace { .. })));
    }
    let files = open(&journal);
    // A cut makes room by itself, as it frees segments.
    files.cut(1, last - 1).unwrap();
    disk.fill();
    let after_cut = append_until_full(&files, last);
    drop(files);
    let files = open(&journal);
    check(&files, last - 1, after_cut);
    disk.free();
    assert_eq!(files.append(1, 1, &[&payload(after_cut + 1)]), Ok(after_cut + 1), "{kind}: without being opened again");
    check(&files, last - 1, after_cut + 1);
}

#[test]
fn a_full_tmpfs_is_survived() {
    a_full_disk_is_survived("tmpfs");
}

#[test]
fn a_full_ext4_is_survived() {
    a_full_disk_is_survived("ext4");
}
