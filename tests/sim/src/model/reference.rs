//! The reference: the behaviour of cells, records, runs, maps and messages, in plain maps, without windows, indexes or rows.
//!
//! It reads commands as bytes, as the kernel does, and has nothing else in common with it. One thing it must know of the
//! kernel's way: where a record stands in the agenda of what is due (its *alarm*), because a tick does a bounded number
//! of steps, and an alarm that rings too early, since it was put off lazily, is a step too.

mod acts;
mod catalogue;
mod cells;
mod claims;
mod counters;
mod feed;
mod guards;
mod id;
mod keyed;
mod lanes;
mod letters;
mod moves;
mod one_session;
mod read;
mod runs;
mod sessions;
mod time;
mod transact;
mod trim;
mod undo;

use std::collections::{BTreeMap, BTreeSet};

use contract::records::Record;
use contract::records::types::{IndexKind, RecordType, StateKind};
use contract::{Limits, RefusalReason, Rejection, Value, WantedKind};
use kernel::entry_budget::CORRECTIONS_MAX;
use kernel::{Buckets, OpOutcome};
use session::{Bound, ChangedSessions, SessionAnswer};

pub(crate) use catalogue::Space;
pub(crate) use cells::Cell;
use cells::CellFloor;
pub(crate) use counters::ReferenceCounters;
use feed::Feed;
pub(crate) use id::Id;
use keyed::SealedLeft;
pub(crate) use keyed::{Content, Map, State};
pub(crate) use letters::Letter;
pub(crate) use one_session::Session;
pub(crate) use runs::Run;
pub(crate) use sessions::Owns;
use undo::Undo;

/// The reason of every rejection here: which one it is, the kernel's own tests say.
pub(crate) const ANY_REASON: RefusalReason = RefusalReason::Finished;
/// The same of what a field would have to hold.
pub(crate) const ANY_KIND: WantedKind = WantedKind::Integer;

/// What is kept under a name: a record, or the counters of one that is gone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) version: u64,
    pub(crate) attempt: u64,
    pub(crate) commit: u64,
    pub(crate) created_us: u64,
    pub(crate) updated_us: u64,
    /// When it ends; of one that is gone, when its counters may go.
    pub(crate) expires_us: Option<u64>,
    pub(crate) expiry_alarm: Option<u64>,
    pub(crate) lease_alarm: Option<u64>,
    /// None: it is gone.
    pub(crate) live: Option<Live>,
}

/// A record that exists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    /// The name of its type.
    pub(crate) record_type: Option<String>,
    pub(crate) state: String,
    pub(crate) fields: BTreeMap<String, (Value, u64)>,
    pub(crate) worker: Option<String>,
    pub(crate) lease_us: Option<u64>,
    /// The session that holds it, if one does.
    pub(crate) holder: Option<u64>,
    /// The session that it ends with, if it does.
    pub(crate) life: Option<u64>,
    pub(crate) ready_us: u64,
    /// Ready, but not before `ready_us`, and no tick has said that this is over.
    pub(crate) waiting: bool,
    /// In no queue: an owner, or in a guarded group when it was written or would have been claimed.
    pub(crate) by_name: bool,
    pub(crate) failures: u64,
}

impl Kept {
    pub(crate) fn is_over(&self, wall_us: u64) -> bool {
        self.live.is_some() && self.expires_us.is_some_and(|at| at <= wall_us)
    }

    fn live_mut(&mut self) -> &mut Live {
        self.live.as_mut().expect("a record that is being written")
    }
}

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) source: String,
    pub(crate) to: To,
}

/// Where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Group(Vec<u8>),
    Topic(String, Vec<u8>),
}

/// What a command should be answered.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Done(Vec<Outcome>),
    /// It was done before, as this command.
    DoneBefore(u64, Vec<Outcome>),
    /// With one of these.
    Rejected(Vec<Rejection>),
    Sessions(SessionAnswer),
    /// The bytes that the same request was answered before.
    Stored,
    Reused,
    SessionExpired,
    Evicted {
        floor: u64,
    },
    Busy {
        bound: Bound,
        max: u64,
    },
}

/// What an operation should have done.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Is(OpOutcome),
    Claimed(Id, Box<Record>),
}

/// A type as declared.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) definition: RecordType,
    pub(crate) prefixes: Vec<String>,
    /// The indexes that have an entry for every record.
    pub(crate) filled: Vec<(String, IndexKind)>,
}

