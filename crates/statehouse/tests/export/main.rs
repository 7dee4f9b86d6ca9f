//! Exports and imports: the content of a store as lines, and a store built from them that continues.

mod furnished;
mod maps;
mod neighbours;
mod released;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use furnished::{Sayings, event, furnish, options};
use statehouse::import::ImportOptions;
use statehouse::records::ClaimOptions;
use statehouse::{Followed, HistoryPage, Statehouse, TransferError, backup, export, import};

/// An export in format 1.
const GOLDEN: &[u8] = include_bytes!("../fixtures/export-1.jsonl");

fn exported(house: &Statehouse, space: Option<&str>) -> Vec<u8> {
    let mut lines = Vec::new();
    export::write(house, space, &mut lines, &mut |_| {}).expect("exported");
    lines
}

/// As the other store was, claims included.
fn imported(path: &Path, mut lines: &[u8]) -> Result<export::Exported, TransferError> {
    import::read_with(path, &mut lines, ImportOptions::default().keep_claims(), &mut |_| {})
}

fn at_rest(path: &Path) -> Vec<u8> {
    let mut lines = Vec::new();
    export::write_directory(path, &mut lines, &mut |_| {}).expect("exported");
    lines
}

/// The rows of an image by key, without those that concern one store only: the applied row, the change feed, sessions.
fn rows(image: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rows = all_rows(image);
    rows.retain(|key, _| !(key[..2] == [0xff, 0xff] && [0x01, 0x05, 0x09].contains(&key[4])));
    rows.retain(|key, _| !of_the_deleted_branch(key));
    rows.retain(|key, _| !leads_to_a_queue(key));
    rows.into_iter().map(|(key, value)| (without_time(key), value)).collect()
}

fn all_rows(image: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rows = BTreeMap::new();
    kernel::image::read(&mut &*image, |block| {
        rows.extend(block.into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        Ok(())
    })
    .expect("an image");
    rows
}

/// The branch `gone` has the number 4. Its rows are removed in the background, and are not exported.
fn of_the_deleted_branch(key: &[u8]) -> bool {
    const GONE: Option<&[u8]> = Some(&[0, 0, 0, 4]);
    match key[..2] == [0xff, 0xff] {
        true => key[4] == 0x04 && key.get(9..13) == GONE,
        false => key[2] == 0x03 && key.get(7..11) == GONE,
    }
}

/// Lanes, and the rows of queues in those above them, may stand too early; built anew, they stand exactly.
fn leads_to_a_queue(key: &[u8]) -> bool {
    if key[..2] == [0xff, 0xff] {
        return key[4] == 0x0d;
    }
    let is_of_queue = || {
        // Bucket, kind, space, branch; the queue's name; order and time.
        let name_end = key[11..].windows(2).position(|two| two == [0, 0]).expect("a queue");
        key[11 + name_end + 2 + 16] == 1
    };
    key[2] == 0x07 && is_of_queue()
}

/// A key of the index of runs without its time, which is approximate.
fn without_time(key: Vec<u8>) -> Vec<u8> {
    // Bucket, kind, space, branch, status.
    let prefix = 2 + 1 + 4 + 4 + 1;
    if key[..2] == [0xff, 0xff] || key[2] != 0x13 {
        return key;
    }
    let (run_type, _, run) = kernel::keys::runs::read_run_index(&key[prefix..], 0, 0).expect("an entry of the index");
    [&key[..prefix], format!("{run_type:?} {run:?}").as_bytes()].concat()
}

fn image_in(backup: &[u8]) -> &[u8] {
    let start = backup.windows(8).position(|bytes| bytes == b"SHimage\x03").expect("an image");
    &backup[start..]
}

#[test]
fn what_is_imported_has_the_same_rows_and_is_exported_as_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let house = options().open(folder.path().join("house")).expect("open");
    let held = furnish(&house);
    // A message that does not wait any more leaves its number.
    let received = house.group("receiver").commit().set_cell("got", 1);
    house.group("sender").commit().send(received).run().expect("sent");
    while house.group("receiver").cells().get("got").expect("read").is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Both of the same commit: background removal may still change something. A deleted branch takes space until it is gone.
    let (lines, backup) = loop {
        let lines = exported(&house, None);
        let mut backup = Vec::new();
        backup::create(&house, &mut backup, &mut |_| {}).expect("a backup");
        let is_erased = !all_rows(image_in(&backup)).keys().any(|key| of_the_deleted_branch(key));
        if is_erased && exported(&house, None) == lines {
            break (lines, backup);
        }
    };

    let elsewhere = folder.path().join("elsewhere");
    let summary = imported(&elsewhere, &lines).expect("imported");
    for kind in [
        "type",
        "cell_floor",
        "cell_version",
        "record",
        "event",
        "step",
        "message",
        "message_numbers",
        "machine_state",
        "machine_member",
    ] {
        assert!(summary.counts.contains_key(kind), "the store has no {kind}");
    }
    assert_eq!(String::from_utf8(at_rest(&elsewhere)).expect("text"), String::from_utf8(lines).expect("text"));

    // Row by row, not only as lines: indexes, schedule, counts, floors, keys of events.
    let mut again = Vec::new();
    image_at_rest(&elsewhere, &mut again);
    let (before, after) = (rows(image_in(&backup)), rows(&again));
    // An extended lease or TTL has its entry at the old time; rebuilt, it is at the current one. Sessions have ended,
    // which is due work.
    let (missing, added) = differences(&before, &after);
    let kinds = |keys: &[Vec<u8>]| keys.iter().map(|key| kind_of(key)).collect::<Vec<_>>();
    assert_eq!(kinds(&missing), ["due by cluster time", "due by wall time"], "{missing:02x?}");
    // The lease, and the one session in each of three buckets.
    let cluster = "due by cluster time";
    assert_eq!(kinds(&added), [cluster, cluster, cluster, cluster, "due by wall time"], "{added:02x?}");
    drop(held);
}

