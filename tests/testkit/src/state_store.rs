//! The suite of `contract::records::state_store::StateStore`: call [`suite`] with a function that creates an empty
//! store and one that advances time. A backend whose clock cannot be controlled really waits; the times are short.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::records::state_store::{Comparison, PortableRecord, ScanFilter, StateStore};
use contract::{Error, Rejection};

/// The TTL of expiring records: long enough for a slow disk, short enough to wait for.
const TTL: Duration = Duration::from_secs(2);
const HALF: Duration = Duration::from_secs(1);
/// The maximum remaining time after [`HALF`]; a store's clock need not agree with the suite's to the microsecond.
const LEFT_MAX: Duration = Duration::from_millis(1_100);
/// With what has passed before, more than [`TTL`].
const REST: Duration = Duration::from_millis(1_100);

type Fields = BTreeMap<String, Vec<u8>>;

/// Runs every check of the suite, each on its own store.
///
/// # Panics
/// If the implementation breaks the contract.
pub fn suite<S: StateStore + Sync>(make: impl Fn() -> S, advance: impl Fn(&S, Duration)) {
    a_put_replaces_and_never_merges(&make());
    a_put_is_seen_whole_or_not_at_all(&make());
    field_writes_change_only_their_fields(&make());
    any_bytes_come_back(&make());
    deleting_is_final_and_may_find_nothing(&make());
    a_swap_writes_only_what_was_expected(&make());
    one_of_many_swappers_wins(&make());
    increments_by_swap_are_all_counted(&make());
    a_scan_is_by_prefix_and_in_name_order(&make());
    a_scan_compares_bytes(&make());
    a_scan_compares_numbers_as_numbers(&make());
    names_are_checked(&make());
    assert!(make().ping(), "an open store answers");
    only_the_argument_of_a_put_sets_the_ttl(&make(), &advance);
    field_writes_leave_the_ttl_alone(&make(), &advance);
    a_late_field_write_makes_a_new_record(&make(), &advance);
}

fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn fields<const N: usize>(pairs: [(&str, &str); N]) -> Fields {
    pairs.into_iter().map(|(field, value)| (field.to_owned(), bytes(value))).collect()
}

fn put<const N: usize>(store: &impl StateStore, key: &str, pairs: [(&str, &str); N], ttl: Option<Duration>) {
    store.put(key, &fields(pairs), ttl).expect("put");
}

fn patch<const N: usize>(store: &impl StateStore, key: &str, pairs: [(&str, Option<&str>); N]) {
    let patches = pairs.into_iter().map(|(field, value)| (field.to_owned(), value.map(bytes)));
    store.set_fields(key, &patches.collect()).expect("set_fields");
}

fn get(store: &impl StateStore, key: &str) -> PortableRecord {
    store.get(key).expect("get").unwrap_or_else(|| panic!("{key} does not exist"))
}

fn field(store: &impl StateStore, key: &str, field: &str) -> Option<Vec<u8>> {
    store.get_field(key, field).expect("get_field")
}

fn swap(store: &impl StateStore, field: &str, expected: Option<&str>, new: &str) -> bool {
    store.compare_and_swap("plain.a", field, expected.map(str::as_bytes), new.as_bytes()).expect("compare_and_swap")
}

/// The names in a scan.
fn names(store: &impl StateStore, prefix: &str, filter: Option<&ScanFilter>) -> Vec<String> {
    store.scan(prefix, filter).map(|found| found.expect("scan").0).collect()
}

fn filter(field: &str, op: Comparison, value: &str) -> ScanFilter {
    ScanFilter { field: field.to_owned(), op, value: bytes(value), max_results: None }
}

fn a_put_replaces_and_never_merges(store: &impl StateStore) {
    assert_eq!(store.get("plain.a").expect("get"), None);
    put(store, "plain.a", [("one", "1"), ("two", "2")], None);
    assert_eq!(get(store, "plain.a"), PortableRecord { fields: fields([("one", "1"), ("two", "2")]), ttl: None });
    put(store, "plain.a", [("two", "3")], None);
    assert_eq!(get(store, "plain.a").fields, fields([("two", "3")]), "what is not put again is gone");
    assert_eq!(field(store, "plain.a", "one"), None);
    put(store, "plain.a", [], None);
    assert_eq!(get(store, "plain.a").fields, Fields::new(), "a record without fields exists");
}

