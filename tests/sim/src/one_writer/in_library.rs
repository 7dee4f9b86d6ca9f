//! Every operation of the kernel, through every handle of the library that offers it, with every fence that a handle could carry.
//!
//! The match below has no wildcard: an operation that the kernel gets is one that this file does not compile without, and its word
//! is a wrong cell until a handle does it here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kernel::{CellAct, KeyedAct, Op, RecordAct, RunAct, Send, Target};
use statehouse::guards::GroupGuard;
use statehouse::keyed::backends::{BackendError, ExactlyOnceStateBackend, HashMapStateBackend, HouseStateBackend};
use statehouse::keyed::{MapCommit, MapUpdates, Merge, Policy};
use statehouse::publish::MemoryBroker;
use statehouse::records::{ClaimOptions, Claimed, Put, Ttl};
use statehouse::runs::{AppendOptions, NewEvent};
use statehouse::{Error, Expected, Group, Json, Options, Statehouse, Value};
use testkit::session_store::Tally;

use super::{Cells, ForAnybody, REPLACED};
use crate::directories::fast_directory;
use crate::http::{TallyCommand, TallyMachine};

mod checkpoints;

macro_rules! words {
    ($($variant:pat => $word:expr,)+) => {
        const WORDS: &[&str] = &[$($word,)+];

        /// An operation in a word.
        #[allow(dead_code, reason = "it is compiled, which is what it is for")]
        fn word_of(op: &Op<'_>) -> &'static str {
            match op {
                $($variant => $word,)+
            }
        }
    };
}

words! {
    Op::Cell(_, CellAct::Init(..)) => "init",
    Op::Cell(_, CellAct::Set(..)) => "set",
    Op::Cell(_, CellAct::Cas(..)) => "cas",
    Op::Cell(_, CellAct::Delete) => "delete",
    Op::Record(_, RecordAct::Put { .. }) => "put",
    Op::Record(_, RecordAct::Patch { must_exist: false, .. }) => "patch",
    Op::Record(_, RecordAct::Patch { must_exist: true, .. }) => "update",
    Op::Record(_, RecordAct::Swap { .. }) => "swap",
    Op::Record(_, RecordAct::Increment { .. }) => "increment",
    Op::Record(_, RecordAct::Delete) => "delete record",
    Op::Record(_, RecordAct::Touch { .. }) => "touch",
    Op::Record(_, RecordAct::Claim { .. }) => "claim",
    Op::Record(_, RecordAct::Extend { .. }) => "extend",
    Op::Record(_, RecordAct::Release { .. }) => "release",
    Op::Record(_, RecordAct::Complete { .. }) => "complete",
    Op::Record(_, RecordAct::Fail { .. }) => "fail",
    Op::Send(Send { target: Target::Transact(_), .. }) => "send",
    Op::Send(Send { target: Target::Topic { .. }, .. }) => "publish",
    Op::Push(..) => "push",
    Op::Run(_, RunAct::Append(_)) => "append",
    Op::Run(_, RunAct::Close) => "close",
    Op::Run(_, RunAct::Delete) => "delete run",
    Op::Run(_, RunAct::Fork { .. }) => "fork",
    Op::Map(_, KeyedAct::Update(_)) => "update map",
    Op::Map(_, KeyedAct::Commit(_)) => "number",
    Op::Map(_, KeyedAct::Seal(_)) => "seal",
    Op::Map(_, KeyedAct::Create(_)) => "create map",
    Op::Map(_, KeyedAct::Delete) => "delete map",
    Op::Map(
        _,
        KeyedAct::BeginRestore(_)
            | KeyedAct::RestoreRows(..)
            | KeyedAct::EndRestore(..)
            | KeyedAct::AbandonRestore(_)
    ) => "restore map",
    Op::Map(_, KeyedAct::BeginCheckpoint | KeyedAct::EndCheckpoint(_)) => CHECKPOINT,
}

/// It is done to a partition: see [`checkpoints`].
const CHECKPOINT: &str = "checkpoint";

/// What a user's machine does is no operation, but it is fenced as one.
const MACHINE: &str = "machine";

/// What makes an operation possible.
type Before = fn(&Group, &str);

/// An operation on a thing, through one handle.
struct Case {
    word: &'static str,
    before: Before,
    act: fn(&Scene, &Group, &str) -> Result<(), Error>,
    for_anybody: ForAnybody,
}

/// How a handle came by what it may do.
#[derive(Clone, Copy, Debug)]
enum Handle {
    Plain,
    Old,
    Right,
    Forced,
    OfAnotherBranch,
}

const HANDLES: [Handle; 5] = [Handle::Plain, Handle::Old, Handle::Right, Handle::Forced, Handle::OfAnotherBranch];

struct Scene {
    house: Statehouse,
    session: u64,
}

pub(super) fn try_all() -> Cells {
    let directory = fast_directory().expect("a directory");
    let options = Options::default().machine(TallyMachine).publish_to(Arc::new(MemoryBroker::default()));
    let house = options.open(directory.path().join("house")).expect("a house");
    let space = house.space("default");
    space.set_guard("agents.", GroupGuard::new().open("inbox")).expect("a guard");
    space.create_branch("other").expect("a branch");
    let session = house.sessions().open().expect("a session").id();
    let scene = Scene { house, session };
    let mut cells = Cells::default();
    let mut words: BTreeSet<_> = CASES.iter().map(|case| case.word).collect();
    words.remove(MACHINE);
    words.insert(CHECKPOINT);
    let known: BTreeSet<_> = WORDS.iter().copied().collect();
    cells.compare(&|| "cases for every operation".to_owned(), &format!("{words:?}"), &format!("{known:?}"));
    checkpoints::try_all(&scene.house, &mut cells);
    let mut groups = 0;
    for (place, case) in CASES.iter().enumerate() {
        for thing in ["thing", "inbox.1"] {
            for handle in HANDLES {
                groups += 1;
                let group = scene.house.group(format!("agents.{groups}"));
                let what = || format!("{} (case {place}) of {thing} by a {handle:?} handle", case.word);
                scene.try_one(&mut cells, case, &group, thing, handle, &what);
            }
        }
    }
    cells
}

impl Scene {
    fn try_one(
        &self,
        cells: &mut Cells,
        case: &Case,
        group: &Group,
        thing: &str,
        handle: Handle,
        what: &dyn Fn() -> String,
    ) {
        (case.before)(&group.forced(), thing);
        let own = |group: &Group, worker: &str| {
            group.forced().own(&ClaimOptions::worker(worker).lease(Duration::from_secs(600))).expect("own")
        };
        let (old, right) = (own(group, "first"), own(group, "second"));
        let elsewhere = self.house.space("default").branch("other").group(group.name());
        let is_open = thing == "inbox.1" && case.for_anybody != ForAnybody::Never;
        let (acting, expected) = match handle {
            Handle::Plain => (group.clone(), if is_open { "done" } else { "SH-4003" }),
            Handle::Old => (Group::clone(&old), REPLACED),
            Handle::Right => (Group::clone(&right), "done"),
            Handle::Forced => (group.forced(), "done"),
            Handle::OfAnotherBranch => {
                // Its attempt has the same number there.
                drop(own(&elsewhere, "third"));
                (Group::clone(&own(&elsewhere, "third")), "done")
            }
        };
        if matches!(handle, Handle::OfAnotherBranch) {
            // On its own branch it owns the group; a machine's state is in no branch.
            (case.before)(&elsewhere.forced(), thing);
            let expected = if case.word == MACHINE { "SH-4003" } else { expected };
            cells.compare(what, code((case.act)(self, &acting, thing)), expected);
            return;
        }
        cells.compare(what, code((case.act)(self, &acting, thing)), expected);
        if matches!(handle, Handle::Plain) && is_open {
            cells.again(&|| format!("{}, again", what()), code((case.act)(self, &acting, thing)), case.for_anybody);
        }
    }
}

fn code(answer: Result<(), Error>) -> &'static str {
    answer.err().map_or("done", |error| error.code())
}

