//! Checkpoints of partitions over HTTP: taken by the owner, listed, restored; and what is refused by name.

#![allow(clippy::disallowed_methods, reason = "tests wait by the machine's clock")]

mod client;
mod running;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use client::{Answer, Client};
use running::Running;
use serde_json::{Value as JsonValue, json};
use statehouse::Options;
use statehouse::keyed::{CheckpointOptions, Checkpoints, Policy};
use statehouse::records::ClaimOptions;
use statehouse_server::Server;

/// A server with a place for checkpoints; it stops when this is dropped.
struct Scene {
    client: Client,
    running: Running,
    place: tempfile::TempDir,
}

impl Scene {
    fn start() -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let target = place.path().to_str().expect("text").to_owned();
        let checkpoints = Checkpoints::open(&target).expect("a place");
        let running = Running::start(&Options::default(), |house| Server::new(house).keeping_checkpoints(checkpoints));
        Self { client: Client::of(running.client()), running, place }
    }

    fn post(&self, path: &str, headers: &[(&str, &str)], body: &JsonValue) -> Answer {
        self.client.send("POST", path, headers, &body.to_string())
    }

    fn acquire(&self) -> String {
        let acquired = self.post("/v1/keyed/words/3/acquire", FORCED, &json!({ "worker": "w1", "lease": "10m" }));
        text(&done(acquired)["token"])
    }

    /// Counts a word, by the commit of this number.
    fn count(&self, token: &str, number: u64, word: &str) {
        let body = json!({
            "number": number,
            "updates": [{ "op": "add", "key": word, "value": 1 }],
            "positions": { "in": number },
        });
        done(self.post("/v1/keyed/words/3/commits", &[("statehouse-owner", token)], &body));
    }

    fn take(&self, headers: &[(&str, &str)], body: &JsonValue) -> Answer {
        self.post(CHECKPOINTS, headers, body)
    }

    fn taken(&self, token: &str) -> JsonValue {
        done(self.take(&[("statehouse-owner", token)], &json!({ "wait": "30s" })))
    }

    fn restore(&self, body: JsonValue) -> Answer {
        self.post("/v1/keyed/words/3/restore", FORCED, &body)
    }

    fn shown(&self) -> JsonValue {
        done(self.client.get("/v1/keyed/words/3"))
    }

    fn listed(&self) -> Vec<JsonValue> {
        done(self.client.get(CHECKPOINTS))["checkpoints"].as_array().expect("checkpoints").clone()
    }

    fn value(&self, key: &str) -> Option<i64> {
        let answer = self.client.get(&format!("/v1/keyed/words/3/keys/{key}"));
        answer.body["value"].as_i64()
    }

    /// The value of a metric.
    fn metric(&self, name: &str) -> Option<f64> {
        let scraped = self.running.client().call(testkit::http::Request::get("/metrics")).expect("metrics").text();
        scraped.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    }

    /// The files of a kind, in the place of the checkpoints.
    fn files(&self, ending: &str) -> Vec<PathBuf> {
        let (mut found, mut folders) = (Vec::new(), vec![self.place.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
                match entry.is_dir() {
                    true => folders.push(entry),
                    false => found.extend(Some(entry).filter(|path| path.to_string_lossy().ends_with(ending))),
                }
            }
        }
        found
    }
}

const CHECKPOINTS: &str = "/v1/keyed/words/3/checkpoints";
const FORCED: &[(&str, &str)] = &[("statehouse-force", "true")];

/// The answer of a request that has to succeed.
fn done(answer: Answer) -> JsonValue {
    assert!((200..300).contains(&answer.status), "{answer:?}");
    answer.body
}

fn text(value: &JsonValue) -> String {
    value.as_str().expect("text").to_owned()
}

/// Status and code of a refusal.
fn refused(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.body["code"].as_str().unwrap_or_default())
}

/// Waits for what happens on its own.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Flips a bit in the middle of a file.
fn damage(file: &Path) {
    let mut bytes = fs::read(file).expect("bytes");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).expect("written");
}

