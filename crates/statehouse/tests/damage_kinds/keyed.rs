//! Maps, a partition with a checkpoint, and messages that were refused.

use std::path::Path;
use std::time::Duration;

use statehouse::keyed::{CheckpointOptions, Checkpoints, KeysRange, MapCommit, MapUpdates, Merge, Policy};
use statehouse::records::ClaimOptions;
use statehouse::{Error, Statehouse};

use super::filled::{THINGS, name};

/// The map with a key, a deleted key and a waiting update for each thing: one with versions, and an ordered one.
pub(super) const VERSIONED: &str = "versioned";
pub(super) const ORDERED: &str = "ordered";
/// The operator of a partition from which keys were removed after its checkpoint.
pub(super) const OPERATOR: &str = "op";

pub(super) fn fill(house: &Statehouse, place: &Path) {
    let maps = house.maps();
    maps.create(ORDERED, Policy::Ordered).expect("created");
    let (mut versioned, mut ordered) = (MapUpdates::new(), MapUpdates::new());
    for number in 0..THINGS {
        let name = name(number);
        // A map with a position and the answer of a numbered commit.
        let commit = MapCommit::numbered(1).merge(name.as_bytes(), Merge::Add, 1).advance(name.as_str(), 7);
        maps.commit().commit_map(&name, commit).run().expect("committed");
        versioned = versioned.put(name.as_bytes(), number.to_string(), 1).delete(format!("{name}-").as_bytes(), 1);
        ordered = ordered.merge_at(name.as_bytes(), Merge::Add, 1, 5);
    }
    maps.update(VERSIONED, &versioned).expect("updated");
    maps.update(ORDERED, &ordered).expect("updated");
    let lease = ClaimOptions::worker("w").lease(Duration::from_secs(3_600));
    let mut partition = house.keyed(OPERATOR).partition(0).acquire(&lease).expect("acquired");
    let mut commit = partition.commit();
    for number in 0..THINGS {
        commit = commit.merge(name(number).as_bytes(), Merge::Add, 1);
    }
    commit.run().expect("committed");
    let place = Checkpoints::open(place.to_str().expect("text")).expect("a place");
    partition.checkpoint(&place, &CheckpointOptions::default()).expect("a checkpoint");
    let mut commit = partition.commit();
    for number in 0..THINGS {
        commit = commit.remove(name(number).as_bytes());
    }
    commit.run().expect("committed");
    for number in 0..THINGS {
        // The group of the partition is guarded.
        let refused = house.group("op/0").commit().set_cell(&name(number), 1);
        house.group("topics").commit().send(refused).run().expect("sent");
    }
    while house.messages_waiting().expect("counts").dead < i64::from(THINGS) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Questions about keyed state and dead letters, with what the store answers.
pub(super) fn ask(house: &Statehouse, ask: &mut dyn FnMut(String, Result<String, Error>)) {
    let maps = house.maps();
    for number in 0..THINGS {
        let name = name(number);
        let (key, gone) = (name.as_bytes(), format!("{name}-"));
        ask(format!("map {name}"), maps.summary(&name).map(|summary| format!("{summary:?}")));
        ask(format!("position {name}"), maps.position(&name, &name).map(|position| format!("{position:?}")));
        for map in [VERSIONED, ORDERED] {
            ask(format!("key {name} of {map}"), maps.get(map, key).map(|found| format!("{found:?}")));
        }
        ask(format!("key {gone}"), maps.get(VERSIONED, gone.as_bytes()).map(|found| format!("{found:?}")));
    }
    for map in [VERSIONED, ORDERED] {
        let range = KeysRange::with_prefix(b"").limit(1_000);
        ask(format!("keys of {map}"), maps.scan(map, &range).map(|page| format!("{page:?}")));
    }
    let letters = house.group("op/0").dead_letters(None, 1_000);
    ask("letters".into(), letters.map(|found| format!("{:?}", found.letters)));
}

/// Writes to every map; what needs a damaged row is refused by name, and everything else is done.
pub(super) fn write(house: &Statehouse, is_allowed: &dyn Fn(&str) -> bool) {
    let maps = house.maps();
    let check = |what: String, written: Result<(), Error>| match written {
        Ok(()) => {}
        Err(error) if error.code() == "SH-2023" && is_allowed(&what) => {}
        Err(error) => panic!("{what}: {error}"),
    };
    for number in (0..THINGS).step_by(5) {
        let name = name(number);
        let key = name.as_bytes();
        check(format!("put {name}"), maps.put(VERSIONED, key, "new", 2).map(drop));
        check(
            format!("wait {name}"),
            maps.update(ORDERED, &MapUpdates::new().merge_at(key, Merge::Add, 1, 6)).map(drop),
        );
        let next = MapCommit::numbered(2).merge(key, Merge::Add, 1).advance(name.as_str(), 8);
        check(format!("commit {name}"), maps.commit().commit_map(&name, next).run().map(drop));
    }
    check("seal".into(), maps.seal(VERSIONED, 1).and_then(|()| maps.seal(ORDERED, 5)));
    let partition = house.space("default").forced().keyed(OPERATOR).partition(0);
    let owned = partition.acquire_by_force(&ClaimOptions::worker("next"));
    check("a take-over".into(), owned.and_then(|mut owned| owned.commit().put(b"back", 1, 1).run().map(drop)));
    check("a fresh map".into(), maps.put("fresh", b"k", 1, 1).map(drop));
}
