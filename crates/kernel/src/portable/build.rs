//! Builds a new shard from things. Each is put once, with every row derived from it.
//!
//! Touches: every kind of row except those of sessions and changes. Keeps: K3, K8, L1 and R5 of its input: a history or
//! a log with a hole is refused. The applied row is written last, so an incomplete shard is not mistaken for a complete
//! one.

use std::collections::BTreeSet;

use contract::Rejection;
use kv::{KvError, Staging, Store};
use session::{Call, Halt, Pushes};

use super::Item;
use crate::applied::Applied;
use crate::catalogue::Catalogue;
use crate::cells::floor::Floor;
use crate::cells::row::{Head, Old};
use crate::changes;
use crate::command::Body;
use crate::command::MACHINE;
use crate::context::Applying;
use crate::keys::due::{DueClock, DueOf};
use crate::keys::sessions::HostedId;
use crate::keys::things::OwnedId;
use crate::keys::{Keys, Kind, ThingId};
use crate::machine::Contracts;
use crate::names;
use crate::outbox::Stored;
use crate::outbox::command::Target;
use crate::outbox::send;
use crate::records::row::{NO_STATE, Row};
use crate::records::write;
use crate::runs::append::write_event;
use crate::runs::index;
use crate::runs::row::{EventRow, RunHead, encode_step};
use crate::sessions::brought::{Hosted, hosted_id};
use crate::sessions::owned;

/// Rows staged before they are written to the store.
const STAGED_ROWS_MAX: usize = 16 << 10;

/// Approximate bytes of values staged before they are written to the store.
const STAGED_BYTES_MAX: usize = 16 << 20;

/// Why a shard could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] KvError),
    /// Something contradicts what was put before.
    #[error("{0}")]
    Refused(String),
    /// The rows could not be built.
    #[error(transparent)]
    Halt(#[from] Halt),
}

impl From<Rejection> for BuildError {
    fn from(rejection: Rejection) -> Self {
        BuildError::Refused(rejection.to_string())
    }
}

/// Builds a shard in an empty store.
pub struct Builder<'store> {
    store: &'store dyn Store,
    keys: Keys,
    applied: Applied,
    contracts: Contracts,
    state: Staging,
    staged_bytes: usize,
    /// The cell whose versions are being put.
    cell: Option<Versions>,
    /// The run whose events are being put.
    run: Option<Log>,
    /// Sessions of the original shard. None of them is known here: they have all ended.
    sessions: BTreeSet<u64>,
}

struct Versions {
    cell: OwnedId,
    oldest: u64,
    next: u64,
    /// When the oldest version was displaced, once the one after it is known.
    displaced_us: Option<u64>,
}

struct Log {
    run: OwnedId,
    last: u64,
    /// The last event that the run is to have itself; none if it was deleted, and may have any.
    upto: Option<u64>,
}

impl<'store> Builder<'store> {
    /// Begins a shard in a store that holds nothing of it.
    pub fn new(
        store: &'store dyn Store,
        keys: Keys,
        catalogue: Catalogue,
        applied: Applied,
    ) -> Result<Self, BuildError> {
        let state = Staging::new(store.view()?);
        let contracts = Contracts::new(catalogue, keys, Hosted::new());
        let sessions = BTreeSet::new();
        Ok(Self { store, keys, applied, contracts, state, staged_bytes: 0, cell: None, run: None, sessions })
    }

    /// The catalogue, by which names become numbers.
    pub fn catalogue(&self) -> &Catalogue {
        &self.contracts.catalogue
    }

