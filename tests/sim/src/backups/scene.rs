//! The command in a folder: with and without a terminal, and the fate of the files it creates.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use kernel::Keys;
use statehouse::{backup, export, hex};
use storage::TreeStore;

use crate::model::instance::{Instance, Plan, write_image};

/// How long a command may take in a terminal.
const TERMINAL_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A folder to run the command in.
pub(super) struct Scene {
    program: PathBuf,
    folder: PathBuf,
    /// How many terminals there were.
    terminals: AtomicU32,
}

impl Scene {
    pub(super) fn new(program: PathBuf, folder: &Path) -> Self {
        Self { program, folder: folder.to_owned(), terminals: AtomicU32::new(0) }
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs the command without a terminal.
    fn command(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        command.output().expect("the command starts")
    }

    /// Takes a backup and an export of this name.
    pub(super) fn take(&self, name: &str, url: &str) {
        self.succeeds(&["backup", "create", &format!("{name}.shbackup"), "--url", url]);
        self.succeeds(&["export", &format!("{name}.jsonl"), "--url", url]);
    }

    fn succeeds(&self, arguments: &[&str]) {
        let output = self.command(arguments);
        assert!(output.status.success(), "statehouse {arguments:?}: {output:?}");
    }

    /// Whether the command does what it is asked, and says nothing on stderr, where there is no terminal.
    pub(super) fn is_silent(&self, arguments: &[&str]) -> bool {
        let output = self.command(arguments);
        let silent = output.status.success() && output.stderr.is_empty();
        if !silent {
            println!("backups: statehouse {arguments:?}: {output:?}");
        }
        silent
    }

    /// Whether the command shows a bar with a percentage in a terminal, and ends well.
    pub(super) fn shows_a_bar(&self, arguments: &str) -> bool {
        let screen = self.in_a_terminal(arguments);
        let seen = screen.contains("exit=0") && screen.contains("[=") && screen.contains("100%");
        if !seen {
            println!("backups: statehouse {arguments} in a terminal:\n{screen}");
        }
        seen
    }

    /// What stands on the screen of a real terminal when the command has ended there.
    fn in_a_terminal(&self, arguments: &str) -> String {
        // A server of its own each time: one that was told to end may still be there.
        let number = self.terminals.fetch_add(1, Ordering::Relaxed);
        let socket = self.path(format!("tmux-{number}"));
        let tmux = |words: &[&str]| {
            let output = Command::new("tmux").arg("-S").arg(&socket).args(words).output();
            output.expect("tmux is installed (Debian: tmux)")
        };
        let shell =
            format!("cd {}; {} {arguments}; echo exit=$?; sleep 600", self.folder.display(), self.program.display());
        let started = tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "40", &shell]);
        assert!(started.status.success(), "{started:?}");
        let deadline = Instant::now() + TERMINAL_MAX;
        let mut screen = String::new();
        while !screen.contains("exit=") && Instant::now() < deadline {
            std::thread::sleep(LOOK_EVERY);
            screen = String::from_utf8_lossy(&tmux(&["capture-pane", "-p"]).stdout).into_owned();
        }
        // The server on this socket is ours alone.
        tmux(&["kill-server"]);
        screen
    }

    /// Verifies a backup, restores it elsewhere, and compares.
    pub(super) fn restore(&self, name: &str) -> Result<(), String> {
        let file = format!("{name}.shbackup");
        let restored = format!("{name}-restored");
        for arguments in [&["backup", "verify", &file, "--deep"][..], &["backup", "restore", &file, &restored]] {
            let output = self.command(arguments);
            if !output.status.success() {
                return Err(format!("{arguments:?}: {output:?}"));
            }
        }
        let bytes = std::fs::read(self.path(&file)).map_err(|error| error.to_string())?;
        let expected = backup::verify(&mut bytes.as_slice(), &mut |_| {}).map_err(|error| error.to_string())?;
        let image = backup::image_of_directory(&self.path(&restored)).map_err(|error| error.to_string())?;
        match image == expected.image_sha256 {
            true => Ok(()),
            false => Err(format!("its image is {}, restored it is {}", hex(&expected.image_sha256), hex(&image))),
        }
    }

    /// Imports an export, exports it again, and checks every row of records that follows from others. The same once more with
    /// all claims released.
    pub(super) fn import(&self, name: &str) -> Result<(), String> {
        let (file, imported, released) =
            (format!("{name}.jsonl"), format!("{name}-imported"), format!("{name}-released"));
        for arguments in
            [&["import", &file, "--data", &imported, "--keep-claims"][..], &["import", &file, "--data", &released][..]]
        {
            let output = self.command(arguments);
            if !output.status.success() {
                return Err(format!("{arguments:?}: {output:?}"));
            }
        }
        let lines = std::fs::read(self.path(&file)).map_err(|error| error.to_string())?;
        if self.exported_again(&imported)? != lines {
            return Err("exported again it has other bytes".to_owned());
        }
        if let Some(held) = held_in(&self.exported_again(&released)?)? {
            return Err(format!("still held: {held}"));
        }
        self.check_rows(&self.path(&imported))?;
        self.check_rows(&self.path(&released))
    }

    fn exported_again(&self, directory: &str) -> Result<Vec<u8>, String> {
        let mut lines = Vec::new();
        let written = export::write_directory(&self.path(directory), &mut lines, &mut |_| {});
        written.map(|_| lines).map_err(|error| error.to_string())
    }

    fn check_rows(&self, directory: &Path) -> Result<(), String> {
        let keys = Keys::new(1, kernel::BucketRange::ALL);
        let image = {
            let store = TreeStore::open(&directory.join("store"), &storage::Options::default());
            let store = store.map_err(|error| error.to_string())?;
            write_image(&*kv::Store::view(&store).map_err(|error| error.to_string())?, keys)?.0
        };
        let instance = Instance::restore(&Plan::memory(), keys, &image)?;
        crate::records::check_rows(&instance, &*instance.view()?)
    }
}

/// The first line of an export that somebody holds.
fn held_in(lines: &[u8]) -> Result<Option<String>, String> {
    for line in String::from_utf8_lossy(lines).lines() {
        let line: serde_json::Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        // A finished record still says who held it last.
        let has_finished = ["completed", "failed"].iter().any(|state| line["state"] == *state);
        let of_holder: &[&str] = if has_finished {
            &["lease_cluster_us", "holder_session"]
        } else {
            &["lease_cluster_us", "worker", "holder_session"]
        };
        if of_holder.iter().any(|member| !line[member].is_null()) {
            return Ok(Some(line.to_string()));
        }
    }
    Ok(None)
}
