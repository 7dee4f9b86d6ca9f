//! A server over a real socket, in this process, with the directory that holds its data.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use statehouse::{Options, Statehouse};
use statehouse_server::{Listeners, Server};
use testkit::http::{Client, Request};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// The server; it stops when this is dropped.
pub struct Running {
    pub address: SocketAddr,
    pub house: Statehouse,
    pub folder: tempfile::TempDir,
    /// The server's own handle, for the current use of its limits.
    pub server: Server,
    time: Option<HeldTime>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts the server that `server` makes of a new house.
    pub fn start(options: &Options, server: impl FnOnce(Statehouse) -> Server) -> Self {
        Self::start_on(workers(), None, folder(), options, server, |listeners| listeners)
    }

    /// The same with other sockets than that of an address.
    pub fn start_listening(
        options: &Options,
        server: impl FnOnce(Statehouse) -> Server,
        listening: impl FnOnce(Listeners) -> Listeners + Send + 'static,
    ) -> Self {
        Self::start_on(workers(), None, folder(), options, server, listening)
    }

    /// The same with a time that only [`advance`](Self::advance) moves.
    pub fn start_listening_held(
        options: &Options,
        server: impl FnOnce(Statehouse) -> Server,
        listening: impl FnOnce(Listeners) -> Listeners + Send + 'static,
    ) -> Self {
        let (runtime, time) = held();
        Self::start_on(runtime, Some(time), folder(), options, server, listening)
    }

    /// The same where a sync takes no time, if the system has such a disk: a slow disk is not what `/status` talks about.
    pub fn start_in_memory(options: &Options, server: impl FnOnce(Statehouse) -> Server) -> Self {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| folder());
        Self::start_on(workers(), None, memory, options, server, |listeners| listeners)
    }

    /// The same with a time that only [`advance`](Self::advance) moves, and with all connections on one thread.
    pub fn start_held(options: &Options, server: impl FnOnce(Statehouse) -> Server) -> Self {
        let (runtime, time) = held();
        Self::start_on(runtime, Some(time), folder(), options, server, |listeners| listeners)
    }

    fn start_on(
        runtime: tokio::runtime::Runtime,
        time: Option<HeldTime>,
        folder: tempfile::TempDir,
        options: &Options,
        server: impl FnOnce(Statehouse) -> Server,
        listening: impl FnOnce(Listeners) -> Listeners + Send + 'static,
    ) -> Self {
        let house = options.open(folder.path().join("house")).expect("a house");
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = channel();
        let server = server(house.clone());
        let served = server.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let address = "127.0.0.1:0".parse().expect("an address");
                let listeners = listening(statehouse_server::listen(address).await.expect("a listener"));
                tell.send(listeners.local_addr().expect("an address")).expect("heard");
                let stop = async {
                    let _ = stopped.await;
                };
                statehouse_server::serve_all(listeners, served, stop).await.expect("served");
            });
        });
        let address = told.recv().expect("an address");
        Self { address, house, folder, server, time, stop: Some(stop), thread: Some(thread) }
    }

    /// Lets time pass for a server whose time is held.
    pub fn advance(&self, by: Duration) {
        self.time.as_ref().expect("its time is held").advance(by);
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        Client::to(self.address)
    }

    /// Tells it to stop, and does not wait for that.
    pub fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Whether it has stopped.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until it has stopped. A held time goes on by itself from here on.
    pub fn end(&mut self) {
        drop(self.time.take());
        self.begin_stop();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the server ended well");
    }
}

fn held() -> (tokio::runtime::Runtime, HeldTime) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    let time = HeldTime::start(&runtime);
    (runtime, time)
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn workers() -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime")
}

/// The time of a runtime that stands still between two steps.
struct HeldTime {
    steps: UnboundedSender<(Duration, Sender<()>)>,
}

impl HeldTime {
    fn start(runtime: &tokio::runtime::Runtime) -> Self {
        let (steps, mut next) = unbounded_channel::<(Duration, Sender<()>)>();
        // A paused time jumps to the next timer whenever tokio has nothing to do, unless work goes on apart.
        let (release, held) = channel::<()>();
        runtime.spawn_blocking(move || held.recv());
        runtime.spawn(async move {
            while let Some((by, done)) = next.recv().await {
                tokio::time::advance(by).await;
                let _ = done.send(());
            }
            tokio::time::resume();
            drop(release);
        });
        Self { steps }
    }

    fn advance(&self, by: Duration) {
        let (done, is_done) = channel();
        self.steps.send((by, done)).expect("the server runs");
        is_done.recv().expect("the server runs");
    }
}

/// A request with headers and a body, as text.
pub fn request(method: &'static str, path: &str, headers: &[(&str, &str)], body: &str) -> Request {
    let request = Request::new(method, path).body(body);
    headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
