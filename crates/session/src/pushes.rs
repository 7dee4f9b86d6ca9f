//! Pushes: messages of a machine to sessions, kept until they are acknowledged. (The contract's origin calls them
//! server requests.)
//!
//! Keeps: E5 (a session's pushes are numbered from 1 without a gap, and each is kept until its session acknowledges it
//! or ends).

use kv::{Key, KvError, Order, Reader, Staging, View, Writer, skip_set_apart};

use crate::command::PendingPush;
use crate::head::Head;
use crate::keys::SessionKeys;
use crate::limits::SessionLimits;
use crate::machine::Halt;

const FORMAT: u8 = 1;

/// The pushes of a command, to any sessions of the shard; pushes to unknown sessions are dropped.
#[derive(Debug, Default)]
pub struct Pushes {
    sent: Vec<(u64, Vec<u8>)>,
}

impl Pushes {
    /// Sends `payload` to a session.
    pub fn push(&mut self, session: u64, payload: impl Into<Vec<u8>>) {
        self.sent.push((session, payload.into()));
    }

    /// The number of pushes so far.
    pub fn count(&self) -> usize {
        self.sent.len()
    }

    /// Takes back all but the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.sent.truncate(count);
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        self.sent.drain(..)
    }
}

fn encode(writer: &mut Writer, last_sent_us: u64, payload: &[u8]) {
    writer.u8(FORMAT).u64(last_sent_us).raw(payload);
}

fn decode(session: u64, key: &[u8], row: &[u8]) -> Result<PendingPush, Halt> {
    let number = SessionKeys::last_number(key).ok_or_else(|| Halt::Inconsistent("E5: a push without number".into()))?;
    let read = || {
        let mut reader = Reader::new(row);
        reader.format(FORMAT)?;
        Ok(PendingPush { session, number, last_sent_us: reader.u64()?, payload: reader.rest().to_vec() })
    };
    read().map_err(|error| Halt::Undecodable { what: "a push", error })
}

/// Adds a push to a session; false if it has more than it may have.
pub(crate) fn add(
    state: &mut Staging,
    keys: &SessionKeys,
    limits: &SessionLimits,
    (session, head): (u64, &mut Head),
    now_us: u64,
    payload: &[u8],
) -> bool {
    let count = head.last_push - head.acknowledged;
    let bytes = head.push_bytes + payload.len() as u64;
    if count >= limits.session_pushes_max.into() || bytes > limits.session_push_bytes_max.into() {
        return false;
    }
    head.last_push += 1;
    head.push_bytes = bytes;
    state.put_encoded(keys.push(session, head.last_push), |writer| encode(writer, now_us, payload));
    if head.sent_entry_us == 0 {
        head.sent_entry_us = now_us;
        state.put(keys.sent(now_us, session), b"".as_slice());
    }
    true
}

/// Removes the pushes up to one. Returns how many.
pub(crate) fn acknowledge(
    state: &mut Staging,
    keys: &SessionKeys,
    (session, head): (u64, &mut Head),
    upto: u64,
) -> Result<u64, Halt> {
    let upto = upto.min(head.last_push);
    if upto <= head.acknowledged {
        return Ok(0);
    }
    for number in head.acknowledged + 1..=upto {
        let key = keys.push(session, number);
        let gone = || Halt::Inconsistent(format!("E5: push {number} of session {session} is gone"));
        match state.get(&key).map_err(Halt::from) {
            Ok(row) => head.push_bytes -= decode(session, &key, &row.ok_or_else(gone)?)?.payload.len() as u64,
            // Its bytes are given back with the last push.
            Err(halt) if halt.set_apart().is_some() => {}
            Err(halt) => return Err(halt),
        }
        state.delete(key);
    }
    let removed = upto - head.acknowledged;
    head.acknowledged = upto;
    if head.acknowledged == head.last_push {
        head.push_bytes = 0;
    }
    if head.acknowledged == head.last_push && head.sent_entry_us != 0 {
        state.delete(keys.sent(head.sent_entry_us, session));
        head.sent_entry_us = 0;
    }
    Ok(removed)
}

/// Removes everything stored for the pushes of a session.
pub(crate) fn remove_all(state: &mut Staging, keys: &SessionKeys, session: u64, head: &Head) {
    for number in head.acknowledged + 1..=head.last_push {
        state.delete(keys.push(session, number));
    }
    if head.sent_entry_us != 0 {
        state.delete(keys.sent(head.sent_entry_us, session));
    }
}

