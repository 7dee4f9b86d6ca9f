//! Compares the data after the kills with the answers that clients got.

use std::collections::{BTreeMap, BTreeSet};

use client::{Client, Error, Value};
use testkit::http::block_on;
use wire::records::ScanRecords;
use wire::runs::ReadEvents;
use wire::values::UserJson;

use super::Answered;

/// Rows of a page.
const PAGE_ROWS: u64 = 500;

/// Adds every difference to `answered.wrong`.
pub(super) fn check(client: &Client, answered: &mut Answered) {
    let wrong = block_on(find_wrong(client, answered)).unwrap_or_else(|error| vec![format!("afterwards: {error}")]);
    answered.wrong.extend(wrong);
}

async fn find_wrong(client: &Client, answered: &Answered) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    for (counter, values) in &answered.counted {
        let found = client.records().get(counter).await?;
        let sum = found.and_then(|found| found.fields.get("n").map(|n| n.0.clone()));
        let distinct: BTreeSet<_> = values.iter().collect();
        if sum != i64::try_from(values.len()).ok().map(Value::Integer) {
            wrong.push(format!("counter {counter}: {sum:?} of {} increments", values.len()));
        }
        if distinct.len() != values.len() {
            wrong.push(format!("counter {counter}: {} answers for {}", distinct.len(), values.len()));
        }
    }
    for (cell, writes) in &answered.cells {
        let found = client.cells().get(cell).await?.map(|found| (found.value.0, found.version));
        if found != Some((Value::Integer(writes.cast_signed()), *writes)) {
            wrong.push(format!("{cell} was written {writes} times and is {found:?}"));
        }
    }
    for (run, keys) in &answered.appended {
        wrong.extend(run_is_wrong(client, run, keys).await?);
    }
    wrong.extend(jobs_are_wrong(client, answered).await?);
    Ok(wrong)
}

/// Every key exists once, at the sequence that its append returned, and there are no others.
async fn run_is_wrong(client: &Client, run: &str, keys: &BTreeMap<String, u64>) -> Result<Option<String>, Error> {
    let mut found = BTreeMap::new();
    let mut last = 0;
    loop {
        let query = ReadEvents { after: Some(last), limit: Some(PAGE_ROWS), ..ReadEvents::default() };
        let page = client.runs().events(run, &query).await?;
        for event in &page.events {
            let event: serde_json::Value = serde_json::from_str(&event.0.0).expect("an event");
            last = event["runSeq"].as_u64().expect("a sequence");
            let key = event["idempotencyKey"].as_str().expect("a key").to_owned();
            if let Some(first) = found.insert(key.clone(), last) {
                return Ok(Some(format!("{run}: {key} is there twice, at {first} and {last}")));
            }
        }
        if page.events.is_empty() {
            break;
        }
    }
    let differs = found.len() != keys.len() || last != found.len() as u64 || found != *keys;
    Ok(differs.then(|| format!("{run}: {} events are there up to {last}, {} were answered", found.len(), keys.len())))
}

/// Every job was claimed once, by its first attempt, and completed once; and there are no others.
async fn jobs_are_wrong(client: &Client, answered: &Answered) -> Result<Vec<String>, Error> {
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
    let mut query = ScanRecords { prefix: Some("jobs.".to_owned()), limit: Some(PAGE_ROWS), ..ScanRecords::default() };
    loop {
        let page = client.records().scan(&query).await?;
        for record in page.records {
            let state = record.fields.get("state");
            if (state, record.attempt) != (Some(&UserJson("completed".into())), 1) {
                wrong.push(format!("jobs: {} is {state:?}, attempt {}", record.name, record.attempt));
            }
            found.insert(record.name);
        }
        query.cursor = page.cursor;
        if query.cursor.is_none() {
            break;
        }
    }
    if found != answered.jobs_put {
        wrong.push(format!("jobs: {} were put, {} are there", answered.jobs_put.len(), found.len()));
    }
    Ok(wrong)
}