    /// Puts a thing.
    pub fn put(&mut self, item: &Item<'_>) -> Result<(), BuildError> {
        if !matches!(item, Item::CellVersion { .. } | Item::Cell { .. }) {
            self.end_of_cell()?;
        }
        if !matches!(item, Item::Event { .. } | Item::Step { .. }) {
            self.end_of_run()?;
        }
        match item {
            Item::Bucket { bucket, version, attempt, commit } => {
                let floor = write::Floor { version: *version, attempt: *attempt, commit: self.changed_by(*commit) };
                self.bucket(*bucket, floor)
            }
            Item::CellFloor { bucket, space, branch, version, commit, updated_at } => {
                self.check_bucket(*bucket)?;
                let key = self.keys.cell_floor(*bucket, *space, *branch);
                let (commit, updated_at) = (self.changed_by(*commit), *updated_at);
                let floor = Floor { version: *version, commit, updated_at };
                self.state.put_encoded(key, |writer| floor.encode(writer));
                Ok(())
            }
            Item::CellVersion { cell, version, write } => self.cell_version(cell, *version, write),
            Item::Cell { cell, version, write } => self.cell(cell, *version, write),
            Item::Record { record, row } => self.record(record, row),
            Item::Run { run, head } => self.run(run, head),
            Item::Event { run, seq, event } => self.event(run, *seq, event),
            Item::Step { run, step } => {
                self.in_run(run)?;
                let key = self.keys.run_step(&self.place(run)?, &step.step_id);
                self.state.put_encoded(key, |writer| encode_step(writer, step));
                Ok(())
            }
            Item::RunRemoval { run, at_us } => {
                let id = self.place(run)?;
                self.applying(|applying| {
                    applying.put_due(DueClock::Wall, *at_us, DueOf::Run, &id);
                    Ok(())
                })
            }
            Item::Message { due_us, commit, ordinal, message } => self.message(*due_us, *commit, *ordinal, message),
            Item::MachineState { space, machine, group, key, value } => {
                let mut whole = self.keys.hosted(&self.hosted(*space, *machine, group)?);
                whole.extend_from_slice(key);
                self.staged_bytes += value.len();
                self.state.put(whole, *value);
                Ok(())
            }
            Item::MachineMember { session, space, machine, group } => {
                let key = self.keys.member(*session, &self.hosted(*space, *machine, group)?);
                self.state.put(key, b"".as_slice());
                self.sessions.insert(*session);
                Ok(())
            }
        }?;
        self.state.savepoint();
        if self.state.writes().len() >= STAGED_ROWS_MAX || self.staged_bytes >= STAGED_BYTES_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Completes the shard, and makes everything durable. `hash` is the initial value of the hash over all effects.
    pub fn finish(mut self, hash: u64) -> Result<(), BuildError> {
        self.applied.hash = hash;
        self.end_of_cell()?;
        self.end_of_run()?;
        let (sessions, cluster_us) = (std::mem::take(&mut self.sessions), self.applied.stamp.cluster_us);
        self.applying(|applying| {
            sessions.iter().for_each(|session| owned::put_ended(applying, cluster_us, *session));
            Ok(())
        })?;
        self.contracts.catalogue.write_everything(&self.keys, &mut self.state);
        changes::begin_after(&mut self.state, &self.keys, self.applied.commit);
        self.flush()?;
        self.store.persist()?;
        self.store.commit(kv::Batch::new().put(self.keys.applied(), self.applied.encode()))?;
        self.store.persist()?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BuildError> {
        self.contracts.finish_entry(&mut self.state, self.applied.stamp, self.applied.commit)?;
        self.contracts.windows.forget();
        let staged = std::mem::replace(&mut self.state, Staging::new(self.store.view()?));
        self.store.commit(staged.into_batch())?;
        self.state = Staging::new(self.store.view()?);
        self.staged_bytes = 0;
        Ok(())
    }

    /// The place of a thing.
    fn place<'name>(&self, id: &'name OwnedId) -> Result<ThingId<'name>, BuildError> {
        if id.name.is_empty() {
            return Err(BuildError::Refused("something has an empty name".into()));
        }
        Ok(self.contracts.catalogue.thing(id.space, id.branch, id.group.as_deref(), &id.name)?)
    }

