//! A server over a real socket, in this process, with the directory that holds its data.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::net::SocketAddr;
use std::thread::JoinHandle;

use statehouse::{Options, Statehouse};
use statehouse_server::Server;
use testkit::http::{Client, Request};
use tokio::sync::oneshot;

/// The server; it stops when this is dropped.
pub struct Running {
    pub address: SocketAddr,
    pub house: Statehouse,
    pub folder: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts the server that `server` makes of a new house.
    pub fn start(options: &Options, server: impl FnOnce(Statehouse) -> Server + Send + 'static) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let house = options.open(folder.path().join("house")).expect("a house");
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let served = house.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let address = "127.0.0.1:0".parse().expect("an address");
                let listener = statehouse_server::listen(address).await.expect("a listener");
                tell.send(listener.local_addr().expect("an address")).expect("heard");
                let stop = async {
                    let _ = stopped.await;
                };
                statehouse_server::serve_all(listener, server(served), stop).await.expect("served");
            });
        });
        let address = told.recv().expect("an address");
        Self { address, house, folder, stop: Some(stop), thread: Some(thread) }
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        Client::to(self.address)
    }

    /// Tells it to stop, and does not wait for that.
    pub fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until it has stopped.
    pub fn end(&mut self) {
        self.begin_stop();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()), "the server ended well");
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
