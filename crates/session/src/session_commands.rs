//! The commands that sessions themselves are changed by: they are created, acknowledge their pushes, end, and pushes are
//! taken to be sent again.
//!
//! Touches: sessions, heads, pushes and the number of sessions. Keeps: E1 and E5. A session with damaged rows can end, if
//! one of its rows can be read.

use kv::{Staging, Writer};

use crate::command::{PendingPush, SessionAnswer, SessionCommand};
use crate::head::Head;
use crate::limits::{Bound, SessionLimits};
use crate::machine::{Call, Halt, Machine, OwnedIn, SessionEvent, Stamp};
use crate::number::SessionNumber;
use crate::pushes;
use crate::reply::Reply;
use crate::row::{SessionRow, staged_session};
use crate::sessions::{CreatedSession, SessionMachine};

/// Pushes that one command takes to be sent again, whatever it asks for.
const RETRY_PUSHES_MAX: usize = 1_024;

/// Sessions that such a command examines. Some may have nothing to send again: their index entry is too early.
const RETRY_SESSIONS_MAX: usize = 1_024;

impl<M: Machine> SessionMachine<M> {
    pub(crate) fn session_command(
        &mut self,
        state: &mut Staging,
        limits: &SessionLimits,
        call: &Call<'_>,
        command: SessionCommand,
        reply: &mut Writer,
    ) -> Result<(), Halt> {
        let answer = match command {
            SessionCommand::Create { timeout_us, secret, capabilities, owner } => {
                let max = limits.sessions_max.into();
                if self.count.get(state, &self.keys)? >= max {
                    Reply::Busy { bound: Bound::Sessions, max }.encode(reply);
                    return Ok(());
                }
                let Some(number) = SessionNumber::new(self.home, call.commit) else {
                    Reply::NumbersExhausted { commit: call.commit }.encode(reply);
                    return Ok(());
                };
                let created_us = call.stamp.wall_us;
                let row = SessionRow { timeout_us, created_us, broken: false, secret, capabilities, owner };
                self.create(state, limits, call, number.get(), &row)?
            }
            SessionCommand::Acknowledge { session, upto } => {
                let Some(kept) = self.heads.find(state, &self.keys, session)? else {
                    Reply::SessionExpired.encode(reply);
                    return Ok(());
                };
                let removed = pushes::acknowledge(state, &self.keys, (session, &mut kept.head), upto)?;
                kept.changed |= removed > 0;
                self.changed.pushes -= i64::try_from(removed).expect("pushes are counted from 1");
                SessionAnswer::Done(removed)
            }
            SessionCommand::Expire { sessions } => {
                let mut ended = 0;
                for session in sessions {
                    ended += u64::from(self.expire(state, limits, call, session)?);
                }
                SessionAnswer::Done(ended)
            }
            SessionCommand::RequestsForRetry { sent_before_us, limit } => {
                let limit = RETRY_PUSHES_MAX.min(limit as usize);
                SessionAnswer::Retry(self.requests_for_retry(state, call.stamp, sent_before_us, limit)?)
            }
        };
        Reply::begin_answer(reply);
        answer.encode(reply);
        Ok(())
    }

    fn create(
        &mut self,
        state: &mut Staging,
        limits: &SessionLimits,
        call: &Call<'_>,
        session: u64,
        row: &SessionRow,
    ) -> Result<SessionAnswer, Halt> {
        state.put_encoded(self.keys.session(session), |writer| row.encode(writer));
        self.heads.add(session);
        self.count.add(state, &self.keys, 1)?;
        let SessionRow { timeout_us, secret, ref owner, .. } = *row;
        self.changed.created.push(CreatedSession { session, timeout_us, secret, owner: owner.clone() });
        let (stamp, commit) = (call.stamp, call.commit);
        let event = SessionEvent {
            session,
            capabilities: &row.capabilities,
            owned: OwnedIn::Places(Vec::new()),
            stamp,
            commit,
        };
        self.machine.on_session_created(state, &event, &mut self.pushes)?;
        self.deliver(state, limits, stamp)?;
        Ok(SessionAnswer::Created(session))
    }

    /// Ends a session; false if it does not exist.
    fn expire(
        &mut self,
        state: &mut Staging,
        limits: &SessionLimits,
        call: &Call<'_>,
        session: u64,
    ) -> Result<bool, Halt> {
        // Counted before anything is changed.
        self.count.get(state, &self.keys)?;
        let head = match self.heads.take(state, &self.keys, session) {
            Ok(Some(head)) => head,
            Ok(None) => return Ok(false),
            Err(halt) if halt.set_apart().is_some() => match staged_session(state, &self.keys, session) {
                // The session ends without its head. What it owns has rows of its own.
                Ok(Some(_)) => {
                    pushes::remove_found(state, &self.keys, session)?;
                    Head::lost()
                }
                Ok(None) => return Ok(false),
                Err(halt) if halt.set_apart().is_some() => return Ok(false),
                Err(halt) => return Err(halt),
            },
            Err(halt) => return Err(halt),
        };
        let (stamp, commit) = (call.stamp, call.commit);
        let event = SessionEvent { session, capabilities: &[], owned: head.owned_in(), stamp, commit };
        self.machine.on_session_expired(state, &event, &mut self.pushes)?;
        pushes::remove_all(state, &self.keys, session, &head);
        self.changed.pushes -= i64::try_from(head.last_push - head.acknowledged).expect("they are bounded");
        head.remove(state, &self.keys, session);
        state.delete(self.keys.session(session));
        self.count.add(state, &self.keys, -1)?;
        self.changed.expired.push(session);
        // After the removal: pushes of the machine to the ending session are dropped, the rest arrives.
        self.deliver(state, limits, stamp)?;
        Ok(true)
    }

    fn requests_for_retry(
        &mut self,
        state: &mut Staging,
        stamp: Stamp,
        sent_before_us: u64,
        limit: usize,
    ) -> Result<Vec<PendingPush>, Halt> {
        let mut found = Vec::new();
        for session in pushes::sessions_to_retry(state, &self.keys, sent_before_us, RETRY_SESSIONS_MAX)? {
            if found.len() >= limit {
                break;
            }
            let kept = match self.heads.find(state, &self.keys, session) {
                // Nothing can be sent to it.
                Err(halt) if halt.set_apart().is_some() => continue,
                kept => kept?,
            };
            let kept = kept.ok_or_else(|| Halt::Inconsistent(format!("E5: pushes of session {session}, not known")))?;
            let times = (sent_before_us, stamp.wall_us);
            match pushes::retry(state, &self.keys, (session, &mut kept.head), times, &mut found, limit) {
                Err(halt) if halt.set_apart().is_some() => {}
                retried => {
                    retried?;
                    kept.changed = true;
                }
            }
        }
        Ok(found)
    }
}
