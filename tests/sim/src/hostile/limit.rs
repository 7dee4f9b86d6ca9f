//! A server process with limited memory: by a control group of version 2 or 1 if one can be created under our own; otherwise
//! it is only told its limit, and watched.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::server_process::{Launch, ServerProcess};

/// A server with limited memory.
pub(crate) struct Limited {
    pub(crate) server: ServerProcess,
    group: Option<Group>,
}

/// The result.
pub(crate) struct Ended {
    pub(crate) is_alive: bool,
    /// Its peak memory.
    pub(crate) peak_bytes: u64,
    /// How the limit was enforced.
    pub(crate) by: &'static str,
}

/// Starts the server once its shell is in the group, so that all of its memory counts.
const ENTER: &str = "echo $$ > \"$1\" && shift && exec \"$@\"";

impl Limited {
    pub(crate) fn start(binary: &Path, data: &Path, bytes: u64) -> Self {
        let group = Group::make(bytes);
        let launch = match &group {
            Some(group) => Launch::program("/bin/sh")
                .arguments(["-c", ENTER, "sh"])
                .argument(group.folder.join("cgroup.procs"))
                .argument(binary),
            None => Launch::program(binary),
        };
        let launch = launch.asking_nobody().arguments(["serve", "--listen", "127.0.0.1:0", "--data"]).argument(data);
        // Without a group the server cannot find its limit: pass the share that it would take.
        let launch = match &group {
            Some(_) => launch,
            None => launch.arguments(["--memory".to_owned(), (bytes / 100 * 60).to_string()]),
        };
        // Short timeouts, so that slow clients are refused during the test.
        let launch = launch
            .environment("STATEHOUSE_LIMITS__HEAD_TIME_MAX", "3s")
            .environment("STATEHOUSE_LIMITS__BODY_TIME_MAX", "3s")
            .environment("STATEHOUSE_LIMITS__IDLE_TIME_MAX", "5s");
        let server = launch.start().expect("the server starts in its limit");
        println!("limited by {}", group.as_ref().map_or("nothing; watched", |group| group.name));
        Self { server, group }
    }

    /// Checks that it is alive, and stops it.
    pub(crate) fn stop(mut self) -> Ended {
        let is_alive = self.server.ended().is_none();
        let peak = |pid: u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
        };
        let peak_bytes = peak(self.server.id()).unwrap_or(0);
        let ended = self.server.terminate(Duration::from_secs(60));
        println!("{}", ended.stderr.trim_end());
        let by = self.group.as_ref().map_or("no-group-watched", |group| group.name);
        Ended { is_alive: is_alive && ended.status.success(), peak_bytes, by }
    }
}

/// A control group of our own, removed on drop.
struct Group {
    name: &'static str,
    folder: PathBuf,
}

impl Group {
    fn make(bytes: u64) -> Option<Self> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let mut found = None;
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
            let root = Path::new("/sys/fs/cgroup");
            let group = match controllers {
                "" => Self::below(&root.join(path), "control-group-2", "memory.max", bytes),
                _ if controllers.split(',').any(|name| name == "memory") => {
                    Self::below(&root.join("memory").join(path), "control-group-1", "memory.limit_in_bytes", bytes)
                }
                _ => None,
            };
            found = found.or(group);
        }
        found
    }

    fn below(parent: &Path, name: &'static str, file: &str, bytes: u64) -> Option<Self> {
        let folder = parent.join(format!("statehouse-hostile-{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let group = Self { name, folder };
        std::fs::write(group.folder.join(file), bytes.to_string()).ok()?;
        // No escape into swap, where that can be configured.
        let _ = std::fs::write(group.folder.join("memory.swap.max"), "0");
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The group is empty once the server has ended; the kernel may take a moment to notice.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
