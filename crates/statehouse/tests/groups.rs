//! Things in named groups appear in lists, scans, counts, watches and the change feed, ordered by (name, group),
//! exactly as long as they exist (K8).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use statehouse::records::{Filter, IndexKind, Put, RecordType, ScanOptions, Test};
use statehouse::runs::{AppendOptions, NewEvent, RunList, RunStatus};
use statehouse::{Followed, Json, ListPage, NameInGroup, Options, Space, Statehouse, export, import};

const NAMES: [&str; 5] = ["a", "a.b", "ab", "g", "z"];
const GROUPS: [Option<&str>; 4] = [None, Some("g"), Some("g.h"), Some("z")];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Cell,
    Record,
    Run,
}

const KINDS: [Kind; 3] = [Kind::Cell, Kind::Record, Kind::Run];

fn house() -> (tempfile::TempDir, Statehouse) {
    let directory = tempfile::tempdir().expect("a directory");
    // Few buckets: a page costs a seek in each.
    let house = Options::default().buckets(4).open(directory.path().join("house")).expect("open");
    (directory, house)
}

fn event(key: &str) -> NewEvent {
    NewEvent::new("RunStarted", key, "2026-02-11T10:00:00Z", Json::new("{}").expect("JSON"))
}

/// A name in a group; a thing that has the name of its group is its own.
fn named(group: Option<&str>, name: &str) -> NameInGroup {
    NameInGroup::new(name, group.filter(|group| *group != name).map(str::to_owned))
}

fn write(space: &Space, kind: Kind, group: Option<&str>, name: &str) {
    match (kind, group) {
        (Kind::Cell, None) => drop(space.cells().set(name, 1).expect("set")),
        (Kind::Cell, Some(group)) => drop(space.group(group).cells().set(name, 1).expect("set")),
        (Kind::Record, None) => drop(space.records().put(name, [("n", 1)], Put::typed("task")).expect("put")),
        (Kind::Record, Some(group)) => {
            space.group(group).records().put(name, [("n", 1)], Put::typed("task")).expect("put");
        }
        (Kind::Run, None) => drop(space.runs().append(name, &event("s")).expect("append")),
        (Kind::Run, Some(group)) => drop(space.group(group).runs().append(name, &event("s")).expect("append")),
    }
}

fn delete(space: &Space, kind: Kind, group: Option<&str>, name: &str) {
    match (kind, group) {
        (Kind::Cell, None) => drop(space.cells().delete(name).expect("delete")),
        (Kind::Cell, Some(group)) => drop(space.group(group).cells().delete(name).expect("delete")),
        (Kind::Record, None) => drop(space.records().delete(name).expect("delete")),
        (Kind::Record, Some(group)) => drop(space.group(group).records().delete(name).expect("delete")),
        (Kind::Run, None) => drop(space.runs().delete(name).expect("delete")),
        (Kind::Run, Some(group)) => drop(space.group(group).runs().delete(name).expect("delete")),
    }
}

/// Everything in a list, by pages of `limit`.
fn listed(space: &Space, kind: Kind, group: Option<&str>, prefix: &str, limit: usize) -> Vec<NameInGroup> {
    let mut found = Vec::new();
    match kind {
        Kind::Cell => {
            let cells = group.map_or_else(|| space.cells(), |group| space.group(group).cells());
            let mut after = None;
            loop {
                let page = cells.list(prefix, ListPage { after, limit }).expect("a list");
                found.extend(page.cells.into_iter().map(|(name, _)| name));
                after = page.next_after;
                if after.is_none() {
                    return found;
                }
            }
        }
        Kind::Record => {
            let records = group.map_or_else(|| space.records(), |group| space.group(group).records());
            let mut cursor = None;
            loop {
                let options = ScanOptions::default().limit(limit).after(cursor);
                let page = records.scan(prefix, &Filter::all(), &options).expect("a scan");
                found.extend(page.records.into_iter().map(|(name, _)| name));
                cursor = page.cursor;
                if cursor.is_none() {
                    return found;
                }
            }
        }
        Kind::Run => {
            let runs = group.map_or_else(|| space.runs(), |group| space.group(group).runs());
            let mut cursor = None;
            loop {
                let list = RunList::default().with_prefix(prefix).limit(limit).after(cursor);
                let page = runs.list(&list).expect("a list");
                found.extend(page.runs.into_iter().map(|run| NameInGroup::new(run.name, run.group)));
                cursor = page.cursor;
                if cursor.is_none() {
                    return found;
                }
            }
        }
    }
}

