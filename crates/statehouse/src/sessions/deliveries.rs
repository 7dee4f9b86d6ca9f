//! Deliveries to a session: its pushes, in order, until they are acknowledged; and changes it subscribed to.
//!
//! Pushes are stored and survive restarts. Subscriptions do not: they follow the change feed with a cursor that the
//! client keeps, and each delivery carries the cursor to continue with.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ::session::PendingPush;
use contract::{ChangesPage, Error, Followed, Rejection, SessionRejection};
use node::arrivals::Listener;
use node::error::from_halt;
use node::sessions::keeper::LifeState;
use node::shard::Shard;
use waiting::{Bell, Rung};

use crate::changes::{Changes, unchanged_before};

/// Pushes read at a time.
const PUSHES_AT_ONCE: usize = 64;

/// Changes of one delivery.
const CHANGES_AT_ONCE: usize = 256;

/// Which subscription of a [`Deliveries`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionId(usize);

/// A delivery.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Delivery {
    /// A push. The client processes it and then calls [`Deliveries::acknowledge`].
    Push {
        /// Its number in the session, from 1.
        number: u64,
        /// Its content.
        payload: Vec<u8>,
    },
    /// Changes that a subscription is about. Its cursor is `page.next` now.
    Changes {
        /// Which subscription.
        subscription: SubscriptionId,
        /// The changes.
        page: ChangesPage,
    },
    /// A subscription's cursor is older than what the feed keeps: the client must read the current state, then
    /// continue.
    Gap {
        /// Which subscription.
        subscription: SubscriptionId,
        /// The cursor to continue with.
        next: u64,
    },
}

/// The deliveries to a session.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use std::time::Duration;
/// use statehouse::sessions::Delivery;
/// let session = house.sessions().open()?;
/// house.group("room-4").commit().set_cell("light", true).push(session.id(), "light is on").run()?;
/// let mut deliveries = session.deliveries();
/// let Some(Delivery::Push { number, payload }) = deliveries.next(Duration::from_secs(1))? else { panic!("a push") };
/// assert_eq!((number, payload.as_slice()), (1, b"light is on".as_slice()));
/// deliveries.acknowledge(number)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Deliveries {
    shard: Arc<Shard>,
    session: u64,
    bell: Arc<Bell>,
    /// Read and not delivered yet.
    pushes: VecDeque<PendingPush>,
    /// The last push read.
    read: u64,
    /// The highest push delivered.
    delivered: u64,
    acknowledged: u64,
    /// When a push was last delivered, or acknowledged, by the monotonic clock.
    moved_us: u64,
    resend_after: Option<Duration>,
    subscriptions: Vec<(Changes, u64)>,
}

impl Deliveries {
    pub(super) fn new(shard: Arc<Shard>, session: u64) -> Self {
        let bell = shard.keeper.listen(session);
        let moved_us = shard.clock().monotonic_us();
        Self {
            shard,
            session,
            bell,
            pushes: VecDeque::new(),
            read: 0,
            delivered: 0,
            acknowledged: 0,
            moved_us,
            resend_after: None,
            subscriptions: Vec::new(),
        }
    }

    /// Delivers unacknowledged pushes again after this time; for unreliable connections.
    pub fn resend_after(mut self, after: Duration) -> Self {
        self.resend_after = Some(after);
        self
    }

    /// Also delivers what `changes` is about, from a cursor on.
    pub fn subscribe(&mut self, changes: Changes, cursor: u64) -> SubscriptionId {
        self.subscriptions.push((changes, cursor));
        SubscriptionId(self.subscriptions.len() - 1)
    }