    fn hosted<'name>(&self, space: u32, machine: u16, group: &'name str) -> Result<HostedId<'name>, BuildError> {
        if self.contracts.catalogue.machine(machine).is_none() {
            return Err(BuildError::Refused(format!("machine {machine} is not registered")));
        }
        Ok(hosted_id(&self.contracts.catalogue, space, machine, group)?)
    }

    /// Does something as if a command did it, one that appears in no change feed.
    fn applying<T>(&mut self, work: impl FnOnce(&mut Applying<'_>) -> Result<T, Halt>) -> Result<T, BuildError> {
        let Applied { stamp, commit, .. } = self.applied;
        let call = Call { machine: MACHINE, session: None, catalogue_revision: 0, body: b"", stamp, commit };
        let mut pushes = Pushes::default();
        Ok(work(&mut self.contracts.applying(&mut self.state, &call, &mut pushes))?)
    }

    fn absent(&self, key: &[u8], what: &str, name: &str) -> Result<(), BuildError> {
        match self.state.get(key)? {
            None => Ok(()),
            Some(_) => Err(BuildError::Refused(format!("{what} {name:?} is repeated"))),
        }
    }

    fn check_bucket(&self, bucket: u16) -> Result<(), BuildError> {
        let buckets = self.contracts.catalogue.buckets.count();
        match bucket < buckets {
            true => Ok(()),
            false => Err(BuildError::Refused(format!("there is a bucket {bucket}, but only {buckets} exist"))),
        }
    }

    /// The last command that changed something before it was forgotten. If that is not known, it may have been the last
    /// one of all.
    fn changed_by(&self, commit: u64) -> u64 {
        if commit == 0 { self.applied.commit } else { commit }
    }

    fn bucket(&mut self, bucket: u16, floor: write::Floor) -> Result<(), BuildError> {
        self.check_bucket(bucket)?;
        if (floor.version, floor.attempt) != (0, 0) {
            self.state.put_encoded(self.keys.record_floor(bucket), |writer| floor.encode(writer));
        }
        Ok(())
    }

    fn cell_version(&mut self, cell: &OwnedId, version: u64, write: &Old<'_>) -> Result<(), BuildError> {
        let id = self.place(cell)?;
        self.next_version(cell, version, write)?;
        self.staged_bytes += write.value.map_or(0, |value| value.len());
        self.state.put_encoded(self.keys.cell_old(&id, version), |writer| write.encode(writer));
        Ok(())
    }

    fn cell(&mut self, cell: &OwnedId, version: u64, write: &Old<'_>) -> Result<(), BuildError> {
        let id = self.place(cell)?;
        let key = self.keys.cell_head(&id);
        self.absent(&key, "cell", &cell.name)?;
        self.next_version(cell, version, write)?;
        let (oldest, displaced) =
            self.cell.take().map_or((version, None), |before| (before.oldest, before.displaced_us));
        let head = Head { version, oldest, oldest_displaced_us: displaced.unwrap_or(0), write: *write };
        self.staged_bytes += write.value.map_or(0, |value| value.len());
        self.state.put_encoded(key, |writer| head.encode(writer));
        if head.exists() {
            names::set_listed(&mut self.state, &self.keys, Kind::CellHead, &id, true);
        }
        Ok(())
    }

    /// Notes the next version of the cell whose versions are being put, or the first of another one.
    fn next_version(&mut self, cell: &OwnedId, version: u64, write: &Old<'_>) -> Result<(), BuildError> {
        match &mut self.cell {
            Some(versions) if versions.cell == *cell => {
                if version != versions.next {
                    let message = format!("K3: version {} of cell {:?} is missing", versions.next, cell.name);
                    return Err(BuildError::Refused(message));
                }
                versions.displaced_us.get_or_insert(write.updated_at);
                versions.next = version + 1;
            }
            _ => {
                self.end_of_cell()?;
                let next = version.checked_add(1).ok_or_else(|| BuildError::Refused("a version is too high".into()))?;
                self.cell = Some(Versions { cell: cell.clone(), oldest: version, next, displaced_us: None });
            }
        }
        Ok(())
    }

    fn end_of_cell(&mut self) -> Result<(), BuildError> {
        match self.cell.take() {
            None => Ok(()),
            Some(versions) => {
                let name = versions.cell.name;
                Err(BuildError::Refused(format!("K3: cell {name:?} has older versions but no newest one")))
            }
        }
    }

    fn record(&mut self, record: &OwnedId, row: &Row<'_>) -> Result<(), BuildError> {
        let id = self.place(record)?;
        self.absent(&self.keys.record(&id), "record", &record.name)?;
        let numbers = row.numbers;
        let declared = self.contracts.catalogue.record_type(id.space, numbers.record_type);
        let states = declared.map_or(0, |declared| declared.definition.states.len());
        let stated = if declared.is_some() { usize::from(numbers.state) < states } else { numbers.state == NO_STATE };
        if !stated || (numbers.is_held() && declared.is_none()) {
            let message = format!("record {:?} is in a state that its type does not have", record.name);
            return Err(BuildError::Refused(message));
        }
        if !row.fields.is_sorted_by(|one, other| one.name < other.name) {
            return Err(BuildError::Refused(format!("the fields of record {:?} are out of order", record.name)));
        }
        self.sessions.extend([numbers.holder_session, numbers.life_session].iter().filter(|session| **session != 0));
        self.staged_bytes += row.fields.iter().map(|field| field.content.len()).sum::<usize>();
        self.applying(|applying| write::put_whole(applying, &id, row.clone()))
    }

    fn run(&mut self, run: &OwnedId, head: &RunHead) -> Result<(), BuildError> {
        let id = self.place(run)?;
        let key = self.keys.run(&id);
        self.absent(&key, "run", &run.name)?;
        let shared = head.parent.as_ref().map_or(0, |(_, seq)| *seq);
        if shared > head.last_seq {
            return Err(BuildError::Refused(format!("L1: run {:?} shares more events than it has", run.name)));
        }
        let upto = (!head.deleted).then_some(head.last_seq);
        self.run = Some(Log { run: run.clone(), last: shared, upto });
        let mut head = head.clone();
        self.applying(|applying| {
            index::update(applying, &id, None, &mut head);
            applying.state.put_encoded(key, |writer| head.encode(writer));
            Ok(())
        })
    }

    /// Checks that this is the run whose events are being put.
    fn in_run(&mut self, run: &OwnedId) -> Result<&mut Log, BuildError> {
        let refused = || BuildError::Refused(format!("something of run {:?} does not follow it", run.name));
        self.run.as_mut().filter(|log| log.run == *run).ok_or_else(refused)
    }

    fn event(&mut self, run: &OwnedId, seq: u64, event: &EventRow<'_>) -> Result<(), BuildError> {
        let log = self.in_run(run)?;
        if log.upto.is_some_and(|upto| seq != log.last + 1 || seq > upto) {
            let message = format!("L1: event {} of run {:?} is missing", log.last + 1, run.name);
            return Err(BuildError::Refused(message));
        }
        log.last = seq;
        let id = self.place(run)?;
        self.absent(&self.keys.run_event(&id, seq), "an event of run", &run.name)?;
        self.staged_bytes += event.event.data.len();
        self.applying(|applying| {
            write_event(applying, &id, seq, event);
            Ok(())
        })
    }

    fn end_of_run(&mut self) -> Result<(), BuildError> {
        match self.run.take() {
            Some(Log { run, last, upto: Some(upto) }) if last != upto => {
                Err(BuildError::Refused(format!("L1: event {} of run {:?} is missing", last + 1, run.name)))
            }
            _ => Ok(()),
        }
    }

    fn message(
        &mut self,
        due_us: Option<u64>,
        commit: u64,
        ordinal: u32,
        message: &Stored<'_>,
    ) -> Result<(), BuildError> {
        if let Target::Transact(body) = message.send.target
            && !matches!(Body::decode(body), Ok(Body::Transact(_)))
        {
            return Err(BuildError::Refused("the command of a message is not a transaction".into()));
        }
        let space = self.contracts.catalogue.space(message.space)?;
        let bucket = self.contracts.catalogue.buckets.of_group(space.name.as_bytes(), message.source.as_bytes());
        self.applying(|applying| {
            send::put_waiting(applying, bucket, due_us, commit, ordinal, message);
            Ok(())
        })
    }
}
