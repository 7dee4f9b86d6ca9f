//! What is there afterwards, beside what clients were answered.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as JsonValue, json};
use testkit::http::{Client, Request};

use super::Answered;

/// Adds to `answered.wrong` what is not as it was answered.
pub(super) fn check(client: &Client, answered: &mut Answered) {
    let mut wrong = Vec::new();
    for (counter, values) in &answered.counted {
        let found = get(client, Request::get(format!("/v1/records/{counter}")));
        let distinct: BTreeSet<_> = values.iter().collect();
        if found["fields"]["n"] != values.len() {
            wrong.push(format!("counter {counter}: {} of {} increments", found["fields"]["n"], values.len()));
        }
        if distinct.len() != values.len() {
            wrong.push(format!("counter {counter}: {} answers for {}", distinct.len(), values.len()));
        }
    }
    for (cell, writes) in &answered.cells {
        let found = get(client, Request::get(format!("/v1/cells/{cell}")));
        if (&found["value"], &found["version"]) != (&json!(writes), &json!(writes)) {
            wrong.push(format!("{cell} was written {writes} times and is {found}"));
        }
    }
    for (run, keys) in &answered.appended {
        wrong.extend(run_is_wrong(client, run, keys));
    }
    wrong.extend(jobs_are_wrong(client, answered));
    answered.wrong.extend(wrong);
}

fn get(client: &Client, request: Request) -> JsonValue {
    client.send(request).expect("an answer").json()
}

/// Every key once, where its append was answered it is, and nothing else.
fn run_is_wrong(client: &Client, run: &str, keys: &BTreeMap<String, u64>) -> Option<String> {
    let mut found = BTreeMap::new();
    let mut last = 0;
    loop {
        let page = get(client, Request::get(format!("/v1/runs/{run}/events")).query("after", last).query("limit", 500));
        let events = page["events"].as_array().expect("events");
        for event in events {
            last = event["runSeq"].as_u64().expect("a sequence");
            let key = event["idempotencyKey"].as_str().expect("a key").to_owned();
            if let Some(first) = found.insert(key.clone(), last) {
                return Some(format!("{run}: {key} is there twice, at {first} and {last}"));
            }
        }
        if events.is_empty() {
            break;
        }
    }
    let differs = found.len() != keys.len() || last != found.len() as u64 || found != *keys;
    differs.then(|| format!("{run}: {} events are there up to {last}, {} were answered", found.len(), keys.len()))
}

/// Every job that was put was claimed once, by its first attempt, and completed once; and there are no others.
fn jobs_are_wrong(client: &Client, answered: &Answered) -> Vec<String> {
    let mut wrong = Vec::new();
    for (what, jobs) in [("claimed", &answered.jobs_claimed), ("completed", &answered.jobs_completed)] {
        let distinct: BTreeSet<_> = jobs.iter().cloned().collect();
        if distinct.len() != jobs.len() {
            wrong.push(format!("jobs: {} were {what} {} times", distinct.len(), jobs.len()));
        }
        if distinct != answered.jobs_put {
            wrong.push(format!("jobs: {} were put, {} were {what}", answered.jobs_put.len(), distinct.len()));
        }
    }
    let mut found = BTreeSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut request = Request::get("/v1/records").query("prefix", "jobs.").query("limit", 500);
        if let Some(cursor) = &cursor {
            request = request.query("cursor", cursor);
        }
        let page = get(client, request);
        for record in page["records"].as_array().expect("records") {
            let name = record["name"].as_str().expect("a name");
            if (&record["fields"]["state"], &record["attempt"]) != (&json!("completed"), &json!(1)) {
                wrong.push(format!("jobs: {name} is {}, attempt {}", record["fields"]["state"], record["attempt"]));
            }
            found.insert(name.to_owned());
        }
        cursor = page["cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    if found != answered.jobs_put {
        wrong.push(format!("jobs: {} were put, {} are there", answered.jobs_put.len(), found.len()));
    }
    wrong
}