fn image_at_rest(path: &Path, out: &mut Vec<u8>) {
    let store = storage::TreeStore::open(&path.join("store"), &Default::default()).expect("a store");
    let view = kv::Store::view(&store).expect("a view");
    kernel::image::write(&*view, &kernel::Keys::new(1, kernel::BucketRange::ALL), out).expect("an image");
}

/// Keys that only one has. Values of common keys must be equal, except for approximate ones: the times of entries in
/// the schedule and in the index of runs, and since when history may be discarded.
fn differences(
    before: &BTreeMap<Vec<u8>, Vec<u8>>,
    after: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    for (key, value) in before {
        if let Some(other) = after.get(key) {
            assert_eq!(exactly(key, value), exactly(key, other), "{key:02x?}");
        }
    }
    let only = |one: &BTreeMap<Vec<u8>, Vec<u8>>, other: &BTreeMap<Vec<u8>, Vec<u8>>| {
        one.keys().filter(|key| !other.contains_key(*key)).cloned().collect()
    };
    (only(before, after), only(after, before))
}

/// The exact part of a row.
fn exactly(key: &[u8], row: &[u8]) -> String {
    match (key[..2] == [0xff, 0xff], key[2]) {
        // A name in the index of names.
        (false, 0x03 | 0x05 | 0x0f) if row.is_empty() => String::new(),
        (false, 0x03) => {
            let head = kernel::cells::row::Head::decode(row).expect("a cell");
            format!("{:?}", kernel::cells::row::Head { oldest_displaced_us: 0, ..head })
        }
        (false, 0x05) => {
            let mut record = kernel::records::row::Row::decode(row).expect("a record");
            (record.numbers.lease_entry_us, record.numbers.expires_entry_us) = (0, 0);
            format!("{record:?}")
        }
        (false, 0x0f) => {
            let head = kernel::runs::row::RunHead::decode(row).expect("a run");
            format!("{:?}", kernel::runs::row::RunHead { index_us: 0, ..head })
        }
        _ => format!("{row:02x?}"),
    }
}

fn kind_of(key: &[u8]) -> &'static str {
    match (key[..2] == [0xff, 0xff], key[2]) {
        (true, _) => "a row of the shard",
        (false, 0x08) => "due by wall time",
        (false, 0x09) => "due by cluster time",
        _ => "something else",
    }
}