fn a_put_is_seen_whole_or_not_at_all(store: &(impl StateStore + Sync)) {
    put(store, "plain.a", [("left", "0"), ("same", "0")], None);
    std::thread::scope(|scope| {
        for side in ["left", "right"] {
            scope.spawn(move || {
                for number in 0..25 {
                    let text = format!("{side}{number}");
                    put(store, "plain.a", [(side, &text), ("same", &text)], None);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..100 {
                let record = get(store, "plain.a");
                let sides = record.fields.iter().filter(|(field, _)| *field != "same");
                let sides: Vec<_> = sides.map(|(_, value)| value).collect();
                assert_eq!(sides, [&record.fields["same"]], "two puts are mixed");
            }
        });
    });
}

fn field_writes_change_only_their_fields(store: &(impl StateStore + Sync)) {
    store.set_field("plain.a", "one", b"1").expect("set_field");
    assert_eq!(get(store, "plain.a").fields, fields([("one", "1")]), "a field write creates the record");
    patch(store, "plain.a", [("one", Some("2")), ("two", Some("2")), ("three", Some("3"))]);
    patch(store, "plain.a", [("two", None), ("missing", None), ("three", Some("4"))]);
    assert_eq!(get(store, "plain.a").fields, fields([("one", "2"), ("three", "4")]), "none removes a field");
    assert_eq!((field(store, "plain.a", "two"), field(store, "plain.b", "two")), (None, None));
    // All of them or none: a reader sees both fields of one write.
    patch(store, "plain.b", [("left", Some("0")), ("right", Some("0"))]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..=25 {
                let text = number.to_string();
                patch(store, "plain.b", [("left", Some(&text)), ("right", Some(&text))]);
            }
        });
        for _ in 0..100 {
            let record = get(store, "plain.b");
            assert_eq!(record.fields["left"], record.fields["right"], "half of a write is seen");
        }
    });
}

fn any_bytes_come_back(store: &impl StateStore) {
    let values: [Vec<u8>; 4] = [vec![], vec![0], (0..=255).collect(), vec![0xff; 100_000]];
    for value in values {
        store.set_field("plain.a", "field", &value).expect("set_field");
        assert_eq!(field(store, "plain.a", "field"), Some(value.clone()));
        assert!(store.compare_and_swap("plain.a", "field", Some(&value), b"next").expect("compare_and_swap"));
    }
}

fn deleting_is_final_and_may_find_nothing(store: &impl StateStore) {
    store.delete("plain.a").expect("what is missing can be deleted");
    put(store, "plain.a", [("one", "1")], None);
    store.delete("plain.a").expect("delete");
    assert_eq!((store.get("plain.a").expect("get"), field(store, "plain.a", "one")), (None, None));
    assert!(names(store, "plain.", None).is_empty());
    store.delete("plain.a").expect("deleting again does nothing");
    store.set_field("plain.a", "two", b"2").expect("set_field");
    assert_eq!(get(store, "plain.a").fields, fields([("two", "2")]), "nothing of the deleted record comes back");
}

fn a_swap_writes_only_what_was_expected(store: &impl StateStore) {
    assert!(!swap(store, "one", Some("1"), "2"), "a missing record holds nothing");
    assert_eq!(store.get("plain.a").expect("get"), None, "a swap that failed creates nothing");
    assert!(swap(store, "one", None, "1"), "absence can be expected");
    assert!(!swap(store, "one", None, "2"));
    assert!(!swap(store, "one", Some("2"), "3"));
    assert!(swap(store, "one", Some("1"), "3"));
    assert!(!swap(store, "two", Some(""), "1"), "an empty value is not absence");
    assert!(swap(store, "two", None, "1"));
    assert_eq!(get(store, "plain.a").fields, fields([("one", "3"), ("two", "1")]));
    patch(store, "plain.a", [("one", None)]);
    assert!(!swap(store, "one", Some("3"), "4") && swap(store, "one", None, "4"));
}

fn one_of_many_swappers_wins(store: &(impl StateStore + Sync)) {
    let won = |expected: Option<&'static str>| {
        std::thread::scope(|scope| {
            let one = |number: usize| {
                let name = format!("worker-{number}");
                swap(store, "holder", expected, &name).then_some(name)
            };
            let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || one(number))).collect();
            threads.into_iter().filter_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
        })
    };
    for expected in [None, Some("free")] {
        let winners = won(expected);
        assert_eq!(winners.len(), 1, "one swapper wins, not {winners:?}");
        assert_eq!(field(store, "plain.a", "holder"), Some(bytes(&winners[0])));
        store.set_field("plain.a", "holder", b"free").expect("set_field");
    }
}

