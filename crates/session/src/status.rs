//! How a session is doing, read from one view.

use kv::View;

use crate::head::Head;
use crate::keys::SessionKeys;
use crate::machine::Halt;
use crate::row::{self, SessionRow};

/// See the module.
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
