//! The suite of `contract::Cells`: call [`suite`] with a function that creates an empty branch.

use contract::cells::PastVersion;
use contract::{
    AsOf, Cells, Deleted, Error, Expected, HistoryPage, Initialised, ListPage, Moment, Rejection, Swapped, Value,
};

/// Runs every check of the suite, each on its own cells.
///
/// # Panics
/// If the implementation breaks the contract.
pub fn suite<C: Cells + Sync>(make: impl Fn() -> C) {
    versions_count_writes_and_survive_deletion(&make());
    init_creates_once(&make());
    cas_writes_only_what_was_expected(&make());
    every_kind_of_value_comes_back(&make());
    history_is_paged_newest_first(&make());
    the_past_is_found_by_version_and_by_time(&make());
    a_list_is_sorted_paged_and_without_the_deleted(&make());
    names_are_checked(&make());
    one_of_many_creators_wins(&make());
    increments_by_cas_are_all_counted(&make());
}

fn versions_count_writes_and_survive_deletion(cells: &impl Cells) {
    assert_eq!(cells.get("a").expect("get"), None);
    assert_eq!(cells.delete("a").expect("delete"), Deleted { version: None });
    for version in 1..=3 {
        assert_eq!(cells.set("a", version.to_string().into()).expect("set").version, version);
    }
    assert_eq!(cells.delete("a").expect("delete"), Deleted { version: Some(4) });
    assert_eq!((cells.get("a").expect("get"), cells.get_versioned("a").expect("get")), (None, None));
    assert_eq!(cells.delete("a").expect("delete"), Deleted { version: None }, "deleting again does nothing");
    assert_eq!(cells.set("a", "again".into()).expect("set").version, 5, "versions never restart");
    let found = cells.get_versioned("a").expect("get").expect("it exists");
    assert_eq!((found.value, found.version), ("again".into(), 5));
    assert!(found.commit > 0 && found.updated_at > 0);
}

fn init_creates_once(cells: &impl Cells) {
    assert_eq!(cells.init("a", 1.into()).expect("init"), Initialised { version: 1, created: true });
    assert_eq!(cells.init("a", 2.into()).expect("init"), Initialised { version: 1, created: false });
    assert_eq!(cells.get("a").expect("get"), Some(1.into()));
    cells.delete("a").expect("delete");
    assert_eq!(cells.init("a", 3.into()).expect("init"), Initialised { version: 3, created: true });
}

fn cas_writes_only_what_was_expected(cells: &impl Cells) {
    let cas = |expected, value: i64| cells.cas("a", expected, value.into()).expect("cas");
    let version = |swapped| match swapped {
        Swapped::Written(written) => Ok(written.version),
        Swapped::Conflict { current } => Err(current),
    };
    assert_eq!(version(cas(Expected::Version(1), 0)), Err(None), "a missing cell has no version");
    assert_eq!(version(cas(Expected::Absent, 1)), Ok(1));
    assert_eq!(version(cas(Expected::Absent, 2)), Err(Some(1)));
    assert_eq!(version(cas(Expected::Version(1), 2)), Ok(2));
    assert_eq!(version(cas(Expected::Version(1), 3)), Err(Some(2)));
    assert_eq!(cells.get("a").expect("get"), Some(2.into()));
    cells.delete("a").expect("delete");
    assert_eq!(version(cas(Expected::Version(3), 4)), Err(None), "a deletion is not a version to swap");
    assert_eq!(version(cas(Expected::Absent, 4)), Ok(4));
}

fn every_kind_of_value_comes_back(cells: &impl Cells) {
    let values = [
        Value::Null,
        Value::Boolean(false),
        Value::Integer(i64::MIN),
        Value::Integer(i64::MAX),
        Value::Text(String::new()),
        Value::Text("süß\0".into()),
        Value::json("{\"n\": 12345678901234567890, \"a\": [1.0, null]}").expect("JSON"),
        Value::Bytes(vec![]),
        Value::Bytes((0..=255).collect()),
    ];
    for value in values {
        cells.set("a", value.clone()).expect("set");
        assert_eq!(cells.get("a").expect("get"), Some(value));
    }
}

fn history_is_paged_newest_first(cells: &impl Cells) {
    assert!(cells.history("a", HistoryPage::default()).expect("history").versions.is_empty());
    for number in 1..=5 {
        cells.set("a", number.into()).expect("set");
    }
    cells.delete("a").expect("delete");
    let all = cells.history("a", HistoryPage::default()).expect("history");
    let versions = |history: &[PastVersion]| history.iter().map(|past| past.version).collect::<Vec<_>>();
    assert_eq!(versions(&all.versions), [6, 5, 4, 3, 2, 1]);
    assert_eq!(all.versions[0].value, None, "a deletion is in the history");
    assert_eq!(all.versions[5].value, Some(1.into()));
    assert!(all.versions.windows(2).all(|pair| pair[0].commit > pair[1].commit), "commits fall with versions");
    let mut paged = Vec::new();
    let mut page = HistoryPage { before: None, limit: 4 };
    loop {
        let history = cells.history("a", page).expect("history");
        assert!(history.versions.len() <= 4);
        paged.extend(history.versions);
        match history.next_before {
            None => break,
            before => page.before = before,
        }
    }
    assert_eq!(paged, all.versions);
}