impl Declared {
    pub(crate) fn kind(&self, state: &str) -> StateKind {
        let state = self.definition.states.iter().find(|other| other.name == state);
        state.expect("a record is in a state of its type").kind
    }
}

/// Time and number of a message: the order in which a tick meets them; then its bucket.
pub(crate) type MessageKey = (u64, u64, u16);

/// Bucket and number of a message that waits to be published, or that was refused.
pub(crate) type PublishKey = (u16, u64);

/// Order and time of what can be claimed.
pub(crate) type Place = (i64, u64);

/// Where a queue stands in the one above, and where its rows begin, if it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) stands: Place,
    pub(crate) begins: Option<Place>,
}

/// Space, branch, bucket and queue.
pub(crate) type LaneKey = (u32, u32, u16, String);

/// The highest counters of records whose rows are gone, and the last command that changed one.
#[derive(Clone, Copy, Default)]
pub(crate) struct Floor {
    version: u64,
    attempt: u64,
    commit: u64,
}

/// How often something happened that a long model must have met.
#[derive(Clone, Copy, Default)]
pub(crate) struct Happened {
    pub(crate) branches_deleted: u64,
    pub(crate) branches_forgotten: u64,
    pub(crate) restores: u64,
    /// Removed keys that checkpoints had no use for any more.
    pub(crate) keys_noted: u64,
}

/// Things, types, messages and time in plain maps.
pub(crate) struct Reference {
    pub(crate) buckets: Buckets,
    pub(crate) limits: Limits,
    pub(crate) spaces: BTreeMap<u32, Space>,
    /// The built-in type of owners of groups.
    owner_type: Declared,
    last_branch: u32,
    pub(crate) happened: Happened,
    pub(crate) records: BTreeMap<Id, Kept>,
    pub(crate) cells: BTreeMap<Id, Cell>,
    /// What is known of the cells that were forgotten, by bucket, space and branch.
    cell_floors: BTreeMap<(u16, u32, u32), CellFloor>,
    pub(crate) feed: Feed,
    pub(crate) runs: BTreeMap<Id, Run>,
    /// Runs in the order in which they were made.
    pub(crate) made: Vec<Id>,
    /// Entries of the agenda for runs that are gone with their branches.
    orphaned: BTreeSet<(u64, Id)>,
    pub(crate) maps: BTreeMap<Id, Map>,
    /// The same for maps.
    orphaned_maps: BTreeSet<(u64, Id)>,
    /// A message is being delivered, and to the group that sent it.
    delivers: bool,
    from_its_own_group: bool,
    /// The command that has done before what the one that is executed asks for.
    done_before: Option<u64>,
    pub(crate) sessions: BTreeMap<u64, Session>,
    /// Sessions that have ended and may own something, by when that was.
    pub(crate) ended: BTreeSet<(u64, u64, u16)>,
    /// The state of the users' machine, by space and group.
    pub(crate) machines: BTreeMap<(u32, String), ReferenceCounters>,
    /// Which sessions it knows where, and where some have ended that it knew.
    pub(crate) members: BTreeSet<(u64, (u32, String))>,
    pub(crate) left: BTreeSet<(u32, String)>,
    /// What is known of the records of each bucket whose rows are gone.
    pub(crate) floors: BTreeMap<u16, Floor>,
    pub(crate) messages: BTreeMap<MessageKey, Message>,
    pub(crate) to_publish: BTreeMap<PublishKey, Message>,
    /// Messages that were refused, by the bucket of their group.
    pub(crate) letters: BTreeMap<PublishKey, Letter>,
    /// The last number that each bucket has given to a message.
    pub(crate) numbers: BTreeMap<u16, u64>,
    /// The last number that a bucket has received from another one, which another shard would own.
    pub(crate) received: BTreeMap<(u16, u16), u64>,
    /// Where each queue stands in the queue above it, and where its own rows begin.
    pub(crate) lanes: BTreeMap<LaneKey, Lane>,
    pub(crate) wall_us: u64,
    pub(crate) cluster_us: u64,
    /// Lanes that the claims of the entry may still correct.
    corrections_left: usize,
    /// Waiting updates that seals may still apply in the entry, and the bytes that they may still read.
    sealed_left: SealedLeft,
    pub(crate) commit: u64,
    pub(crate) revision: u64,
    /// The session of the command.
    session: Option<u64>,
    /// Whether the command has left something that ends with its session; perhaps it was refused then.
    owns_more: BTreeSet<u16>,
    /// What the command has pushed.
    pushes: Vec<(u64, Vec<u8>)>,
    /// Sessions that were answered in this entry, what it has changed in sessions, and how many pushes waited before.
    answered: Vec<u64>,
    changed: ChangedSessions,
    pushes_before: usize,
    /// Requests of sessions that the machine has executed, ever.
    pub(crate) executed: BTreeSet<(u64, u64)>,
    /// Whether there ever was a session.
    pub(crate) had_sessions: bool,
    /// What the command has changed, as it was before.
    undo: Vec<Undo>,
}

