//! Maps in exports: what waits in an ordered map comes back, and lines that no store could have written are refused.

use statehouse::Statehouse;
use statehouse::keyed::{MapUpdates, Merge, Policy};

use super::{at_rest, imported};

fn furnish(path: &std::path::Path) {
    let house = Statehouse::open(path).expect("a store");
    let maps = house.maps();
    maps.create("m", Policy::Ordered).expect("created");
    maps.update("m", &MapUpdates::new().put(b"a", "1", 1).merge_at(b"sum", Merge::Add, 3, 1)).expect("updated");
    maps.seal("m", 1).expect("sealed");
    let waiting = MapUpdates::new().put(b"a", "2", 5).put(b"new", "3", 6);
    maps.update("m", &waiting.merge_at(b"sum", Merge::Add, 4, 7).delete(b"gone", 8)).expect("updated");
    maps.put("n", b"x", "1", 1).expect("put");
    maps.delete("n", b"y", 2).expect("deleted");
}

#[test]
fn what_waits_in_a_map_comes_back_and_what_cannot_wait_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = folder.path().join("first");
    furnish(&first);
    let lines = at_rest(&first);
    let path = folder.path().join("second");
    imported(&path, &lines).expect("imported");
    assert_eq!(at_rest(&path), lines);
    let house = Statehouse::open(&path).expect("a store");
    house.maps().seal("m", 9).expect("sealed");
    let value = |key: &[u8]| house.maps().get("m", key).expect("read").map(|found| found.value);
    assert_eq!((value(b"a"), value(b"new"), value(b"sum")), (Some("2".into()), Some("3".into()), Some(7.into())));
    assert_eq!(value(b"gone"), None);

    let text = String::from_utf8(lines).expect("text");
    let refused = |kind: &str, with: &str, from: &str, to: &str, said: &str| {
        let is_meant = |line: &str| line.contains(&format!("\"kind\":\"{kind}\"")) && line.contains(with);
        assert!(text.lines().any(|line| is_meant(line) && line.contains(from)), "{kind} {with} {from}:\n{text}");
        let change = |line: &str| if is_meant(line) { line.replace(from, to) } else { line.to_owned() };
        let changed = text.lines().map(|line| change(line) + "\n").collect::<String>();
        let found = imported(&folder.path().join("third"), changed.as_bytes()).expect_err("refused").to_string();
        assert!(found.contains(said), "{found}");
    };
    let of = |key: &str| format!("\"key\":\"{key}\"");
    refused("map", "\"ordered\":true", "\"ordered\":true", "\"ordered\":false", "no key of a map with its policy");
    refused("map_key", &of("y"), "\"map\":\"n\"", "\"map\":\"m\"", "does not follow it");
    refused("map_waiting", &of("sum"), &of("sum"), &of("other"), "is not there, and an update waits for it");
    refused("map_waiting", &of("sum"), &of("sum"), &of("new"), "is put or merged, and the other waits for it");
    refused("map_waiting", &of("sum"), &of("sum"), &of(&"k".repeat(1_025)), "is empty or too long");
    refused("map_waiting", &of("gone"), &of("gone"), &of("new"), "no update waits for 1 of its keys");
}