#[test]
fn a_partition_is_taken_listed_and_restored() {
    let scene = Scene::start();
    let token = scene.acquire();
    (1..=5).for_each(|number| scene.count(&token, number, "a"));
    let first = scene.taken(&token);
    assert_eq!(
        (&first["number"], &first["committed"], &first["keys"]),
        (&json!(1), &json!(true), &json!(1)),
        "{first}"
    );
    assert_eq!((&first["base"], &first["operator"], &first["partition"]), (&json!(null), &json!("words"), &json!(3)));
    scene.count(&token, 6, "b");
    let second = scene.taken(&token);
    assert_eq!((&second["number"], &second["base"], &second["keys"]), (&json!(2), &json!(1), &json!(2)), "{second}");
    let full = scene.take(&[("statehouse-owner", &token)], &json!({ "full": true, "wait": "30s" }));
    assert_eq!((&full.body["number"], &full.body["base"]), (&json!(3), &json!(null)), "{full:?}");
    let listed = scene.listed();
    let rows: Vec<_> = listed.iter().map(|row| (row["number"].as_u64(), row["depth"].as_u64())).collect();
    assert_eq!(rows, [(Some(3), Some(0)), (Some(2), Some(1)), (Some(1), Some(0))]);
    assert!(listed.iter().all(|row| row["bytes"].as_u64() > Some(0) && text(&row["made_at"]).ends_with('Z')));
    assert_eq!(listed[1]["commit"], second["commit"]);
    let page = done(scene.client.get(&format!("{CHECKPOINTS}?limit=2")));
    let rest = done(scene.client.get(&format!("{CHECKPOINTS}?limit=2&cursor={}", text(&page["cursor"]))));
    assert_eq!([&page["checkpoints"][1]["number"], &rest["checkpoints"][0]["number"]], [&json!(2), &json!(1)]);
    assert_eq!(rest["cursor"], json!(null));
    assert_eq!(refused(&scene.client.get(&format!("{CHECKPOINTS}?limit=0"))), (400, "SH-1030"));
    let together = done(scene.client.get(&format!("{CHECKPOINTS}?together=true")));
    assert_eq!(together["checkpoints"], json!([]), "those of several partitions are another list");

    scene.count(&token, 7, "a");
    assert_eq!((scene.value("a"), scene.value("b")), (Some(6), Some(1)));
    let restored = done(scene.restore(json!({ "checkpoint": 1, "worker": "w2", "lease": "10m", "wait": "30s" })));
    assert_eq!(
        (&restored["restored"], &restored["checkpoint"], &restored["next"]),
        (&json!(true), &json!(1), &json!(6))
    );
    assert_eq!((scene.value("a"), scene.value("b")), (Some(5), None));
    let shown = scene.shown();
    assert_eq!((&shown["holder"]["worker"], &shown["restoring"]), (&json!("w2"), &json!(false)));
    let positions = done(scene.client.get("/v1/keyed/words/3/positions"));
    assert_eq!(positions["positions"][0]["position"], 5);
    // The new owner goes on from there, and the one before writes nothing and takes nothing.
    scene.count(&text(&restored["token"]), 6, "a");
    let zombie = json!({ "number": 7, "updates": [{ "op": "add", "key": "a", "value": 1 }] });
    let owner = [("statehouse-owner", token.as_str())];
    assert_eq!(refused(&scene.post("/v1/keyed/words/3/commits", &owner, &zombie)), (409, "SH-4002"));
    assert_eq!(refused(&scene.take(&owner, &json!({ "wait": "30s" }))), (409, "SH-4002"));
    assert_eq!(scene.value("a"), Some(6));
}

#[test]
fn only_the_owner_takes_one_and_only_by_force_it_is_restored() {
    let scene = Scene::start();
    let token = scene.acquire();
    scene.count(&token, 1, "a");
    let begun = || scene.files("begun").len();
    assert_eq!(refused(&scene.take(&[], &json!({ "wait": "30s" }))), (409, "SH-4003"));
    let other = token.replace("words/3", "words/4");
    assert_eq!(refused(&scene.take(&[("statehouse-owner", &other)], &json!({}))), (400, "SH-1030"));
    assert_eq!(begun(), 0, "whoever is refused leaves nothing behind");
    assert_eq!(done(scene.take(FORCED, &json!({ "wait": "30s" })))["committed"], true, "an operator repairs by hand");
    let gently = scene.post("/v1/keyed/words/3/restore", &[], &json!({ "worker": "w2" }));
    assert_eq!(
        (refused(&gently), &gently.body["member"]),
        ((400, "SH-1030"), &json!("Statehouse-Force")),
        "{gently:?}"
    );
    assert_eq!(scene.shown()["holder"]["worker"], "w1");
    let missing = scene.restore(json!({ "checkpoint": 9, "wait": "30s" }));
    assert_eq!((refused(&missing), &missing.body["number"]), ((404, "SH-8016"), &json!(9)));
    let nobodys = scene.post("/v1/keyed/none/0/checkpoints", &[], &json!({ "wait": "30s" }));
    assert_eq!(refused(&nobodys), (409, "SH-4003"), "also before anybody has acquired it");
    let missing = scene.post("/v1/keyed/none/0/checkpoints", FORCED, &json!({ "wait": "30s" }));
    assert_eq!(refused(&missing), (404, "SH-8001"), "a typo makes nothing");
    for (body, member) in [
        (json!({ "wait": "1h" }), "wait_time_max"),
        (json!({ "whole": true }), "whole"),
        (json!({ "full": 1 }), "full"),
    ] {
        let answer = scene.take(FORCED, &body);
        assert!((400..=413).contains(&answer.status) && answer.body.to_string().contains(member), "{answer:?}");
    }
    assert_eq!(scene.shown()["holder"]["worker"], "w1", "what is refused takes the partition from nobody");
}

