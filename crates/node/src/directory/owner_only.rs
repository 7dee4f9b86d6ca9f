//! Files and folders that only their owner can read, whatever the umask, and that are never created through a link.
//!
//! Keeps: a new file is `0600` and a new folder `0700`; a link planted at a path to be created is refused by name or
//! replaced, never followed. A file gets its final name when it is complete and durable. Never: changes what it did not
//! create, except by `repair`.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// The permissions of others.
const OTHERS: u32 = 0o077;

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).expect("a flag of open()");
    options.mode(FILE_MODE).custom_flags(no_follow);
    options
}

/// Creates a new file. An existing file or a link is an error.
pub fn create_new(path: &Path) -> io::Result<File> {
    let file = options().read(true).write(true).create_new(true).open(path).map_err(|error| named(path, error))?;
    // The umask removes permissions, and may have removed the owner's.
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Opens a file to read and write, or creates it; its content stays. A link is an error.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    options().read(true).write(true).create(true).truncate(false).open(path).map_err(|error| named(path, error))
}

/// Opens a file to read. A link is an error.
pub fn open(path: &Path) -> io::Result<File> {
    options().read(true).open(path).map_err(|error| named(path, error))
}

/// Creates one folder. Anything that already exists is an error.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE))
}

/// Creates a folder and its missing parents.
pub fn create_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        create_folders(above)?;
    }
    create_folder(path)
}

/// Writes a whole file in place of whatever has its name: under a fresh name first, then synced, then renamed.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = fresh_name(path, "new");
    let write = || {
        let mut file = create_new(&fresh)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)?;
        sync_folder_of(path)
    };
    write().inspect_err(|_| drop(std::fs::remove_file(&fresh)))
}

/// An unguessable name beside `path`.
pub fn fresh_name(path: &Path, end: &str) -> PathBuf {
    use std::hash::{BuildHasher, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = RandomState::new().hash_one((std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number:016x}.{end}"));
    PathBuf::from(name)
}

/// Removes what a process that was killed while it replaced `path` left beside it. Nothing else has such a name.
pub(crate) fn clear_unfinished(path: &Path) {
    let Some((folder, name)) = path.parent().zip(path.file_name().and_then(|name| name.to_str())) else { return };
    let is_ours = |found: &str| {
        let number = found.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".new"));
        number.is_some_and(|number| number.len() == 16 && number.bytes().all(|digit| digit.is_ascii_hexdigit()))
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_ours) {
            // It is in nobody's way; where it cannot be removed, nothing can be written either.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Renames a file, unless the name is taken.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Some file systems do not support this; all of them refuse a hard link to a name that is taken.
        Err(error) if [rustix::io::Errno::INVAL, rustix::io::Errno::NOSYS].contains(&error) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes the entry of `path` in its folder durable.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// The findings of a repair.
#[derive(Debug, Default)]
pub(crate) struct Repaired {
    /// Files and folders that others could read or write.
    pub(crate) open_to_others: usize,
}

/// Examines a folder: a link in it is an error, and access for others is removed.
pub(crate) fn repair(folder: &Path) -> io::Result<Repaired> {
    let mut repaired = Repaired::default();
    let mut left = vec![folder.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = match std::fs::symlink_metadata(&path) {
            // The tree below deletes files it no longer needs.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        if path != folder && metadata.is_symlink() {
            return Err(named(&path, rustix::io::Errno::LOOP.into()));
        }
        let mode = if metadata.is_dir() { FOLDER_MODE } else { FILE_MODE };
        if !metadata.is_symlink() && metadata.permissions().mode() & OTHERS != 0 {
            std::fs::set_permissions(&path, Permissions::from_mode(mode))?;
            repaired.open_to_others += 1;
        }
        if path.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
    }
    Ok(repaired)
}

/// Says which link, and what to do about it.
fn named(path: &Path, error: io::Error) -> io::Error {
    match error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        true => io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is a link, and links are not followed here; remove it", path.display()),
        ),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_the_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        create_new(&path("new")).expect("made");
        open_or_create(&path("lock")).expect("made");
        replace(&path("whole"), b"bytes").expect("written");
        create_folders(&path("a/b")).expect("made");
        for name in ["new", "lock", "whole"] {
            assert_eq!(mode(&path(name)), 0o600, "{name}");
        }
        assert_eq!((mode(&path("a")), mode(&path("a/b"))), (0o700, 0o700));
        assert!(create_new(&path("new")).is_err() && create_folder(&path("a")).is_err());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let list = folder.path().join("LIST");
        let left = fresh_name(&list, "new");
        std::fs::write(&left, "half").expect("written");
        let kept = ["LIST", "LIST.new", "LIST.0123.new", "LISTS.0123456789abcdef.new", "LIST.0123456789abcdef.partial"];
        for name in kept {
            std::fs::write(folder.path().join(name), "x").expect("written");
        }
        clear_unfinished(&list);
        assert!(!left.exists());
        assert!(kept.iter().all(|name| folder.path().join(name).exists()));
    }

    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("victim"), "kept").expect("written");
        for name in ["new", "lock", "read", "whole", "taken"] {
            symlink(path("victim"), path(name)).expect("planted");
        }
        let refused = [create_new(&path("new")).err(), open_or_create(&path("lock")).err(), open(&path("read")).err()];
        for (error, name) in refused.into_iter().zip(["new", "lock", "read"]) {
            let error = error.expect("refused").to_string();
            assert!(name == "new" || error.contains(&format!("{name} is a link")), "{error}");
        }
        replace(&path("whole"), b"ours").expect("replaced");
        assert_eq!(std::fs::read(path("whole")).expect("read"), b"ours");
        assert!(!std::fs::symlink_metadata(path("whole")).expect("there").is_symlink());
        std::fs::write(path("from"), "x").expect("written");
        assert!(rename_new(&path("from"), &path("taken")).is_err());
        assert_eq!(std::fs::read_to_string(path("victim")).expect("read"), "kept");
    }

    #[test]
    fn what_others_could_read_is_closed_to_them_and_a_link_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let inside = folder.path().join("store");
        std::fs::create_dir(&inside).expect("made");
        std::fs::write(inside.join("table"), "x").expect("written");
        for (path, open) in [(folder.path(), 0o777), (&*inside, 0o755), (&*inside.join("table"), 0o666)] {
            std::fs::set_permissions(path, Permissions::from_mode(open)).expect("opened");
        }
        assert_eq!(repair(folder.path()).expect("repaired").open_to_others, 3);
        assert_eq!((mode(folder.path()), mode(&inside), mode(&inside.join("table"))), (0o700, 0o700, 0o600));
        assert_eq!(repair(folder.path()).expect("nothing to do").open_to_others, 0);
        symlink("/etc/passwd", inside.join("current")).expect("planted");
        let error = repair(folder.path()).expect_err("refused").to_string();
        assert!(error.contains("store/current is a link"), "{error}");
    }
}
