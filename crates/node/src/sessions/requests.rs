//! The numbers of a session's requests: each command gets the next one and states which answers the client still waits
//! for.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use session::Envelope;

/// How commands are sent in a session.
#[derive(Clone)]
pub struct InSession {
    /// The session.
    pub session: u64,
    /// Which numbers the commands get.
    pub numbers: Numbers,
}

/// Which numbers they get.
#[derive(Clone)]
pub enum Numbers {
    /// The next one each.
    Next(Arc<Requests>),
    /// This number, chosen by the client.
    Exactly {
        /// The number.
        request: u64,
        /// The lowest number whose answer the client still waits for.
        lowest_pending: u64,
        /// Set when the answer was a stored one.
        replayed: Arc<AtomicBool>,
    },
}

impl Numbers {
    /// This one.
    pub fn exactly(request: u64, lowest_pending: u64) -> Self {
        Self::Exactly { request, lowest_pending, replayed: Arc::default() }
    }
}

impl InSession {
    /// The session and the number of the one request that commands are sent as, if its client chose it.
    pub fn request(&self) -> Option<(u64, u64)> {
        match &self.numbers {
            Numbers::Next(_) => None,
            Numbers::Exactly { request, .. } => Some((self.session, *request)),
        }
    }

    /// A command is about to be sent.
    pub fn begin(&self) -> Request {
        let session = self.session;
        match &self.numbers {
            Numbers::Exactly { request, lowest_pending, replayed } => {
                let of = Of::Itself(replayed.clone());
                Request { session, number: *request, lowest_pending: *lowest_pending, of }
            }
            Numbers::Next(requests) => {
                let mut state = requests.lock();
                let number = state.next;
                state.next += 1;
                state.waiting.insert(number);
                let lowest_pending = state.waiting.first().copied().unwrap_or(number);
                Request { session, number, lowest_pending, of: Of::Client(requests.clone()) }
            }
        }
    }
}

/// The requests of a client.
pub struct Requests {
    state: Mutex<State>,
}

struct State {
    next: u64,
    /// Those whose answers are waited for.
    waiting: BTreeSet<u64>,
}

impl Requests {
    /// The first request will have this number.
    pub fn starting_with(next: u64) -> Self {
        Self { state: Mutex::new(State { next, waiting: BTreeSet::new() }) }
    }

    /// The client has used this number itself.
    pub fn go_on_above(&self, request: u64) {
        let mut state = self.lock();
        state.next = state.next.max(request.saturating_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in progress. When it is dropped, nobody waits for its answer any more.
pub struct Request {
    session: u64,
    pub(crate) number: u64,
    lowest_pending: u64,
    of: Of,
}

/// Who numbers it.
enum Of {
    /// The local client.
    Client(Arc<Requests>),
    /// A remote client, which is told whether its answer was a stored one.
    Itself(Arc<AtomicBool>),
}

impl Request {
    /// The envelope of its command, without the body.
    pub fn envelope(&self, machine: u32, catalogue_revision: u64) -> Envelope<'static> {
        Envelope {
            machine,
            session: Some(self.session),
            request: self.number,
            lowest_pending: self.lowest_pending,
            catalogue_revision,
            sender: None,
            body: b"",
        }
    }
}

impl Request {
    /// Its answer was stored by an earlier sending.
    pub(crate) fn was_replayed(&self) {
        if let Of::Itself(replayed) = &self.of {
            replayed.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Of::Client(requests) = &self.of {
            requests.lock().waiting.remove(&self.number);
        }
    }
}