fn increments_by_swap_are_all_counted(store: &(impl StateStore + Sync)) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut done = 0;
                while done < 10 {
                    let seen = field(store, "plain.a", "n").map(|seen| String::from_utf8(seen).expect("digits"));
                    let next = seen.as_deref().map_or(0, |seen| seen.parse().expect("digits")) + 1;
                    done += i32::from(swap(store, "n", seen.as_deref(), &next.to_string()));
                }
            });
        }
    });
    assert_eq!(field(store, "plain.a", "n"), Some(bytes("40")));
}

fn a_scan_is_by_prefix_and_in_name_order(store: &impl StateStore) {
    for name in ["b.2", "a", "b.1", "b", "bb", "c", "b.3"] {
        put(store, name, [("name", name), ("even", if name == "b.2" { "yes" } else { "no" })], None);
    }
    store.delete("b.3").expect("delete");
    assert_eq!(names(store, "", None), ["a", "b", "b.1", "b.2", "bb", "c"]);
    assert_eq!(names(store, "b", None), ["b", "b.1", "b.2", "bb"]);
    assert_eq!(names(store, "b.", None), ["b.1", "b.2"]);
    assert!(names(store, "z", None).is_empty());
    let even = ScanFilter { max_results: Some(3), ..filter("even", Comparison::Eq, "no") };
    assert_eq!(names(store, "", Some(&even)), ["a", "b", "b.1"], "the first by name");
    assert!(names(store, "", Some(&ScanFilter { max_results: Some(0), ..even })).is_empty());
    for found in store.scan("", None) {
        let (name, record) = found.expect("scan");
        assert_eq!(record.fields["name"], bytes(&name), "a scan gives whole records");
    }
    for number in 0..250 {
        put(store, &format!("many.{number:03}"), [("n", "1")], None);
    }
    let many = names(store, "many.", Some(&filter("n", Comparison::Eq, "1")));
    assert!(many.len() == 250 && many.is_sorted(), "all of them, in order: {}", many.len());
}

fn a_scan_compares_bytes(store: &impl StateStore) {
    for (name, value) in [("plain.a", "10"), ("plain.b", "9"), ("plain.c", "")] {
        put(store, name, [("v", value)], None);
    }
    put(store, "plain.d", [("other", "10")], None);
    for (op, value, expected) in [
        (Comparison::Eq, "9", vec!["plain.b"]),
        (Comparison::Eq, "", vec!["plain.c"]),
        (Comparison::Lt, "9", vec!["plain.a", "plain.c"]),
        (Comparison::Gt, "10", vec!["plain.b"]),
        (Comparison::Gt, "", vec!["plain.a", "plain.b"]),
        (Comparison::Lt, "", vec![]),
    ] {
        assert_eq!(names(store, "plain.", Some(&filter("v", op, value))), expected, "{op:?} {value:?}");
    }
}

/// The end of a lease is a number by the built-in type of tasks. By bytes, the later of the two would be less.
fn a_scan_compares_numbers_as_numbers(store: &impl StateStore) {
    for (name, timeout_at) in [("gbe.state.tasks.x.1", "9000000000000"), ("gbe.state.tasks.x.2", "10000000000000")] {
        put(store, name, [("state", "pending")], None);
        assert!(store.compare_and_swap(name, "state", Some(b"pending"), b"claimed").expect("compare_and_swap"));
        patch(store, name, [("timeout_at", Some(timeout_at))]);
    }
    put(store, "gbe.state.tasks.x.3", [("state", "pending")], None);
    for prefix in ["gbe.state.tasks.x.", "gbe.", ""] {
        let before = filter("timeout_at", Comparison::Lt, "9500000000000");
        assert_eq!(names(store, prefix, Some(&before)), ["gbe.state.tasks.x.1"], "prefix {prefix:?}");
        let after = filter("timeout_at", Comparison::Gt, "9500000000000");
        assert_eq!(names(store, prefix, Some(&after)), ["gbe.state.tasks.x.2"], "prefix {prefix:?}");
        let pending = filter("state", Comparison::Eq, "pending");
        assert_eq!(names(store, prefix, Some(&pending)), ["gbe.state.tasks.x.3"], "prefix {prefix:?}");
    }
}