fn event() -> NewEvent {
    NewEvent::new("Progress", "k", "2026-02-11T10:00:00Z", Json::new("{}").expect("JSON"))
}

fn held(thing: &str, group: &Group) -> Claimed {
    Claimed::of_attempt(thing, Some(group.name()), 1)
}

const NOTHING: Before = |_, _| {};
const A_CELL: Before = |group, thing| {
    group.cells().set(thing, 1).expect("set");
};
const A_RECORD: Before = |group, thing| {
    group.records().put(thing, [("n", 1)], Put::typed("task")).expect("put");
};
const A_CLAIM: Before = |group, thing| {
    A_RECORD(group, thing);
    let lease = ClaimOptions::worker("v").lease(Duration::from_secs(600));
    group.records().claim(thing, &lease).expect("claim");
};
const A_RUN: Before = |group, thing| {
    group.runs().append(thing, &event()).expect("append");
};
const A_MAP: Before = |group, thing| {
    group.maps().put(thing, b"k", 1, 1).expect("put");
};
const AN_ORIGIN: Before = |group, _| A_RUN(group, "origin");

macro_rules! case {
    ($word:literal, $before:expr, $for_anybody:ident, $act:expr) => {
        Case { word: $word, before: $before, act: $act, for_anybody: ForAnybody::$for_anybody }
    };
}

