//! Records of a deleted branch: their due work is not done, and they are removed.

use std::sync::Arc;

use contract::Json;
use contract::runs::NewEvent;
use kv::{KeyRange, MemoryStore, Order, Store, Writer};
use session::{Envelope, Stamp};
use statehouse_kernel::command::MACHINE;
use statehouse_kernel::keys::Kind;
use statehouse_kernel::keys::names::is_name_in_group;
use statehouse_kernel::trim::{TrimStep, find_due};
use statehouse_kernel::{
    Append, Body, Buckets, CatalogueChange, CellAct, ClaimNext, Duplicates, EntryHeader, EntryPlace, EventRef, Kernel,
    Keys, Op, RecordAct, RunAct, Transact, TtlArgument, ValueRef,
};

const SPACE: u32 = 1;
const BRANCH: u32 = 2;

/// More than one step of the walk removes.
const RECORDS: u32 = 100;

fn apply(kernel: &mut Kernel, store: &Arc<MemoryStore>, cluster_us: u64, bodies: &[Body<'_>]) {
    let envelopes: Vec<_> = bodies
        .iter()
        .map(|body| {
            let (mut bytes, mut envelope) = (Writer::new(), Writer::new());
            body.encode(&mut bytes);
            let body = bytes.as_slice();
            let (machine, sender) = (MACHINE, None);
            let (request, lowest_pending, catalogue_revision) = (1, 1, 1);
            Envelope { machine, session: None, request, lowest_pending, catalogue_revision, sender, body }
                .encode(&mut envelope);
            envelope.finish()
        })
        .collect();
    let entry = EntryHeader::new(Stamp { wall_us: 1, cluster_us }).encode(envelopes.iter().map(Vec::as_slice));
    let index = kernel.applied().index + 1;
    let effects =
        kernel.apply(store.view().expect("a view"), &EntryPlace::without_log(index), &entry).expect("no halt");
    store.commit(effects.batch).expect("commit");
}

/// A store with a branch in which there is nothing yet, and the names of what is to be in it.
struct Scene {
    store: Arc<MemoryStore>,
    keys: Keys,
    kernel: Kernel,
    names: Vec<String>,
}

fn a_branch() -> Scene {
    let store = Arc::new(MemoryStore::new());
    let keys = Keys::new(1, statehouse_kernel::BucketRange::ALL);
    store.commit(Kernel::genesis(store.view().expect("a view"), keys, Buckets::new(1).expect("one"))).expect("commit");
    let mut kernel = Kernel::load(&*store.view().expect("a view"), keys).expect("no halt").expect("a state");
    let branch = CatalogueChange::CreateBranch { space: SPACE, name: "draft".to_owned() };
    apply(&mut kernel, &store, 1, &[Body::Catalogue(branch)]);
    Scene { store, keys, kernel, names: (0..RECORDS).map(|number| format!("jobs.{number}")).collect() }
}

#[test]
fn leases_of_a_deleted_branch_end_after_its_counts_are_gone() {
    let Scene { store, keys, mut kernel, names } = a_branch();
    for name in &names {
        let act = RecordAct::Put { record_type: Some("task"), ttl: TtlArgument::Persist, fields: Vec::new() };
        let ops = vec![Op::Record(name, act)];
        let put = Transact {
            space: SPACE,
            branch: BRANCH,
            group: None,
            fences: Vec::new(),
            force: false,
            guards: Vec::new(),
            ops,
        };
        apply(&mut kernel, &store, 1, &[Body::Transact(put)]);
    }
    let (prefix, worker, lease_us) = ("jobs.", "w", Some(1_000));
    let claim =
        ClaimNext { space: SPACE, branch: BRANCH, prefix, records_max: RECORDS, worker, lease_us, waits: false };
    apply(&mut kernel, &store, 1, &[Body::ClaimNext(claim)]);
    let deleted = CatalogueChange::DeleteBranch { space: SPACE, branch: BRANCH };
    let steps = vec![
        TrimStep::Erase { bucket: 0, space: SPACE, branch: BRANCH },
        TrimStep::Branch { space: SPACE, branch: BRANCH },
    ];
    apply(&mut kernel, &store, 1, &[Body::Catalogue(deleted), Body::Trim(steps)]);
    let left = |store: &MemoryStore| {
        let range = keys.rows_of_branch(Kind::Record, 0, SPACE, BRANCH);
        store.view().expect("a view").scan(&range, Order::Ascending).count()
    };
    assert!(left(&store) > 0, "one step does not remove all");
    apply(&mut kernel, &store, 2_000, &[Body::Tick]);
    assert_eq!(left(&store), 0);
}

#[test]
fn names_in_groups_go_with_the_branch_however_many_there_are() {
    let Scene { store, keys, mut kernel, names } = a_branch();
    let event = NewEvent::new("RunStarted", "k", "2026-02-11T10:00:00Z", Json::new("{}").expect("JSON"));
    for name in &names {
        let put = RecordAct::Put { record_type: Some("task"), ttl: TtlArgument::Persist, fields: Vec::new() };
        let append =
            Append { expected_last: None, duplicates: Duplicates::Answer, run_type: "", event: EventRef::from(&event) };
        let ops = vec![
            Op::Cell(name, CellAct::Set(ValueRef::Integer(1))),
            Op::Record(name, put),
            Op::Run(name, RunAct::Append(Box::new(append))),
        ];
        let group = Some("g");
        let transact =
            Transact { space: SPACE, branch: BRANCH, group, fences: Vec::new(), force: false, guards: Vec::new(), ops };
        apply(&mut kernel, &store, 1, &[Body::Transact(transact)]);
    }
    let left = |store: &MemoryStore| {
        let kinds = [Kind::CellHead, Kind::Record, Kind::Run].map(|kind| keys.rows_of_branch(kind, 0, SPACE, BRANCH));
        let view = store.view().expect("a view");
        let keys = |range: &KeyRange| view.scan(range, Order::Ascending).map(|row| row.expect("a row").0).collect();
        let keys: Vec<Vec<_>> = kinds.iter().map(keys).collect();
        keys.iter()
            .map(|keys| (keys.len(), keys.iter().filter(|key| is_name_in_group(key)).count()))
            .collect::<Vec<_>>()
    };
    let records = RECORDS as usize;
    assert_eq!(left(&store), [(2 * records, records); 3], "a thing, and its name");
    let deleted = CatalogueChange::DeleteBranch { space: SPACE, branch: BRANCH };
    apply(&mut kernel, &store, 1, &[Body::Catalogue(deleted)]);
    for _ in 0..20 {
        let view = store.view().expect("a view");
        let (steps, _) = find_due(&*view, kernel.catalogue(), &keys, 2, None, 1_000, false).expect("no halt");
        if steps.is_empty() {
            break;
        }
        apply(&mut kernel, &store, 1, &[Body::Trim(steps)]);
    }
    assert_eq!(left(&store), [(0, 0); 3]);
    let space = kernel.catalogue().space(SPACE).expect("the space");
    assert_eq!(space.branches().count(), 1, "K6: the branch is forgotten when nothing is left");
}