fn names_are_checked(store: &impl StateStore) {
    let longest = "x".repeat(1024);
    put(store, &longest, [("a", "1")], None);
    assert_eq!(field(store, &longest, "a"), Some(bytes("1")));
    let too_long = "x".repeat(1025);
    for (key, limit) in [("", false), ("a\0b", false), ("_strata/x", false), ("_statehouse", false), (&too_long, true)]
    {
        let answers = [
            store.get(key).map(|_| ()),
            store.get_field(key, "a").map(|_| ()),
            store.put(key, &fields([("a", "1")]), None),
            store.set_field(key, "a", b"1"),
            store.compare_and_swap(key, "a", None, b"1").map(|_| ()),
            store.delete(key),
        ];
        for answer in answers {
            match answer {
                Err(Error::Rejected(Rejection::InvalidName { .. })) if !limit => {}
                Err(Error::Rejected(Rejection::LimitExceeded { limit: "name_bytes_max", .. })) if limit => {}
                other => panic!("{key:?} gave {other:?}"),
            }
        }
    }
    for field in ["", &"x".repeat(257)] {
        let patches = BTreeMap::from([("good".to_owned(), Some(vec![])), (field.to_owned(), Some(vec![]))]);
        let answers = [
            store.put("plain.a", &fields([("good", "1"), (field, "1")]), None),
            store.set_fields("plain.a", &patches),
            store.compare_and_swap("plain.a", field, None, b"1").map(|_| ()),
        ];
        assert!(answers.iter().all(Result::is_err), "{field:?} gave {answers:?}");
    }
    assert_eq!(store.get("plain.a").expect("get"), None, "nothing of a refused write is kept");
}

fn only_the_argument_of_a_put_sets_the_ttl<S: StateStore>(store: &S, advance: &impl Fn(&S, Duration)) {
    for name in ["plain.a", "plain.b", "plain.c"] {
        put(store, name, [("ttl", "1")], Some(TTL));
        assert!(get(store, name).ttl.is_some_and(|left| left > HALF && left <= TTL));
    }
    advance(store, HALF);
    let left = get(store, "plain.a").ttl.expect("bounded");
    assert!(left <= LEFT_MAX && !left.is_zero(), "the TTL that is left, not {left:?}");
    let scanned = store.scan("plain.a", None).next().expect("one").expect("scan").1.ttl.expect("bounded");
    assert!(scanned <= LEFT_MAX, "a scan gives the TTL that is left, not {scanned:?}");
    put(store, "plain.b", [("a", "2")], None);
    assert_eq!(get(store, "plain.b").ttl, None, "a put without a TTL persists");
    put(store, "plain.c", [("a", "2")], Some(TTL * 100));
    advance(store, REST);
    eventually("the record expires", || store.get("plain.a").expect("get").is_none());
    assert_eq!(names(store, "plain.", None), ["plain.b", "plain.c"]);
    assert!(get(store, "plain.c").ttl.is_some_and(|left| left > TTL * 50), "the last TTL counts");
}

fn field_writes_leave_the_ttl_alone<S: StateStore>(store: &S, advance: &impl Fn(&S, Duration)) {
    put(store, "plain.a", [("a", "1")], Some(TTL));
    advance(store, HALF);
    store.set_field("plain.a", "b", b"2").expect("set_field");
    patch(store, "plain.a", [("a", None)]);
    assert!(swap(store, "b", Some("2"), "3"));
    let left = get(store, "plain.a").ttl.expect("still bounded");
    assert!(left <= LEFT_MAX, "a field write has set the TTL to {left:?}");
    advance(store, REST);
    eventually("the record expires", || store.get("plain.a").expect("get").is_none());
    store.set_field("plain.b", "a", b"1").expect("set_field");
    assert_eq!(get(store, "plain.b").ttl, None, "a record that a field write creates persists");
}

fn a_late_field_write_makes_a_new_record<S: StateStore>(store: &S, advance: &impl Fn(&S, Duration)) {
    for name in ["plain.a", "plain.b"] {
        put(store, name, [("old", "1"), ("state", "running")], Some(TTL));
    }
    advance(store, HALF);
    advance(store, REST);
    store.set_field("plain.b", "late", b"2").expect("set_field");
    assert_eq!(get(store, "plain.b"), PortableRecord { fields: fields([("late", "2")]), ttl: None });
    assert!(!swap(store, "state", Some("running"), "done"), "an expired record holds nothing");
    assert!(swap(store, "state", None, "new"));
    assert_eq!(get(store, "plain.a"), PortableRecord { fields: fields([("state", "new")]), ttl: None });
}

/// Waits for background work of a store, as long as it may take on a machine with other work.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("never: {what}");
}
