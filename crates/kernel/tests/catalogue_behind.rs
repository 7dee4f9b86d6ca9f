//! A command checked against a newer catalogue than the shard has is refused, and can be sent again.

use std::sync::Arc;

use contract::Rejection;
use kv::{MemoryStore, Store, Writer};
use session::{Envelope, Reply, Stamp};
use statehouse_kernel::command::MACHINE;
use statehouse_kernel::{Answer, Body, Buckets, CatalogueChange, EntryHeader, EntryPlace, Kernel, Keys};

/// Applies one command and returns its answer.
fn answer(kernel: &mut Kernel, store: &Arc<MemoryStore>, catalogue_revision: u64, name: &str) -> Answer {
    let (mut bytes, mut envelope) = (Writer::new(), Writer::new());
    Body::Catalogue(CatalogueChange::CreateSpace { name: name.to_owned() }).encode(&mut bytes);
    let (machine, sender, body) = (MACHINE, None, bytes.as_slice());
    let (session, request, lowest_pending) = (None, 1, 1);
    Envelope { machine, session, request, lowest_pending, catalogue_revision, sender, body }.encode(&mut envelope);
    let entry =
        EntryHeader::new(Stamp { wall_us: 1, cluster_us: 1 }).encode([envelope.finish()].iter().map(Vec::as_slice));
    let index = kernel.applied().index + 1;
    let place = EntryPlace::without_log(index);
    let effects = kernel.apply(store.view().expect("a view"), &place, &entry).expect("no halt");
    store.commit(effects.batch).expect("commit");
    match Reply::decode(&effects.replies[0]).expect("a reply") {
        Reply::Answer(bytes) => Answer::decode(bytes).expect("an answer"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_command_that_was_checked_against_a_newer_catalogue_is_refused() {
    let store = Arc::new(MemoryStore::new());
    let keys = Keys::new(1, statehouse_kernel::BucketRange::ALL);
    store.commit(Kernel::genesis(store.view().expect("a view"), keys, Buckets::new(1).expect("one"))).expect("commit");
    let mut kernel = Kernel::load(&*store.view().expect("a view"), keys).expect("no halt").expect("a state");
    let have = match answer(&mut kernel, &store, 1_000, "early") {
        Answer::Rejected(Rejection::CatalogueBehind { needed: 1_000, have }) => have,
        other => panic!("{other:?}"),
    };
    assert!(matches!(answer(&mut kernel, &store, have, "early"), Answer::Done { .. }), "nothing was left of it");
    let again = answer(&mut kernel, &store, have + 2, "late");
    assert_eq!(again, Answer::Rejected(Rejection::CatalogueBehind { needed: have + 2, have: have + 1 }));
}