    /// The next delivery, or none if none arrives in time. Pushes come in order and before changes.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Delivery>, Error> {
        let began_us = self.shard.clock().monotonic_us();
        let shard = self.shard.clone();
        let now = || shard.now();
        let _alive = shard.keeper.wait_in(self.session, &now);
        loop {
            let _listener = self.listen(&shard)?;
            if let Some(delivery) = self.ready()? {
                return Ok(Some(delivery));
            }
            let left = timeout.saturating_sub(self.since(began_us));
            if left.is_zero() {
                return Ok(None);
            }
            let until_resend = self.until_resend().unwrap_or(left);
            let wait = left.min(until_resend);
            let rung = self.bell.wait(wait);
            self.heard(rung);
        }
    }

    /// The next delivery, as soon as there is one; for any runtime. Pushes come in order and before changes. It resends
    /// nothing: see [`resend_after`](Self::resend_after).
    pub async fn next_async(&mut self) -> Result<Delivery, Error> {
        let shard = self.shard.clone();
        let now = || shard.now();
        let _alive = shard.keeper.wait_in(self.session, &now);
        loop {
            let _listener = self.listen(&shard)?;
            if let Some(delivery) = self.ready()? {
                return Ok(delivery);
            }
            let bell = &self.bell;
            let rung = poll_fn(|context| bell.poll(context.waker()).map_or(Poll::Pending, Poll::Ready)).await;
            self.heard(Some(rung));
        }
    }

    /// Lets the session's bell ring for what it has subscribed to, too.
    fn listen<'shard>(&self, shard: &'shard Shard) -> Result<Listener<'shard>, Error> {
        let topics = self.subscriptions.iter().map(|(changes, _)| changes.topic()).collect::<Result<_, _>>()?;
        let listener = shard.shared.arrivals.listen_with(self.bell.clone(), topics);
        if shard.shared.arrivals.is_stopped() { Err(shard.why_stopped()) } else { Ok(listener) }
    }

    fn heard(&mut self, rung: Option<Rung>) {
        for (_, cursor) in &mut self.subscriptions {
            *cursor = unchanged_before(*cursor, rung.and_then(|rung| rung.first_commit));
        }
    }

    /// The next delivery that needs no waiting.
    fn ready(&mut self) -> Result<Option<Delivery>, Error> {
        if self.until_resend().is_some_and(|left| left.is_zero()) {
            self.pushes.clear();
            self.read = self.acknowledged;
        }
        if self.pushes.is_empty() {
            self.read_pushes()?;
        }
        if let Some(PendingPush { number, payload, .. }) = self.pushes.pop_front() {
            self.moved_us = self.shard.clock().monotonic_us();
            self.delivered = self.delivered.max(number);
            return Ok(Some(Delivery::Push { number, payload }));
        }
        for (number, (changes, cursor)) in self.subscriptions.iter_mut().enumerate() {
            let subscription = SubscriptionId(number);
            loop {
                match changes.read(*cursor, CHANGES_AT_ONCE)? {
                    Followed::Page(page) => {
                        *cursor = page.next;
                        if !page.changes.is_empty() {
                            return Ok(Some(Delivery::Changes { subscription, page }));
                        }
                        if !page.more {
                            break;
                        }
                    }
                    Followed::Gap { newest, .. } => {
                        *cursor = newest;
                        return Ok(Some(Delivery::Gap { subscription, next: newest }));
                    }
                }
            }
        }
        Ok(None)
    }

    fn read_pushes(&mut self) -> Result<(), Error> {
        if self.shard.keeper.is_closing() {
            return Err(self.shard.why_stopped());
        }
        let (view, _) = self.shard.view()?;
        let found = ::session::pushes::pushes_after(
            &*view,
            &self.shard.keys().sessions(),
            self.session,
            self.read,
            PUSHES_AT_ONCE,
        );
        let found = found.map_err(|halt| from_halt(&halt))?;
        if let (Some(first), Some(last)) = (found.first(), found.last()) {
            if self.read <= self.acknowledged {
                // A missing push was acknowledged, by this connection or an earlier one.
                self.acknowledged = first.number - 1;
            }
            self.read = last.number;
        } else if self.shard.keeper.state(self.session) == LifeState::Expired {
            return Err(Rejection::Session(SessionRejection::Expired).into());
        }
        self.pushes.extend(found);
        Ok(())
    }

    fn since(&self, began_us: u64) -> Duration {
        Duration::from_micros(self.shard.clock().monotonic_us().saturating_sub(began_us))
    }

    /// The time until delivered pushes are delivered again; none if all are acknowledged.
    fn until_resend(&self) -> Option<Duration> {
        let after = self.resend_after?;
        (self.delivered > self.acknowledged).then(|| after.saturating_sub(self.since(self.moved_us)))
    }

    /// The client has dealt with the pushes up to this one: they are not delivered again.
    pub fn acknowledge(&mut self, upto: u64) -> Result<(), Error> {
        let sessions = super::Sessions { shard: self.shard.clone(), sender: None };
        sessions.acknowledge_admitted(self.session, upto).wait()?;
        self.acknowledged = self.acknowledged.max(upto.min(self.delivered));
        // It may include pushes read to be resent.
        self.pushes.retain(|push| push.number > upto);
        self.moved_us = self.shard.clock().monotonic_us();
        Ok(())
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        self.shard.keeper.unlisten(self.session, &self.bell);
    }
}
