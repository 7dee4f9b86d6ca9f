//! A small disk of its own: a real file system, mounted for a test and unmounted after it.
//!
//! Touches: the mounts of this machine, so it needs root. Never: leaves a mount behind unless it is killed itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

pub(super) struct Mounted {
    /// What kind of file system it is.
    pub(super) kind: String,
    folder: TempDir,
    /// The file that the disk is in; it goes with its folder.
    _file: Option<TempDir>,
}

impl Mounted {
    /// Mounts a file system of a kind (`tmpfs`, `ext4`, `xfs`) and size.
    pub(super) fn new(kind: &str, mib: u64) -> Result<Self, String> {
        let folder = TempDir::new().map_err(|error| error.to_string())?;
        let at = folder.path();
        if kind == "tmpfs" {
            done(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "none"]).arg(at))?;
            return Ok(Self { kind: kind.into(), folder, _file: None });
        }
        let parent = TempDir::new().map_err(|error| error.to_string())?;
        let file = parent.path().join("disk");
        let disk = std::fs::File::create(&file).and_then(|disk| disk.set_len(mib << 20));
        disk.map_err(|error| format!("{}: {error}", file.display()))?;
        done(Command::new(format!("mkfs.{kind}")).arg("-q").arg(&file))?;
        done(Command::new("mount").args(["-o", "loop"]).arg(&file).arg(at))?;
        Ok(Self { kind: kind.into(), folder, _file: Some(parent) })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = done(Command::new("umount").arg(self.folder.path())) {
            println!("{error}");
        }
    }
}

fn done(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The bytes that all files of a folder take on the disk.
pub(super) fn bytes_taken(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        // A file or folder may be removed meanwhile.
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            match found.is_dir() {
                true => folders.push(entry.path()),
                false => bytes += found.blocks() * 512,
            }
        }
    }
    bytes
}
