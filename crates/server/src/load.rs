//! How much of everything that is bounded is used now, and how often more was refused.
//!
//! Keeps: what has entered a gate is counted until its permit is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::ServerLimits;

/// Memory is counted in units of this many bytes, since the counter below has 32 bits.
const MEMORY_UNIT_BYTES: usize = 1 << 10;

/// What one event of a stream takes at most: a value of a MiB, each byte of it escaped as six.
const EVENT_BYTES_MAX: usize = 8 << 20;

/// One thing that is bounded.
#[derive(Debug)]
pub struct Gate {
    max: usize,
    free: Arc<Semaphore>,
    refused: AtomicU64,
}

/// Counts in a gate until it is dropped.
pub(crate) type Permit = OwnedSemaphorePermit;

impl Gate {
    fn new(max: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        Self { max, free: Arc::new(Semaphore::new(max)), refused: AtomicU64::new(0) }
    }

    /// How many there may be.
    pub fn max(&self) -> usize {
        self.max
    }

    /// How many there are.
    pub fn used(&self) -> usize {
        self.max - self.free.available_permits().min(self.max)
    }

    /// How many were refused so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Enters, if there is room.
    pub(crate) fn enter(&self) -> Option<Permit> {
        self.enter_many(1)
    }

    /// Takes bytes of memory, if they are free.
    pub(crate) fn take_bytes(&self, bytes: usize) -> Option<Permit> {
        self.enter_many(units(bytes)?)
    }

    /// The same, where it is no refusal if they are not.
    pub(crate) fn try_bytes(&self, bytes: usize) -> Option<Permit> {
        self.free.clone().try_acquire_many_owned(units(bytes)?).ok()
    }

    /// Takes bytes of memory, in turn, as soon as they are free; none if there are never as many.
    pub(crate) async fn wait_bytes(&self, bytes: usize) -> Option<Permit> {
        let units = units(bytes).filter(|units| *units as usize <= self.max)?;
        self.free.clone().acquire_many_owned(units).await.ok()
    }

    /// The bytes that a permit is for.
    pub(crate) fn bytes_of(&self, permit: &Permit) -> usize {
        permit.num_permits() * MEMORY_UNIT_BYTES
    }

    /// Gives back what a permit has beyond these bytes.
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

    /// Counts something that was refused after it had waited.
    pub(crate) fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes in units of memory, if a permit can be for as many.
fn units(bytes: usize) -> Option<u32> {
    u32::try_from(bytes.div_ceil(MEMORY_UNIT_BYTES)).ok()
}

/// All of them.
#[derive(Debug)]
pub struct Load {
    /// Connections.
    pub connections: Gate,
    /// Requests that are worked on.
    pub requests: Gate,
    /// Requests that may wait for something.
    pub waits: Gate,
    /// Answers without a size.
    pub streams: Gate,
    pub(crate) memory: Gate,
    /// The part of that memory that pages of listings may take.
    pub(crate) pages: Gate,
    /// Pages that wait for it.
    pub(crate) page_waits: Gate,
    /// For the large events of all streams.
    stream_memory: Gate,
}

impl Load {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        Self {
            connections: Gate::new(limits.connections_max),
            requests: Gate::new(limits.requests_max),
            waits: Gate::new(limits.waits_max),
            streams: Gate::new(limits.streams_max),
            memory: Gate::new(limits.request_memory_bytes_max / MEMORY_UNIT_BYTES),
            pages: Gate::new(limits.request_memory_bytes_max / 2 / MEMORY_UNIT_BYTES),
            page_waits: Gate::new((limits.requests_max / 4).max(1)),
            // One event at least can be sent, however little there is.
            stream_memory: Gate::new((limits.request_memory_bytes_max / 2).max(EVENT_BYTES_MAX) / MEMORY_UNIT_BYTES),
        }
    }

    /// Takes bytes of the memory for large events of streams, if they are free.
    pub(crate) fn take_stream_memory(&self, bytes: usize) -> Option<Permit> {
        self.stream_memory.take_bytes(bytes)
    }

    /// Takes bytes of the memory for requests, if they are free.
    pub(crate) fn take_memory(&self, bytes: usize) -> Option<Permit> {
        self.memory.take_bytes(bytes)
    }

    /// Bytes of the memory for requests that are taken.
    pub fn memory_bytes(&self) -> usize {
        self.memory.used() * MEMORY_UNIT_BYTES
    }

    /// How often anything was refused so far, because there was too much of it.
    pub fn refused(&self) -> u64 {
        let gates = [&self.connections, &self.requests, &self.waits, &self.streams, &self.memory];
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
