//! The session machine: every request of a session is executed at most once, and always gets the same answer.
//!
//! Keeps: E1 (a command of an unknown session is never executed), E2 (a request is executed once: repeated, it gets the
//! stored answer, or `Evicted` once its client no longer waits; another command with its number gets `Reused`), E4 and
//! E5.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use kv::{Reader, Staging, Writer};

use crate::command::{PendingPush, SESSIONS, SessionAnswer, SessionCommand};
use crate::envelope::Envelope;
use crate::head::Head;
use crate::keys::SessionKeys;
use crate::limits::{Bound, SessionLimits};
use crate::machine::{Call, Execution, Halt, Machine, SessionEvent, Stamp};
use crate::pushes::{self, Pushes};
use crate::reply::Reply;
use crate::row::{SessionRow, staged_session};

/// Heads kept in memory between entries.
const HEADS_KEPT_MAX: usize = 2_048;

/// Pushes that one command takes to be sent again, whatever it asks for.
const RETRY_PUSHES_MAX: usize = 1_024;

/// Sessions that such a command examines. Some may have nothing to send again: their index entry is too early.
const RETRY_SESSIONS_MAX: usize = 1_024;

/// Applies commands to a machine, those of sessions at most once.
pub struct SessionMachine<M> {
    machine: M,
    keys: SessionKeys,
    heads: Heads,
    /// The number of sessions, once it was needed.
    count: Option<u64>,
    count_changed: bool,
    pushes: Pushes,
    changed: ChangedSessions,
}

/// Heads after the commands so far. A head stays in place from entry to entry: a session that sends one request after
/// another is looked up once for each, and nothing is moved.
#[derive(Default)]
struct Heads {
    /// Those of the entry at hand, and some that earlier entries touched, as they are stored.
    kept: BTreeMap<u64, Kept>,
    /// Those of the entry at hand, in the order they were touched. The ones that have changed are written at its end.
    touched: Vec<u64>,
}

struct Kept {
    head: Head,
    /// Whether the entry at hand has touched it.
    touched: bool,
    /// Whether it must be written.
    changed: bool,
}

/// The changes of an entry to sessions, for the liveness check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedSessions {
    /// Created sessions, each with its timeout in µs.
    pub created: Vec<(u64, u64)>,
    /// Sessions that have ended.
    pub expired: Vec<u64>,
    /// Sessions that got a push.
    pub pushed: Vec<u64>,
    /// Sessions that did not acknowledge their pushes and must be ended.
    pub broken: Vec<u64>,
    /// The change in the number of unacknowledged pushes.
    pub pushes: i64,
}

impl<M: Machine> SessionMachine<M> {
    /// Sessions around `machine`, with their own keys.
    pub fn new(machine: M, keys: SessionKeys) -> Self {
        Self {
            machine,
            keys,
            heads: Heads::default(),
            count: None,
            count_changed: false,
            pushes: Pushes::default(),
            changed: ChangedSessions::default(),
        }
    }

    /// The machine inside.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The machine inside, for its work between commands.
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Applies one command, given as the bytes of its envelope, and writes the bytes of a [`Reply`].
    pub fn apply(
        &mut self,
        state: &mut Staging,
        limits: &SessionLimits,
        stamp: Stamp,
        commit: u64,
        command: &[u8],
        reply: &mut Writer,
    ) -> Result<(), Halt> {
        let applied = self.apply_command(state, limits, stamp, commit, command, reply);
        let Some(damaged) = applied.as_ref().err().and_then(Halt::set_apart) else { return applied };
        // A head that cannot be read was not changed, and the machine refuses its own commands itself.
        state.undo();
        self.pushes.truncate(0);
        let (from, to) = self.machine.name_range(&damaged.range);
        reply.clear();
        Reply::Damaged { from: &from, to: &to }.encode(reply);
        Ok(())
    }

    fn apply_command(
        &mut self,
        state: &mut Staging,
        limits: &SessionLimits,
        stamp: Stamp,
        commit: u64,
        command: &[u8],
        reply: &mut Writer,
    ) -> Result<(), Halt> {
        let envelope = Envelope::decode(command)?;
        let call = Call {
            machine: envelope.machine,
            session: envelope.session,
            catalogue_revision: envelope.catalogue_revision,
            body: envelope.body,
            stamp,
            commit,
        };
        match envelope.session {
            Some(session) => self.request(state, limits, session, &envelope, &call, reply),
            None if envelope.machine == SESSIONS => {
                let command = SessionCommand::decode(envelope.body)?;
                self.session_command(state, limits, &call, command, reply)
            }
            None => {
                Reply::begin_answer(reply);
                self.machine.apply(state, &call, &mut self.pushes, reply)?;
                self.deliver(state, limits, stamp)
            }
        }
    }

