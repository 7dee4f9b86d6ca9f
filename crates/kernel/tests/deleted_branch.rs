//! Records of a deleted branch: what is still due of them is not done, and they go.

use std::sync::Arc;

use kv::{MemoryStore, Order, Store, Writer};
use session::{Envelope, Stamp};
use statehouse_kernel::keys::Kind;
use statehouse_kernel::machine::MACHINE;
use statehouse_kernel::trim::TrimStep;
use statehouse_kernel::{
    Body, Buckets, CatalogueChange, ClaimNext, EntryHeader, Kernel, Keys, Op, RecordAct, Transact, TtlArgument,
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
            let (machine, identity) = (MACHINE, b"someone".as_slice());
            let (request, lowest_pending, catalogue_revision) = (1, 1, 1);
            Envelope { machine, session: None, request, lowest_pending, catalogue_revision, identity, body }
                .encode(&mut envelope);
            envelope.finish()
        })
        .collect();
    let entry = EntryHeader::new(Stamp { wall_us: 1, cluster_us }).encode(envelopes.iter().map(Vec::as_slice));
    let index = kernel.applied().index + 1;
    let effects = kernel.apply(store.view().expect("a view"), index, &entry).expect("no halt");
    store.commit(effects.batch).expect("commit");
}

#[test]
fn leases_of_a_deleted_branch_end_after_its_counts_are_gone() {
    let store = Arc::new(MemoryStore::new());
    let keys = Keys::new(1, 0);
    store.commit(Kernel::genesis(store.view().expect("a view"), keys, Buckets::new(1).expect("one"))).expect("commit");
    let mut kernel = Kernel::load(&*store.view().expect("a view"), keys).expect("no halt").expect("a state");
    let branch = CatalogueChange::CreateBranch { space: SPACE, name: "draft".to_owned() };
    apply(&mut kernel, &store, 1, &[Body::Catalogue(branch)]);
    let names: Vec<_> = (0..RECORDS).map(|number| format!("jobs.{number}")).collect();
    for name in &names {
        let act = RecordAct::Put { record_type: Some("task"), ttl: TtlArgument::Persist, fields: Vec::new() };
        let ops = vec![Op::Record(name, act)];
        let put = Transact { space: SPACE, branch: BRANCH, group: None, fence: None, guards: Vec::new(), ops };
        apply(&mut kernel, &store, 1, &[Body::Transact(put)]);
    }
    let (prefix, worker, lease_us) = ("jobs.", "w", Some(1_000));
    let claim = ClaimNext { space: SPACE, branch: BRANCH, prefix, records_max: RECORDS, worker, lease_us };
    apply(&mut kernel, &store, 1, &[Body::ClaimNext(claim)]);
    let deleted = CatalogueChange::DeleteBranch { space: SPACE, branch: BRANCH };
    let steps = vec![
        TrimStep::Records { bucket: 0, space: SPACE, branch: BRANCH },
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
