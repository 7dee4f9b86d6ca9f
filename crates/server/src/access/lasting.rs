//! Requests that last: waits, streams and downloads. They end when their sender may not do any more what it was let in for.
//!
//! Keeps: who loses a token or a grant loses what it has going within [`LOOK_EVERY`]; a client that comes again is asked again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contract::access::Principal;
use statehouse::Statehouse;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::{Caller, KnownBy};

/// How often to look whether somebody may still do what it does.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The requests that last, and who has sent them.
#[derive(Clone, Default)]
pub(crate) struct Lasting {
    requests: Arc<Mutex<Requests>>,
}

#[derive(Default)]
struct Requests {
    next: u64,
    by_number: HashMap<u64, Request>,
}

struct Request {
    principal: Arc<Principal>,
    /// By what its sender is known.
    by: KnownBy,
    end: CancellationToken,
}

impl Request {
    /// Whether its sender is still known, and may do what it may when it was let in.
    fn may_go_on(&self, now: &Principal, now_us: u64) -> bool {
        let is_known = match &self.by {
            KnownBy::Token(id) => now.live_tokens(now_us).any(|token| token.id == *id),
            KnownBy::User => now.identities == self.principal.identities,
            KnownBy::Certificate { not_after_us } => {
                now_us <= *not_after_us && now.identities == self.principal.identities
            }
        };
        is_known && now.grants == self.principal.grants
    }
}

/// One that lasts, until it is dropped.
pub(crate) struct LastingRequest {
    of: Lasting,
    number: u64,
    end: CancellationToken,
}

impl Lasting {
    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request begins that lasts; `stopping` ends it, too. None if nobody is asked who it is.
    pub(crate) fn begin(&self, caller: &Caller, stopping: &CancellationToken) -> Option<LastingRequest> {
        let Caller::Known { principal, by, .. } = caller else { return None };
        let (principal, by, end) = (principal.clone(), by.clone(), stopping.child_token());
        let mut requests = self.lock();
        let number = requests.next;
        requests.next += 1;
        requests.by_number.insert(number, Request { principal, by, end: end.clone() });
        drop(requests);
        Some(LastingRequest { of: self.clone(), number, end })
    }

    /// Ends what may not go on, as long as it is polled.
    pub(crate) async fn watch(&self, house: &Statehouse) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look(house);
        }
    }

    fn look(&self, house: &Statehouse) {
        let principals = house.principals();
        let now_us = principals.now_us();
        let requests = self.lock();
        for request in requests.by_number.values() {
            let now = principals.get(&request.principal.name);
            if !now.is_ok_and(|now| request.may_go_on(&now, now_us)) {
                request.end.cancel();
            }
        }
    }
}

impl LastingRequest {
    /// Cancelled when it must end.
    pub(crate) fn end(&self) -> &CancellationToken {
        &self.end
    }
}

impl Drop for LastingRequest {
    fn drop(&mut self) {
        self.of.lock().by_number.remove(&self.number);
    }
}
