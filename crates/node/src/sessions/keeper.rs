//! Liveness: when each session's client was last active. Kept in memory only; a keep-alive costs no journal entry.
//!
//! A session's timeout runs in cluster time from the last activity of its client. After a restart every session has its
//! full timeout again. Expiry is decided here, and takes effect by a command.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::{Error, SessionRejection};
use kernel::Keys;
use kv::View;
use session::{ChangedSessions, SecretDigest, SessionOwner, Stamp};
use waiting::{Bell, Bells};

use crate::error::from_halt;
use crate::sessions::census::{EndedSessions, LivingSessions};

/// The state of a session's client, as the node sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeState {
    /// It was created, and its client has not been seen yet.
    Pending,
    /// Its client is connected.
    Connected,
    /// Its client is not connected; it may return until the session expires.
    Disconnected,
    /// The session does not exist any more, or never did.
    Expired,
}

struct Life {
    /// Cluster time in µs.
    last_contact_us: u64,
    timeout_us: u64,
    /// Of its secret.
    secret: SecretDigest,
    /// Whose it is, if it is known.
    owner: Option<SessionOwner>,
    connections: u32,
    /// Calls of its client that wait here now: as long as there is one, it is alive.
    waiting: u32,
    /// Whether its client was ever there.
    seen: bool,
    /// Whether a command that ends it is in progress.
    ending: bool,
}

impl Life {
    fn new(now: Stamp, timeout_us: u64, secret: SecretDigest, owner: Option<SessionOwner>) -> Self {
        let last_contact_us = now.cluster_us;
        let (connections, waiting, seen, ending) = (0, 0, false, false);
        Self { last_contact_us, timeout_us, secret, owner, connections, waiting, seen, ending }
    }

    /// Whether somebody may act as its client: anybody who is not asked who it is, and the one whose it is.
    fn belongs_to(&self, principal: Option<&str>) -> bool {
        match (&self.owner, principal) {
            (Some(owner), Some(principal)) => owner.principal == principal,
            _ => true,
        }
    }

    fn state(&self) -> LifeState {
        match (self.connections > 0, self.seen) {
            (true, _) => LifeState::Connected,
            (false, true) => LifeState::Disconnected,
            (false, false) => LifeState::Pending,
        }
    }

    fn deadline_us(&self) -> u64 {
        // A session that does not acknowledge its pushes expires at once, whatever it waits for.
        match self.waiting > 0 && self.timeout_us > 0 {
            true => u64::MAX,
            false => self.last_contact_us.saturating_add(self.timeout_us),
        }
    }
}

/// What somebody shows who wants to act as a session's client.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shown<'client> {
    /// Of a secret.
    pub(crate) secret: Option<&'client SecretDigest>,
    /// Who it is, if it is known.
    pub(crate) principal: Option<&'client str>,
    /// The space that it would act in; none for what concerns the session alone.
    pub(crate) space: Option<&'client str>,
}

/// The last activity of every session.
#[derive(Default)]
pub struct Keeper {
    lives: Mutex<Lives>,
    /// Those who wait for pushes, by session.
    listeners: Bells<u64>,
}

#[derive(Default)]
struct Lives {
    by_session: HashMap<u64, Life>,
    /// No deadline is before this one.
    next_deadline_us: u64,
    ended: EndedSessions,
    pushes_waiting: u64,
}

impl Keeper {
    fn lock(&self) -> MutexGuard<'_, Lives> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the sessions of a view, each with its full time from now on.
    pub(crate) fn load(&self, view: &dyn View, keys: &Keys, now: Stamp) -> Result<(), Error> {
        let mut lives = self.lock();
        lives.by_session.clear();
        for found in session::row::sessions(view, &keys.sessions(), 0) {
            let (session, row) = found.map_err(|halt| from_halt(&halt))?;
            let timeout_us = if row.broken { 0 } else { row.timeout_us };
            let life = Life::new(now, timeout_us, row.secret, row.owner);
            lives.by_session.insert(session, Life { seen: true, ..life });
        }
        lives.next_deadline_us = 0;
        lives.ended = EndedSessions::default();
        let waiting = session::pushes::waiting(view, &keys.sessions());
        lives.pushes_waiting = waiting.map_err(|halt| from_halt(&halt))?;
        Ok(())
    }