impl Reference {
    /// A shard that was just made, before its spaces and types are declared.
    pub(crate) fn new(buckets: Buckets, limits: Limits) -> Self {
        let mut reference = Self {
            buckets,
            limits,
            spaces: BTreeMap::new(),
            owner_type: Declared { definition: RecordType::owner(), prefixes: Vec::new(), filled: Vec::new() },
            last_branch: 0,
            happened: Happened::default(),
            records: BTreeMap::new(),
            cells: BTreeMap::new(),
            cell_floors: BTreeMap::new(),
            feed: Feed::default(),
            runs: BTreeMap::new(),
            made: Vec::new(),
            orphaned: BTreeSet::new(),
            maps: BTreeMap::new(),
            orphaned_maps: BTreeSet::new(),
            delivers: false,
            from_its_own_group: false,
            done_before: None,
            sessions: BTreeMap::new(),
            ended: BTreeSet::new(),
            machines: BTreeMap::new(),
            members: BTreeSet::new(),
            left: BTreeSet::new(),
            session: None,
            owns_more: BTreeSet::new(),
            pushes: Vec::new(),
            answered: Vec::new(),
            changed: ChangedSessions::default(),
            pushes_before: 0,
            executed: BTreeSet::new(),
            had_sessions: false,
            floors: BTreeMap::new(),
            messages: BTreeMap::new(),
            to_publish: BTreeMap::new(),
            letters: BTreeMap::new(),
            numbers: BTreeMap::new(),
            received: BTreeMap::new(),
            lanes: BTreeMap::new(),
            wall_us: 0,
            cluster_us: 0,
            corrections_left: CORRECTIONS_MAX,
            sealed_left: SealedLeft::WHOLE,
            commit: 0,
            revision: 1,
            undo: Vec::new(),
        };
        reference.add_default_space();
        reference
    }

    /// The times of the next entry: wall time rises, cluster time does not fall.
    pub(crate) fn begin_entry(&mut self, wall_us: u64, cluster_us: u64) {
        self.wall_us = wall_us.max(self.wall_us + 1);
        self.cluster_us = cluster_us.max(self.cluster_us);
        self.corrections_left = CORRECTIONS_MAX;
        self.sealed_left = SealedLeft::WHOLE;
    }

    pub(crate) fn bucket(&self, id: &Id) -> u16 {
        let name = &self.spaces[&id.space].name;
        self.buckets.of_group(name.as_bytes(), id.home().as_bytes())
    }

    fn set_record(&mut self, id: &Id, kept: Option<Kept>) {
        let place_before = self.ready_place(id);
        if self.owns_more_with(id, kept.as_ref()) {
            self.owns_more.insert(self.bucket(id));
        }
        let before = match kept {
            Some(kept) => self.records.insert(id.clone(), kept),
            None => self.records.remove(id),
        };
        self.undo.push(Undo::Record(id.clone(), before));
        let place = self.ready_place(id);
        if let Some(place) = place.filter(|_| place != place_before) {
            self.lead_to(id, place);
        }
    }

    /// Whether a record, as it becomes, ends with a session that it did not end with before.
    fn owns_more_with(&self, id: &Id, after: Option<&Kept>) -> bool {
        let of = |kept: Option<&Kept>| {
            kept.and_then(|kept| kept.live.as_ref()).map_or((None, None), |live| (live.holder, live.life))
        };
        let (before, after) = (of(self.records.get(id)), of(after));
        after.0.is_some() && after.0 != before.0 || after.1.is_some() && after.1 != before.1
    }
}

/// Where an alarm stands after a write: one that rings in time, or too early, is left alone.
fn alarm(stands: Option<u64>, due: Option<u64>) -> Option<u64> {
    let due = due?;
    Some(stands.filter(|at| *at <= due).unwrap_or(due))
}
