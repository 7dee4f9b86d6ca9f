//! The session machine with the store below it, which can be restarted and made anew from its own rows.

use std::sync::Arc;

use kv::{Batch, Key, KeyRange, MemoryStore, Order, Overlay, OverlayOptions, Row, Staging, Store, View, Writer};
use session::{Alone, ChangedSessions, SessionKeys, SessionLimits, SessionMachine, Stamp};
use testkit::random::Random;

use super::machine::Counters;
use crate::model::instance::text;

/// Where the two kinds of rows stand.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) sessions: Key,
    pub(super) machine: Key,
}

impl Places {
    /// Some that are far apart, and some that are as near to each other as they may be.
    pub(super) fn draw(random: &mut Random) -> Self {
        let (sessions, machine): (&[u8], &[u8]) = match random.below(5) {
            0 => (&[0x01], &[0x02]),
            1 => (&[0xff], &[0xfe]),
            2 => (&[], &[0xff, 0xff]),
            3 => (&[0x09, 0x07], &[0x09, 0x06]),
            // No key of sessions goes on with this byte.
            _ => (&[0x09], &[0x09, 0x07]),
        };
        Self { sessions: sessions.into(), machine: machine.into() }
    }

    pub(super) fn keys(&self) -> SessionKeys {
        SessionKeys::new(self.sessions.clone())
    }
}

/// A running machine.
pub(super) struct Instance {
    places: Places,
    store: Arc<dyn Store>,
    machine: SessionMachine<Alone<Counters>>,
}

/// What an entry did.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Effects {
    pub(super) replies: Vec<Vec<u8>>,
    pub(super) changed: ChangedSessions,
    batch: Batch,
}

impl Instance {
    /// One that holds these rows, on a store of some kind.
    pub(super) fn holding(places: &Places, rows: Vec<Row>, random: &mut Random) -> Result<Self, String> {
        let below = Arc::new(MemoryStore::new());
        let filled = rows.into_iter().map(|(key, value)| (key, Some(value))).collect();
        below.commit(Batch::from_sorted(filled)).map_err(text)?;
        let store: Arc<dyn Store> = if random.one_in(3) {
            let options = OverlayOptions::default().table_bytes_max(random.pick(&[20_000, 200_000, 1 << 30]));
            Arc::new(Overlay::new(below, options).map_err(text)?)
        } else {
            below
        };
        Ok(Self { places: places.clone(), store, machine: machine(places) })
    }

    /// Forgets everything that is in memory only.
    pub(super) fn restart(&mut self) {
        self.machine = machine(&self.places);
    }

    /// Applies the commands of an entry, the first of which has this number.
    pub(super) fn apply(
        &mut self,
        limits: &SessionLimits,
        stamp: Stamp,
        first_commit: u64,
        commands: &[Vec<u8>],
    ) -> Result<Effects, String> {
        let mut state = Staging::new(self.view()?);
        let mut replies = Vec::with_capacity(commands.len());
        for (commit, command) in (first_commit..).zip(commands) {
            state.savepoint();
            let mut reply = Writer::new();
            self.machine.apply(&mut state, limits, stamp, commit, command, &mut reply).map_err(text)?;
            replies.push(reply.finish());
        }
        let changed = self.machine.finish_entry(&mut state);
        let batch = state.into_batch();
        self.store.commit(batch.clone()).map_err(text)?;
        Ok(Effects { replies, changed, batch })
    }

    pub(super) fn view(&self) -> Result<Arc<dyn View>, String> {
        self.store.view().map_err(text)
    }

    /// Every row there is.
    pub(super) fn rows(&self) -> Result<Vec<Row>, String> {
        self.view()?.scan(&KeyRange::all(), Order::Ascending).collect::<Result<_, _>>().map_err(text)
    }
}

fn machine(places: &Places) -> SessionMachine<Alone<Counters>> {
    SessionMachine::new(Alone::new(Counters, places.machine.clone()), places.keys())
}
