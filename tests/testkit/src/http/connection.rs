//! One connection that is kept alive: a request, its response, the next request.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::message::{Request, Response};

/// No test waits longer for an answer.
pub const ANSWER_MAX: Duration = Duration::from_secs(120);

/// See the module.
pub struct Connection {
    reader: BufReader<TcpStream>,
    reusable: bool,
}

/// How a body ends.
enum Length {
    Bytes(usize),
    Chunks,
    UntilClosed,
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_write_timeout(Some(ANSWER_MAX))?;
        Ok(Self { reader: BufReader::new(stream), reusable: true })
    }

    /// Whether the server takes another request on it.
    pub fn is_reusable(&self) -> bool {
        self.reusable
    }

    /// Sends a request without reading anything.
    pub fn write(&mut self, request: &Request) -> io::Result<()> {
        self.reader.get_mut().write_all(&request.to_bytes())
    }

    /// Sends a request and reads the whole response.
    pub fn send(&mut self, request: &Request) -> io::Result<Response> {
        let (mut response, length) = self.begin(request)?;
        match length {
            Length::Bytes(bytes) => {
                response.body = vec![0; bytes];
                self.reader.read_exact(&mut response.body)?;
            }
            Length::Chunks => {
                while let Some(chunk) = self.chunk()? {
                    response.body.extend(chunk);
                }
            }
            Length::UntilClosed => {
                self.reusable = false;
                self.reader.read_to_end(&mut response.body)?;
            }
        }
        Ok(response)
    }

    /// Sends a request whose response is a stream; gives its head. The rest is read by [`chunk`](Self::chunk).
    pub fn stream(&mut self, request: &Request) -> io::Result<Response> {
        self.reusable = false;
        let (mut response, length) = self.begin(request)?;
        match length {
            Length::Chunks => {}
            // It is a refusal, which says why there is no stream.
            Length::Bytes(bytes) => {
                response.body = vec![0; bytes];
                self.reader.read_exact(&mut response.body)?;
            }
            Length::UntilClosed => return Err(io::Error::other("a stream that is not chunked")),
        }
        Ok(response)
    }

    /// How long a read waits.
    pub fn set_wait(&mut self, wait: Duration) -> io::Result<()> {
        self.reader.get_ref().set_read_timeout(Some(wait))
    }

    /// The next chunk of a response; none at its end.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.line()?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| malformed("the size of a chunk", &line))?;
        let mut chunk = vec![0; size];
        self.reader.read_exact(&mut chunk)?;
        if size == 0 {
            while !self.line()?.is_empty() {}
            return Ok(None);
        }
        let end = self.line()?;
        if end.is_empty() { Ok(Some(chunk)) } else { Err(malformed("the end of a chunk", &end)) }
    }

    fn begin(&mut self, request: &Request) -> io::Result<(Response, Length)> {
        self.write(request)?;
        let mut response = self.head()?;
        while response.status < 200 {
            response = self.head()?;
        }
        if response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.reusable = false;
        }
        let chunked = response.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
        let bodyless = request.method == "HEAD" || matches!(response.status, 204 | 304);
        let length = match response.header("content-length") {
            _ if bodyless => Length::Bytes(0),
            _ if chunked => Length::Chunks,
            Some(bytes) => Length::Bytes(bytes.parse().map_err(|_| malformed("content-length", bytes))?),
            None => Length::UntilClosed,
        };
        Ok((response, length))
    }

    fn head(&mut self) -> io::Result<Response> {
        let line = self.line()?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| malformed("a status line", &line))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(Response { status, headers, body: Vec::new() });
            }
            let (name, value) = line.split_once(':').ok_or_else(|| malformed("a header", &line))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
        }
    }
}

fn malformed(what: &str, found: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {found:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// What a client reads of these bytes, after one request each.
    fn responses(bytes: &'static str, count: usize) -> (Vec<io::Result<Response>>, bool) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.write_all(bytes.as_bytes()).expect("sent");
            stream
        });
        let mut connection = Connection::open(address).expect("connected");
        // It says no more, but goes on listening.
        let stream = server.join().expect("no panic");
        stream.shutdown(std::net::Shutdown::Write).expect("half closed");
        let read = (0..count).map(|_| connection.send(&Request::get("/"))).collect();
        (read, connection.is_reusable())
    }

    #[test]
    fn bodies_end_where_they_say() {
        let (read, reusable) = responses(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n\
             3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
             HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: Close\r\n\r\n",
            4,
        );
        let read: Vec<_> = read.into_iter().map(|response| response.expect("read")).collect();
        let bodies: Vec<_> = read.iter().map(|response| (response.status, response.text())).collect();
        let expected = [(200, "ok"), (404, "abc0123456789"), (204, ""), (200, "")];
        assert_eq!(bodies, expected.map(|(status, text)| (status, text.to_owned())));
        assert!(!reusable);
    }

    #[test]
    fn half_a_response_is_an_error() {
        for bytes in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no", "rubbish\r\n\r\n"] {
            let (read, _) = responses(bytes, 1);
            assert!(read[0].is_err(), "{bytes:?} gave {read:?}");
        }
    }
}
