//! The servers of hostile pages, and the wire from them to ours.
//!
//! A [`Lure`] listens on one port. It serves its own page and takes the page's report; it forwards everything else to our server,
//! byte for byte. To a browser this is what rebinding looks like: the name of the page is suddenly the name of our server. The
//! traffic is recorded.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::Value as JsonValue;

/// The longest request head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A server of hostile pages. It listens until this program ends.
pub(super) struct Lure {
    pub(super) port: u16,
    reports: Receiver<JsonValue>,
    passed: Arc<Mutex<Passed>>,
}

/// The traffic to our server and back.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed {
    /// The first line of every request.
    pub(super) requests: Vec<String>,
    /// The status of every answer.
    pub(super) statuses: Vec<String>,
}

impl Lure {
    /// Starts listening, in front of a server.
    pub(super) fn set(server: SocketAddr, page: String) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let (reporter, reports) = channel();
        let passed = Arc::new(Mutex::new(Passed::default()));
        let served = Served { server, page: page.into(), reporter, passed: passed.clone() };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let served = served.clone();
                // Broken connections are the browser's business.
                std::thread::spawn(move || served.serve(stream));
            }
        });
        Ok(Self { port, reports, passed })
    }

    /// The page's report, if it arrives in time.
    pub(super) fn report(&self, wait: std::time::Duration) -> Option<JsonValue> {
        self.reports.recv_timeout(wait).ok()
    }

    /// The traffic so far.
    pub(super) fn passed(&self) -> Passed {
        self.passed.lock().expect("no panic").clone()
    }
}

#[derive(Clone)]
struct Served {
    server: SocketAddr,
    page: Arc<str>,
    reporter: Sender<JsonValue>,
    passed: Arc<Mutex<Passed>>,
}

impl Served {
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut begin = Vec::new();
        let head_end = loop {
            if let Some(end) = begin.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            let mut part = [0; 4096];
            let read = stream.read(&mut part)?;
            if read == 0 || begin.len() > HEAD_BYTES_MAX {
                return Ok(());
            }
            begin.extend_from_slice(&part[..read]);
        };
        let head = String::from_utf8_lossy(&begin[..head_end]).into_owned();
        if head.starts_with("GET /page") {
            let page = &self.page;
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n";
            return write!(stream, "{answer}content-length: {}\r\n\r\n{page}", page.len());
        }
        if head.starts_with("GET /favicon.ico") {
            return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
        if head.starts_with("POST /report") {
            return self.take_report(stream, &head, begin.split_off(head_end));
        }
        self.pass_on(stream, &begin)
    }

    fn take_report(&self, mut stream: TcpStream, head: &str, mut body: Vec<u8>) -> io::Result<()> {
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        let mut rest = vec![0; length.saturating_sub(body.len())];
        stream.read_exact(&mut rest)?;
        body.append(&mut rest);
        // The receiver may be gone already.
        let _ = self.reporter.send(serde_json::from_slice(&body).unwrap_or_default());
        stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
    }

    fn pass_on(&self, browser: TcpStream, begin: &[u8]) -> io::Result<()> {
        let mut server = TcpStream::connect(self.server)?;
        self.note(begin, Passed::note_request);
        server.write_all(begin)?;
        let (from_server, to_browser) = (server.try_clone()?, browser.try_clone()?);
        let served = self.clone();
        let back = std::thread::spawn(move || served.copy(from_server, to_browser, Passed::note_status));
        self.copy(browser, server, Passed::note_request);
        let _ = back.join();
        Ok(())
    }

    /// Copies to the end, and records lines on the way.
    fn copy(&self, mut from: TcpStream, mut to: TcpStream, note: fn(&mut Passed, &str)) {
        let mut part = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut part) {
            self.note(&part[..read], note);
            if to.write_all(&part[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }

    fn note(&self, bytes: &[u8], note: fn(&mut Passed, &str)) {
        let mut passed = self.passed.lock().expect("no panic");
        String::from_utf8_lossy(bytes).lines().for_each(|line| note(&mut passed, line));
    }
}

impl Passed {
    fn note_request(&mut self, line: &str) {
        self.requests.extend(line.strip_suffix(" HTTP/1.1").map(str::to_owned));
    }

    fn note_status(&mut self, line: &str) {
        self.statuses.extend(line.strip_prefix("HTTP/1.1 ").map(str::to_owned));
    }
}