#[test]
fn what_is_damaged_is_refused_and_the_partition_is_as_it_was() {
    let scene = Scene::start();
    let token = scene.acquire();
    scene.count(&token, 1, "a");
    scene.taken(&token);
    scene.count(&token, 2, "a");
    let rows = scene.files(".rows");
    assert_eq!(rows.len(), 1);
    let before = fs::read(&rows[0]).expect("bytes");
    damage(&rows[0]);
    let restore = || scene.restore(json!({ "worker": "w2", "wait": "30s" }));
    let answer = restore();
    assert_eq!(refused(&answer), (422, "SH-8015"), "{answer:?}");
    assert!(rows[0].ends_with(text(&answer.body["object"])), "it names the object: {answer:?}");
    assert_eq!(scene.value("a"), Some(2));
    assert_eq!((&answer.body["outcome"], &answer.body["taken_over"]), (&json!("not_applied"), &json!(null)));
    let shown = scene.shown();
    assert_eq!(
        (&shown["restoring"], &shown["holder"]["worker"]),
        (&json!(false), &json!("w1")),
        "it costs nobody the partition"
    );
    fs::write(&rows[0], &before[..4]).expect("written");
    assert_eq!(refused(&restore()), (422, "SH-8015"));
    assert_eq!(scene.shown()["holder"]["worker"], "w1");
    scene.count(&token, 3, "a");
    fs::write(&rows[0], before).expect("written");
    assert_eq!(done(restore())["restored"], true);
    assert_eq!(scene.value("a"), Some(1));
}

#[test]
fn what_was_begun_goes_on_when_the_wait_is_over() {
    let scene = Scene::start();
    let token = scene.acquire();
    for number in 1..=20 {
        let put = |key: u64| json!({ "op": "put", "key": format!("{number}-{key}"), "value": key, "version": 1 });
        let body = json!({ "number": number, "updates": (0..500).map(put).collect::<Vec<_>>() });
        done(scene.post("/v1/keyed/words/3/commits", &[("statehouse-owner", &token)], &body));
    }
    let owner = [("statehouse-owner", token.as_str())];
    let begun = done(scene.take(&owner, &json!({})));
    assert_eq!(begun["number"], 1, "the number is known at once: {begun}");
    eventually("it is committed", || scene.listed().len() == 1);
    assert_eq!(scene.listed()[0]["keys"], 10_000);
    eventually("the next one is taken", || match scene.take(&owner, &json!({ "wait": "30s" })) {
        answer if answer.status == 200 => true,
        answer => {
            assert_eq!(refused(&answer), (429, "SH-2001"), "one at a time: {answer:?}");
            assert!(text(&answer.body["detail"]).contains("words/3"), "{answer:?}");
            false
        }
    });
    let restored = done(scene.restore(json!({ "worker": "w2", "lease": "10m" })));
    let (token, epoch) = (text(&restored["token"]), restored["epoch"].as_u64());
    eventually("it is restored", || scene.shown()["restoring"] == false);
    let next = scene.shown()["map"]["last_number"].as_u64().expect("a number") + 1;
    assert_eq!(next, 21);
    scene.count(&token, next, "a");
    assert!(epoch > Some(1), "{restored}");
}

#[test]
fn a_second_checkpoint_of_the_same_partition_is_refused_while_one_is_taken() {
    let scene = Scene::start();
    let token = scene.acquire();
    for number in 1..=40 {
        let put =
            |key: u64| json!({ "op": "put", "key": format!("{number}-{key}"), "value": "x".repeat(200), "version": 1 });
        let body = json!({ "number": number, "updates": (0..1_000).map(put).collect::<Vec<_>>() });
        done(scene.post("/v1/keyed/words/3/commits", &[("statehouse-owner", &token)], &body));
    }
    let owner = [("statehouse-owner", token.as_str())];
    let statuses: Vec<u16> = (0..20).map(|_| scene.take(&owner, &json!({ "full": true })).status).collect();
    assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
    let (taken, refusals) = (statuses.iter().filter(|status| **status == 200).count(), statuses.len());
    eventually("all that were begun are committed", || {
        scene.metric("statehouse_checkpoints_total{result=\"committed\"}") == Some(taken as f64)
    });
    assert!(taken < refusals);
    // Another partition is not kept waiting.
    done(scene.post("/v1/keyed/words/4/acquire", &[], &json!({ "worker": "w" })));
}