/// Removes everything that can be found of a session whose head cannot be read: pushes, their places in the index, and
/// answers.
pub(crate) fn remove_found(state: &mut Staging, keys: &SessionKeys, session: u64) -> Result<(), Halt> {
    let mut found = Vec::new();
    for range in [keys.pages(session), keys.pushes_after(session, 0), keys.sent_before(u64::MAX)] {
        for row in skip_set_apart(state.scan(&range, Order::Ascending)) {
            found.push(row?.0);
        }
    }
    let others = |key: &Key| keys.sent_before(u64::MAX).contains(key) && SessionKeys::last_number(key) != Some(session);
    found.into_iter().filter(|key| !others(key)).for_each(|key| state.delete(key));
    Ok(())
}

/// The sessions that may have pushes last sent before a time, up to a limit.
pub(crate) fn sessions_to_retry(
    state: &Staging,
    keys: &SessionKeys,
    before_us: u64,
    limit: usize,
) -> Result<Vec<u64>, Halt> {
    let mut sessions = Vec::new();
    for row in skip_set_apart(state.scan(&keys.sent_before(before_us), Order::Ascending)).take(limit) {
        let number = SessionKeys::last_number(&row?.0);
        sessions.push(number.ok_or_else(|| Halt::Inconsistent("E5: a place without a session".into()))?);
    }
    Ok(sessions)
}

/// Takes the pushes of a session last sent before a time, and marks them as sent now.
pub(crate) fn retry(
    state: &mut Staging,
    keys: &SessionKeys,
    (session, head): (u64, &mut Head),
    (before_us, now_us): (u64, u64),
    found: &mut Vec<PendingPush>,
    limit: usize,
) -> Result<(), Halt> {
    let mut oldest_us = u64::MAX;
    let mut stamped = Vec::new();
    for row in state.scan(&keys.pushes_after(session, head.acknowledged), Order::Ascending) {
        let (key, row) = row?;
        let push = decode(session, &key, &row)?;
        if push.last_sent_us < before_us && found.len() + stamped.len() < limit {
            oldest_us = oldest_us.min(now_us);
            stamped.push((key, push));
        } else {
            oldest_us = oldest_us.min(push.last_sent_us);
        }
    }
    for (key, push) in stamped {
        state.put_encoded(key, |writer| encode(writer, now_us, &push.payload));
        found.push(PendingPush { last_sent_us: now_us, ..push });
    }
    if oldest_us != head.sent_entry_us {
        state.delete(keys.sent(head.sent_entry_us, session));
        state.put(keys.sent(oldest_us, session), b"".as_slice());
        head.sent_entry_us = oldest_us;
    }
    Ok(())
}

/// The pushes of a session after one, in order, up to a limit.
pub fn pushes_after(
    view: &dyn View,
    keys: &SessionKeys,
    session: u64,
    after: u64,
    limit: usize,
) -> Result<Vec<PendingPush>, Halt> {
    let rows = view.scan(&keys.pushes_after(session, after), Order::Ascending).take(limit);
    rows.map(|row| row.map_err(Halt::from).and_then(|(key, row)| decode(session, &key, &row))).collect()
}

/// The number of unacknowledged pushes. Reads every session that has one.
pub fn waiting(view: &dyn View, keys: &SessionKeys) -> Result<u64, Halt> {
    let mut waiting = 0;
    for row in skip_set_apart(view.scan(&keys.sent_before(u64::MAX), Order::Ascending)) {
        let session = SessionKeys::last_number(&row?.0);
        let session = session.ok_or_else(|| Halt::Inconsistent("E5: a place without a session".into()))?;
        let head = match view.get(&keys.head(session)) {
            Err(KvError::Damaged(damaged)) if damaged.is_set_apart => continue,
            head => head?,
        };
        // A view may leave out what is damaged.
        let Some(head) = head else { continue };
        let head = Head::decode(&head)?;
        waiting += head.last_push - head.acknowledged;
    }
    Ok(waiting)
}

/// Whether any session has an unacknowledged push. A hint: it may have changed by the time it is used.
pub fn has_pending(view: &dyn View, keys: &SessionKeys) -> Result<bool, Halt> {
    has_overdue(view, keys, u64::MAX)
}

/// Whether any session may have a push last sent before a time. A hint, like [`has_pending`]; the command
/// [`RequestsForRetry`](crate::SessionCommand::RequestsForRetry) decides.
pub fn has_overdue(view: &dyn View, keys: &SessionKeys, sent_before_us: u64) -> Result<bool, Halt> {
    let rows = view.scan(&keys.sent_before(sent_before_us), Order::Ascending);
    Ok(skip_set_apart(rows).next().transpose()?.is_some())
}
