//! The current use of everything that is limited, and the number of refusals.
//!
//! Keeps: whatever entered a gate counts until its permit is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::ServerLimits;

/// Memory is counted in units of this many bytes, because the counter below has 32 bits.
const MEMORY_UNIT_BYTES: usize = 1 << 10;

/// The largest event of a stream: a value of a MiB, with each byte escaped as six.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// A counter with a limit.
#[derive(Debug)]
pub struct Gate {
    max: usize,
    free: Arc<Semaphore>,
    refused: AtomicU64,
}

/// Counts in a gate until dropped.
pub(crate) type Permit = OwnedSemaphorePermit;

impl Gate {
    fn new(max: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        Self { max, free: Arc::new(Semaphore::new(max)), refused: AtomicU64::new(0) }
    }

    /// The limit.
    pub fn max(&self) -> usize {
        self.max
    }

    /// The current use.
    pub fn used(&self) -> usize {
        self.max - self.free.available_permits().min(self.max)
    }

    /// The number of refusals so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Enters, if there is room.
    pub(crate) fn enter(&self) -> Option<Permit> {
        self.enter_many(1)
    }

    /// Reserves bytes of memory, if they are free.
    pub(crate) fn take_bytes(&self, bytes: usize) -> Option<Permit> {
        self.enter_many(units(bytes)?)
    }

    /// The same, without counting a refusal if they are not.
    pub(crate) fn try_bytes(&self, bytes: usize) -> Option<Permit> {
        self.free.clone().try_acquire_many_owned(units(bytes)?).ok()
    }

    /// Waits its turn to enter; none only if the gate is closed, which it never is.
    pub(crate) async fn wait(&self) -> Option<Permit> {
        self.free.clone().acquire_owned().await.ok()
    }

    /// Waits its turn for bytes of memory; none if the gate never has that many.
    pub(crate) async fn wait_bytes(&self, bytes: usize) -> Option<Permit> {
        let units = units(bytes).filter(|units| *units as usize <= self.max)?;
        self.free.clone().acquire_many_owned(units).await.ok()
    }

    /// The bytes of a permit.
    pub(crate) fn bytes_of(&self, permit: &Permit) -> usize {
        permit.num_permits() * MEMORY_UNIT_BYTES
    }

    /// Releases what a permit has beyond these bytes.
    pub(crate) fn keep_bytes(&self, permit: &mut Permit, bytes: usize) {
        drop(permit.split(permit.num_permits().saturating_sub(bytes.div_ceil(MEMORY_UNIT_BYTES))));
    }

    fn enter_many(&self, count: u32) -> Option<Permit> {
        let entered = self.free.clone().try_acquire_many_owned(count).ok();
        if entered.is_none() {
            self.note_refused();
        }
        entered
    }

    /// Counts a refusal after a wait.
    pub(crate) fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes in units of memory, if a permit can hold that many.
fn units(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.div_ceil(MEMORY_UNIT_BYTES)).ok()
}

/// All gates of a server.
#[derive(Debug)]
pub struct Load {
    /// Connections.
    pub connections: Gate,
    /// TLS handshakes.
    pub handshakes: Gate,
    /// Requests in progress.
    pub requests: Gate,
    /// Requests that may wait.
    pub waits: Gate,
    /// Answers of unknown size.
    pub streams: Gate,
    pub(crate) memory: Gate,
    /// The share of that memory for pages of listings.
    pub(crate) pages: Gate,
    /// Pages waiting for it.
    pub(crate) page_waits: Gate,
    /// For the large events of all streams.
    stream_memory: Gate,
}

impl Load {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        Self {
            connections: Gate::new(limits.connections_max),
            handshakes: Gate::new(limits.handshakes_max),
            requests: Gate::new(limits.requests_max),
            waits: Gate::new(limits.waits_max),
            streams: Gate::new(limits.streams_max),
            memory: Gate::new(limits.request_memory_bytes_max / MEMORY_UNIT_BYTES),
            pages: Gate::new(limits.request_memory_bytes_max / 2 / MEMORY_UNIT_BYTES),
            page_waits: Gate::new((limits.requests_max / 4).max(1)),
            // At least one event can always be sent, however small the budget.
            stream_memory: Gate::new((limits.request_memory_bytes_max / 2).max(EVENT_BYTES_MAX) / MEMORY_UNIT_BYTES),
        }
    }

    /// Reserves memory for a large event of a stream, if it is free.
    pub(crate) fn take_stream_memory(&self, bytes: usize) -> Option<Permit> {
        self.stream_memory.take_bytes(bytes)
    }

    /// Reserves memory for a request, if it is free.
    pub(crate) fn take_memory(&self, bytes: usize) -> Option<Permit> {
        self.memory.take_bytes(bytes)
    }

    /// The used memory for requests, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.memory.used() * MEMORY_UNIT_BYTES
    }

    /// The total number of refusals so far.
    pub fn refused(&self) -> u64 {
        let gates = [&self.connections, &self.handshakes, &self.requests, &self.waits, &self.streams, &self.memory];
        gates.iter().map(|gate| gate.refused()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_counts_what_is_inside() {
        let gate = Gate::new(2);
        let (first, second) = (gate.enter(), gate.enter());
        assert_eq!((first.is_some(), second.is_some(), gate.enter().is_some()), (true, true, false));
        assert_eq!((gate.used(), gate.refused()), (2, 1));
        drop(first);
        assert_eq!((gate.used(), gate.enter().is_some()), (1, true));
    }

    #[test]
    fn memory_is_counted_in_bytes() {
        let load = Load::new(&ServerLimits { request_memory_bytes_max: 10 << 10, ..ServerLimits::default() });
        let held = load.take_memory(8 << 10);
        assert_eq!((held.is_some(), load.memory_bytes()), (true, 8 << 10));
        assert!(load.take_memory(2049).is_none(), "three units, and two are free");
        assert!(load.take_memory(2048).is_some());
        assert!(load.take_memory(usize::MAX).is_none());
    }
}
