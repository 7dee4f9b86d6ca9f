//! Sessions: clients known to the store, so that each of their requests is executed exactly once; pushes to them; and
//! users' machines.
//!
//! - [`Sessions`]: opening, resuming, looking after sessions. [`Session`]: one client's own handle.
//! - [`Deliveries`]: pushes to a session, and changes it subscribed to.
//! - [`MachineHandle`]: commands to a machine supplied by [`Options::machine`](crate::Options::machine).

mod deliveries;
pub(crate) mod hosted;
mod portable;
mod session;

use std::sync::Arc;
use std::time::Duration;

use ::session::{PendingPush, SessionAnswer, SessionCommand, SessionOwner};
use contract::catalogue::MAIN_BRANCH;
use contract::limits::{CAPABILITY_BYTES_MAX, SESSION_TIMEOUT_MAX, SESSION_TIMEOUT_MIN};
use contract::{Error, RefusalReason, Rejection, SessionRejection};
use kernel::catalogue::types::micros;
use node::error::{from_halt, unexpected_answer};
use node::pending::Pending;
use node::sessions::requests::{InSession, Numbers};
use node::sessions::secrets::{self, Client};
use node::shard::Shard;

pub use ::kv::{DecodeError, KvError, Reader, Writer};
pub use ::session::user::machine_id;
pub use ::session::{Command, NewSession, Pushes, Refused, SessionStatus, UserCall, UserMachine, UserState, UserView};
pub use contract::sessions::{PushedRequest, SessionCredentials, SessionSecret, SessionStore};
pub use deliveries::{Deliveries, Delivery, SubscriptionId};
pub use hosted::{MachineGroup, MachineHandle};
pub use node::sessions::census::{EndedSessions, LivingSessions};
pub use node::sessions::keeper::LifeState;
pub use portable::PortableSessions;
pub use session::Session;

use crate::Authority;
use crate::admission::Scope;
use crate::house::{Space, Statehouse};
use crate::paging::check_page;
use crate::sender::Sender;

/// Options of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionOptions {
    /// For how long it lives without a sign of its client.
    pub timeout: Duration,
    /// The client's description of itself: names and values.
    pub capabilities: Vec<(String, Vec<u8>)>,
    /// The only space that it acts in, if it is known who opens it; none for all of them.
    pub space: Option<String>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), capabilities: Vec::new(), space: None }
    }
}

impl SessionOptions {
    /// Sets [`timeout`](Self::timeout).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Adds to [`capabilities`](Self::capabilities).
    pub fn capability(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.capabilities.push((name.to_owned(), value.into()));
        self
    }

    /// Sets [`space`](Self::space).
    pub fn space(mut self, space: impl Into<String>) -> Self {
        self.space = Some(space.into());
        self
    }

    fn check(&self) -> Result<(), Rejection> {
        if !(SESSION_TIMEOUT_MIN..=SESSION_TIMEOUT_MAX).contains(&self.timeout) {
            let what = "a session's time".to_owned();
            return Err(Rejection::InvalidDeclaration { what, reason: RefusalReason::BadTimeout });
        }
        let bytes = self.capabilities.iter().map(|(name, value)| name.len() + value.len()).sum();
        Rejection::check_limit("capability_bytes_max", CAPABILITY_BYTES_MAX, bytes)
    }
}

/// The sessions of a store.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::sessions::LifeState;
/// let session = house.sessions().open()?;
/// session.cells().set("seen", true)?; // executed once, however often its bytes arrive
/// assert_eq!(house.sessions().state(session.id()), LifeState::Connected);
/// session.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Sessions {
    shard: Arc<Shard>,
    sender: Option<Sender>,
}

impl Statehouse {
    /// The sessions of this store.
    pub fn sessions(&self) -> Sessions {
        Sessions { shard: self.shard.clone(), sender: self.sender.clone() }
    }
}

impl Sessions {
    /// Opens a session, with the options of [`SessionOptions::default`].
    pub fn open(&self) -> Result<Session, Error> {
        self.open_with(SessionOptions::default())
    }

