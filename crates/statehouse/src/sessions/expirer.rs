//! Ends sessions whose time is over: the thread that looks, and proposes.

use std::sync::Arc;
use std::time::Duration;

use contract::Error;
use session::SessionCommand;

use crate::access::Access;
use crate::repeating::Repeating;
use crate::sessions::keeper::Keeper;

/// Sessions that one command ends. What they own is given back by ticks, so that none takes long.
const EXPIRED_AT_ONCE_MAX: usize = 64;

/// Starts the thread.
pub(crate) fn start(access: Access, keeper: Arc<Keeper>, every: Duration) -> Result<Repeating, Error> {
    Repeating::start("session-expire", every, move |_| expire(&access, &keeper))
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
