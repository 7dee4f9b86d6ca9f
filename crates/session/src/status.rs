//! How a session is doing, read from one view.

use kv::View;

use crate::head::Head;
use crate::keys::SessionKeys;
use crate::machine::Halt;
use crate::row::{self, SessionRow};

/// What a session is, has stored and waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    /// What is known of it from its creation on.
    pub row: SessionRow,
    /// The lowest request that is still answered.
    pub floor: u64,
    /// The highest request whose answer is stored; none if none is.
    pub last_request: Option<u64>,
    /// How many answers are stored.
    pub answers: usize,
    /// The last push that it got; 0 if it got none.
    pub last_push: u64,
    /// The last push that it has acknowledged.
    pub acknowledged: u64,
}

/// How a session is doing; none if there is no such session.
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

/// Whether a request would not be executed if it came now: it was executed already, its client waits for it no more, or
/// there is no such session.
pub fn is_settled(view: &dyn View, keys: &SessionKeys, session: u64, request: u64) -> Result<bool, Halt> {
    let Some(head) = view.get(&keys.head(session))? else {
        return Ok(true);
    };
    let head = Head::decode(&head)?;
    Ok(head.broken || request < head.floor || head.requests().any(|known| known == request))
}