    /// A request of a session: refused, answered again, or executed.
    fn request(
        &mut self,
        state: &mut Staging,
        limits: &SessionLimits,
        session: u64,
        envelope: &Envelope<'_>,
        call: &Call<'_>,
        reply: &mut Writer,
    ) -> Result<(), Halt> {
        let Self { machine, keys, heads, pushes, .. } = self;
        let Some(kept) = heads.find(state, keys, session)?.filter(|kept| !kept.head.broken) else {
            Reply::SessionExpired.encode(reply);
            return Ok(());
        };
        let floor_before = kept.head.floor;
        kept.head.raise_floor(state, keys, session, envelope.lowest_pending);
        kept.changed |= kept.head.floor != floor_before;
        // What the floor has freed stays freed, whatever becomes of the command.
        state.savepoint();
        let floor = kept.head.floor;
        if envelope.request < floor {
            Reply::Evicted { floor }.encode(reply);
            return Ok(());
        }
        let digest = machine.digest(call)?;
        if let Some(stored) = kept.head.answer(state, keys, session, envelope.request)? {
            match stored.digest == digest || reuse_is_missed() {
                true => Reply::Stored(&stored.answer).encode(reply),
                false => Reply::Reused.encode(reply),
            }
            return Ok(());
        }
        if let Some((bound, max)) = kept.head.reached(limits) {
            Reply::Busy { bound, max }.encode(reply);
            return Ok(());
        }
        Reply::begin_answer(reply);
        let answer_start = reply.len();
        match machine.apply(state, call, pushes, reply)? {
            Execution::NotYet => {}
            Execution::Decided { owned } => {
                kept.head.store(envelope.request, digest, &reply.as_slice()[answer_start..]);
                kept.head.owned |= owned;
                kept.changed = true;
            }
        }
        self.deliver(state, limits, call.stamp)
    }

