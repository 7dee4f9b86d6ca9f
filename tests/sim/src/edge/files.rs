//! `sim edge-files`: every file that the command creates, under a umask of 000 and with a link planted in its place.
//!
//! A first run of everything that creates files lists them (twice: names that differ cannot be guessed, so nobody can plant anything
//! there). None may have a bit for group or others. Then, for each path, everything runs again with a link planted there, to a file and to
//! a folder of somebody else, which must stay unchanged. Inside a data directory, the link replaces an existing file.
//! Would see broken: a file created through a link, or readable by others.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::arguments::Arguments;
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

/// How long a server may take to stop.
const STOP_MAX: Duration = Duration::from_secs(60);

/// Created and then renamed or removed before anybody can list them.
const TRANSIENT: &[&str] = &["house/IDENTITY.new", "restored/IDENTITY.new", "imported/IDENTITY.new", "house/LOCK"];

/// The folder that XDG_CONFIG_HOME names: it is the user's own, who may have made it a link.
const THE_USERS: &[&str] = &["config"];

/// With this umask everybody could read and write new files.
const OPEN: &str = "umask 000; exec \"$0\" \"$@\"";

pub(crate) fn run(_: &Arguments) -> Report {
    let statehouse = binary();
    let scene = || Scene { folder: tempfile::tempdir().expect("a folder"), statehouse: statehouse.clone() };
    let (first, second) = (scene(), scene());
    let mut complaints = first.make_everything(true);
    complaints.extend(second.make_everything(true));
    let (made, again) = (first.made(), second.made());
    let open: Vec<_> = made.iter().filter(|path| is_open(&first.path(path))).cloned().collect();
    complaints.extend(open.iter().map(|path| format!("{} has a bit for others", path.display())));
    let known: BTreeSet<PathBuf> =
        made.intersection(&again).cloned().chain(TRANSIENT.iter().map(PathBuf::from)).collect();
    let unguessable = made.difference(&again).count();

    let mut planted = 0;
    for path in known.iter().filter(|path| !THE_USERS.contains(&path.to_str().unwrap_or_default())) {
        for of_folder in [false, true] {
            complaints.extend(scene().plant(path, of_folder, false));
            planted += 1;
        }
        // In place of an existing file, in a directory created before.
        if path.components().count() > 1 && path.starts_with("house") {
            complaints.extend(scene().plant(path, false, true));
            planted += 1;
        }
    }
    complaints.iter().for_each(|complaint| println!("edge-files: {complaint}"));
    let mut report = Report::new("edge");
    let figure = format!("{}-made {unguessable}-unguessable {}-open", made.len(), open.len());
    report.add("files.modes", figure, "umask 000: no bit for group or others", open.is_empty() && made.len() > 10);
    let figure = format!("{planted}-planted {}-complaints", complaints.len());
    report.add("files.links", figure, "a link at every path that is made: none followed", complaints.is_empty());
    report
}

struct Scene {
    folder: tempfile::TempDir,
    statehouse: PathBuf,
}

impl Scene {
    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    /// Runs everything that creates files. With `strict`, a failure is a complaint.
    fn make_everything(&self, strict: bool) -> Vec<String> {
        let _ = std::fs::create_dir(self.path(""));
        let mut complaints = Vec::new();
        let launch = Launch::program("/bin/sh").asking_nobody().arguments(["-c", OPEN]).argument(&self.statehouse);
        let launch = launch.arguments(["serve", "--listen", "127.0.0.1:0", "--data"]).argument(self.path("house"));
        let server = match launch.start() {
            Ok(server) => server,
            Err(said) if strict => return vec![said],
            Err(_) => return complaints,
        };
        let url = format!("http://{}", server.address());
        for words in [
            &["cell", "set", "a", "1"][..],
            &["backup", "create", "b.shbackup"],
            &["backup", "verify", "b.shbackup", "--deep"],
            &["backup", "restore", "b.shbackup", "restored"],
            &["export", "e.jsonl"],
            &["import", "e.jsonl", "--data", "imported"],
            &["config", "init", "--to", "s.toml"],
            &["ctx", "add", "here", &url],
            &["doctor", "restored"],
        ] {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", OPEN]).arg(&self.statehouse).args(words).current_dir(self.path(""));
            shell.env("STATEHOUSE_URL", &url).env("XDG_CONFIG_HOME", self.path("config"));
            let done = shell.output().expect("it starts");
            if strict && !done.status.success() {
                complaints.push(format!("{words:?}: {}", String::from_utf8_lossy(&done.stderr)));
            }
        }
        let ended = server.terminate(STOP_MAX);
        if strict && !ended.status.success() {
            complaints.push(format!("the server: {}", ended.stderr));
        }
        complaints
    }

    /// The existing files, by path.
    fn made(&self) -> BTreeSet<PathBuf> {
        let root = self.path("");
        let (mut made, mut left) = (BTreeSet::new(), vec![root.clone()]);
        while let Some(folder) = left.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    left.push(path.clone());
                }
                made.insert(path.strip_prefix(&root).expect("below").to_owned());
            }
        }
        made
    }

    /// Plants a link at a path, runs everything, and checks the link's target.
    fn plant(&self, path: &Path, of_folder: bool, after: bool) -> Option<String> {
        let victim = self.folder.path().join("victim");
        match of_folder {
            true => std::fs::create_dir(&victim).expect("made"),
            false => std::fs::write(&victim, "kept").expect("written"),
        }
        std::fs::create_dir(self.path("")).expect("made");
        if after {
            self.make_everything(false);
            for made in ["b.shbackup", "e.jsonl", "s.toml"] {
                let _ = std::fs::remove_file(self.path(made));
            }
            let at = self.path(path);
            let _ = std::fs::remove_file(&at).or_else(|_| std::fs::remove_dir_all(&at));
        }
        let at = self.path(path);
        std::fs::create_dir_all(at.parent().expect("a folder")).expect("made");
        symlink(&victim, &at).expect("planted");
        self.make_everything(false);
        let intact = match of_folder {
            true => std::fs::read_dir(&victim).is_ok_and(|mut entries| entries.next().is_none()),
            false => std::fs::read(&victim).is_ok_and(|bytes| bytes == b"kept"),
        };
        (!intact).then(|| format!("a link at {} was followed (folder {of_folder}, after {after})", path.display()))
    }
}

fn is_open(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_symlink() && found.permissions().mode() & 0o077 != 0)
}
