//! A client that keeps a view of the whole store: it reads a backup, but hardly.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a backup of a disk that has just become full is begun.
const ATTEMPTS: u32 = 5;

/// Reads a backup so slowly that it never ends.
pub(super) struct SlowReader(TcpStream);

impl SlowReader {
    /// A backup that is still being measured while merges make room may hold more than the disk can spare; then it is ended,
    /// and told to start again.
    pub(super) fn begin_at_last(server: SocketAddr) -> Result<Self, String> {
        let mut begun = Self::begin(server);
        for attempt in 1..ATTEMPTS {
            match begun {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    println!("attempt {attempt} to read a backup was ended before its first byte");
                    begun = Self::begin(server);
                }
                _ => break,
            }
        }
        begun.map_err(|error| format!("no backup begins: {error}"))
    }

    /// The answer has begun when this returns: the server knows what it will send.
    fn begin(server: SocketAddr) -> io::Result<Self> {
        let mut stream = TcpStream::connect(server)?;
        write!(stream, "GET /v1/backup HTTP/1.1\r\nHost: {server}\r\n\r\n")?;
        let mut first = [0; 512];
        stream.read_exact(&mut first)?;
        match first.starts_with(b"HTTP/1.1 200") {
            true => Ok(Self(stream)),
            false => Err(io::Error::other(String::from_utf8_lossy(&first).into_owned())),
        }
    }

    pub(super) fn read_until(mut self, done: &AtomicBool) {
        let mut bytes = vec![0; 64 << 10];
        while !done.load(Ordering::Relaxed) {
            // When the server ends it, there is nothing to do any more.
            let _ = self.0.read(&mut bytes);
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}
