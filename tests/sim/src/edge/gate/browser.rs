//! A real headless Chromium, with its own profile and names that all resolve to this machine.
//!
//! Touches: its own processes, which end with it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Foreign names that resolve to this machine.
const RESOLVED: &str = "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP rebind.example 127.0.0.1";

/// The browser's own protections, which would stop some attacks. The server must not rely on them.
const OFF: &str = "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessForNavigations,\
                   BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessForNavigations";

/// A browser that shows a page.
pub(super) struct Browser {
    process: Child,
    _profile: TempDir,
}

fn command(chromium: &Path, profile: &TempDir) -> Command {
    let mut command = Command::new(chromium);
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-extensions"]);
    command.args([RESOLVED, OFF]).arg(format!("--user-data-dir={}", profile.path().display()));
    command.stdin(Stdio::null());
    command
}

impl Browser {
    /// Opens a page and leaves it open.
    pub(super) fn open(chromium: &Path, url: &str) -> Result<Self, String> {
        let profile = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut command = command(chromium, &profile);
        command.args(["--remote-debugging-port=0", url]).stdout(Stdio::null()).stderr(Stdio::null());
        // A process group of its own, so that all of its processes can be ended.
        let process = command.process_group(0).spawn().map_err(|error| format!("{command:?}: {error}"))?;
        Ok(Self { process, _profile: profile })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.process.wait();
    }
}

/// The page after its scripts have run, and the console output.
pub(super) fn rendered(chromium: &Path, url: &str) -> Result<(String, String), String> {
    let profile = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = command(chromium, &profile);
    command.args(["--enable-logging=stderr", "--virtual-time-budget=5000", "--timeout=20000", "--dump-dom", url]);
    let ended = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let (page, said) = (text(ended.stdout), text(ended.stderr));
    let console = said.lines().filter(|line| line.contains("CONSOLE"));
    Ok((page, console.collect::<Vec<_>>().join("\n")))
}