/// Compares every list with what should be there.
fn compare(space: &Space, kind: Kind, there: &BTreeSet<NameInGroup>) {
    for prefix in ["", "a", "a.", "g", "none"] {
        for limit in [1, 2, 100] {
            let with_prefix = there.iter().filter(|thing| thing.name.starts_with(prefix));
            let expected: Vec<_> = with_prefix.clone().cloned().collect();
            assert_eq!(listed(space, kind, None, prefix, limit), expected, "{kind:?} {prefix:?} by {limit}");
            for group in GROUPS.into_iter().flatten().chain(["none"]) {
                let of_group = |thing: &&NameInGroup| thing.group.as_deref().unwrap_or(&thing.name) == group;
                let expected: Vec<_> = with_prefix.clone().filter(of_group).cloned().collect();
                let found = listed(space, kind, Some(group), prefix, limit);
                assert_eq!(found, expected, "{kind:?} of {group:?} {prefix:?} by {limit}");
            }
        }
    }
}

fn everything() -> BTreeSet<NameInGroup> {
    GROUPS.iter().flat_map(|group| NAMES.map(|name| named(*group, name))).collect()
}

#[test]
fn lists_cover_all_groups_and_narrow_to_one() {
    let (directory, house) = house();
    let space = house.space("default");
    for kind in KINDS {
        for group in GROUPS {
            NAMES.iter().for_each(|name| write(&space, kind, group, name));
        }
        compare(&space, kind, &everything());
    }
    let mut exported = Vec::new();
    export::write(&house, None, &mut exported, &mut |_| {}).expect("an export");
    drop((space, house));
    let house = Statehouse::open(directory.path().join("house")).expect("open again");
    KINDS.iter().for_each(|kind| compare(&house.space("default"), *kind, &everything()));
    let imported = directory.path().join("imported");
    import::read(&imported, &mut exported.as_slice(), &mut |_| {}).expect("an import");
    let house = Statehouse::open(&imported).expect("open");
    KINDS.iter().for_each(|kind| compare(&house.space("default"), *kind, &everything()));
}

#[test]
fn what_is_deleted_is_not_listed_and_comes_back_when_it_is_made_again() {
    let (_directory, house) = house();
    let space = house.space("default");
    for kind in KINDS {
        let mut there = everything();
        for group in GROUPS {
            NAMES.iter().for_each(|name| write(&space, kind, group, name));
        }
        for (group, name) in [(None, "a"), (Some("g"), "a"), (Some("g.h"), "z"), (Some("z"), "a.b"), (Some("g"), "g")] {
            delete(&space, kind, group, name);
            there.remove(&named(group, name));
            compare(&space, kind, &there);
        }
        // A run's name is never used again.
        if kind != Kind::Run {
            write(&space, kind, Some("g"), "a");
            there.insert(named(Some("g"), "a"));
            compare(&space, kind, &there);
        }
    }
}

#[test]
fn a_record_whose_time_is_over_is_not_listed() {
    let (_directory, house) = house();
    let records = house.group("g").records();
    records.put("short", [("n", 1)], Put::expiring(Duration::from_millis(30))).expect("put");
    records.put("long", [("n", 1)], Put::default()).expect("put");
    while !listed(&house.space("default"), Kind::Record, None, "short", 10).is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(listed(&house.space("default"), Kind::Record, None, "", 10), [named(Some("g"), "long")]);
}

