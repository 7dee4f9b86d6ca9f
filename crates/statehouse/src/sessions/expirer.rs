//! Ends sessions whose time is over: the thread that looks, and proposes.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use contract::Error;
use session::SessionCommand;

use crate::access::Access;
use crate::error::cannot_open;
use crate::sessions::keeper::Keeper;

/// Sessions that one command ends. What they own is given back by ticks, so that none takes long.
const EXPIRED_AT_ONCE_MAX: usize = 64;

pub(crate) struct Expirer {
    /// Gone when the thread is to end.
    open: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Expirer {
    pub(crate) fn start(access: Access, keeper: Arc<Keeper>, every: Duration) -> Result<Self, Error> {
        let (open, closed) = channel::<()>();
        let thread = std::thread::Builder::new()
            .name("session-expire".into())
            .spawn(move || {
                while closed.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                    expire(&access, &keeper);
                }
            })
            .map_err(|error| cannot_open(format!("could not start the session-expire thread: {error}")))?;
        Ok(Self { open: Some(open), thread: Some(thread) })
    }
}

impl Drop for Expirer {
    fn drop(&mut self) {
        self.open = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread ends the expiry of sessions; it changes nothing that was answered.
            let _ = thread.join();
        }
    }
}

/// Ends what is overdue now.
fn expire(access: &Access, keeper: &Keeper) {
    loop {
        let sessions = keeper.take_overdue(access.time().now(), EXPIRED_AT_ONCE_MAX);
        if sessions.is_empty() {
            return;
        }
        let command = SessionCommand::Expire { sessions: sessions.clone() };
        if let Err(error) = access.propose_session(&command, |_| Ok(())).wait() {
            tracing::warn!(%error, sessions = sessions.len(), "sessions could not be ended; they are tried again");
            keeper.spare(&sessions);
            return;
        }
    }
}
