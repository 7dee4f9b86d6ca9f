//! Liveness: when each session's client was last active. Kept in memory only; a keep-alive costs no journal entry.
//!
//! A session's timeout runs in cluster time from the last activity of its client. After a restart every session has its
//! full timeout again. Expiry is decided here, and takes effect by a command.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contract::{Error, SessionRejection};
use kernel::Keys;
use kv::View;
use session::{ChangedSessions, SecretDigest, Stamp};
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
    connections: u32,
    /// Calls of its client that wait here now: as long as there is one, it is alive.
    waiting: u32,
    /// Whether its client was ever there.
    seen: bool,
    /// Whether a command that ends it is in progress.
    ending: bool,
}

impl Life {
    fn new(now: Stamp, timeout_us: u64, secret: SecretDigest, seen: bool) -> Self {
        Self { last_contact_us: now.cluster_us, timeout_us, secret, connections: 0, waiting: 0, seen, ending: false }
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
            lives.by_session.insert(session, Life::new(now, timeout_us, row.secret, true));
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
            let life = Life::new(now, created.timeout_us, created.secret, false);
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
    /// refused as expired, whatever was shown: everybody may know that it is not there.
    pub(crate) fn admit(&self, session: u64, shown: Option<&SecretDigest>, now: Stamp) -> Result<(), SessionRejection> {
        let mut lives = self.lock();
        let life = lives.by_session.get_mut(&session).filter(|life| !life.ending);
        let life = life.ok_or(SessionRejection::Expired)?;
        if shown != Some(&life.secret) {
            return Err(SessionRejection::WrongSecret);
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
mod tests {
    use session::CreatedSession;

    use super::*;

    fn at(cluster_us: u64) -> Stamp {
        Stamp { wall_us: 0, cluster_us }
    }

    fn secret_of(session: u64) -> SecretDigest {
        SecretDigest::new([u8::try_from(session).expect("small"); 32])
    }

    fn keeper(sessions: &[(u64, u64)]) -> Keeper {
        let keeper = Keeper::default();
        let created = sessions.iter().map(|(session, timeout_us)| CreatedSession {
            session: *session,
            timeout_us: *timeout_us,
            secret: secret_of(*session),
        });
        keeper.changed(&ChangedSessions { created: created.collect(), ..ChangedSessions::default() }, at(0));
        keeper
    }

    #[test]
    fn a_session_lives_from_sign_to_sign() {
        let keeper = keeper(&[(7, 100), (8, 100)]);
        assert_eq!(keeper.state(7), LifeState::Pending);
        assert!(keeper.connect(7, at(10)));
        assert_eq!(keeper.state(7), LifeState::Connected);
        keeper.disconnect(7);
        assert_eq!(keeper.state(7), LifeState::Disconnected);
        assert!(keeper.take_overdue(at(99), 10).is_empty());
        assert!(keeper.contact(7, at(60)));
        assert_eq!(keeper.take_overdue(at(100), 10), [8]);
        assert!(!keeper.contact(8, at(101)), "it is being ended");
        assert!(keeper.take_overdue(at(159), 10).is_empty());
        assert_eq!(keeper.take_overdue(at(160), 10), [7]);
        keeper.spare(&[7]);
        assert_eq!(keeper.take_overdue(at(160), 10), [7]);
        keeper.changed(&ChangedSessions { expired: vec![7], ..ChangedSessions::default() }, at(161));
        assert_eq!(keeper.state(7), LifeState::Expired);
    }

    #[test]
    fn a_client_is_admitted_by_the_secret_of_its_session_only() {
        let keeper = keeper(&[(7, 100), (8, 100)]);
        assert_eq!(keeper.admit(7, Some(&secret_of(7)), at(60)), Ok(()));
        for shown in [None, Some(secret_of(8)), Some(secret_of(9))] {
            assert_eq!(keeper.admit(7, shown.as_ref(), at(90)), Err(SessionRejection::WrongSecret));
        }
        assert_eq!(keeper.admit(8, Some(&secret_of(7)), at(90)), Err(SessionRejection::WrongSecret));
        assert_eq!(keeper.admit(9, Some(&secret_of(9)), at(90)), Err(SessionRejection::Expired));
        assert_eq!(keeper.state(8), LifeState::Pending, "what is refused is no sign of life");
        assert_eq!(keeper.take_overdue(at(100), 10), [8]);
        assert_eq!(keeper.take_overdue(at(160), 10), [7]);
        assert_eq!(keeper.admit(7, Some(&secret_of(7)), at(160)), Err(SessionRejection::Expired), "it is being ended");
    }

    #[test]
    fn a_session_that_takes_no_pushes_is_overdue_at_once() {
        let keeper = keeper(&[(7, 100)]);
        assert!(keeper.take_overdue(at(1), 10).is_empty());
        keeper.changed(&ChangedSessions { broken: vec![7], ..ChangedSessions::default() }, at(1));
        assert_eq!(keeper.take_overdue(at(1), 10), [7]);
    }

    #[test]
    fn a_session_whose_client_waits_is_alive() {
        let keeper = keeper(&[(7, 100)]);
        let now = || at(500);
        let waiting = keeper.wait_in(7, &now);
        assert!(keeper.take_overdue(at(400), 10).is_empty());
        drop(waiting);
        assert!(keeper.take_overdue(at(599), 10).is_empty(), "its time starts anew");
        assert_eq!(keeper.take_overdue(at(600), 10), [7]);
    }

    #[test]
    fn at_most_so_many_are_taken_at_a_time() {
        let keeper = keeper(&[(1, 10), (2, 10), (3, 10)]);
        let first = keeper.take_overdue(at(10), 2);
        let second = keeper.take_overdue(at(10), 2);
        assert_eq!((first.len(), second.len()), (2, 1));
    }
}
