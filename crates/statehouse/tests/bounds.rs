//! Every bound that the library checks: what is as large as it may be is taken, and one more is refused by its name.

use std::time::Duration;

use statehouse::limits;
use statehouse::records::{ClaimOptions, Filter, Put, ScanOptions};
use statehouse::runs::{AppendOptions, NewEvent, RunList};
use statehouse::sessions::SessionOptions;
use statehouse::{Commit, Error, HistoryPage, Json, ListPage, Rejection, Statehouse};

/// Does something of a size; `Err` says why not.
type Attempt = fn(&Statehouse, usize) -> Result<(), Error>;

/// Name, limit, and something that can be so large.
const BOUNDS: &[(&str, usize, Attempt)] = &[
    ("name_bytes_max", limits::NAME_BYTES_MAX, |house, size| done(house.cells().set(&text(size), 1))),
    ("name_bytes_max", limits::NAME_BYTES_MAX, |house, size| {
        done(house.records().put(&text(size), [("a", 1)], Put::default()))
    }),
    ("name_bytes_max", limits::NAME_BYTES_MAX, |house, size| done(house.runs().append(&text(size), &event("k")))),
    ("name_bytes_max", limits::NAME_BYTES_MAX, |house, size| {
        done(house.group(text(size)).commit().set_cell("c", 1).run())
    }),
    ("name_bytes_max", limits::NAME_BYTES_MAX, |house, size| {
        done(house.group("g").commit().if_cell_absent(&text(size)).set_cell("c", 1).run())
    }),
    ("name_bytes_max", limits::NAME_BYTES_MAX, |house, size| {
        done(house.group("g").commit().if_record_absent(&text(size)).set_cell("c", 1).run())
    }),
    ("name_bytes_max", limits::NAME_BYTES_MAX, |house, size| {
        done(house.group("g").commit().if_run_last(&text(size), 0).set_cell("c", 1).run())
    }),
    ("field_name_bytes_max", limits::FIELD_NAME_BYTES_MAX, |house, size| {
        done(house.records().get_field("r", &text(size)))
    }),
    ("field_name_bytes_max", limits::FIELD_NAME_BYTES_MAX, |house, size| {
        done(house.records().get_only("r", &text(size)))
    }),
    ("name_bytes_max", limits::NAME_BYTES_MAX, |house, size| {
        let now = house.status().expect("a status").commit;
        done(house.group("g").commit().if_cells_unchanged_since(&text(size), None, now).set_cell("c", 1).run())
    }),
    ("name_bytes_max", limits::NAME_BYTES_MAX, |house, size| {
        let now = house.status().expect("a status").commit;
        done(house.group("g").commit().if_cells_unchanged_since("d", Some(&text(size)), now).set_cell("c", 1).run())
    }),
    ("transaction_range_cells_max", limits::TRANSACTION_RANGE_CELLS_MAX, |house, size| {
        let group = house.group("range");
        for first in (0..size).step_by(100) {
            let names = (first..size.min(first + 100)).map(|number| format!("{number:05}"));
            names.fold(group.commit(), |commit, name| commit.set_cell(&name, 1)).run()?;
        }
        let now = house.status().expect("a status").commit;
        // In two ranges, which count together.
        let commit = group.commit().if_cells_unchanged_since("", Some("00100"), now);
        done(commit.if_cells_unchanged_since("00100", None, now).increment("r", "n", 1).run())
    }),
    ("field_name_bytes_max", limits::FIELD_NAME_BYTES_MAX, |house, size| {
        done(house.group("g").commit().if_field("r", &text(size), None).set_cell("c", 1).run())
    }),
    ("field_name_bytes_max", limits::FIELD_NAME_BYTES_MAX, |house, size| {
        done(house.records().put("fields", [(text(size), 1)], Put::default()))
    }),
    ("worker_bytes_max", limits::WORKER_BYTES_MAX, |house, size| {
        done(house.records().claim_next("none.", 1, &ClaimOptions::worker(text(size))))
    }),
    ("worker_bytes_max", limits::WORKER_BYTES_MAX, |house, size| {
        house.records().put("jobs.worker", [("a", 1)], Put::typed("task"))?;
        done(house.group("jobs.worker").records().put("jobs.worker", [("worker", text(size))], Put::typed("task")))
    }),
    ("queue_depth_max", limits::QUEUE_DEPTH_MAX, |house, size| {
        done(house.records().claim_next(&"a.".repeat(size), 1, &ClaimOptions::worker("w")))
    }),
    ("value_bytes_max", 1 << 20, |house, size| done(house.cells().set("value", vec![0; size]))),
    ("record_fields_max", 256, |house, size| {
        let fields = (0..size).map(|number| (format!("f{number}"), 1));
        done(house.records().put("many", fields, Put::default()))
    }),
    ("event_key_bytes_max", limits::EVENT_KEY_BYTES_MAX, |house, size| {
        done(house.runs().append("run", &event(&text(size))))
    }),
    ("event_text_bytes_max", limits::EVENT_TEXT_BYTES_MAX, |house, size| {
        done(house.runs().append("run", &event("text").of_step(text(size), "1")))
    }),
    ("event_extra_bytes_max", limits::EVENT_EXTRA_BYTES_MAX, |house, size| {
        let extra = format!("{{\"x\":\"{}\"}}", text(size - r#"{"x":""}"#.len()));
        done(house.runs().append("run", &event("extra").with_extra(Json::new(extra).expect("JSON"))))
    }),
    ("run_type_bytes_max", limits::RUN_TYPE_BYTES_MAX, |house, size| {
        done(house.runs().append_with("typed", &event("k"), &AppendOptions::run_type(text(size))))
    }),
    ("run_type_bytes_max", limits::RUN_TYPE_BYTES_MAX, |house, size| {
        let options = AppendOptions::run_type(text(size));
        done(house.group("typed").commit().append("in-a-group", &event("k"), options).run())
    }),
    ("transaction_ops_max", 128, |house, size| done(cells(house, size).run())),
    ("transaction_ops_max", 128, |house, size| done(house.group("from").commit().send(cells(house, size)).run())),
    ("transaction_guards_max", limits::TRANSACTION_GUARDS_MAX, |house, size| {
        let commit = house.group("guarded").commit();
        done((0..size).fold(commit, |commit, number| commit.if_cell_absent(&number.to_string())).set_cell("c", 1).run())
    }),
    ("message_depth_max", limits::MESSAGE_DEPTH_MAX, |house, size| {
        let group = || house.group("deep").commit();
        done((0..size).fold(group().set_cell("c", 1), |inner, _| group().send(inner)).run())
    }),
    ("capability_bytes_max", limits::CAPABILITY_BYTES_MAX, |house, size| {
        done(house.sessions().create(SessionOptions::default().capability("c", vec![0; size - 1])))
    }),
    ("page_rows_max", limits::PAGE_ROWS_MAX, |house, size| {
        done(house.cells().list("", ListPage { after: None, limit: size }))
    }),
    ("page_rows_max", limits::PAGE_ROWS_MAX, |house, size| {
        done(house.cells().history("value", HistoryPage { before: None, limit: size }))
    }),
    ("page_rows_max", limits::PAGE_ROWS_MAX, |house, size| {
        done(house.records().scan("", &Filter::all(), &ScanOptions::default().limit(size)))
    }),
    ("page_rows_max", limits::PAGE_ROWS_MAX, |house, size| done(house.runs().list(&RunList::default().limit(size)))),
    ("page_rows_max", limits::PAGE_ROWS_MAX, |house, size| {
        house.runs().append("run", &event("k"))?;
        done(house.runs().fetch("run", 0, size))
    }),
    ("page_rows_max", limits::PAGE_ROWS_MAX, |house, size| done(house.sessions().list(0, size))),
    ("page_rows_max", limits::PAGE_ROWS_MAX, |house, size| done(house.changes().read(0, size))),
    ("page_rows_max", limits::PAGE_ROWS_MAX, |house, size| done(house.waiting_messages(size))),
];

fn done<T>(result: Result<T, Error>) -> Result<(), Error> {
    result.map(drop)
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

fn event(key: &str) -> NewEvent {
    NewEvent::new("Progress", key, "2026-02-11T10:00:00Z", Json::new("{}").expect("JSON"))
}

fn cells(house: &Statehouse, count: usize) -> Commit {
    (0..count).fold(house.group("cells").commit(), |commit, number| commit.set_cell(&number.to_string(), 1))
}

#[test]
fn the_limit_is_taken_and_one_more_is_refused_by_name() {
    for (row, (name, max, attempt)) in BOUNDS.iter().enumerate() {
        let directory = tempfile::tempdir().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("open");
        assert_eq!(attempt(&house, *max), Ok(()), "{name} in row {row}: as large as it may be");
        match attempt(&house, max + 1) {
            Err(Error::Rejected(Rejection::LimitExceeded { limit, max: named, got })) => {
                assert_eq!((limit, named, got), (*name, *max as u64, *max as u64 + 1), "row {row}");
            }
            other => panic!("{name} in row {row}: one more gives {other:?}"),
        }
    }
}

#[test]
fn the_timeout_of_a_session_is_between_its_ends() {
    let directory = tempfile::tempdir().expect("a directory");
    let house = Statehouse::open(directory.path().join("house")).expect("open");
    let (least, most) = (limits::SESSION_TIMEOUT_MIN, limits::SESSION_TIMEOUT_MAX);
    let bit = Duration::from_millis(1);
    for (timeout, ok) in [(least - bit, false), (least, true), (most, true), (most + bit, false)] {
        let created = house.sessions().create(SessionOptions::default().timeout(timeout));
        assert_eq!(created.is_ok(), ok, "{timeout:?}: {created:?}");
    }
}
