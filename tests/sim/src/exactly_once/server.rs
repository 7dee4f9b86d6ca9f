//! The server, which is killed as well, and how operators find it again.
//!
//! Its address is in a file, since it listens on another port after each start.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use client::{ClientOptions, Error};
use testkit::http::Client as TestClient;
use testkit::server_process::{Launch, ServerProcess, binary};

/// The server's side of the parent.
pub(super) struct Served {
    launch: Launch,
    /// Whether it is this program with a planted bug, which does not stop when it is asked to.
    is_planted: bool,
    address_file: PathBuf,
    process: Option<ServerProcess>,
}

impl Served {
    /// With the planted bugs, or none.
    pub(super) fn start(directory: &Path, planted: &[&str]) -> Result<Self, String> {
        let (house, is_planted) = (directory.join("house"), !planted.is_empty());
        let launch = if is_planted {
            let this = std::env::current_exe().map_err(|error| error.to_string())?;
            Launch::program(this).arguments(["serve-machine", "--data"]).argument(house).arguments(planted)
        } else {
            Launch::serve(binary(), house)
        };
        let mut served = Self { launch, is_planted, address_file: directory.join("address"), process: None };
        served.start_again()?;
        Ok(served)
    }

    fn start_again(&mut self) -> Result<(), String> {
        let process = self.launch.start()?;
        let partial = self.address_file.with_extension("partial");
        let written = std::fs::write(&partial, process.address().to_string());
        written.and_then(|()| std::fs::rename(&partial, &self.address_file)).map_err(|error| error.to_string())?;
        self.process = Some(process);
        Ok(())
    }

    pub(super) fn address_file(&self) -> &Path {
        &self.address_file
    }

    /// Lets operators count their last events.
    pub(super) fn open_gate(&self) -> Result<(), String> {
        std::fs::write(gate(&self.address_file), "").map_err(|error| error.to_string())
    }

    /// Kills it, and starts another one on the same directory.
    pub(super) fn kill(&mut self) -> Result<(), String> {
        let ended = self.process.take().expect("it runs").kill();
        if ended.stderr.contains("panicked") {
            return Err(format!("the server panicked: {}", ended.stderr));
        }
        self.start_again()
    }

    /// Asks it to stop, which must go well.
    pub(super) fn stop(mut self) -> Result<(), String> {
        let process = self.process.take().expect("it runs");
        if self.is_planted {
            return Ok(());
        }
        let ended = process.terminate(Duration::from_secs(60));
        if ended.status.success() { Ok(()) } else { Err(format!("the server stopped badly: {}", ended.stderr)) }
    }
}

/// A client that follows the server. It sends each call once, outside of a session.
#[derive(Clone)]
pub(super) struct Follower {
    address_file: PathBuf,
    server: TestClient,
    pub(super) client: client::Client,
}

impl Follower {
    pub(super) fn new(address_file: &Path) -> Self {
        let server = TestClient::to(address_in(address_file));
        let client = server.typed(ClientOptions::default().without_sessions().without_retries());
        Self { address_file: address_file.to_owned(), server, client }
    }

    /// Calls until there is an answer: for what may be done twice.
    pub(super) async fn until_answered<T>(&self, call: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
        loop {
            match call().await {
                Err(error) if is_passing(&error) => self.look_again().await,
                other => return other,
            }
        }
    }

    /// Waits before the last events, until all that is to happen to operators has happened.
    pub(super) async fn until_let_through(&self) {
        while !gate(&self.address_file).exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Looks where the server is by now.
    pub(super) async fn look_again(&self) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let address = address_in(&self.address_file);
        if address != self.server.address() {
            self.server.moved_to(address);
        }
    }
}

/// The file whose existence opens the gate.
fn gate(address_file: &Path) -> PathBuf {
    address_file.with_file_name("gate")
}

/// Whether a call failed for want of a server, or of one that is ready.
pub(super) fn is_passing(error: &Error) -> bool {
    match error {
        Error::NoAnswer { .. } | Error::TimedOut { .. } => true,
        Error::Refused(refusal) => refusal.retryable && refusal.code.starts_with("SH-2"),
        _ => false,
    }
}

fn address_in(file: &Path) -> SocketAddr {
    let text = std::fs::read_to_string(file).expect("the parent has written it");
    text.parse().expect("an address")
}