fn the_past_is_found_by_version_and_by_time(cells: &impl Cells) {
    assert_eq!(cells.at("a", Moment::Version(1)).expect("at"), AsOf::Absent);
    let mut times = Vec::new();
    for number in 1..=4 {
        cells.set("a", number.into()).expect("set");
        times.push(cells.get_versioned("a").expect("get").expect("it exists").updated_at);
    }
    cells.delete("a").expect("delete");
    let value = |moment| match cells.at("a", moment).expect("at") {
        AsOf::Value(versioned) => Some((versioned.version, versioned.value)),
        AsOf::Absent => None,
        AsOf::Unavailable { oldest } => panic!("nothing was given up, but only {oldest} is kept"),
    };
    for (version, time) in (1..).zip(&times) {
        let expected = Some((version, i64::try_from(version).expect("small").into()));
        assert_eq!(value(Moment::Version(version)), expected);
        assert_eq!(value(Moment::Time(*time)), expected);
    }
    assert_eq!(value(Moment::Time(times[0] - 1)), None, "it was not there yet");
    assert_eq!(value(Moment::Time(u64::MAX)), None, "it is deleted now");
    assert_eq!((value(Moment::Version(0)), value(Moment::Version(5)), value(Moment::Version(6))), (None, None, None));
}

fn a_list_is_sorted_paged_and_without_the_deleted(cells: &impl Cells) {
    for name in ["job/3", "job/1", "jobs", "job/2", "other", "job"] {
        cells.set(name, name.into()).expect("set");
    }
    cells.delete("job/2").expect("delete");
    let names = |prefix: &str, limit: usize| {
        let mut names = Vec::new();
        let mut page = ListPage { after: None, limit };
        loop {
            let listed = cells.list(prefix, page.clone()).expect("list");
            assert!(listed.cells.len() <= limit);
            names.extend(listed.cells.into_iter().map(|(cell, versioned)| {
                assert_eq!(versioned.value, cell.name.as_str().into());
                cell.name
            }));
            match listed.next_after {
                None => return names,
                after => page.after = after,
            }
        }
    };
    for limit in [1, 2, 100] {
        assert_eq!(names("", limit), ["job", "job/1", "job/3", "jobs", "other"]);
        assert_eq!(names("job/", limit), ["job/1", "job/3"]);
        assert_eq!(names("job/3", limit), ["job/3"]);
        assert!(names("z", limit).is_empty());
    }
}

fn names_are_checked(cells: &impl Cells) {
    let longest = "x".repeat(1024);
    cells.set(&longest, 1.into()).expect("1,024 bytes are allowed");
    assert_eq!(cells.get(&longest).expect("get"), Some(1.into()));
    let too_long = "x".repeat(1025);
    for (name, limit) in [("", false), ("a\0b", false), ("_strata/x", false), ("_statehouse", false), (&too_long, true)]
    {
        for refused in [cells.set(name, 1.into()).map(|_| ()), cells.get(name).map(|_| ())] {
            match refused {
                Err(Error::Rejected(Rejection::InvalidName { .. })) if !limit => {}
                Err(Error::Rejected(Rejection::LimitExceeded { limit: "name_bytes_max", .. })) if limit => {}
                other => panic!("{name:?} gave {other:?}"),
            }
        }
    }
}

fn one_of_many_creators_wins(cells: &(impl Cells + Sync)) {
    let winners = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|number: i64| {
                scope.spawn(move || {
                    let swapped = cells.cas("lock", Expected::Absent, number.into()).expect("cas");
                    matches!(swapped, Swapped::Written(_)).then_some(number)
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert_eq!(winners.len(), 1, "one creator wins, not {winners:?}");
    assert_eq!(cells.get("lock").expect("get"), Some(winners[0].into()));
}

fn increments_by_cas_are_all_counted(cells: &(impl Cells + Sync)) {
    cells.set("counter", 0.into()).expect("set");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut done = 0;
                while done < 25 {
                    let seen = cells.get_versioned("counter").expect("get").expect("it exists");
                    let next = seen.value.as_integer().expect("an integer") + 1;
                    let swapped = cells.cas("counter", Expected::Version(seen.version), next.into()).expect("cas");
                    done += i32::from(matches!(swapped, Swapped::Written(_)));
                }
            });
        }
    });
    let end = cells.get_versioned("counter").expect("get").expect("it exists");
    assert_eq!((end.value, end.version), (100.into(), 101));
}