#[test]
fn an_imported_store_goes_on_where_the_other_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let house = options().open(folder.path().join("house")).expect("open");
    let held = furnish(&house);
    let lines = exported(&house, None);
    let path = folder.path().join("elsewhere");
    let commit = imported(&path, &lines).expect("imported").commit;
    assert!(Statehouse::open(&path).is_err(), "without its machine it does not open, as the original");
    let new = options().open(&path).expect("open");

    let (old, shop) = (house.space("shop"), new.space("shop"));
    let page = HistoryPage::default;
    assert_eq!(new.limits().expect("limits"), house.limits().expect("limits"));
    assert_eq!(shop.retention().expect("retention"), old.retention().expect("retention"));
    assert_eq!(shop.branches().expect("branches"), ["main", "what-if"]);
    for cell in ["every/kind", "deleted"] {
        assert_eq!(
            new.cells().history(cell, page()).expect("history"),
            house.cells().history(cell, page()).expect("history")
        );
    }
    assert_eq!(new.cells().set("deleted", 1).expect("written").version, 3, "versions go on");
    assert_eq!(shop.cells().history("trimmed", page()).expect("history").versions.len(), 3);

    // A claim continues: its fence holds, and versions of fields are kept.
    let (was, is) = (old.records().get("mail.3").expect("read"), shop.records().get("mail.3").expect("read"));
    let fields = |record: Option<statehouse::records::Record>| record.expect("a record").fields;
    assert_eq!(fields(was).get("to"), fields(is).get("to"));
    shop.records().complete(&held.claimed, [("result", "sent")]).expect("the same attempt");
    assert!(shop.records().complete(&held.claimed, [("result", "twice")]).is_err());
    assert_eq!(new.records().put("forgotten", [("a", 1)], Default::default()).expect("put").version, 5);
    let ttl = |house: &Statehouse| house.records().get("config").expect("read").expect("a record").ttl.expect("a TTL");
    let difference = ttl(&house).as_secs().abs_diff(ttl(&new).as_secs());
    assert!(difference <= 60, "TTLs run on: {:?} and {:?}", ttl(&house), ttl(&new));

    // What the session held is released, and what ended with it is gone; the machine was notified.
    let deadline = 1_200;
    for turn in 0..=deadline {
        let gone = shop.records().get("presence/ann").expect("read").is_none();
        let talk = new.machine::<Sayings>().group("talk").view().expect("a view");
        let told = talk.get(&held.session.id().to_be_bytes()).expect("read").is_none();
        if gone && told {
            break;
        }
        assert!(turn < deadline, "nobody gave back what the session owned");
        std::thread::sleep(Duration::from_millis(50));
    }
    let ready = shop.records().claim_next("mail.", 10, &ClaimOptions::worker("w2")).expect("claimed");
    assert_eq!(ready.first().map(|job| job.name.as_str()), Some("mail.6"), "by priority");

    // Retries of events stay harmless, forks share, archived names stay taken.
    let again = new.runs().append("r1", &event("StepStarted", "s1", Some("step-1"))).expect("answered");
    assert!(again.idempotent && again.run_seq == 2);
    assert_eq!(new.runs().snapshot("r1").expect("read"), house.runs().snapshot("r1").expect("read"));
    let fork = new.group("workflow").runs();
    assert_eq!(fork.fetch("a-fork", 0, 10).expect("read").events.len(), 4);
    assert!(fork.append("a-fork", &event("Custom", "k1", None)).expect("answered").idempotent);
    assert_eq!(fork.append("a-fork", &event("Custom", "new", None)).expect("appended").run_seq, 5);
    assert!(new.runs().append("archived", &event("RunStarted", "n", None)).is_err());
    assert_eq!(new.runs().counts().expect("counts"), house.runs().counts().expect("counts"));
    let (was, is) = (house.messages_waiting().expect("counts"), new.messages_waiting().expect("counts"));
    assert_eq!((is.due, is.publish), (was.due, was.publish + 1), "and the job that was given back is told of");

    // The feed starts after the import: earlier cursors get a gap.
    assert!(matches!(new.changes().read(0, 10).expect("read"), Followed::Gap { oldest, .. } if oldest == commit));
    assert!(matches!(new.changes().read(commit, 10).expect("read"), Followed::Page(_)));
}