    /// An entry has changed sessions.
    pub(crate) fn changed(&self, sessions: &ChangedSessions, now: Stamp) {
        if *sessions == ChangedSessions::default() {
            return;
        }
        let mut lives = self.lock();
        for created in &sessions.created {
            let life = Life::new(now, created.timeout_us, created.secret, created.owner.clone());
            lives.next_deadline_us = lives.next_deadline_us.min(life.deadline_us());
            lives.by_session.insert(created.session, life);
        }
        for session in &sessions.broken {
            if let Some(life) = lives.by_session.get_mut(session) {
                life.timeout_us = 0;
                lives.next_deadline_us = 0;
            }
        }
        for session in &sessions.expired {
            let ended = lives.by_session.remove(session);
            match ended {
                Some(life) if life.timeout_us == 0 => lives.ended.overrun += 1,
                Some(life) if life.ending => lives.ended.timed_out += 1,
                _ => lives.ended.closed += 1,
            }
        }
        lives.pushes_waiting = lives.pushes_waiting.saturating_add_signed(sessions.pushes);
        drop(lives);
        if let Some(mut ringing) = self.listeners.ringing() {
            let heard = sessions.expired.iter().chain(&sessions.pushed).chain(&sessions.broken);
            heard.for_each(|session| ringing.add(session));
            ringing.ring_for(None);
        }
    }

    /// Records activity of a session's client, if it has shown the secret. A session that is unknown here or being ended is
    /// refused as expired, whatever was shown: everybody may know that it is not there. So is that of another principal, who may not
    /// know even that.
    pub(crate) fn admit(&self, session: u64, client: &Shown<'_>, now: Stamp) -> Result<(), SessionRejection> {
        let mut lives = self.lock();
        let life = lives.by_session.get_mut(&session).filter(|life| !life.ending);
        let life = life.filter(|life| life.belongs_to(client.principal)).ok_or(SessionRejection::Expired)?;
        if client.secret != Some(&life.secret) {
            return Err(SessionRejection::WrongSecret);
        }
        let its_space = life.owner.as_ref().and_then(|owner| owner.space.as_ref());
        if let (Some(its_space), Some(space)) = (its_space, client.space)
            && its_space != space
        {
            return Err(SessionRejection::OtherSpace { space: its_space.clone() });
        }
        life.last_contact_us = life.last_contact_us.max(now.cluster_us);
        life.seen = true;
        Ok(())
    }

    /// Records activity of a session's client, which was admitted before. False if the session is unknown here.
    pub fn contact(&self, session: u64, now: Stamp) -> bool {
        match self.lock().by_session.get_mut(&session) {
            Some(life) => {
                life.last_contact_us = life.last_contact_us.max(now.cluster_us);
                life.seen = true;
                !life.ending
            }
            None => false,
        }
    }

    /// A client connects that was admitted before. False if the session is unknown here.
    pub fn connect(&self, session: u64, now: Stamp) -> bool {
        let mut lives = self.lock();
        let life = lives.by_session.get_mut(&session).filter(|life| !life.ending);
        if let Some(life) = life {
            life.connections += 1;
            life.seen = true;
            life.last_contact_us = life.last_contact_us.max(now.cluster_us);
            return true;
        }
        false
    }

    /// A client has gone.
    pub fn disconnect(&self, session: u64) {
        if let Some(life) = self.lock().by_session.get_mut(&session) {
            life.connections = life.connections.saturating_sub(1);
        }
    }

