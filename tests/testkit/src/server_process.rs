//! A server in a separate process: started, awaited, killed or asked to stop.
//!
//! Touches: child processes. Keeps: all output of the child, on both streams; no child outlives its value. Never: kills
//! anything but its own child, by its process id.
//!
//! [`binary`] returns the command `statehouse`, built with the profile of the calling program.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::cargo::cargo;

/// How long a server may take until it prints its address. Opening replays a journal, on a machine with other work.
const READY_MAX: Duration = Duration::from_secs(120);
/// The setting that says whether a server asks for tokens, as a variable.
const TOKENS: &str = "STATEHOUSE_SERVER__TOKENS";
/// How often a stopping child is polled.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The command `statehouse` that belongs to this program: `TESTKIT_STATEHOUSE` if set, else the one in the directory
/// this program was built into. Under cargo it is built first, once, with the same profile, so that it is never outdated.
///
/// # Panics
/// If it cannot be built, or is not there.
pub fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(find_or_build).clone()
}

fn find_or_build() -> PathBuf {
    if let Some(given) = std::env::var_os("TESTKIT_STATEHOUSE") {
        return given.into();
    }
    let program = std::env::current_exe().expect("the path of this program");
    let directory = program.ancestors().skip(1).find(|directory| !directory.ends_with("deps"));
    let directory = directory.expect("a program stands in a directory");
    let name = directory.file_name().and_then(|name| name.to_str()).expect("a profile's directory");
    let profile = if name == "debug" { "dev" } else { name };
    let build = ["build", "--quiet", "--package", "statehouse-cli", "--profile", profile];
    if std::env::var_os("CARGO").is_some() {
        let built = cargo().args(build).status().expect("cargo starts");
        assert!(built.success(), "cargo {} failed", build.join(" "));
    }
    let binary = directory.join("statehouse");
    assert!(binary.is_file(), "{} is missing; run cargo {}", binary.display(), build.join(" "));
    binary
}

/// What to start.
#[derive(Clone, Debug)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Launch {
    /// Any program that prints `http://ADDRESS` once it serves.
    pub fn program(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), arguments: Vec::new(), environment: Vec::new() }
    }

    /// `statehouse serve` on a directory, on a free port, which asks nobody for a token; `program` from [`binary`], or
    /// `CARGO_BIN_EXE`.
    pub fn serve(program: impl Into<PathBuf>, data: impl AsRef<Path>) -> Self {
        let launch = Self::program(program).asking_nobody();
        launch.arguments(["serve", "--listen", "127.0.0.1:0", "--data"]).argument(data.as_ref())
    }

    /// The same of a server that asks nobody for a token.
    pub fn asking_nobody(self) -> Self {
        self.environment(TOKENS, "off")
    }

    /// The same of a server that asks everybody for a token. That of its first administrator is in `root.token`.
    pub fn asking_for_tokens(self) -> Self {
        self.environment(TOKENS, "required")
    }

    /// `statehouse dev` on a free port.
    pub fn dev(program: impl Into<PathBuf>) -> Self {
        Self::program(program).arguments(["dev", "--listen", "127.0.0.1:0"])
    }

    /// The same with one argument more.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The same with arguments more.
    pub fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// The same with a variable of the environment.
    pub fn environment(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts it and waits until it prints its address. The error is its output instead.
    pub fn start(&self) -> Result<ServerProcess, String> {
        let mut process = self.start_opening()?;
        process.await_ready()?;
        Ok(process)
    }

    /// Starts it, and does not wait: it may still be opening its directory, and has no address yet.
    pub fn start_opening(&self) -> Result<ServerProcess, String> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let (sender, announced) = channel();
        let mut sender = Some(sender);
        let stdout = Said::listen(child.stdout.take().expect("it was asked for"), move |line| {
            if let Some(address) = address_in(line) {
                // From here on the server's output is only collected.
                let _ = sender.take().map(|sender| sender.send(address));
            }
        });
        let stderr = Said::listen(child.stderr.take().expect("it was asked for"), |_| {});
        Ok(ServerProcess { child, stdout, stderr, announced: Mutex::new(announced), address: None })
    }
}

/// The address in a line such as `serves on http://127.0.0.1:7420`.
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, after) = line.split_once("http://").or_else(|| line.split_once("https://"))?;
    let end = after.find(|character: char| !(character.is_ascii_hexdigit() || ".:[]".contains(character)));
    after[..end.unwrap_or(after.len())].parse().ok()
}

/// A running server; killed on drop.
pub struct ServerProcess {
    child: Child,
    /// Never locked: the mutex only lets threads share this value.
    announced: Mutex<Receiver<SocketAddr>>,
    address: Option<SocketAddr>,
    stdout: Said,
    stderr: Said,
}