    /// Opens a session.
    pub fn open_with(&self, options: SessionOptions) -> Result<Session, Error> {
        let session = self.create(options)?;
        self.resume(&session, 1)
    }

    /// Creates a session and returns its number, with the secret to act as it. Nobody is connected to it yet. The store keeps a
    /// digest of the secret only: whoever loses it cannot get it again.
    pub fn create(&self, options: SessionOptions) -> Result<SessionCredentials, Error> {
        self.create_later(options).wait()
    }

    /// [`create`](Self::create), answered later.
    pub fn create_later(&self, options: SessionOptions) -> Pending<SessionCredentials> {
        let secret = match options.check().map_err(Error::from).and_then(|()| secrets::draw()) {
            Ok(secret) => secret,
            Err(error) => return Pending::refused(error),
        };
        let SessionOptions { timeout, capabilities, space } = options;
        let (timeout_us, digest) = (micros(timeout), secrets::digest(&secret));
        let owner = self.sender.as_ref().map(|sender| SessionOwner { principal: sender.principal.to_string(), space });
        let command = SessionCommand::Create { timeout_us, secret: digest, capabilities, owner };
        self.shard.access.propose_session(&command, move |answer| match answer {
            SessionAnswer::Created(session) => Ok(SessionCredentials { session, secret: secret.clone() }),
            other => Err(unexpected_answer("the creation of a session", &other)),
        })
    }

    /// Connects to an existing session. Its next request will have the number `next_request`: earlier requests of its
    /// client must be below, and are answered as before by [`Session::request`].
    pub fn resume(&self, session: &SessionCredentials, next_request: u64) -> Result<Session, Error> {
        self.keep_alive(session)?;
        if !self.shard.keeper.connect(session.session, self.shard.now()) {
            return Err(Rejection::Session(SessionRejection::Expired).into());
        }
        Ok(Session::new(self, session.clone(), next_request))
    }

    /// What a remote client has shown to act as a session, as it is given to the calls below. A client that has shown no secret
    /// is refused.
    pub fn shown(&self, session: u64, secret: Option<SessionSecret>) -> Result<SessionCredentials, Error> {
        match secret {
            Some(secret) => Ok(SessionCredentials { session, secret }),
            None => Err(self.admit(session, None, None).expect_err("nobody is admitted without a secret")),
        }
    }

    /// A space for one request of a remote client's session, with the number chosen by the client; see
    /// [`Session::request`].
    pub fn request_in(
        &self,
        session: &SessionCredentials,
        request: u64,
        lowest_pending: u64,
        space: &str,
    ) -> Result<Space, Error> {
        self.admit(session.session, Some(&session.secret), Some(space))?;
        let numbers = Numbers::exactly(request, lowest_pending);
        let session = Some(InSession { session: session.session, numbers });
        let (shard, branch) = (self.shard.clone(), MAIN_BRANCH.into());
        let (space, authority, sender) = (space.into(), Authority::default(), self.sender.clone());
        Ok(Space { scope: Scope { shard, space, branch, pinned: None, session, authority, sender } })
    }

    /// The deliveries to a remote client's session; see [`Session::deliveries`].
    pub fn deliveries(&self, session: &SessionCredentials) -> Result<Deliveries, Error> {
        self.keep_alive(session)?;
        Ok(Deliveries::new(self.shard.clone(), session.session))
    }

    /// Keeps a session alive: its timeout starts over. Costs no journal entry.
    pub fn keep_alive(&self, session: &SessionCredentials) -> Result<(), Error> {
        self.admit(session.session, Some(&session.secret), None)
    }

    fn admit(&self, session: u64, secret: Option<&SessionSecret>, space: Option<&str>) -> Result<(), Error> {
        let principal = self.sender.as_ref().map(|sender| &*sender.principal);
        self.shard.admit(session, &Client { secret, principal, space })
    }

    /// The state of a session's client.
    pub fn state(&self, session: u64) -> LifeState {
        self.shard.keeper.state(session)
    }

    /// The stored state of a session; none if it does not exist.
    pub fn status(&self, session: u64) -> Result<Option<SessionStatus>, Error> {
        let (view, _) = self.shard.view()?;
        ::session::status::status(&*view, &self.shard.keys().sessions(), session).map_err(|halt| from_halt(&halt))
    }