#[test]
fn checkpoints_move_their_metrics() {
    let scene = Scene::start();
    let [committed, failed] =
        ["committed", "failed"].map(|result| format!("statehouse_checkpoints_total{{result=\"{result}\"}}"));
    let counts = || (scene.metric(&committed), scene.metric(&failed));
    let age = || scene.metric("statehouse_checkpoint_oldest_seconds");
    assert_eq!((counts(), age()), ((Some(0.0), Some(0.0)), None));
    let token = scene.acquire();
    scene.count(&token, 1, "a");
    scene.taken(&token);
    let first = age().expect("an age");
    assert!((0.0..60.0).contains(&first), "{first}");
    eventually("it becomes older", || age() > Some(first + 0.05));
    assert_eq!(counts(), (Some(1.0), Some(0.0)));
    // Whoever is refused has not begun one.
    assert_eq!(refused(&scene.take(&[], &json!({}))), (409, "SH-4003"));
    assert_eq!(counts(), (Some(1.0), Some(0.0)));
    // The manifest of the next one cannot be written.
    let manifest = scene.files("part-3").pop().expect("one");
    let next = manifest.parent().expect("a folder").with_file_name(format!("{:020}", 2));
    let in_the_way = next.join("part-3");
    fs::create_dir_all(&in_the_way).expect("a folder");
    let owner = [("statehouse-owner", token.as_str())];
    let answer = scene.take(&owner, &json!({ "wait": "30s" }));
    assert_eq!(refused(&answer), (503, "SH-2025"), "{answer:?}");
    assert_eq!(counts(), (Some(1.0), Some(1.0)));
    let not_removed = || scene.metric("statehouse_checkpoints_total{result=\"not_removed\"}");
    assert_eq!(not_removed(), Some(0.0));
    fs::remove_dir(&in_the_way).expect("removed");
    assert_eq!(
        done(scene.take(&owner, &json!({ "wait": "30s" })))["committed"],
        true,
        "the next one is not kept from it"
    );
    // What is gone has no age.
    done(scene.client.send("DELETE", "/v1/maps/words?group=words/3", FORCED, ""));
    assert_eq!(age(), None);
}

#[test]
fn the_age_counts_from_before_the_server_was_started() {
    let scene = Scene::start();
    // This server has taken none of them.
    let place = Checkpoints::open(scene.place.path().to_str().expect("text")).expect("a place");
    let words = scene.running.house.keyed("words");
    let owned = words.partition(3).acquire(&ClaimOptions::worker("w")).expect("owned");
    owned.owned_group().commit().create_map("words", Policy::Monotonic).run().expect("created");
    owned.checkpoint(&place, &CheckpointOptions::default()).expect("a checkpoint");
    eventually("it is found", || scene.metric("statehouse_checkpoint_oldest_seconds").is_some());
}

#[test]
fn without_a_place_all_three_are_refused_with_what_to_do() {
    let served = client::served();
    let restore = served.send("POST", "/v1/keyed/words/3/restore", FORCED, r#"{"worker":"w"}"#);
    for answer in [served.post(CHECKPOINTS, "{}"), served.get(CHECKPOINTS), restore] {
        assert_eq!(refused(&answer), (501, "SH-2024"), "{answer:?}");
        let detail = text(&answer.body["detail"]);
        assert!(detail.contains("setting checkpoints") && detail.contains("s3://"), "{detail}");
        assert_eq!(answer.body["retryable"], false);
    }
}

#[test]
fn a_place_that_fails_is_named() {
    let scene = Scene::start();
    let token = scene.acquire();
    scene.count(&token, 1, "a");
    scene.taken(&token);
    // The operator's folder becomes a file.
    let begun = scene.files("begun").pop().expect("one");
    let operator = begun.ancestors().nth(3).expect("a folder").to_owned();
    fs::remove_dir_all(&operator).expect("removed");
    fs::write(&operator, "").expect("written");
    let answer = scene.take(&[("statehouse-owner", &token)], &json!({ "wait": "30s" }));
    assert_eq!(refused(&answer), (503, "SH-2025"), "{answer:?}");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(
        (&answer.body["retryable"], &answer.body["outcome"]),
        (&json!(true), &json!("not_applied")),
        "{answer:?}"
    );
    assert!(text(&answer.body["detail"]).contains("words"), "{answer:?}");
    assert_eq!(scene.metric("statehouse_checkpoints_total{result=\"failed\"}"), Some(1.0), "it could not begin");
}
