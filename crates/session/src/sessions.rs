//! The session machine: every request of a session is executed at most once, and always gets the same answer.
//!
//! Keeps: E1 (a command of an unknown session is never executed), E2 (a request is executed once: repeated, it gets the
//! stored answer, or `Evicted` once its client no longer waits; another command with its number gets `Reused`), E4 and
//! E5.

use kv::{Staging, Writer};

use crate::command::{SESSIONS, SessionCommand};
use crate::envelope::Envelope;
use crate::heads::Heads;
use crate::keys::SessionKeys;
use crate::limits::SessionLimits;
use crate::machine::{Call, Execution, Halt, Machine, Stamp};
use crate::owner::SessionOwner;
use crate::pushes::{self, Pushes};
use crate::reply::Reply;
use crate::row::{SessionRow, staged_session};
use crate::secret_digest::SecretDigest;
use crate::session_count::SessionCount;

/// Applies commands to a machine, those of sessions at most once.
pub struct SessionMachine<M> {
    pub(crate) machine: M,
    pub(crate) keys: SessionKeys,
    /// The shard, by its first bucket: the home of the sessions that it creates.
    pub(crate) home: u16,
    pub(crate) heads: Heads,
    pub(crate) count: SessionCount,
    pub(crate) pushes: Pushes,
    pub(crate) changed: ChangedSessions,
}

/// The changes of an entry to sessions, for the liveness check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedSessions {
    /// Created sessions.
    pub created: Vec<CreatedSession>,
    /// Sessions that have ended.
    pub expired: Vec<u64>,
    /// Sessions that got a push.
    pub pushed: Vec<u64>,
    /// Sessions that did not acknowledge their pushes and must be ended.
    pub broken: Vec<u64>,
    /// The change in the number of unacknowledged pushes.
    pub pushes: i64,
}

/// A session that was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedSession {
    /// Its number.
    pub session: u64,
    /// For how long it lives without a sign of its client, in µs.
    pub timeout_us: u64,
    /// Of its secret.
    pub secret: SecretDigest,
    /// Whose it is, if it is known.
    pub owner: Option<SessionOwner>,
}

impl<M: Machine> SessionMachine<M> {
    /// Sessions around `machine`, with their own keys. `home` is the first bucket of the shard.
    pub fn new(machine: M, keys: SessionKeys, home: u16) -> Self {
        Self {
            machine,
            keys,
            home,
            heads: Heads::default(),
            count: SessionCount::default(),
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
            sender: envelope.sender,
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
                kept.head.owns(&owned);
                kept.changed = true;
            }
        }
        self.deliver(state, limits, call.stamp)
    }

    /// Delivers the machine's pushes to the sessions.
    pub(crate) fn deliver(&mut self, state: &mut Staging, limits: &SessionLimits, stamp: Stamp) -> Result<(), Halt> {
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

    /// Writes the rows that are written once per entry, and returns the changes to sessions.
    pub fn finish_entry(&mut self, state: &mut Staging) -> ChangedSessions {
        self.heads.write(state, &self.keys);
        self.count.write(state, &self.keys);
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
