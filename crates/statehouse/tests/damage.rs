//! A flipped bit in a data block: the block is set apart and named, everything else goes on, and a replay says the same.

#[path = "damage_kinds/copies.rs"]
mod copies;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use copies::copied_at_rest;
use statehouse::{DamageEffect, Error, Options, Rejection, Retention, Statehouse, Value, backup, export, import};

const CELLS: u32 = 3_000;

fn options() -> Options {
    // No background scrub, so that a test decides what finds the damage.
    let mut options = Options::default().memory_bytes(4 << 20).buckets(1).scrub_bytes_per_second(0);
    options.storage.cache_bytes_max = 1 << 16;
    options
}

fn name(number: u32) -> String {
    format!("cell/{number:05}")
}

fn value(number: u32) -> String {
    format!("the value of cell {number}, which has some length so that a block holds few of them")
}

/// A closed directory with cells.
fn filled(folder: &Path) -> PathBuf {
    let path = folder.join("house");
    let house = options().open(&path).expect("opened");
    for number in 0..CELLS {
        house.cells().set(&name(number), value(number)).expect("set");
    }
    house.close().expect("closed");
    path
}

/// Flips a bit of each data block that holds this text: a directory that was copied while it was open may have a table that was
/// merged into another one. Returns one of them.
fn flip_at(path: &Path, text: &str) -> (PathBuf, usize) {
    let files = std::fs::read_dir(path.join("store")).expect("a store").map(|entry| entry.expect("an entry").path());
    let tables = files.filter(|path| path.extension().is_some_and(|end| end == "table"));
    let found = tables.filter_map(|file| {
        let bytes = std::fs::read(&file).expect("read");
        let place = bytes.windows(text.len()).position(|window| window == text.as_bytes())?;
        flip(&file, place);
        Some((file, place))
    });
    found.last().unwrap_or_else(|| panic!("no table holds {text:?}"))
}

fn flip(file: &Path, place: usize) {
    let mut bytes = std::fs::read(file).expect("read");
    bytes[place] ^= 1;
    std::fs::write(file, bytes).expect("written");
}

fn is_damaged<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Rejected(Rejection::Damaged { .. })))
}

