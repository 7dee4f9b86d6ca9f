//! Every metric of the list has a sample with its labels, and both formats say the same.

#![allow(clippy::disallowed_methods, reason = "what the server says is compared with the machine's clock")]

mod running;
mod served;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use served::served_by;
use statehouse::Options;
use statehouse::keyed::Checkpoints;
use statehouse::records::{ClaimOptions, Put};
use statehouse::runs::{Projector, StoredEvent};
use statehouse_server::metrics;
use statehouse_server::metrics::list::Kind;

/// Only of a partition that somebody owns, and of the one that has not changed for the longest time.
#[test]
fn the_silence_of_a_partition_is_that_of_the_quietest_owned_one() {
    let served = served_by(&Options::default(), |server| server);
    let silent = || served.scrape().get("statehouse_partition_silent_seconds").copied();
    let forced = [("statehouse-force", "true")];
    let change = |partition: u32| {
        let path = format!("/v1/maps/words/keys/k?group=words/{partition}&version=1");
        let answer = served.send("PUT", &path, &forced, "1");
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    served.done("PUT", "/v1/maps/words/keys/k?version=1", "1"); // no partition
    change(1); // nobody's
    assert_eq!(silent(), None);
    let own = |partition: u32| {
        let owned =
            served.done("POST", &format!("/v1/keyed/words/{partition}/acquire"), r#"{"worker":"w","lease":"10m"}"#);
        let owned: serde_json::Value = serde_json::from_str(&owned.body).expect("JSON");
        owned["token"].as_str().expect("a token").to_owned()
    };
    let first = own(1);
    assert!(silent().is_some_and(|seconds| (0.0..60.0).contains(&seconds)));
    std::thread::sleep(Duration::from_millis(300));
    let since = Instant::now();
    change(2);
    own(2);
    assert!(silent() >= Some(0.3), "the other one: {:?}", silent());
    let released = served.send("POST", "/v1/groups/words%2F1/release", &[], &format!(r#"{{"token":"{first}"}}"#));
    assert_eq!(released.status, 200, "{}", released.body);
    let second = silent().expect("owned");
    assert!(second <= since.elapsed().as_secs_f64(), "that of the second one alone: {second}");
}

#[test]
fn every_metric_is_there_with_its_labels_and_both_formats_say_the_same() {
    let place = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::open(place.path().to_str().expect("text")).expect("a place");
    let served = served_by(&Options::default(), |server| server.keeping_checkpoints(checkpoints));
    served.done("POST", "/v1/keyed/words/0/acquire", r#"{"worker":"w"}"#);
    let forced = [("statehouse-force", "true")];
    let commit = served.send("POST", "/v1/keyed/words/0/commits", &forced, r#"{"number":1,"positions":{"in":1}}"#);
    assert_eq!(commit.status, 200, "{}", commit.body);
    let taken = served.send("POST", "/v1/keyed/words/0/checkpoints", &forced, r#"{"wait":"30s"}"#);
    assert!(taken.status == 200 && taken.body.contains("\"committed\":true"), "{}", taken.body);
    served.done("PUT", "/v1/cells/a", "1");
    assert_eq!(served.send("PUT", "/v1/cells/a", &[("if-match", "\"9\"")], "2").status, 412);
    served
        .house
        .runs()
        .append(
            "r",
            &statehouse::runs::NewEvent::new(
                "RunStarted",
                "k",
                "2026-02-11T10:00:00Z",
                statehouse::Json::new("{}").expect("JSON"),
            ),
        )
        .expect("append");
    let nothing = |_: &str, _: Option<Vec<u8>>, _: &[StoredEvent]| Vec::new();
    Projector::new(&served.house, "nothing", nothing).catch_up().expect("projected");
    for name in ["jobs.1", "jobs.2"] {
        served.house.records().put(name, [("n", 1)], Put::typed("task")).expect("put");
    }
    served.house.records().claim("jobs.1", &ClaimOptions::worker("w")).expect("claim");
    let older = served.get("/metrics");
    assert!(older.head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{}", older.head);
    let accept = [("accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")];
    let open = served.send("GET", "/metrics", &accept, "");
    assert!(open.head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(open.body.ends_with("# EOF\n") && !older.body.contains("# EOF"));
    let samples = served.scrape();
    for metric in metrics::all() {
        let stem = metric.name.strip_suffix("_total").unwrap_or(metric.name);
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        assert!(open.body.contains(&format!("# TYPE {stem} {kind}\n")), "{} as OpenMetrics", metric.name);
        assert!(older.body.contains(&format!("# TYPE {} {kind}\n", metric.name)), "{} as text", metric.name);
        assert!(older.body.contains(&format!("# HELP {} {}\n", metric.name, metric.help)), "{}", metric.name);
        let name = if metric.kind == Kind::Histogram { format!("{}_count", metric.name) } else { metric.name.into() };
        let found = samples.keys().find(|sample| sample.split('{').next() == Some(&name));
        let found = found.unwrap_or_else(|| panic!("no sample of {name}"));
        for label in metric.labels {
            assert!(found.contains(&format!("{label}=\"")), "{found} has the label {label}");
        }
    }
    let known: BTreeSet<_> = metrics::all().map(|metric| metric.name).collect();
    for line in older.body.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = line.split(' ').next().expect("a name");
        assert!(known.contains(name), "{name} is in the list");
    }
}