/// By handle, then by commit, then by transaction.
const CASES: &[Case] = &[
    case!("init", NOTHING, Always, |_, group, thing| group.cells().init(thing, 1).map(drop)),
    case!("init", NOTHING, Always, |_, group, thing| group.commit().init_cell(thing, 1).run().map(drop)),
    case!("set", NOTHING, IfAbsent, |_, group, thing| group.cells().set(thing, 1).map(drop)),
    case!("set", NOTHING, IfAbsent, |_, group, thing| group.commit().set_cell(thing, 1).run().map(drop)),
    case!("set", NOTHING, IfAbsent, |_, group, thing| group.transact(|all| all.set(thing, 1)).map(drop)),
    case!("cas", NOTHING, Always, |_, group, thing| group.cells().cas(thing, Expected::Absent, 1).map(drop)),
    case!("delete", A_CELL, Never, |_, group, thing| group.cells().delete(thing).map(drop)),
    case!("delete", A_CELL, Never, |_, group, thing| group.commit().delete_cell(thing).run().map(drop)),
    case!("delete", A_CELL, Never, |_, group, thing| group.transact(|all| all.delete(thing)).map(drop)),
    case!("put", NOTHING, IfAbsent, |_, group, thing| group.records().put(thing, [("n", 1)], Put::default()).map(drop)),
    case!("put", NOTHING, IfAbsent, |_, group, thing| {
        group.commit().put_record(thing, [("n", 1)], Put::default()).run().map(drop)
    }),
    case!("put", NOTHING, IfAbsent, |_, group, thing| {
        group.transact(|all| all.records().put(thing, [("n", 1)], Put::default())).map(drop)
    }),
    case!("patch", NOTHING, IfAbsent, |_, group, thing| group.records().set_field(thing, "n", 1).map(drop)),
    case!("patch", NOTHING, IfAbsent, |_, group, thing| {
        group.commit().set_fields(thing, [("n", Some(Value::from(1)))]).run().map(drop)
    }),
    case!("patch", NOTHING, IfAbsent, |_, group, thing| {
        group.transact(|all| all.records().set_fields(thing, [("n", Some(Value::from(1)))])).map(drop)
    }),
    case!("update", A_RECORD, Never, |_, group, thing| {
        group.records().update_fields(thing, [("n", Some(Value::from(2)))]).map(drop)
    }),
    case!("swap", NOTHING, IfAbsent, |_, group, thing| {
        group.records().compare_and_swap(thing, "n", None, Some(1.into())).map(drop)
    }),
    case!("increment", NOTHING, IfAbsent, |_, group, thing| group.records().increment(thing, "n", 1).map(drop)),
    case!("increment", NOTHING, IfAbsent, |_, group, thing| group.commit().increment(thing, "n", 1).run().map(drop)),
    case!("increment", NOTHING, IfAbsent, |_, group, thing| {
        group.transact(|all| all.records().increment(thing, "n", 1)).map(drop)
    }),
    case!("delete record", A_RECORD, Never, |_, group, thing| group.records().delete(thing).map(drop)),
    case!("delete record", A_RECORD, Never, |_, group, thing| group.commit().delete_record(thing).run().map(drop)),
    case!("delete record", A_RECORD, Never, |_, group, thing| group
        .transact(|all| all.records().delete(thing))
        .map(drop)),
    case!("touch", A_RECORD, Never, |_, group, thing| group.records().touch(thing, Duration::from_secs(9)).map(drop)),
    case!("touch", A_RECORD, Never, |_, group, thing| group.records().persist(thing).map(drop)),
    case!("touch", A_RECORD, Never, |_, group, thing| {
        group.commit().set_ttl(thing, Ttl::After(Duration::from_secs(9))).run().map(drop)
    }),
    case!("claim", A_RECORD, Never, |_, group, thing| {
        group.records().claim(thing, &ClaimOptions::worker("v")).map(drop)
    }),
    case!("extend", A_CLAIM, Never, |_, group, thing| group.records().extend(&held(thing, group), None).map(drop)),
    case!("release", A_CLAIM, Never, |_, group, thing| group.records().release(&held(thing, group)).map(drop)),
    case!("release", A_CLAIM, Never, |_, group, thing| group.commit().release(&held(thing, group)).run().map(drop)),
    case!("complete", A_CLAIM, Never, |_, group, thing| {
        group.records().complete(&held(thing, group), [("n", 2)]).map(drop)
    }),
    case!("complete", A_CLAIM, Never, |_, group, thing| {
        group.commit().complete(&held(thing, group), [("n", 2)]).run().map(drop)
    }),
    case!("fail", A_CLAIM, Never, |_, group, thing| group.records().fail(&held(thing, group), "e").map(drop)),
    case!("fail", A_CLAIM, Never, |_, group, thing| group.commit().fail(&held(thing, group), "e").run().map(drop)),
    case!("update", A_CLAIM, Never, |_, group, thing| group.records().step(&held(thing, group), [("n", 2)]).map(drop)),
    case!("send", NOTHING, Never, |scene, group, _| {
        group.commit().send(scene.house.group("free").commit().init_cell("a", 1)).run().map(drop)
    }),
    case!("publish", NOTHING, Never, |_, group, _| group.commit().publish("topic", "payload").run().map(drop)),
    case!("push", NOTHING, Never, |scene, group, _| group.commit().push(scene.session, "payload").run().map(drop)),
    case!("append", NOTHING, Always, |_, group, thing| group.runs().append(thing, &event()).map(drop)),
    case!("append", NOTHING, Always, |_, group, thing| group
        .runs()
        .append_all(thing, &[event()], &AppendOptions::default())
        .map(drop)),
    case!("append", NOTHING, Always, |_, group, thing| {
        group.commit().append(thing, &event(), AppendOptions::default()).run().map(drop)
    }),
    case!("close", A_RUN, Never, |_, group, thing| group.runs().close(thing).map(drop)),
    case!("delete run", A_RUN, Never, |_, group, thing| group.runs().delete(thing).map(drop)),
    case!("fork", AN_ORIGIN, Never, |_, group, thing| group.runs().fork("origin", 1, thing).map(drop)),
    case!("update map", NOTHING, Never, |_, group, thing| group.maps().put(thing, b"k", 1, 1).map(drop)),
    case!("update map", NOTHING, Never, |_, group, thing| group.maps().insert(thing, b"k", 1).map(drop)),
    case!("update map", A_MAP, Never, |_, group, thing| group.maps().delete(thing, b"k", 2).map(drop)),
    case!("update map", NOTHING, Never, |_, group, thing| {
        group.commit().update_map(thing, MapUpdates::new().put(b"k", 1, 1)).run().map(drop)
    }),
    case!("number", NOTHING, Never, |_, group, thing| {
        group.commit().commit_map(thing, MapCommit::numbered(1).merge(b"k", Merge::Add, 1)).run().map(drop)
    }),
    case!("seal", NOTHING, Never, |_, group, thing| group.maps().seal(thing, 1)),
    case!("seal", A_MAP, Never, |_, group, thing| group.commit().seal_map(thing, 1).run().map(drop)),
    case!("create map", NOTHING, Never, |_, group, thing| group.maps().create(thing, Policy::Ordered)),
    case!("create map", NOTHING, Never, |_, group, thing| {
        group.commit().create_map(thing, Policy::Ordered).run().map(drop)
    }),
    case!("delete map", A_MAP, Never, |_, group, thing| group.maps().delete_map(thing).map(drop)),
    case!("delete map", A_MAP, Never, |_, group, thing| group.commit().delete_map(thing).run().map(drop)),
    case!("restore map", A_MAP, Never, |_, group, thing| {
        let restored = HouseStateBackend::<String, i64, u64>::new(group.maps(), thing).and_then(|mut backend| {
            let snapshot = HashMapStateBackend::<String, i64, u64>::new().snapshot()?;
            backend.restore(&snapshot)
        });
        restored.map_err(|error| match error {
            BackendError::Store(error) => error,
            other => panic!("{other}"),
        })
    }),
    case!("machine", NOTHING, Never, |_, group, _| {
        group.machine::<TallyMachine>().send(&TallyCommand(Tally::Add("n".into()))).map(drop)
    }),
];
