//! Ends expired sessions: the thread that finds them, and proposes their end.

use std::sync::Arc;
use std::time::Duration;

use contract::Error;
use session::SessionCommand;

use crate::access::Access;
use crate::background::repeating::Repeating;
use crate::sessions::keeper::Keeper;

/// Sessions that one command ends. Ticks release what they own, so that no command takes long.
const EXPIRED_AT_ONCE_MAX: usize = 64;

/// Starts the thread.
pub(crate) fn start(access: Access, keeper: Arc<Keeper>, every: Duration) -> Result<Repeating, Error> {
    Repeating::start("session-expire", every, move |_| expire(&access, &keeper))
}

/// Ends expired sessions now.
fn expire(access: &Access, keeper: &Keeper) {
    loop {
        let sessions = keeper.take_overdue(access.time().now(), EXPIRED_AT_ONCE_MAX);
        if sessions.is_empty() {
            return;
        }
        let command = SessionCommand::Expire { sessions: sessions.clone() };
        if let Err(error) = access.propose_session(&command, |_| Ok(())).wait() {
            tracing::warn!(%error, sessions = sessions.len(), "could not end sessions; will retry");
            keeper.spare(&sessions);
            return;
        }
    }
}
