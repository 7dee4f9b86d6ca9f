//! Golden bytes of entries, answers and images. A change here is a change of a stored format.

use std::sync::Arc;

use kv::{MemoryStore, Store, Writer};
use session::{Envelope, Sender, Stamp};
use xxhash_rust::xxh3::xxh3_64;

use crate::catalogue::CatalogueChange;
use crate::command::MACHINE;
use crate::command::trim_step::TrimStep;
use crate::{
    Body, Buckets, CellAct, CellGuard, EntryHeader, EntryPlace, Guard, Kernel, Keys, Op, Transact, ValueRef, image,
};

fn envelope(body: &Body<'_>) -> Vec<u8> {
    let mut encoded = Writer::new();
    body.encode(&mut encoded);
    let mut writer = Writer::new();
    Envelope {
        sender: Some(Sender { principal: "me", policy_revision: 3 }),
        ..Envelope::without_session(MACHINE, 1, encoded.as_slice())
    }
    .encode(&mut writer);
    writer.finish()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An entry with every kind of command.
fn entry() -> Vec<u8> {
    let transact = Body::Transact(Transact {
        space: 1,
        branch: 1,
        group: Some("g"),
        fences: Vec::new(),
        force: false,
        guards: vec![
            Guard::Cell(CellGuard::Absent("a")),
            Guard::Cell(CellGuard::RangeUnchangedSince("a", Some("b"), 0)),
        ],
        ops: vec![
            Op::Cell("a", CellAct::Set(ValueRef::Text("x"))),
            Op::Cell("a", CellAct::Cas(Some(1), ValueRef::Integer(-1))),
        ],
    });
    let commands = [
        envelope(&transact),
        envelope(&Body::Catalogue(CatalogueChange::CreateBranch { space: 1, name: "b".into() })),
        envelope(&Body::Trim(vec![TrimStep::Branch { space: 1, branch: 9 }])),
        envelope(&Body::Level(1)),
    ];
    let header = EntryHeader::new(Stamp { wall_us: 1_000_000, cluster_us: 7 });
    header.encode(commands.iter().map(Vec::as_slice))
}

#[test]
fn golden_entry() {
    assert_eq!(hex(&entry()), GOLDEN_ENTRY.replace(char::is_whitespace, ""));
}

#[test]
fn golden_answers_hash_and_image() {
    let keys = Keys::new(1, crate::BucketRange::ALL);
    let store = MemoryStore::new();
    store.commit(Kernel::genesis(store.view().unwrap(), keys, Buckets::default())).unwrap();
    let view: Arc<dyn kv::View> = store.view().unwrap();
    let mut kernel = Kernel::load(&*view, keys).unwrap().unwrap();
    let effects = kernel.apply(view, &EntryPlace::without_log(1), &entry()).unwrap();
    store.commit(effects.batch).unwrap();
    let answers: Vec<String> = effects.replies.iter().map(|reply| hex(reply)).collect();
    assert_eq!(
        answers,
        [
            "0000010000000000000001010000000000000001".to_owned() + "0200000000000000",
            "000002000000000000000402000000".to_owned(),
            "00000300000000000000".to_owned(),
            "00000400000000000000".to_owned(),
        ]
    );
    let mut bytes = Vec::new();
    image::write(&*store.view().unwrap(), &keys, &mut bytes).unwrap();
    assert_eq!((hex(&bytes[..8]), bytes.len()), ("5348696d61676503".to_owned(), 863));
    assert_eq!((kernel.applied().hash, xxh3_64(&bytes)), (12_675_912_413_866_395_317, 14_577_686_879_117_577_462));
}

#[test]
fn golden_limits_and_those_of_earlier_formats() {
    let mut limits = contract::Limits::default();
    limits.changes_commits_max = 258;
    let change = Body::Catalogue(CatalogueChange::SetLimits(limits));
    let mut bytes = Writer::new();
    change.encode(&mut bytes);
    // Fields and bytes of a record, records and bytes of a claim, steps of a tick, age of a tombstone.
    let new = "0001000000002000".to_owned() + "0001000000004000" + "00010000" + "0060d71d14000000";
    let six = "0000100080000000000020000400000010270000e8030000";
    // Sessions, answers and their bytes, pushes and their bytes.
    let sessions = "a086010000010000000010000004000000004000";
    let messages = "80969800";
    assert_eq!(hex(bytes.as_slice()), format!("020604{six}020100000000000000a493d600000000{new}{sessions}{messages}"));
    for (format, lacks) in [(2, 24), (3, 4)] {
        let mut earlier = bytes.as_slice()[..bytes.len() - lacks].to_vec();
        earlier[2] = format;
        assert_eq!(Body::decode(&earlier).unwrap(), change);
    }
    assert_eq!(Body::decode(bytes.as_slice()).unwrap(), change);
    let before: Vec<u8> = [&[0x02, 0x05], &bytes.as_slice()[3..27]].concat();
    let defaults = Body::Catalogue(CatalogueChange::SetLimits(contract::Limits::default()));
    assert_eq!(Body::decode(&before).unwrap(), defaults);
}

const GOLDEN_ENTRY: &str = "
    020400000040420f00000000000700000000000000040000007500000001000100020100000000000000020000006d65
    030000000000000001010000000100000001010000006700020000000101000000610601000000610101000000620000
    000000000000020000000201000000610200000003780301000000610101000000000000000900000002ffffffffffff
    ffff2600000001000100020100000000000000020000006d650300000000000000020201000000010000006229000000
    01000100020100000000000000020000006d650300000000000000030100000002010000000900000020000000010001
    00020100000000000000020000006d6503000000000000000401000000";
