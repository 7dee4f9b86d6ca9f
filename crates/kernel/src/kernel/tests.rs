//! K9: two shards over one store, each with half of the buckets. And the numbers of their sessions.

#![allow(clippy::unwrap_used)]

use contract::{Rejection, Value};
use kv::{KeyRange, MemoryStore, Order, Store};
use session::{Envelope, Reply, SESSIONS, SecretDigest, SessionAnswer, SessionCommand, SessionNumber};

use super::*;
use crate::command::MACHINE;
use crate::value::ValueRef;
use crate::{Answer, Body, BucketRange, CellAct, Op, Transact};

const HALVES: [(u16, u16); 2] = [(0, 32), (32, 64)];

/// Both shards, over one store.
fn shards(store: &MemoryStore) -> [Kernel; 2] {
    HALVES.map(|(first, end)| {
        let keys = Keys::new(1, BucketRange::new(first, end).unwrap());
        store.commit(Kernel::genesis(store.view().unwrap(), keys, Buckets::default())).unwrap();
        Kernel::load(&*store.view().unwrap(), keys).unwrap().unwrap()
    })
}

/// Sets a cell of the first space, and returns the answer.
fn set(kernel: &mut Kernel, store: &MemoryStore, name: &str) -> Answer {
    let (space, found) = kernel.catalogue().spaces().next().unwrap();
    let branch = found.branches().next().unwrap().0;
    let value = Value::from("v");
    let ops = vec![Op::Cell(name, CellAct::Set(ValueRef::from(&value)))];
    let mut body = Writer::new();
    Body::Transact(Transact::new(space, branch, None, ops)).encode(&mut body);
    let revision = kernel.catalogue().revision;
    let reply = apply(kernel, store, &Envelope::without_session(MACHINE, revision, body.as_slice()));
    match Reply::decode(&reply).unwrap() {
        Reply::Answer(bytes) => Answer::decode(bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Applies one command, and returns the reply.
fn apply(kernel: &mut Kernel, store: &MemoryStore, command: &Envelope<'_>) -> Vec<u8> {
    let mut envelope = Writer::new();
    command.encode(&mut envelope);
    let entry = EntryHeader::new(Stamp { wall_us: 1, cluster_us: 1 }).encode([envelope.as_slice()].into_iter());
    let place = EntryPlace::without_log(kernel.applied().index + 1);
    let mut effects = kernel.apply(store.view().unwrap(), &place, &entry).unwrap();
    store.commit(effects.batch).unwrap();
    effects.replies.remove(0)
}

/// Creates a session, and returns the reply.
fn create_session(kernel: &mut Kernel, store: &MemoryStore) -> Vec<u8> {
    let mut body = Writer::new();
    let secret = SecretDigest::new([1; 32]);
    SessionCommand::Create { timeout_us: 1, secret, capabilities: Vec::new(), owner: None }.encode(&mut body);
    apply(kernel, store, &Envelope::without_session(SESSIONS, 0, body.as_slice()))
}

fn created(reply: &[u8]) -> SessionNumber {
    match Reply::decode(reply).unwrap() {
        Reply::Answer(bytes) => match SessionAnswer::decode(bytes).unwrap() {
            SessionAnswer::Created(number) => SessionNumber::from(number),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn sessions_of_two_shards_have_different_numbers() {
    let store = MemoryStore::new();
    let mut shards = shards(&store);
    for commit in 1..=3 {
        let numbers = [0, 1].map(|shard: usize| created(&create_session(&mut shards[shard], &store)));
        assert_eq!(numbers.map(SessionNumber::commit), [commit; 2]);
        assert_eq!(numbers.map(SessionNumber::home), HALVES.map(|(first, _)| first));
    }
}

#[test]
fn a_shard_without_numbers_creates_no_session_and_goes_on() {
    let store = MemoryStore::new();
    let [_, upper] = shards(&store);
    let keys = upper.keys();
    let applied = Applied { commit: SessionNumber::COMMIT_MAX - 1, ..*upper.applied() };
    store.commit(Batch::new().put(keys.applied(), applied.encode())).unwrap();
    let mut upper = Kernel::load(&*store.view().unwrap(), keys).unwrap().unwrap();
    let last = created(&create_session(&mut upper, &store));
    assert_eq!((last.home(), last.commit()), (32, SessionNumber::COMMIT_MAX));
    let refused = create_session(&mut upper, &store);
    let commit = SessionNumber::COMMIT_MAX + 1;
    assert_eq!(Reply::decode(&refused), Ok(Reply::NumbersExhausted { commit }));
    let name = (0..).map(|number| format!("cell-{number}"));
    let above = |name: &String| Buckets::default().of_group(b"default", name.as_bytes()) >= 32;
    let name = name.into_iter().find(above).unwrap();
    assert!(matches!(set(&mut upper, &store, &name), Answer::Done { .. }));
}

#[test]
fn a_thing_is_written_by_the_shard_that_owns_its_bucket_and_by_no_other() {
    let store = MemoryStore::new();
    let mut shards = shards(&store);
    let mut written = [0; 2];
    for number in 0..200 {
        let name = format!("cell-{number}");
        let bucket = Buckets::default().of_group(b"default", name.as_bytes());
        let owner = usize::from(bucket >= 32);
        written[owner] += 1;
        assert!(matches!(set(&mut shards[owner], &store, &name), Answer::Done { .. }));
        let refused = set(&mut shards[1 - owner], &store, &name);
        assert_eq!(refused, Answer::Rejected(Rejection::NotHere { bucket }));
    }
    assert!(written.iter().all(|written| *written > 50), "{written:?}");
    let rows = store.view().unwrap();
    for row in rows.scan(&KeyRange::prefix(&1_u32.to_be_bytes()), Order::Ascending) {
        let (key, _) = row.unwrap();
        let owners = shards.iter().filter(|kernel| kernel.keys().owns(&key)).count();
        assert_eq!(owners, 1, "{key:02x?} has one owner");
    }
}

#[test]
#[should_panic = "K9: entry 1 writes the row"]
fn a_shard_that_does_not_know_its_buckets_is_stopped() {
    let store = MemoryStore::new();
    let [mut lower, _] = shards(&store);
    // As if a command were applied without asking whose bucket it is.
    lower.machine.machine_mut().catalogue.here = BucketRange::ALL;
    let name = (0..).map(|number| format!("cell-{number}"));
    let above = |name: &String| Buckets::default().of_group(b"default", name.as_bytes()) >= 32;
    let name = name.into_iter().find(above).unwrap();
    set(&mut lower, &store, &name);
}

#[test]
fn keys_of_other_generations_shards_and_buckets_are_not_its_own() {
    let of = |generation, (first, end)| Keys::new(generation, BucketRange::new(first, end).unwrap());
    let own = of(1, HALVES[1]);
    assert!(own.owns(&own.applied()));
    assert!(own.owns(&own.due_prefix(crate::keys::due::DueClock::Wall, 32)));
    for foreign in [
        of(2, HALVES[1]).applied(),
        of(1, HALVES[0]).applied(),
        own.due_prefix(crate::keys::due::DueClock::Wall, 31),
        own.due_prefix(crate::keys::due::DueClock::Wall, 64),
        of(2, HALVES[1]).due_prefix(crate::keys::due::DueClock::Wall, 32),
        kv::Key::from([0, 0, 0, 1, 0]),
        kv::Key::default(),
    ] {
        assert!(!own.owns(&foreign), "{foreign:02x?}");
    }
}

/// Applies one command in an entry of this history, and gives the epoch after it.
fn epoch_after(kernel: &mut Kernel, store: &MemoryStore, history: u64, body: &Body<'_>) -> u64 {
    let (mut bytes, mut envelope) = (Writer::new(), Writer::new());
    body.encode(&mut bytes);
    let revision = kernel.catalogue().revision;
    Envelope::without_session(MACHINE, revision, bytes.as_slice()).encode(&mut envelope);
    let entry = EntryHeader::new(Stamp { wall_us: 1, cluster_us: 1 }).encode([envelope.as_slice()].into_iter());
    let place = EntryPlace { history, ..EntryPlace::without_log(kernel.applied().index + 1) };
    let effects = kernel.apply(store.view().unwrap(), &place, &entry).unwrap();
    store.commit(effects.batch).unwrap();
    kernel.applied().epoch
}

/// A shard below the level that counts epochs.
fn without_epochs(store: &MemoryStore) -> Kernel {
    let keys = Keys::new(1, BucketRange::ALL);
    store.commit(Kernel::genesis(store.view().unwrap(), keys, Buckets::default())).unwrap();
    let mut catalogue = Catalogue::load(&*store.view().unwrap(), &keys).unwrap();
    catalogue.level = LEVEL_OF_EPOCHS - 1;
    let mut state = Staging::new(store.view().unwrap());
    catalogue.write_all(&keys, &mut state);
    store.commit(state.into_batch()).unwrap();
    Kernel::load(&*store.view().unwrap(), keys).unwrap().unwrap()
}

/// The histories and the commands of entries, and the epoch after each.
type Case<'body> = (&'body [(u64, &'body Body<'body>)], &'body [u64]);

#[test]
fn the_level_that_counts_epochs_begins_one_unless_there_was_nothing_before() {
    let (tick, level) = (Body::Tick, Body::Level(LEVEL_OF_EPOCHS));
    let cases: [Case<'_>; 3] = [
        (&[(1, &tick), (2, &tick), (2, &level), (2, &level), (2, &tick), (3, &tick)], &[0, 0, 1, 1, 1, 2]),
        (&[(1, &tick), (2, &level), (2, &tick)], &[0, 1, 1]),
        (&[(1, &level), (1, &tick), (2, &tick)], &[0, 0, 1]),
    ];
    for (entries, epochs) in cases {
        let store = MemoryStore::new();
        let mut kernel = without_epochs(&store);
        let after = entries.iter().map(|(history, body)| epoch_after(&mut kernel, &store, *history, body));
        assert_eq!(after.collect::<Vec<_>>(), epochs);
    }
}
