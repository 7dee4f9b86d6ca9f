//! A server over a real socket, in this process, with the directory that holds its data.

#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use statehouse::{Options, Statehouse};
use statehouse_server::Server;
use statehouse_server::memory::{Budget, Source};
use tokio::sync::oneshot;

/// The server; it stops when this is dropped.
pub struct Served {
    pub address: SocketAddr,
    pub house: Statehouse,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    _directory: tempfile::TempDir,
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().expect("a thread").join();
        assert!(std::thread::panicking() || ended.is_ok(), "the server ended well");
    }
}

pub fn served(options: &Options) -> Served {
    let directory = tempfile::tempdir().expect("a directory");
    let house = options.open(directory.path().join("house")).expect("a house");
    let (stop, stopped) = oneshot::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn({
        let house = house.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener =
                    statehouse_server::listen("127.0.0.1:0".parse().expect("an address")).await.expect("a listener");
                tell.send(listener.local_addr().expect("an address")).expect("heard");
                let stop = async {
                    let _ = stopped.await;
                };
                let budget = Budget { bytes: 256 << 20, source: Source::Said };
                let server = Server::new(house).with_budget(budget);
                statehouse_server::serve_all(listener, server, stop).await.expect("served");
            });
        }
    });
    let address = told.recv().expect("an address");
    Served { address, house, stop: Some(stop), thread: Some(thread), _directory: directory }
}

/// An answer as text.
pub struct Text {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Served {
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Text {
        let mut stream = TcpStream::connect(self.address).expect("a connection");
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("content-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Text { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    pub fn get(&self, path: &str) -> Text {
        self.send("GET", path, &[], "")
    }

    /// Sends and expects a status.
    pub fn expect(&self, status: u16, method: &str, path: &str, body: &str) -> Text {
        let answer = self.send(method, path, &[], body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        answer
    }

    /// Sends what is done.
    pub fn done(&self, method: &str, path: &str, body: &str) -> Text {
        let answer = self.send(method, path, &[], body);
        assert!((200..300).contains(&answer.status), "{method} {path}: {}", answer.body);
        answer
    }

    /// Every sample of a scrape.
    pub fn scrape(&self) -> BTreeMap<String, f64> {
        let scraped = self.get("/metrics");
        assert_eq!(scraped.status, 200);
        let samples = scraped.body.lines().filter(|line| !line.starts_with('#'));
        samples
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').expect("a name and a value");
                (name.to_owned(), value.parse().expect("a number"))
            })
            .collect()
    }
}

/// Waits for what happens on its own.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}