    /// The numbers of the sessions after one, at most `limit`.
    pub fn list(&self, after: u64, limit: usize) -> Result<Vec<u64>, Error> {
        check_page(limit)?;
        let (view, _) = self.shard.view()?;
        let found = ::session::row::sessions(&*view, &self.shard.keys().sessions(), after).take(limit);
        found.map(|row| row.map(|(session, _)| session)).collect::<Result<_, _>>().map_err(|halt| from_halt(&halt))
    }

    /// Ends a session, as its client. Returns whether it existed.
    pub fn end(&self, session: &SessionCredentials) -> Result<bool, Error> {
        match self.end_later(session).wait() {
            Err(Error::Rejected(Rejection::Session(SessionRejection::Expired))) => Ok(false),
            ended => ended,
        }
    }

    /// [`end`](Self::end), answered later; a session that does not exist is refused as expired.
    pub fn end_later(&self, session: &SessionCredentials) -> Pending<bool> {
        match self.keep_alive(session) {
            Ok(()) => self.expire_later(session.session),
            Err(error) => Pending::refused(error),
        }
    }

    /// Ends a session now, whatever its client does; for operators, who need no secret. Returns whether it existed.
    pub fn expire(&self, session: u64) -> Result<bool, Error> {
        self.expire_later(session).wait()
    }

    /// [`expire`](Self::expire), answered later.
    pub fn expire_later(&self, session: u64) -> Pending<bool> {
        let command = SessionCommand::Expire { sessions: vec![session] };
        self.shard.access.propose_session(&command, |answer| done(answer).map(|ended| ended > 0))
    }

    /// Acknowledges a session's pushes up to this one. Returns how many were discarded.
    pub fn acknowledge(&self, session: &SessionCredentials, upto: u64) -> Result<u64, Error> {
        self.acknowledge_later(session, upto).wait()
    }

    /// [`acknowledge`](Self::acknowledge), answered later.
    pub fn acknowledge_later(&self, session: &SessionCredentials, upto: u64) -> Pending<u64> {
        match self.keep_alive(session) {
            Ok(()) => self.acknowledge_admitted(session.session, upto),
            Err(error) => Pending::refused(error),
        }
    }

    /// [`acknowledge_later`](Self::acknowledge_later) of a client that was admitted before.
    fn acknowledge_admitted(&self, session: u64, upto: u64) -> Pending<u64> {
        self.shard.keeper.contact(session, self.shard.now());
        self.shard.access.propose_session(&SessionCommand::Acknowledge { session, upto }, done)
    }

    /// Takes pushes last sent before a wall time, in µs, to be sent again; marks them as sent now.
    pub fn requests_for_retry(&self, sent_before_us: u64, limit: u32) -> Result<Vec<PendingPush>, Error> {
        let command = SessionCommand::RequestsForRetry { sent_before_us, limit };
        let pushes = self.shard.access.propose_session(&command, |answer| match answer {
            SessionAnswer::Retry(pushes) => Ok(pushes),
            other => Err(unexpected_answer("a retry of pushes", &other)),
        });
        pushes.wait()
    }

    /// Whether any push is unacknowledged. A hint: it may have changed by now.
    pub fn has_pending(&self) -> Result<bool, Error> {
        let (view, _) = self.shard.view()?;
        ::session::pushes::has_pending(&*view, &self.shard.keys().sessions()).map_err(|halt| from_halt(&halt))
    }

    /// Whether any push may have been last sent before a wall time, in µs. A hint: it may have changed by now.
    pub fn has_overdue(&self, sent_before_us: u64) -> Result<bool, Error> {
        let (view, _) = self.shard.view()?;
        ::session::pushes::has_overdue(&*view, &self.shard.keys().sessions(), sent_before_us)
            .map_err(|halt| from_halt(&halt))
    }
}

fn done(answer: SessionAnswer) -> Result<u64, Error> {
    match answer {
        SessionAnswer::Done(count) => Ok(count),
        other => Err(unexpected_answer("a command of sessions", &other)),
    }
}
