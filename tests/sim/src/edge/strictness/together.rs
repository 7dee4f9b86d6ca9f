//! Every pair of members of a guard and of a patch: both count, or the pair is refused.

use serde_json::{Value as JsonValue, json};
use testkit::http::{Request, Response};

use super::{Served, Tally};

/// The group of all the data.
const GROUP: &str = "together";

pub(super) fn run(served: &Served, tally: &mut Tally) {
    let together = Together { served };
    together.guards(tally);
    together.patches(tally);
}

/// Whether a guard is valid and holds, for a cell, a key and a pending record that are all at version 1, a run of two events, and an
/// input that was read up to 2.
fn holds(guard: &JsonValue) -> bool {
    let has = |name: &str| guard.get(name).is_some();
    let subjects: Vec<_> = SUBJECTS.iter().filter(|subject| has(subject)).collect();
    // All of them exist, so a guard that expects absence never holds.
    if subjects.len() != 1 || has("absent") || has("field") != has("is") {
        return false;
    }
    let of_records = ["state_in", "field", "attempt"];
    let says: Vec<_> = guard.as_object().expect("members").keys().filter(|name| *name != subjects[0]).collect();
    let fits = |name: &str| match *subjects[0] {
        "cells" | "keys" => name == "unchanged_since",
        "cell" | "key" => !of_records.contains(&name) && !["is", "last", "position"].contains(&name),
        "run" => name == "last",
        "input" => name == "position",
        _ => !["version_below", "last", "position"].contains(&name),
    };
    let number = |name: &str| guard[name].as_u64();
    !says.is_empty()
        && says.iter().all(|name| fits(name))
        && number("version").is_none_or(|version| version == 1)
        && number("version_below").is_none_or(|version| version > 1)
        && number("unchanged_since").is_none_or(|commit| commit == LATE)
        && number("attempt").is_none_or(|attempt| attempt == 0)
        && number("last").is_none_or(|last| last == 2)
        && number("position").is_none_or(|position| position == 2)
        && (!has("exists") || guard["exists"] == true)
        && (!has("state_in") || guard["state_in"][0] == "pending")
        && match guard["field"].as_str() {
            None => true,
            Some("n") => guard["is"] == 1,
            Some(_) => guard["is"].is_null(),
        }
}

/// What a guard can be about.
const SUBJECTS: [&str; 7] = ["cell", "cells", "record", "run", "key", "keys", "input"];

/// So many of them in one guard: more are refused as two are.
const SUBJECTS_MAX: u32 = 2;

/// A commit after all others.
const LATE: u64 = 1 << 40;

struct Together<'served> {
    served: &'served Served,
}

