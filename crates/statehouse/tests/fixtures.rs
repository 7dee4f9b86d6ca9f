//! Directories of past formats can be opened with their content. [`make_house_v1`] created `fixtures/house-v1`.

use std::path::{Path, PathBuf};

use statehouse::{Followed, HistoryPage, Limits, Options, Retention, Statehouse, Value};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/house-v1")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

fn every_kind() -> [(&'static str, Value); 6] {
    [
        ("null", Value::Null),
        ("boolean", true.into()),
        ("integer", (-7).into()),
        ("text", "süß".into()),
        ("json", Value::json("{\"a\": [1, 2.50]}").expect("JSON")),
        ("bytes", vec![0, 255].into()),
    ]
}

#[test]
fn a_directory_of_format_1_opens_and_holds_what_it_held() {
    let temporary = tempfile::tempdir().expect("a directory");
    let path = temporary.path().join("house");
    copy(&fixture(), &path);
    let house = Statehouse::open(&path).expect("it opens");
    assert_eq!(house.status().expect("status").effects_hash, 0xd3b7_3de8_5345_1ada);
    for (name, value) in every_kind() {
        assert_eq!(house.cells().get(name).expect("get"), Some(value), "{name}");
    }
    let order = house.group("order-7").cells();
    let history = order.history("state", HistoryPage::default()).expect("history");
    let states: Vec<_> = history.versions.into_iter().map(|past| (past.version, past.value)).collect();
    assert_eq!(states, [(4, Some("done".into())), (3, None), (2, Some("running".into())), (1, Some("new".into()))]);
    assert_eq!(order.get("order-7").expect("get"), Some("its own name".into()));
    let tenant = house.space("tenant");
    assert_eq!(tenant.retention().expect("retention"), Retention::versions(2));
    assert_eq!(tenant.branches().expect("branches"), ["main", "draft"]);
    assert_eq!(tenant.branch("draft").cells().get("a").expect("get"), Some(5.into()));
    assert_eq!(house.verify_journal().expect("the journal is whole"), 2, "entries that are kept");
    let newest = house.changes().newest().expect("a cursor");
    let gap = Followed::Gap { oldest: newest, newest };
    assert_eq!(house.changes().read(0, 10).expect("an answer"), gap, "from before there was a feed");
    assert_eq!(house.limits().expect("limits"), Limits::default(), "what the limits of format 1 lack");
    assert_eq!(house.cells().set("integer", 8).expect("it goes on").version, 2);
    let Followed::Page(page) = house.changes().read(newest, 10).expect("a page") else { panic!("no gap any more") };
    assert_eq!((page.changes.len(), page.changes[0].name.as_str()), (1, "integer"));
}

/// Creates the fixture again: `cargo test -p statehouse --test fixtures -- --ignored`. Never needed for format 1 again.
#[test]
#[ignore = "writes the fixture"]
fn make_house_v1() {
    let path = fixture();
    if path.exists() {
        std::fs::remove_dir_all(&path).expect("removed");
    }
    let house = Options::default().buckets(16).open(&path).expect("open");
    for (name, value) in every_kind() {
        house.cells().set(name, value).expect("set");
    }
    let order = house.group("order-7").cells();
    order.set("state", "new").expect("set");
    order.set("state", "running").expect("set");
    order.delete("state").expect("delete");
    let tenant = house.create_space("tenant").expect("a space");
    tenant.set_retention(Retention::versions(2)).expect("retention");
    let draft = tenant.create_branch("draft").expect("a branch").cells();
    for number in 1..=5 {
        draft.set("a", number).expect("set");
    }
    house.flush().expect("flush");
    order.set("state", "done").expect("set");
    order.set("order-7", "its own name").expect("set");
    println!("hash {:#x}", house.status().expect("status").effects_hash);
    house.close().expect("close");
}
