//! The state of a session, read from one view.

use kv::View;

use crate::head::Head;
use crate::keys::SessionKeys;
use crate::machine::Halt;
use crate::row::{self, SessionRow};

/// The state of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    /// Its creation parameters.
    pub row: SessionRow,
    /// The lowest request that is still answered.
    pub floor: u64,
    /// The highest request whose answer is stored; none if none is.
    pub last_request: Option<u64>,
    /// The number of stored answers.
    pub answers: usize,
    /// The last push that it got; 0 if it got none.
    pub last_push: u64,
    /// The last push that it has acknowledged.
    pub acknowledged: u64,
}

/// The state of a session; none if it does not exist.
pub fn status(view: &dyn View, keys: &SessionKeys, session: u64) -> Result<Option<SessionStatus>, Halt> {
    let Some(row) = row::session(view, keys, session)? else {
        return Ok(None);
    };
    let head = view.get(&keys.head(session))?;
    let head = head.ok_or_else(|| Halt::Inconsistent(format!("E1: session {session} has a row and no head")))?;
    let head = Head::decode(&head)?;
    Ok(Some(SessionStatus {
        row,
        floor: head.floor,
        last_request: head.requests().max(),
        answers: head.requests().count(),
        last_push: head.last_push,
        acknowledged: head.acknowledged,
    }))
}

/// Whether a request would not be executed if it arrived now: it was executed already, its client no longer waits for
/// it, or its session does not exist.
pub fn is_settled(view: &dyn View, keys: &SessionKeys, session: u64, request: u64) -> Result<bool, Halt> {
    let Some(head) = view.get(&keys.head(session))? else {
        return Ok(true);
    };
    let head = Head::decode(&head)?;
    Ok(head.broken || request < head.floor || head.requests().any(|known| known == request))
}