#[test]
fn one_space_is_exported_alone_and_is_a_store_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let house = options().open(folder.path().join("house")).expect("open");
    let _held = furnish(&house);
    let lines = exported(&house, Some("shop"));
    let path = folder.path().join("elsewhere");
    imported(&path, &lines).expect("imported");
    let new = options().open(&path).expect("open");
    assert_eq!(new.spaces().expect("spaces"), ["default", "shop"]);
    assert_eq!(new.cells().get("every/kind").expect("read"), None);
    assert_eq!(new.space("shop").cells().get_versioned("trimmed").expect("read").expect("a cell").version, 6);
    let refused = export::write(&house, Some("nowhere"), &mut Vec::new(), &mut |_| {}).expect_err("no such space");
    assert!(refused.to_string().contains("nowhere"), "{refused}");
}

#[test]
fn every_flipped_byte_and_every_cut_is_noticed_and_nothing_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("imported");
    let refused = |bytes: &[u8], what: String| {
        let refused = imported(&path, bytes);
        assert!(matches!(refused, Err(TransferError::Damaged(_))), "{what}: {refused:?}");
        assert!(!path.exists(), "{what}: an import that failed leaves nothing");
    };
    for position in (0..GOLDEN.len()).step_by(401) {
        let mut damaged = GOLDEN.to_vec();
        damaged[position] ^= 1 << (position % 7);
        refused(&damaged, format!("byte {position}"));
        refused(&GOLDEN[..position], format!("cut at {position}"));
    }
    let lines: Vec<&[u8]> = GOLDEN.split_inclusive(|byte| *byte == b'\n').collect();
    for left_out in (0..lines.len()).step_by(19) {
        let without: Vec<u8> = lines
            .iter()
            .enumerate()
            .filter(|(place, _)| *place != left_out)
            .flat_map(|(_, line)| line.to_vec())
            .collect();
        refused(&without, format!("without line {left_out}"));
    }
    refused(&[GOLDEN, GOLDEN].concat(), "twice".into());
}

/// Otherwise a new session would get the number, and lose what it claims to the release of what the old one owned.
#[test]
fn a_session_that_the_store_has_yet_to_create_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("imported");
    let golden = std::str::from_utf8(GOLDEN).expect("text");
    for member in ["\"holder_session\":43", "\"life_session\":43", "\"session\":43"] {
        assert!(golden.contains(member), "{member}");
        let refused = |session: u64| {
            let lines = golden.replace(member, &member.replace("43", &session.to_string()));
            imported(&path, lines.as_bytes()).expect_err("the lines were changed").to_string()
        };
        let said = refused(77);
        assert!(said.contains("session 77 is above the last commit, 76"), "{member}: {said}");
        // These are refused only because the footer has the hash of other lines.
        for other in [76, 1 << 48 | 77] {
            let said = refused(other);
            assert!(!said.contains("above the last commit"), "{member} {other}: {said}");
        }
    }
}

#[test]
fn the_golden_export_is_read_for_ever() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("house");
    imported(&path, GOLDEN).expect("imported");
    assert_eq!(at_rest(&path), GOLDEN, "and written as the same bytes");
    let house = options().open(&path).expect("open");
    assert_eq!(house.cells().get_versioned("every/kind").expect("read").expect("a cell").version, 8);
}

/// Creates the file again: `cargo test -p statehouse --test export make_the_golden -- --ignored`. A release that needs
/// this cannot read the exports of the previous one.
#[test]
#[ignore = "writes the file that the tests read"]
fn make_the_golden_export() {
    let folder = tempfile::tempdir().expect("a folder");
    let house = options().open(folder.path().join("house")).expect("open");
    let _held = furnish(&house);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/export-1.jsonl");
    std::fs::write(path, exported(&house, None)).expect("written");
}
