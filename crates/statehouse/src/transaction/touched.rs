//! What a transaction has read and written: each thing and each range becomes a guard of its commit.

use std::collections::BTreeMap;

use contract::limits::{TRANSACTION_GUARDS_MAX, TRANSACTION_READS_MAX};
use contract::{Rejection, Subject};
use kernel::Guard;

use crate::commit::OwnGuard;

#[derive(Default)]
pub(super) struct Touched {
    /// By the number of their subject, and their name.
    things: BTreeMap<(u8, String), Thing>,
    /// What was read as a range.
    ranges: Vec<Box<dyn OwnGuard>>,
    read: usize,
    /// Guards that the reads so far need.
    guards: usize,
}

struct Thing {
    /// That it is as the transaction saw it.
    unchanged: Box<dyn OwnGuard>,
    was_read: bool,
    was_written: bool,
}

impl Touched {
    /// Remembers that a thing was read, whether or not it exists. Reading it again costs nothing.
    pub(super) fn read(
        &mut self,
        subject: Subject,
        name: &str,
        unchanged: impl OwnGuard + 'static,
    ) -> Result<(), Rejection> {
        let key = (subject as u8, name.to_owned());
        if self.things.get(&key).is_some_and(|thing| thing.was_read) {
            return Ok(());
        }
        self.count(1)?;
        self.room_for_a_guard()?;
        self.thing(key, unchanged).was_read = true;
        self.guards += 1;
        Ok(())
    }

    /// Remembers that a range was read.
    pub(super) fn read_range(&mut self, unchanged: impl OwnGuard + 'static) -> Result<(), Rejection> {
        self.room_for_a_guard()?;
        self.ranges.push(Box::new(unchanged));
        self.guards += 1;
        Ok(())
    }

    /// Remembers that a thing was written.
    pub(super) fn write(&mut self, subject: Subject, name: &str, unchanged: impl OwnGuard + 'static) {
        self.thing((subject as u8, name.to_owned()), unchanged).was_written = true;
    }

    fn thing(&mut self, key: (u8, String), unchanged: impl OwnGuard + 'static) -> &mut Thing {
        let new = || Thing { unchanged: Box::new(unchanged), was_read: false, was_written: false };
        self.things.entry(key).or_insert_with(new)
    }

    /// Counts things read.
    pub(super) fn count(&mut self, things: usize) -> Result<(), Rejection> {
        self.read += things;
        Rejection::check_limit("transaction_reads_max", TRANSACTION_READS_MAX, self.read)
    }

    fn room_for_a_guard(&self) -> Result<(), Rejection> {
        Rejection::check_limit("transaction_guards_max", TRANSACTION_GUARDS_MAX, self.guards + 1)
    }

    /// The names of everything that was touched.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.things.keys().map(|(_, name)| name.as_str())
    }

    /// Guards that nothing that was read has changed (T1).
    pub(super) fn of_reads(&self) -> Vec<Guard<'_>> {
        let things = self.things.values().filter(|thing| thing.was_read).map(|thing| &thing.unchanged);
        things.chain(&self.ranges).map(|unchanged| unchanged.guard()).collect()
    }

    /// Guards that nothing that was written has changed.
    pub(super) fn of_writes(&self) -> Vec<Guard<'_>> {
        let things = self.things.values().filter(|thing| thing.was_written);
        things.map(|thing| thing.unchanged.guard()).collect()
    }
}