fn text_of(value: Value) -> String {
    match value {
        Value::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

/// Every cell: its text, or none if it is damaged.
fn content(house: &Statehouse) -> BTreeMap<String, Option<String>> {
    let cell = |number| {
        let found = house.cells().get(&name(number));
        let text = match found {
            Ok(found) => Some(text_of(found.expect("the cell exists"))),
            Err(error) => {
                assert_eq!(error.code(), "SH-2023", "{error}");
                None
            }
        };
        (name(number), text)
    };
    (0..CELLS).map(cell).collect()
}

#[test]
fn one_block_is_set_apart_and_named_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = filled(folder.path());
    let (table, place) = flip_at(&path, &value(1_500));
    let house = options().open(&path).expect("it opens");
    let lost: Vec<String> =
        content(&house).into_iter().filter(|(_, text)| text.is_none()).map(|(name, _)| name).collect();
    assert!(!lost.is_empty() && lost.len() < 100 && lost.contains(&name(1_500)), "{lost:?}");

    // Writes: those that need the block are refused, all others are done.
    for number in 0..CELLS {
        let written = house.cells().set(&name(number), format!("new {number}"));
        assert_eq!(is_damaged(&written), lost.contains(&name(number)), "{number}: {written:?}");
    }
    let refused = house.cells().set(&lost[0], "x").expect_err("refused").to_string();
    let (first, last) = (&lost[0], lost.last().expect("one"));
    assert!(refused.contains(last.as_str()) && refused.contains("space \"default\""), "{refused}");
    let damage = house.damage().expect("damage");
    assert_eq!(damage.len(), 1, "{damage:?}");
    assert!(damage[0].to.contains(last.as_str()) && !damage[0].from.contains(first.as_str()), "{damage:?}");
    assert_eq!((damage[0].effect, damage[0].in_replay), (DamageEffect::Lost, false));
    assert!(damage[0].from_entry.is_some(), "it is in the list");
    let before = content(&house);
    let mut hash = house.status().expect("a status").effects_hash;
    drop(house);

    // The same after every opening, also if the bytes are right again.
    flip(&table, place);
    for _ in 0..2 {
        let house = options().open(&path).expect("opened");
        assert_eq!(content(&house), before);
        assert_eq!(house.status().expect("a status").effects_hash, hash);
        assert!(is_damaged(&house.cells().set(&lost[0], "x")));
        hash = house.status().expect("a status").effects_hash;
        house.close().expect("closed");
    }
}

/// Who claims several at once meets it in the middle: what was taken before must not be leased to nobody.
#[test]
fn damaged_records_are_passed_over_and_every_claim_is_answered() {
    const TASKS: u32 = 600;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("house");
    let task = |number: u32| format!("jobs.{number:05}");
    let house = options().open(&path).expect("opened");
    for number in 0..TASKS {
        let fields = [("text", value(number))];
        house.records().put(&task(number), fields, statehouse::records::Put::typed("task")).expect("put");
    }
    house.close().expect("closed");
    drop(house);
    flip_at(&path, &value(300));
    let house = options().open(&path).expect("opened");
    let mut claimed = std::collections::BTreeSet::new();
    let worker = statehouse::records::ClaimOptions::worker("w").lease(Duration::from_secs(3_600));
    let mut refused = 0;
    loop {
        match house.records().claim_next("jobs.", 7, &worker) {
            Ok(taken) if taken.is_empty() => break,
            Ok(taken) => claimed.extend(taken.into_iter().map(|taken| taken.name)),
            Err(error) => {
                // The first to meet it finds it, and it is set apart.
                refused += 1;
                assert!(refused < 3, "{error}");
            }
        }
    }
    let lost: Vec<_> = (0..TASKS).filter(|number| house.records().get(&task(*number)).is_err()).collect();
    assert!(!lost.is_empty() && lost.len() < 60 && lost.contains(&300), "{lost:?}");
    assert_eq!(claimed.len() + lost.len(), TASKS as usize);
    let counts = house.records().counts("jobs.").expect("counts");
    assert_eq!(counts.of("claimed"), claimed.len() as u64, "{counts:?}");
}

#[test]
fn a_replay_after_a_kill_gives_the_same_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = filled(folder.path());
    flip_at(&path, &value(700));
    let house = options().open(&path).expect("opened");
    let session = house.sessions().open().expect("a session");
    for number in (0..CELLS).step_by(7) {
        let _ = session.cells().set(&name(number), format!("in a session {number}"));
        let _ = house.cells().cas(&name(number), statehouse::Expected::Version(1), format!("swapped {number}"));
        let _ = house.cells().set(&format!("fresh/{number}"), "fresh");
        let _ = house.cells().delete(&name(number + 1));
    }
    house.cells().set(&name(700), "x").expect_err("the block was met");
    let before = content_or_gone(&house);
    let hash = house.status().expect("a status").effects_hash;
    let copy = folder.path().join("copy");
    copied_at_rest(&house, &path, &copy);
    let again = options().open(&copy).expect("opened");
    assert!(again.counters().replayed_entries > 0, "something was left to replay");
    assert_eq!(again.status().expect("a status").effects_hash, hash);
    assert_eq!(content_or_gone(&again), before);
}

fn content_or_gone(house: &Statehouse) -> Vec<String> {
    (0..CELLS)
        .map(|number| format!("{:?}", house.cells().get(&name(number)).map_err(|error| error.to_string())))
        .collect()
}

/// The block was read from memory when the entry was applied, and is damaged when it is applied again.
#[test]
fn rot_between_an_answer_and_its_replay_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = filled(folder.path());
    let house = options().open(&path).expect("opened");
    house.cells().set(&name(700), "acknowledged").expect("set");
    house.cells().set(&name(2_000), "acknowledged too").expect("set");
    let copy = folder.path().join("copy");
    copied_at_rest(&house, &path, &copy);
    flip_at(&copy, &value(701));
    let again = options().open(&copy).expect("it opens");
    let found = again.cells().get(&name(2_000)).expect("read").expect("there");
    assert_eq!(text_of(found), "acknowledged too");
    assert!(is_damaged(&again.cells().get(&name(700))), "neither the old value nor the new one");
    assert!(again.damage().expect("damage")[0].in_replay);
}