    fn session_command(
        &mut self,
        state: &mut Staging,
        limits: &SessionLimits,
        call: &Call<'_>,
        command: SessionCommand,
        reply: &mut Writer,
    ) -> Result<(), Halt> {
        let answer = match command {
            SessionCommand::Create { timeout_us, capabilities } => {
                let max = limits.sessions_max.into();
                if self.count(state)? >= max {
                    Reply::Busy { bound: Bound::Sessions, max }.encode(reply);
                    return Ok(());
                }
                self.create(state, limits, call, timeout_us, capabilities)?
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
        timeout_us: u64,
        capabilities: Vec<(String, Vec<u8>)>,
    ) -> Result<SessionAnswer, Halt> {
        let session = call.commit;
        let row = SessionRow { timeout_us, created_us: call.stamp.wall_us, broken: false, capabilities };
        state.put_encoded(self.keys.session(session), |writer| row.encode(writer));
        self.heads.add(session);
        self.add_to_count(state, 1)?;
        self.changed.created.push((session, timeout_us));
        let (stamp, commit) = (call.stamp, call.commit);
        let event = SessionEvent { session, capabilities: &row.capabilities, owned: false, stamp, commit };
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
        // Read before anything is changed, since it may be damaged.
        self.count(state)?;
        let head = match self.heads.find(state, &self.keys, session) {
            Ok(None) => return Ok(false),
            Ok(Some(_)) => self.heads.kept.remove(&session).expect("it was found").head,
            Err(halt) if halt.set_apart().is_some() => match staged_session(state, &self.keys, session) {
                // The session ends without its head. What it owns has rows of its own.
                Ok(Some(_)) => Head::lost(),
                Ok(None) => return Ok(false),
                Err(halt) if halt.set_apart().is_some() => return Ok(false),
                Err(halt) => return Err(halt),
            },
            Err(halt) => return Err(halt),
        };
        let (stamp, commit) = (call.stamp, call.commit);
        let event = SessionEvent { session, capabilities: &[], owned: head.owned, stamp, commit };
        self.machine.on_session_expired(state, &event, &mut self.pushes)?;
        pushes::remove_all(state, &self.keys, session, &head);
        self.changed.pushes -= i64::try_from(head.last_push - head.acknowledged).expect("they are bounded");
        head.remove(state, &self.keys, session);
        state.delete(self.keys.session(session));
        self.add_to_count(state, -1)?;
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

    /// Delivers the machine's pushes to the sessions.
    fn deliver(&mut self, state: &mut Staging, limits: &SessionLimits, stamp: Stamp) -> Result<(), Halt> {
        let Self { keys, heads, pushes, changed, .. } = self;
        for (session, payload) in pushes.drain() {
            let found = match heads.find(state, keys, session) {
                // Its session gets nothing any more, like one that is broken.
                Err(halt) if halt.set_apart().is_some() => continue,
                found => found?,
            };
            let Some(kept) = found.filter(|kept| !kept.head.broken) else {
                continue;
            };
            kept.changed = true;
            if pushes::add(state, keys, limits, (session, &mut kept.head), stamp.wall_us, &payload) {
                changed.pushed.push(session);
                changed.pushes += 1;
                continue;
            }
            kept.head.broken = true;
            changed.broken.push(session);
            let row = match staged_session(state, keys, session) {
                Err(halt) if halt.set_apart().is_some() => continue,
                row => row?,
            };
            let row = row.ok_or_else(|| Halt::Inconsistent(format!("E1: session {session} has a head and no row")))?;
            let row = SessionRow { broken: true, ..row };
            state.put_encoded(keys.session(session), |writer| row.encode(writer));
        }
        Ok(())
    }

    fn count(&mut self, state: &Staging) -> Result<u64, Halt> {
        if let Some(count) = self.count {
            return Ok(count);
        }
        let count = match state.get(&self.keys.count())? {
            Some(row) => Reader::new(&row).u64().map_err(|error| Halt::Undecodable { what: "a count", error })?,
            None => 0,
        };
        self.count = Some(count);
        Ok(count)
    }

    fn add_to_count(&mut self, state: &Staging, by: i64) -> Result<(), Halt> {
        let count = self.count(state)?.checked_add_signed(by);
        self.count = Some(count.ok_or_else(|| Halt::Inconsistent("E1: fewer than no sessions".into()))?);
        self.count_changed = true;
        Ok(())
    }

    /// Writes the rows that are written once per entry, and returns the changes to sessions.
    pub fn finish_entry(&mut self, state: &mut Staging) -> ChangedSessions {
        self.heads.write(state, &self.keys);
        if std::mem::take(&mut self.count_changed) {
            let count = self.count.unwrap_or_default();
            state.put_encoded(self.keys.count(), |writer| {
                writer.u64(count);
            });
        }
        std::mem::take(&mut self.changed)
    }
}

/// Whether a test has planted the bug that a number is not bound to its command.
fn reuse_is_missed() -> bool {
    #[cfg(feature = "canary")]
    return crate::canary::reuse_is_missed();
    #[cfg(not(feature = "canary"))]
    false
}

impl Heads {
    /// The head of a session, if it exists.
    fn find(&mut self, state: &Staging, keys: &SessionKeys, session: u64) -> Result<Option<&mut Kept>, Halt> {
        let Self { kept, touched } = self;
        let kept = match kept.entry(session) {
            Entry::Occupied(kept) => kept.into_mut(),
            Entry::Vacant(vacant) => match state.get(&keys.head(session))? {
                Some(row) => vacant.insert(Kept { head: Head::decode(&row)?, touched: false, changed: false }),
                None => return Ok(None),
            },
        };
        if !kept.touched {
            kept.touched = true;
            touched.push(session);
        }
        Ok(Some(kept))
    }

    /// Adds the head of a new session.
    fn add(&mut self, session: u64) {
        self.kept.insert(session, Kept { head: Head::new(), touched: true, changed: true });
        self.touched.push(session);
    }

    /// Writes those that have changed.
    fn write(&mut self, state: &mut Staging, keys: &SessionKeys) {
        for session in self.touched.drain(..) {
            // One that has ended since is not here any more.
            if let Some(kept) = self.kept.get_mut(&session) {
                kept.touched = false;
                if std::mem::take(&mut kept.changed) {
                    kept.head.write(state, keys, session);
                }
            }
        }
        if self.kept.len() > HEADS_KEPT_MAX {
            self.kept.clear();
        }
    }
}