#[test]
fn a_deleted_branch_takes_its_names_with_it() {
    let (_directory, house) = house();
    let space = house.space("default");
    let rows = || house.write_image(&mut Vec::new()).expect("an image");
    let before = rows();
    let draft = space.create_branch("draft").expect("a branch");
    for kind in KINDS {
        for group in GROUPS {
            NAMES.iter().for_each(|name| write(&draft, kind, group, name));
        }
    }
    space.delete_branch("draft").expect("deleted");
    let draft = space.create_branch("draft").expect("a branch again");
    KINDS.iter().for_each(|kind| assert_eq!(listed(&draft, *kind, None, "", 10), [], "{kind:?}"));
    // What remains: the new branch, and the change feed.
    let kept = || rows() - before;
    for _ in 0..3_000 {
        if kept() < 100 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(kept() < 100, "{} rows are left", kept());
}

#[test]
fn an_index_of_fields_covers_all_groups() {
    let (_directory, house) = house();
    let sized = RecordType::task().named("sized").index("size", IndexKind::Signed);
    house.space("default").declare_type("s.", sized).expect("declared");
    for (size, group) in (0..).zip(GROUPS) {
        let records = group.map_or_else(|| house.records(), |group| house.group(group).records());
        records.put("s.1", [("size", 3 - size)], Put::default()).expect("put");
    }
    let large = Filter::all().and("size", Test::Gte(1.into()));
    let options = ScanOptions::of_type("sized");
    let groups = |records: statehouse::Records| {
        let page = records.scan("s.", &large, &options).expect("a scan");
        page.records.into_iter().map(|(record, _)| record.group).collect::<Vec<_>>()
    };
    assert_eq!(groups(house.records()), [Some("g.h".to_owned()), Some("g".to_owned()), None], "in the index's order");
    assert_eq!(groups(house.group("g").records()), [Some("g".to_owned())]);
    assert_eq!(groups(house.group("z").records()), [] as [Option<String>; 0], "its size is 0");
}

#[test]
fn counts_are_of_all_groups_or_of_one() {
    let (_directory, house) = house();
    let space = house.space("default");
    for group in GROUPS {
        write(&space, Kind::Record, group, "jobs.1");
        write(&space, Kind::Run, group, "jobs.1");
    }
    house.group("g").records().put("other", [("n", 1)], Put::typed("task")).expect("put");
    assert_eq!(house.records().counts("").expect("counts").of("pending"), 5);
    assert_eq!(house.records().counts("jobs.").expect("counts").of("pending"), 4);
    assert_eq!(house.group("g").records().counts("").expect("counts").of("pending"), 2);
    assert_eq!(house.group("g").records().counts("jobs.").expect("counts").of("pending"), 1);
    assert_eq!(house.group("none").records().counts("").expect("counts").of("pending"), 0);
    let running = |count| BTreeMap::from([((String::new(), RunStatus::Running), count)]);
    assert_eq!(house.runs().counts().expect("counts"), running(4));
    assert_eq!(house.group("g").runs().counts().expect("counts"), running(1));
}

#[test]
fn a_watch_lists_and_follows_all_groups_or_one() {
    let (_directory, house) = house();
    house.cells().set("a", 1).expect("set");
    house.group("g").cells().set("a", 2).expect("set");
    for (cells, before, after) in [
        (house.cells(), vec![named(None, "a"), named(Some("g"), "a")], vec![None, Some("g"), Some("h")]),
        (house.group("g").cells(), vec![named(Some("g"), "a")], vec![Some("g")]),
    ] {
        let mut watch = cells.watch("a").expect("a watch");
        let listed: Vec<_> = watch.list(10).expect("a list").into_iter().map(|(name, _)| name).collect();
        assert_eq!(listed, before);
        house.cells().set("a", 3).expect("set");
        for group in ["g", "h"] {
            house.group(group).cells().set("a", 4).expect("set");
        }
        let mut groups = Vec::new();
        while groups.len() < after.len() {
            let Followed::Page(page) = watch.follow(10, Duration::from_secs(10)).expect("changes") else {
                panic!("a gap")
            };
            groups.extend(page.changes.into_iter().map(|change| change.group));
        }
        assert_eq!(groups.iter().map(Option::as_deref).collect::<Vec<_>>(), after);
        house.group("h").cells().delete("a").expect("delete");
    }
    let page = house.changes().in_group("g").read(0, 100).expect("a page");
    let Followed::Page(page) = page else { panic!("a gap") };
    assert!(page.changes.len() == 3 && page.changes.iter().all(|change| change.group.as_deref() == Some("g")));
}

#[test]
fn no_run_is_lost_between_pages() {
    let (_directory, house) = house();
    let etl = AppendOptions::run_type("etl");
    let (mut pending, mut all) = (Vec::new(), BTreeSet::new());
    for n in 0..1_100 {
        let (name, group) = (format!("r{n}"), GROUPS[n % GROUPS.len()]);
        let runs = group.map_or_else(|| house.runs(), |group| house.group(group).runs());
        pending.push(runs.append_later(&name, &event("s"), &etl));
        all.insert(named(group, &name));
    }
    for pending in pending {
        pending.wait().expect("append");
    }
    let by_name = RunList::default();
    let by_type = RunList::default().of_type("etl");
    let by_status = RunList::with_status(RunStatus::Running);
    for list in [by_name, by_type, by_status] {
        for limit in [70, 1_000] {
            let (mut found, mut cursor) = (BTreeSet::new(), None);
            loop {
                let page = house.runs().list(&list.clone().limit(limit).after(cursor)).expect("a page");
                for run in page.runs {
                    let name = NameInGroup::new(run.name, run.group);
                    assert!(found.insert(name.clone()), "{name} comes twice in {list:?}");
                }
                cursor = page.cursor;
                if cursor.is_none() {
                    break;
                }
            }
            assert_eq!(found, all, "{list:?}");
        }
    }
    let page = house.runs().list(&RunList::default().limit(7)).expect("a page");
    let other = RunList::with_status(RunStatus::Running).after(page.cursor);
    assert_eq!(
        house.runs().list(&other).map_err(|error| error.code()).err(),
        Some("SH-1001"),
        "a cursor of another list"
    );
}
