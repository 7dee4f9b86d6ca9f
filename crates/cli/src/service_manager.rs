//! What a server tells the service manager that has started it: the protocol of `sd_notify`, to the socket in `NOTIFY_SOCKET`.
//!
//! A message is a datagram of lines. Keeps: without such a manager nothing is sent, and a message that cannot be sent harms nobody.
//! Never: waits for the manager.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A service manager; or none, and then nothing is said.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The one that has started this process.
    pub(crate) fn of_this_process() -> Self {
        let Some(named) = std::env::var_os("NOTIFY_SOCKET") else { return Self::default() };
        let named = named.to_string_lossy();
        match connect(&named) {
            Ok(socket) => Self { socket: Some(socket), watchdog: watchdog_of(|name| std::env::var(name).ok()) },
            Err(error) => {
                tracing::warn!(%error, socket = %named, "the service manager cannot be told anything");
                Self::default()
            }
        }
    }

    /// Whether there is somebody to tell.
    pub(crate) fn is_there(&self) -> bool {
        self.socket.is_some()
    }

    /// How often it wants to hear that the server answers.
    pub(crate) fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// A sentence for whoever looks at the service.
    pub(crate) fn say(&self, status: &str) {
        self.send(&format!("STATUS={status}"));
    }

    /// The server serves.
    pub(crate) fn ready(&self, status: &str) {
        self.send(&format!("READY=1\nSTATUS={status}"));
    }

    /// The settings are being read again; `ready` ends that.
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let now_us = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=reading the settings again"));
    }

    /// The server stops.
    pub(crate) fn stopping(&self) {
        self.send("STOPPING=1\nSTATUS=answering the requests in progress");
    }

    /// The server answers.
    pub(crate) fn alive(&self) {
        self.send("WATCHDOG=1");
    }

    fn send(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.send(message.as_bytes()) {
            tracing::debug!(%error, message, "the service manager was not told");
        }
    }
}

/// Connects to a path, or to a name without a file, which begins with `@`.
fn connect(named: &str) -> io::Result<UnixDatagram> {
    let address = match named.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(named)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The watchdog's time, if it is set, and for this process.
fn watchdog_of(variable: impl Fn(&str) -> Option<String>) -> Option<Duration> {
    let for_another = variable("WATCHDOG_PID").is_some_and(|id| id != std::process::id().to_string());
    let time = variable("WATCHDOG_USEC")?.parse().ok().map(Duration::from_micros)?;
    (!for_another && !time.is_zero()).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_of_the_process_that_it_names() {
        let own = std::process::id().to_string();
        let of = |pid: Option<&str>, time: Option<&str>| {
            watchdog_of(|name| if name == "WATCHDOG_PID" { pid } else { time }.map(str::to_owned))
        };
        let half_a_minute = Some(Duration::from_secs(30));
        assert_eq!(of(None, Some("30000000")), half_a_minute);
        assert_eq!(of(Some(&own), Some("30000000")), half_a_minute);
        assert_eq!(of(Some("1"), Some("30000000")), None, "of the one that has started us");
        assert_eq!((of(None, None), of(None, Some("0")), of(None, Some("x"))), (None, None, None));
    }

    #[test]
    fn a_name_without_a_file_is_a_socket_as_well() {
        let name = format!("statehouse-test-{}", std::process::id());
        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a name")).expect("bound");
        connect(&format!("@{name}")).expect("connected").send(b"READY=1").expect("sent");
        let mut heard = [0; 64];
        assert_eq!(manager.recv(&mut heard).expect("a message"), 7);
    }
}