impl Together<'_> {
    fn send(&self, request: Request) -> Response {
        self.served.client.send(&request).expect("an answer")
    }

    fn done(&self, request: Request) -> JsonValue {
        let said = format!("{} {}", request.method, request.path);
        let response = self.send(request);
        assert!(response.is_success(), "{said}: {} {}", response.status, response.text());
        response.json()
    }

    fn commit(&self, body: &JsonValue) -> Response {
        self.send(Request::post(format!("/v1/groups/{GROUP}/txn")).body(body.to_string()))
    }

    fn read(&self, path: &str) -> JsonValue {
        self.send(Request::get(format!("{path}?group={GROUP}"))).json()
    }

    fn guards(&self, tally: &mut Tally) {
        let put = json!({ "type": "task", "fields": { "n": 1 } }).to_string();
        self.done(Request::put(format!("/v1/records/guarded?group={GROUP}")).body(put));
        self.done(Request::put(format!("/v1/cells/guarded?group={GROUP}")).body("1"));
        for key in ["a", "b"] {
            let event = json!({ "eventType": "Said", "idempotencyKey": key, "eventData": {} });
            let append = json!({ "do": [{ "op": "run.append", "run": "guarded", "event": event }] });
            self.done(Request::post(format!("/v1/groups/{GROUP}/txn")).body(append.to_string()));
        }
        let put = json!({ "op": "put", "key": "guarded", "value": 1, "version": 1 });
        let commit = json!({ "number": 1, "updates": [put], "positions": { "guarded": 2 } }).to_string();
        self.done(Request::post(format!("/v1/maps/guarded/commits?group={GROUP}")).body(commit));
        let conditions = [
            json!({ "version": 1 }),
            json!({ "version": 9 }),
            json!({ "absent": true }),
            json!({ "absent": false }),
            json!({ "exists": true }),
            json!({ "exists": false }),
            json!({ "version_below": 2 }),
            json!({ "version_below": 1 }),
            json!({ "unchanged_since": LATE }),
            json!({ "unchanged_since": 0 }),
            json!({ "attempt": 0 }),
            json!({ "attempt": 1 }),
            json!({ "state_in": ["pending"] }),
            json!({ "state_in": ["claimed"] }),
            json!({ "state_in": [] }),
            json!({ "field": "n", "is": 1 }),
            json!({ "field": "n", "is": 2 }),
            json!({ "field": "n", "is": 1.5 }),
            json!({ "field": "none", "is": null }),
            json!({ "field": "n" }),
            json!({ "is": 1 }),
            json!({ "last": 2 }),
            json!({ "last": 1 }),
            json!({ "position": 2 }),
            json!({ "position": 1 }),
        ];
        // Each subject, several of them, and none.
        let few = (0..1_usize << SUBJECTS.len()).filter(|subjects| subjects.count_ones() <= SUBJECTS_MAX);
        for subjects in few {
            for first in &conditions {
                for second in &conditions {
                    self.guard(subjects, first, second, tally);
                }
            }
        }
    }

    /// One guard with the members of two conditions, about the subjects whose bits are set.
    fn guard(&self, subjects: usize, first: &JsonValue, second: &JsonValue, tally: &mut Tally) {
        let mut guard = json!({});
        for (_, subject) in SUBJECTS.iter().enumerate().filter(|(place, _)| subjects & 1 << place != 0) {
            guard[subject] = match *subject {
                "cells" => json!({ "from": "guarded", "before": "guardee" }),
                "key" => json!({ "map": "guarded", "key": "guarded" }),
                "keys" => json!({ "map": "guarded", "from": "guarded", "before": "guardee" }),
                "input" => json!({ "map": "guarded", "input": "guarded" }),
                _ => json!("guarded"),
            };
        }
        for condition in [first, second] {
            for (name, value) in condition.as_object().expect("members") {
                guard[name] = value.clone();
            }
        }
        // A member that both have is sent once, with the second's value.
        let overwritten = first.as_object().expect("members").iter().any(|(name, value)| guard[name] != *value);
        if overwritten {
            return;
        }
        let should = holds(&guard);
        let before = self.read("/v1/cells/probe")["version"].clone();
        let body = json!({ "if": [guard], "do": [{ "op": "cell.set", "name": "probe", "value": 1 }] });
        let answer = self.commit(&body);
        let written = self.read("/v1/cells/probe")["version"] != before;
        let held =
            answer.is_success() == should && written == should && (should || [400, 409].contains(&answer.status));
        tally.case("guard-pair", held, || {
            format!("{guard} should {should}: {} {} written {written}", answer.status, answer.text())
        });
    }

    fn patches(&self, tally: &mut Tally) {
        let parts = [
            ("set", json!({ "a": 7 })),
            ("unset", json!(["b"])),
            ("incr", json!({ "n": 5 })),
            ("expect", json!({ "n": 1 })),
            ("expect", json!({ "n": 2 })),
            ("expect", json!({ "none": null })),
            ("ttl", json!("1h")),
        ];
        for (first, one) in &parts {
            for (second, two) in &parts {
                if first == second && one != two {
                    continue;
                }
                let mut patch = json!({});
                patch[first] = one.clone();
                patch[second] = two.clone();
                for in_transaction in [false, true] {
                    self.patch(&patch, in_transaction, tally);
                }
            }
        }
    }

    /// A patch of a new record, by its own route or in a transaction.
    fn patch(&self, patch: &JsonValue, in_transaction: bool, tally: &mut Tally) {
        let path = "/v1/records/patched";
        let put = json!({ "fields": { "a": 1, "b": 1, "n": 1 } }).to_string();
        self.done(Request::put(format!("{path}?group={GROUP}")).body(put));
        let answer = match in_transaction {
            false => self.send(Request::patch(format!("{path}?group={GROUP}")).body(patch.to_string())),
            true => {
                let mut operation = patch.clone();
                operation["op"] = "record.patch".into();
                operation["name"] = "patched".into();
                self.commit(&json!({ "do": [operation] }))
            }
        };
        let nothing = patch.as_object().expect("members").keys().all(|name| name == "expect");
        let expected = patch["expect"].get("n").is_none_or(|n| n == 1);
        let should = !nothing && expected;
        let record = self.read(path);
        let fields = &record["fields"];
        let a = if should && patch.get("set").is_some() { 7 } else { 1 };
        let b = !(should && patch.get("unset").is_some());
        let n = if should && patch.get("incr").is_some() { 6 } else { 1 };
        let lives = should && patch.get("ttl").is_some();
        let is = fields["a"] == a && fields.get("b").is_some() == b && fields["n"] == n;
        let held = answer.is_success() == should && is && record["ttl_ms"].is_u64() == lives;
        tally.case("patch-pair", held, || {
            format!("{patch} in a transaction {in_transaction}: {} {} left {record}", answer.status, answer.text())
        });
    }
}
