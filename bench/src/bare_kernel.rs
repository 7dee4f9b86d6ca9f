//! The kernel on its store, without a journal and without callers: measures the cost of an entry, at times chosen by
//! the workload.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kernel::command::MACHINE;
use kernel::{
    Answer, Body, Buckets, Catalogue, EntryHeader, EntryPlace, Kernel, Keys, Op, OpOutcome, RecordAct, Transact,
    TtlArgument, ValueRef,
};
use kv::{Overlay, OverlayOptions, Store, View, Writer};
use session::{Envelope, Reply, Stamp};

use crate::store_maker::{MadeStore, StoreMaker, TreeMaker};

/// Commands of one entry while much is loaded.
pub const ENTRY_COMMANDS: u64 = 1_000;

/// The time between two entries, in µs.
const ENTRY_US: u64 = 100;

/// A kernel with its state on disk.
pub struct BareKernel {
    path: PathBuf,
    maker: Rc<dyn StoreMaker>,
    below: MadeStore,
    store: Overlay,
    kernel: Kernel,
    /// Both clocks.
    now_us: u64,
    /// The space `default`.
    pub space: u32,
    /// Its branch `main`.
    pub branch: u32,
}

/// The effects of an entry, and its duration.
pub struct AppliedEntry {
    /// How long it took to apply it and to make it visible.
    pub took: Duration,
    /// Rows that its commands wrote.
    pub command_rows: usize,
    /// One for each command.
    pub answers: Vec<Answer>,
}

/// The keys of its only shard.
pub fn keys() -> Keys {
    Keys::new(1, kernel::BucketRange::ALL)
}

impl BareKernel {
    /// One without any data, on the store that a shard uses.
    pub fn create(path: &Path) -> Self {
        Self::create_on(Rc::new(TreeMaker), path)
    }

    /// One without any data, on another store.
    pub fn create_on(maker: Rc<dyn StoreMaker>, path: &Path) -> Self {
        let below = maker.create(path);
        let empty = below.store.view().expect("a view");
        below.store.commit(Kernel::genesis(empty, keys(), Buckets::default())).expect("the first state");
        Self::start(maker, path, below, 1_700_000_000_000_000)
    }

    fn start(maker: Rc<dyn StoreMaker>, path: &Path, below: MadeStore, now_us: u64) -> Self {
        let store = Overlay::new(below.store.clone(), OverlayOptions::default()).expect("an overlay");
        let view = store.view().expect("a view");
        let kernel = Kernel::load(&*view, keys()).expect("a state").expect("there is one");
        let space = kernel.catalogue().space_named("default").expect("it is always there");
        let branch = kernel.catalogue().space(space).expect("it is there").branch_named("main").expect("always there");
        Self { path: path.to_owned(), maker, below, store, kernel, now_us, space, branch }
    }

    /// Writes everything to disk and reopens it, with nothing in memory. Returns the duration of the reopening,
    /// including the first query for due work, which a library makes too.
    pub fn reopen(self) -> (Self, Duration) {
        self.store.persist().expect("a flush");
        let Self { path, maker, below, store, kernel, now_us, .. } = self;
        // The kernel too: its views keep the store open.
        drop((kernel, store, below));
        let started = Instant::now();
        let below = maker.open(&path);
        let mut reopened = Self::start(maker, &path, below, now_us);
        let view = reopened.store.view().expect("a view");
        reopened.kernel.next_due(view).expect("what is due next");
        (reopened, started.elapsed())
    }

    /// Writes everything to disk and waits until there is nothing to merge.
    pub fn settle(&self) {
        self.store.persist().expect("a flush");
        (self.below.settle)();
    }

    /// A view of everything applied so far.
    pub fn view(&self) -> Arc<dyn View> {
        self.store.view().expect("a view")
    }

    /// The catalogue.
    pub fn catalogue(&self) -> &Catalogue {
        self.kernel.catalogue()
    }

    /// Time passes.
    pub fn advance(&mut self, by: Duration) {
        self.now_us += u64::try_from(by.as_micros()).expect("a short time");
    }

    /// Applies one entry with these commands and makes it visible.
    pub fn apply(&mut self, bodies: &[Body<'_>]) -> AppliedEntry {
        let commands: Vec<Vec<u8>> = bodies.iter().map(|body| self.envelope(body)).collect();
        self.now_us += ENTRY_US;
        let stamp = Stamp { wall_us: self.now_us, cluster_us: self.now_us };
        let payload = EntryHeader::new(stamp).encode(commands.iter().map(Vec::as_slice));
        let started = Instant::now();
        let view = self.store.view().expect("a view");
        let place = EntryPlace::without_log(self.kernel.applied().index + 1);
        let effects = self.kernel.apply(view, &place, &payload).expect("it is applied");
        self.store.commit(effects.batch).expect("it is kept");
        let took = started.elapsed();
        let answers = effects.replies.iter().map(|reply| decode(reply)).collect();
        AppliedEntry { took, command_rows: effects.command_rows, answers }
    }

    fn envelope(&self, body: &Body<'_>) -> Vec<u8> {
        let mut writer = Writer::new();
        Envelope::without_session(MACHINE, self.kernel.catalogue().revision, b"").encode(&mut writer);
        body.encode(&mut writer);
        writer.finish()
    }

    /// A command that does one thing to a record.
    pub fn act<'bytes>(&self, record: &'bytes str, act: RecordAct<'bytes>) -> Body<'bytes> {
        Body::Transact(Transact::new(self.space, self.branch, None, vec![Op::Record(record, act)]))
    }

    /// Puts records with the numbers of `range` behind `prefix`.
    pub fn put(&mut self, prefix: &str, range: std::ops::Range<u64>, record_type: Option<&str>, ttl: TtlArgument) {
        let mut next = range.start;
        while next < range.end {
            let names: Vec<String> =
                (next..range.end.min(next + ENTRY_COMMANDS)).map(|number| format!("{prefix}{number:09}")).collect();
            let put =
                || RecordAct::Put { record_type, ttl, fields: vec![("to", ValueRef::Text("someone@example.org"))] };
            let bodies: Vec<Body<'_>> = names.iter().map(|name| self.act(name, put())).collect();
            all_done(&self.apply(&bodies));
            next += ENTRY_COMMANDS;
        }
    }
}

fn decode(reply: &[u8]) -> Answer {
    match Reply::decode(reply).expect("a reply") {
        Reply::Answer(answer) => Answer::decode(answer).expect("an answer"),
        other => unreachable!("there are no sessions, yet {other:?}"),
    }
}

/// The names and attempts of the claimed records.
pub fn claimed(applied: &AppliedEntry) -> Vec<(String, u64)> {
    let outcomes = applied.answers.iter().flat_map(|answer| match answer {
        Answer::Done { outcomes, .. } => outcomes.as_slice(),
        Answer::Rejected(rejection) => panic!("a claim was refused: {rejection}"),
    });
    let claimed = outcomes.map(|outcome| match outcome {
        OpOutcome::Claimed(claimed) => {
            let numbers = kernel::records::row::decode_numbers(&claimed.row).expect("a row");
            (claimed.name.clone(), numbers.attempt)
        }
        other => panic!("a claim does not give {other:?}"),
    });
    claimed.collect()
}

/// Checks that no command was refused.
pub fn all_done(applied: &AppliedEntry) {
    for answer in &applied.answers {
        assert!(matches!(answer, Answer::Done { .. }), "{answer:?}");
    }
}