    /// Marks a waiting call of its client, until the returned guard is dropped.
    pub fn wait_in<'keeper>(&'keeper self, session: u64, now: Now<'keeper>) -> WaitingIn<'keeper> {
        if let Some(life) = self.lock().by_session.get_mut(&session) {
            life.waiting += 1;
        }
        WaitingIn { keeper: self, session, now }
    }

    /// Whether a session is connected, away, or unknown here.
    pub fn state(&self, session: u64) -> LifeState {
        match self.lock().by_session.get(&session) {
            None => LifeState::Expired,
            Some(life) => life.state(),
        }
    }

    /// Live sessions by state, and ended ones by reason.
    pub fn census(&self) -> (LivingSessions, EndedSessions) {
        let lives = self.lock();
        let mut living = LivingSessions { pushes_waiting: lives.pushes_waiting, ..LivingSessions::default() };
        for life in lives.by_session.values() {
            match life.state() {
                LifeState::Connected => living.connected += 1,
                LifeState::Disconnected => living.disconnected += 1,
                _ => living.pending += 1,
            }
        }
        (living, lives.ended)
    }

    /// Takes some expired sessions, to be ended now. They stay taken until [`spare`](Self::spare) or their end.
    pub(crate) fn take_overdue(&self, now: Stamp, limit: usize) -> Vec<u64> {
        let mut lives = self.lock();
        if lives.next_deadline_us > now.cluster_us {
            return Vec::new();
        }
        let mut overdue = Vec::new();
        let mut next_deadline_us = u64::MAX;
        for (session, life) in &mut lives.by_session {
            if life.ending {
                continue;
            }
            if life.deadline_us() <= now.cluster_us && overdue.len() < limit {
                life.ending = true;
                overdue.push(*session);
            } else {
                next_deadline_us = next_deadline_us.min(life.deadline_us());
            }
        }
        lives.next_deadline_us = next_deadline_us;
        // The map has no order, and the journal should not depend on that.
        overdue.sort_unstable();
        overdue
    }

    /// The sessions were not ended after all.
    pub(crate) fn spare(&self, sessions: &[u64]) {
        let mut lives = self.lock();
        for session in sessions {
            if let Some(life) = lives.by_session.get_mut(session) {
                life.ending = false;
            }
        }
        lives.next_deadline_us = 0;
    }

    /// Rings from now on when a session gets a push or ends, until [`unlisten`](Self::unlisten).
    pub fn listen(&self, session: u64) -> Arc<Bell> {
        let bell = Arc::new(Bell::default());
        self.listeners.hang(&bell, &[session]);
        bell
    }

    /// Ends what [`listen`](Self::listen) began.
    pub fn unlisten(&self, session: u64, bell: &Arc<Bell>) {
        self.listeners.take_down(bell, &[session]);
    }

    /// Nothing will be pushed any more.
    pub(crate) fn close(&self) {
        self.listeners.stop();
    }

    /// Whether the shard is being closed: whoever waits gives up.
    pub fn is_closing(&self) -> bool {
        self.listeners.is_stopped()
    }
}

/// Says what time it is.
type Now<'keeper> = &'keeper (dyn Fn() -> Stamp + Sync);

/// A call that waits; see [`Keeper::wait_in`].
pub struct WaitingIn<'keeper> {
    keeper: &'keeper Keeper,
    session: u64,
    now: Now<'keeper>,
}

impl Drop for WaitingIn<'_> {
    fn drop(&mut self) {
        let now = (self.now)();
        let mut lives = self.keeper.lock();
        if let Some(life) = lives.by_session.get_mut(&self.session) {
            life.waiting = life.waiting.saturating_sub(1);
            life.last_contact_us = life.last_contact_us.max(now.cluster_us);
            let deadline_us = life.deadline_us();
            lives.next_deadline_us = lives.next_deadline_us.min(deadline_us);
        }
    }
}

#[cfg(test)]
mod tests;