impl ServerProcess {
    /// Waits until it prints its address. The error is its output instead.
    pub fn await_ready(&mut self) -> Result<SocketAddr, String> {
        if let Some(address) = self.address {
            return Ok(address);
        }
        match self.announced.get_mut().expect("no lock, no panic").recv_timeout(READY_MAX) {
            Ok(address) => Ok(*self.address.insert(address)),
            // It has ended, or is silent: either way it is over, and its last output says why.
            Err(_) => {
                let ended = self.kill_here();
                Err(format!("it did not say where it listens: {}: {}{}", ended.status, ended.stdout, ended.stderr))
            }
        }
    }

    /// Where it listens.
    ///
    /// # Panics
    /// If nobody waited until it was ready.
    pub fn address(&self) -> SocketAddr {
        self.address.expect("a server that is ready")
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the child is ours")
    }

    /// Its error output so far.
    pub fn stderr(&self) -> String {
        self.stderr.so_far()
    }

    /// Its standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.so_far()
    }

    /// Kills it (SIGKILL), as a crash would.
    pub fn kill(mut self) -> Ended {
        self.kill_here()
    }

    /// Asks it to stop (SIGTERM) and waits. After `wait` it is killed.
    pub fn terminate(mut self, wait: Duration) -> Ended {
        self.signal("TERM");
        let mut waited = Duration::ZERO;
        while self.ended().is_none() && waited < wait {
            std::thread::sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        self.kill()
    }

    /// Sends it a signal by name, such as `TERM`, `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -{name} {} failed", self.id());
    }

    fn kill_here(&mut self) -> Ended {
        self.child.kill().expect("a signal to a child that was not waited for");
        let status = self.child.wait().expect("the child is ours");
        Ended { status, stdout: self.stdout.all(), stderr: self.stderr.all() }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // After `kill` there is nothing left to do; both calls are harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The remains of an ended process.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub status: ExitStatus,
    /// All its standard output.
    pub stdout: String,
    /// All its error output.
    pub stderr: String,
}

/// One output of a child, read as it arrives so that the child never blocks.
struct Said {
    text: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

impl Said {
    fn listen(output: impl Read + Send + 'static, mut heard: impl FnMut(&str) + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let kept = text.clone();
        let listener = std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            // A read fails only when the child is gone; its earlier output counts.
            while output.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                let said = String::from_utf8_lossy(&line);
                heard(&said);
                kept.lock().expect("no panic").push_str(&said);
                line.clear();
            }
        });
        Self { text, listener: Some(listener) }
    }

    fn so_far(&self) -> String {
        self.text.lock().expect("no panic").clone()
    }

    /// All of it, when the child has ended.
    fn all(&mut self) -> String {
        if let Some(listener) = self.listener.take() {
            listener.join().expect("no panic");
        }
        self.so_far()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Launch {
        Launch::program("/bin/sh").arguments(["-c", script])
    }

    #[test]
    fn the_address_is_found_in_what_it_says() {
        let server = shell("echo hello; echo warm >&2; echo 'on http://127.0.0.1:1234/'; exec sleep 100").start();
        let mut server = server.expect("it says where");
        assert_eq!(server.address(), "127.0.0.1:1234".parse().expect("an address"));
        assert!(server.ended().is_none());
        let ended = server.kill();
        assert!(!ended.status.success());
        assert_eq!((ended.stdout.lines().count(), ended.stderr.as_str()), (2, "warm\n"));
        assert_eq!(address_in("http://[::1]:80, ready"), "[::1]:80".parse().ok());
        assert_eq!(address_in("on https://127.0.0.1:443\n"), "127.0.0.1:443".parse().ok());
    }

    #[test]
    fn one_that_ends_at_once_says_why() {
        let said = shell("echo no room >&2; exit 3").start().map(|_| ()).expect_err("it ended");
        assert!(said.contains("no room") && said.contains("exit status: 3"), "{said}");
    }

    #[test]
    fn it_is_asked_to_stop_and_killed_if_it_does_not() {
        let polite = "trap 'echo bye; exit 0' TERM; echo http://127.0.0.1:1; while true; do sleep 0.01; done";
        let ended = shell(polite).start().expect("ready").terminate(Duration::from_secs(20));
        assert!(ended.status.success() && ended.stdout.ends_with("bye\n"), "{ended:?}");
        let deaf = "trap '' TERM; echo http://127.0.0.1:1; while true; do sleep 0.01; done";
        let ended = shell(deaf).start().expect("ready").terminate(Duration::from_millis(50));
        assert!(!ended.status.success(), "{ended:?}");
    }
}
