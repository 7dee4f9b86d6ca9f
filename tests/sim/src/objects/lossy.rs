//! A proxy that loses an answer: the server has done what was asked, and the client does not hear of it.
//!
//! Touches: connections on the loopback. Keeps: each answer on its list is lost once. Never: changes a byte of another.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::calls::{LOST_PUT, LOST_UPLOAD};

/// The proxy.
pub(super) struct LossyProxy {
    address: SocketAddr,
    lost: Arc<Losses>,
}

#[derive(Default)]
struct Losses {
    put: AtomicBool,
    upload: AtomicBool,
    count: AtomicUsize,
}

impl LossyProxy {
    /// Starts it; it runs until this process ends.
    pub(super) fn to(server: SocketAddr) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let lost = Arc::new(Losses::default());
        let losses = Arc::clone(&lost);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let losses = Arc::clone(&losses);
                std::thread::spawn(move || {
                    if let Ok(server) = TcpStream::connect(server) {
                        pass(&client, &server, &losses);
                    }
                });
            }
        });
        Ok(Self { address, lost })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many answers were lost.
    pub(super) fn lost(&self) -> usize {
        self.lost.count.load(Ordering::SeqCst)
    }
}

/// Passes both ways, until an answer is to be lost or somebody closes.
fn pass(client: &TcpStream, server: &TcpStream, losses: &Losses) {
    let losing = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            copy(client, server, |bytes| {
                if losses.begins(bytes) {
                    losing.store(true, Ordering::SeqCst);
                }
                true
            });
        });
        copy(server, client, |answer| {
            // The server may ask for the rest of a body first.
            let is_answer = !answer.starts_with(b"HTTP/1.1 100");
            if is_answer && losing.load(Ordering::SeqCst) {
                losses.count.fetch_add(1, Ordering::SeqCst);
                return false;
            }
            true
        });
    });
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, mut passes: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 || !passes(&buffer[..read]) || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    for end in [from, to] {
        // It may be closed by now.
        let _ = end.shutdown(Shutdown::Both);
    }
}

impl Losses {
    /// Whether a request begins here whose answer is to be lost, the first time.
    fn begins(&self, bytes: &[u8]) -> bool {
        let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let is = |method: &str, name: &str| line.starts_with(method) && line.contains(name);
        (is("PUT ", LOST_PUT) && !self.put.swap(true, Ordering::SeqCst))
            || (is("POST ", &format!("{LOST_UPLOAD}?uploadId=")) && !self.upload.swap(true, Ordering::SeqCst))
    }
}
