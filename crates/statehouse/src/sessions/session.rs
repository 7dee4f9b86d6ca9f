//! One client's own handle on its session.

use std::sync::Arc;

use ::session::UserMachine;
use contract::catalogue::{DEFAULT_SPACE, MAIN_BRANCH};
use contract::{Error, SessionCredentials};
use node::sessions::requests::{InSession, Numbers, Requests};
use node::shard::Shard;

use super::Sessions;
use super::deliveries::Deliveries;
use super::hosted::MachineHandle;
use crate::Authority;
use crate::admission::Scope;
use crate::group::Group;
use crate::house::Space;
use crate::sender::Sender;

/// A session, as its client holds it. Everything done through it is executed once and always gets the same answer; its
/// claims, and records it puts with [`Ttl::WithSession`](crate::records::Ttl), end with it.
///
/// Dropping it does not close it: the client may return with [`Sessions::resume`] until the session expires.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::records::{ClaimOptions, Put};
/// house.records().put("jobs.mail.1", [("to", "a@b.c")], Put::typed("task"))?;
/// let session = house.sessions().open()?;
/// let job = session.records().claim_next("jobs.", 1, &ClaimOptions::worker("w1"))?.remove(0);
/// session.close()?; // the worker is gone, and its job is given back
/// # while house.records().get("jobs.mail.1")?.unwrap().holder.is_some() { std::thread::yield_now() }
/// assert!(house.records().complete(&job, [("result", "sent")]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    shard: Arc<Shard>,
    credentials: SessionCredentials,
    session: InSession,
    sender: Option<Sender>,
}

impl Session {
    pub(super) fn new(of: &Sessions, credentials: SessionCredentials, next_request: u64) -> Self {
        let numbers = Numbers::Next(Arc::new(Requests::starting_with(next_request)));
        let session = InSession { session: credentials.session, numbers };
        Self { shard: of.shard.clone(), credentials, session, sender: of.sender.clone() }
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.session.session
    }

    /// Its number and its secret: what a client needs to return with [`Sessions::resume`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// use statehouse::sessions::{SessionCredentials, SessionSecret};
    /// let session = house.sessions().open()?;
    /// let SessionCredentials { session: number, secret } = session.credentials().clone();
    /// let stored = (number, secret.to_text()); // where only this client can read it
    /// drop(session);
    /// let secret = SessionSecret::parse(&stored.1).expect("a secret");
    /// let session = house.sessions().resume(&SessionCredentials { session: stored.0, secret }, 1)?;
    /// # assert_eq!(session.id(), number);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn credentials(&self) -> &SessionCredentials {
        &self.credentials
    }

    /// A space in this session, at its branch `main`.
    pub fn space(&self, name: &str) -> Space {
        self.space_with(name, self.session.clone())
    }

    fn space_with(&self, name: &str, session: InSession) -> Space {
        let shard = self.shard.clone();
        Space {
            scope: Scope {
                shard,
                space: name.into(),
                branch: MAIN_BRANCH.into(),
                pinned: None,
                session: Some(session),
                authority: Authority::default(),
                sender: self.sender.clone(),
            },
        }
    }

    /// The space `default` for one request with a number chosen by the client. A repeated number gets the same answer.
    /// `lowest_pending` is the lowest request whose answer the client still waits for. Automatically numbered requests
    /// continue above it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
    /// let session = house.sessions().open()?;
    /// let count = |request| session.request(request, 1).records().increment("visits", "count", 1);
    /// assert_eq!((count(1)?, count(1)?, count(2)?), (1, 1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn request(&self, request: u64, lowest_pending: u64) -> Space {
        if let Numbers::Next(requests) = &self.session.numbers {
            requests.go_on_above(request);
        }
        let numbers = Numbers::exactly(request, lowest_pending);
        self.space_with(DEFAULT_SPACE, InSession { session: self.id(), numbers })
    }

    /// A group of the space `default`, in this session.
    pub fn group(&self, name: impl Into<String>) -> Group {
        self.space(DEFAULT_SPACE).group(name)
    }

    /// A machine supplied when the directory was opened, in this session.
    pub fn machine<M: UserMachine>(&self) -> MachineHandle<M> {
        self.space(DEFAULT_SPACE).machine()
    }

    /// The deliveries to this session, starting with the first unacknowledged push.
    pub fn deliveries(&self) -> Deliveries {
        Deliveries::new(self.shard.clone(), self.id())
    }

    /// Keeps the session alive: its timeout starts over. Every command does the same.
    pub fn keep_alive(&self) -> Result<(), Error> {
        self.sessions().keep_alive(&self.credentials)
    }

    /// Ends the session: what it owns is released, and its requests are no longer answered.
    pub fn close(self) -> Result<(), Error> {
        self.sessions().expire(self.id()).map(|_| ())
    }

    fn sessions(&self) -> Sessions {
        Sessions { shard: self.shard.clone(), sender: self.sender.clone() }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shard.keeper.disconnect(self.id());
    }
}