#[test]
fn the_scrub_finds_what_nobody_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = filled(folder.path());
    flip_at(&path, &value(2_500));
    let house = options().scrub_bytes_per_second(64 << 20).open(&path).expect("opened");
    let finished = (0..3_000).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        house.scrub().passes > 0
    });
    assert!(finished, "the scrub has not finished within a minute");
    let damage = house.damage().expect("damage");
    assert_eq!((damage.len(), damage[0].effect, damage[0].from_entry), (1, DamageEffect::Lost, None));
    house.cells().set("something/else", "x").expect("set");
    assert!(house.damage().expect("damage")[0].from_entry.is_some(), "the next entry sets it apart");
    assert!(is_damaged(&house.cells().get(&name(2_500))));
}

/// Everything but the damaged block is in an export and in a backup, both say what is missing, and both become a store
/// again.
#[test]
fn an_export_and_a_backup_have_everything_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = filled(folder.path());
    flip_at(&path, &value(1_200));
    let house = options().open(&path).expect("opened");
    // Nothing has met the damage yet: the transfer does.
    let mut lines = Vec::new();
    let exported = export::write(&house, None, &mut lines, &mut |_| {}).expect("exported");
    let expected = content(&house);
    let lost = expected.values().filter(|text| text.is_none()).count();
    assert!(lost > 0);
    assert_eq!(exported.missing.len(), 1, "{:?}", exported.missing);
    assert!(exported.missing[0].1.contains("of space \"default\""), "{:?}", exported.missing);
    assert_eq!(exported.counts["cell"], u64::from(CELLS) - lost as u64);
    let mut file = Vec::new();
    let made = backup::create(&house, &mut file, &mut |_| {}).expect("a backup");
    assert_eq!((made.manifest.missing.len(), &made.manifest.missing[0].to), (1, &exported.missing[0].1));
    assert_eq!(backup::verify(&mut file.as_slice(), &mut |_| {}).expect("verified"), made);
    backup::verify_deep(&mut file.as_slice(), &folder.path().join("beside"), &mut |_| {}).expect("verified");

    let (imported, restored) = (folder.path().join("imported"), folder.path().join("restored"));
    let read = import::read(&imported, &mut lines.as_slice(), &mut |_| {}).expect("imported");
    assert_eq!(read.missing, exported.missing);
    backup::restore(&restored, &mut file.as_slice(), &mut |_| {}).expect("restored");
    for path in [imported, restored] {
        let house = options().open(&path).expect("opened");
        for (name, text) in &expected {
            let found = house.cells().get(name).expect("readable").map(text_of);
            assert_eq!(found, *text, "{name}");
        }
        house.cells().set(&name(1_200), "new").expect("the name is free again");
        assert_eq!(house.damage().expect("damage"), []);
    }
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("one").path()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

/// History is discarded past a version that cannot be read, whose size nobody knows.
#[test]
fn a_damaged_version_does_not_stop_retention() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("house");
    let version = |number: u32| format!("{} {}", value(number), "x".repeat(3_000));
    let write = |house: &Statehouse, numbers: std::ops::RangeInclusive<u32>| {
        for number in numbers {
            house.cells().set("kept", version(number)).expect("set");
        }
    };
    let house = options().open(&path).expect("opened");
    write(&house, 1..=60);
    house.close().expect("closed");
    drop(house);
    flip_at(&path, &value(20));
    let house = options().open(&path).expect("it opens");
    assert!(is_damaged(&house.cells().history("kept", Default::default())));
    house.space("default").set_retention(Retention::versions(10)).expect("set");
    write(&house, 61..=100);
    let history = house.cells().history("kept", Default::default()).expect("readable again");
    assert_eq!(history.versions.len(), 10, "{history:?}");
    house.close().expect("closed");
}
