//! The signals of a server: what ends it, and what makes it read its settings again.
//!
//! - SIGTERM and ctrl-c end it; again, they end it at once.
//! - SIGHUP means two things. The system sends it when a terminal is closed, and then a server that was started there ends. Otherwise
//!   somebody wants the settings to be read again. A server without settings to read ends.

use std::io::{self, IsTerminal};
use std::pin::Pin;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What reading the settings again is, if a server can do that.
pub(crate) type Reload = Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// The hangups of this process, from when this is made.
pub(crate) struct Hangups {
    /// None if the process was started to outlive its terminal.
    signal: Option<Signal>,
    /// Which of the standard streams are terminals.
    terminals: [bool; 3],
}

impl Hangups {
    pub(crate) fn listen() -> io::Result<Self> {
        let signal = match is_hangup_ignored() {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        Ok(Self { signal, terminals: terminals() })
    }

    /// Waits for one. True if it came because the terminal was closed.
    async fn next(&mut self) -> bool {
        match &mut self.signal {
            Some(signal) => signal.recv().await,
            None => std::future::pending().await,
        };
        // A stream of a terminal that was closed is none any more.
        self.terminals.iter().zip(terminals()).any(|(before, now)| *before && !now)
    }
}

fn terminals() -> [bool; 3] {
    [io::stdin().is_terminal(), io::stdout().is_terminal(), io::stderr().is_terminal()]
}

/// Waits for ctrl-c or SIGTERM, or for a SIGHUP that ends it, and reloads at every other one; listens from the call on. The next
/// ctrl-c or SIGTERM ends the process at once: every answered write is in the journal. The next SIGHUP does not, since a shell and
/// the system each send one when a terminal closes.
pub(crate) fn stop(mut hangups: Hangups, mut reload: Option<Reload>) -> impl Future<Output = ()> {
    let deliberate = Deliberate::listen();
    async move {
        let Ok(mut deliberate) = deliberate else {
            // Without a handler the first signal ends the process.
            return std::future::pending().await;
        };
        loop {
            let closed = tokio::select! {
                () = deliberate.next() => break,
                closed = hangups.next() => closed,
            };
            match &mut reload {
                // The files may be where reading takes long, or never ends.
                Some(reload) if !closed => tokio::select! {
                    () = deliberate.next() => break,
                    () = reload() => {}
                },
                _ => {
                    tracing::info!("hung up: stopping");
                    break;
                }
            }
        }
        tokio::spawn(async move {
            // A hangup is nothing any more, but it must not end the process.
            let _hangups = hangups;
            deliberate.next().await;
            tracing::warn!("told to stop again; the journal will be replayed at the next opening");
            std::process::exit(1);
        });
    }
}

struct Deliberate {
    interrupt: Signal,
    terminate: Signal,
}

impl Deliberate {
    fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Whether this process was started to outlive its terminal, as `nohup` does: a handler would undo that.
fn is_hangup_ignored() -> bool {
    const HANGUP: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & HANGUP != 0)
}
