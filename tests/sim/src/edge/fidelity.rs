//! `sim edge-fidelity --documents N [--seed S]`: every document comes back as the same text.
//!
//! Random documents ([`super::documents`]) go to a server process as cells, fields of records, content, reference and extra
//! member of events, and through transactions, and are read back by every route that returns them: single things, lists,
//! scans, histories, conditions that must hold. Then the command exports and imports everything, and all of it is read once
//! more from a server on the imported directory. Text is compared with text. Documents with half a surrogate pair must be
//! refused by name on every way in.
//!
//! The canary: the returned text is changed as a tree of values would have changed it. A comparison of texts must find that;
//! one of decoded values does not.

mod answers;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use contract::object_text::ObjectText;
use serde_json::Value as JsonValue;
use testkit::arguments::Arguments;
use testkit::http::{Client, Request, Response};
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use super::documents::Documents;
use answers::Answer;

/// Documents sent together.
const BATCH: usize = 64;
/// Documents of one store: it is exported, imported and forgotten before the next begins.
const STORE: u64 = 40_000;
/// Clients at a time.
const CLIENTS: u64 = 4;

/// The findings so far.
#[derive(Default)]
struct Found {
    documents: AtomicU64,
    compared: AtomicU64,
    changed: AtomicU64,
    refused: AtomicU64,
    /// Refused in another way, or not at all.
    not_refused: AtomicU64,
    /// The planted loss, as a comparison of texts sees it, and one after decoding.
    planted_text: AtomicU64,
    planted_decoded: AtomicU64,
}

fn add(count: &AtomicU64) -> u64 {
    count.fetch_add(1, Ordering::AcqRel)
}

pub(crate) fn run(arguments: &Arguments) -> Report {
    let documents = arguments.number("documents", 1_000_000);
    let seed = arguments.seed();
    println!("seed {seed}");
    let statehouse = binary();
    let found = Found::default();
    let mut sent = 0;
    while sent < documents {
        let size = STORE.min(documents - sent);
        if let Err(wrong) = one_store(&statehouse, seed.wrapping_add(sent), size, &found) {
            println!("{wrong}");
            add(&found.changed);
        }
        sent += size;
        println!("{sent} documents, {} comparisons", found.compared.load(Ordering::Acquire));
    }
    let [documents_sent, changed, refused, not_refused, by_text, by_value] = [
        &found.documents,
        &found.changed,
        &found.refused,
        &found.not_refused,
        &found.planted_text,
        &found.planted_decoded,
    ]
    .map(|count| count.load(Ordering::Acquire));
    let mut report = Report::new("edge");
    let figure =
        format!("{documents_sent}-documents-{changed}-changed-{refused}-lone-surrogates-refused-{not_refused}-not");
    let goal = format!("{documents} documents, 0 changed, every lone surrogate refused by name");
    let ok = documents_sent >= documents && changed == 0 && refused > 0 && not_refused == 0;
    report.add("fidelity", figure, &goal, ok);
    let figure = format!("{by_text}-found-by-text-{by_value}-after-one-decode");
    report.add(
        "fidelity-canary",
        figure,
        "the planted loss is found by text, 0 of it after one decode",
        by_text > 0 && by_value == 0,
    );
    if changed > 0 || not_refused > 0 {
        println!("again: sim edge-fidelity --documents {documents} --seed {seed}");
    }
    report
}

/// Documents of a client, in batches.
struct Batch {
    name: String,
    documents: Vec<String>,
}

fn one_store(statehouse: &Path, seed: u64, documents: u64, found: &Found) -> Result<(), String> {
    let directory = crate::directories::fast_directory().map_err(|error| error.to_string())?;
    let path = |name: &str| directory.path().join(name);
    let server = Launch::serve(statehouse, path("house")).start()?;
    let written: Vec<Batch> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let client = Client::to(server.address());
                scope.spawn(move || {
                    let mut made = Documents::new(seed.wrapping_mul(CLIENTS).wrapping_add(number));
                    let mut written = Vec::new();
                    let mut left = documents / CLIENTS + u64::from(number < documents % CLIENTS);
                    while left > 0 {
                        let size = BATCH.min(usize::try_from(left).unwrap_or(BATCH));
                        let name = format!("{number}-{}", written.len());
                        let batch = Batch { name, documents: (0..size).map(|_| made.next()).collect() };
                        write(&client, &batch, found);
                        refuse(&client, &mut made, written.len(), found);
                        read(&client, &batch, found);
                        left -= size as u64;
                        found.documents.fetch_add(size as u64, Ordering::AcqRel);
                        written.push(batch);
                    }
                    written
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client does not panic")).collect()
    });
    let url = format!("http://{}", server.address());
    command(statehouse, &["export".as_ref(), path("all.jsonl").as_ref(), "--url".as_ref(), url.as_ref()])?;
    server.kill();
    command(
        statehouse,
        &["import".as_ref(), path("all.jsonl").as_ref(), "--data".as_ref(), path("imported").as_ref()],
    )?;
    let server = Launch::serve(statehouse, path("imported")).start()?;
    let client = Client::to(server.address());
    for batch in &written {
        read(&client, batch, found);
    }
    server.kill();
    Ok(())
}

fn command(statehouse: &Path, arguments: &[&std::ffi::OsStr]) -> Result<(), String> {
    let output = Command::new(statehouse).args(arguments).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(format!("{arguments:?}: {output:?}")) }
}

/// An event with a document in every place for user data.
fn event(key: usize, document: &str) -> String {
    let mut event = ObjectText::default();
    event.text("eventType", "Noted").text("idempotencyKey", &key.to_string()).raw("eventData", document);
    event.raw("engineRunRef", document).raw("extra member", document);
    event.finish()
}

/// Documents as members `0`, `1`, `2` ... of an object.
fn fields(documents: &[String]) -> String {
    let mut fields = ObjectText::default();
    for (place, document) in documents.iter().enumerate() {
        fields.raw(&place.to_string(), document);
    }
    fields.finish()
}

fn write(client: &Client, batch: &Batch, found: &Found) {
    let Batch { name, documents } = batch;
    let succeeds = |request: Request| {
        let answered = client.send(request);
        if !answered.as_ref().is_ok_and(Response::is_success) {
            add(&found.changed);
            println!(
                "batch {name} was not taken: {}",
                answered.map_or_else(|error| error.to_string(), |answer| answer.text())
            );
        }
    };
    succeeds(Request::put(format!("/v1/cells/one/{name}")).body(documents[0].as_str()));
    succeeds(Request::put(format!("/v1/records/r.{name}")).body(format!("{{\"fields\":{}}}", fields(documents))));
    let events: Vec<String> = documents.iter().enumerate().map(|(place, document)| event(place, document)).collect();
    succeeds(Request::post(format!("/v1/runs/run-{name}/events")).body(format!("[{}]", events.join(","))));
    succeeds(Request::put(format!("/v1/maps/one-{name}/keys/{name}?version=1")).body(documents[0].as_str()));
    let put = |(place, document): (usize, &String)| {
        format!(r#"{{"op":"put","key":"{place:02}","value":{document},"version":1}}"#)
    };
    let updates: Vec<String> = documents.iter().enumerate().map(put).collect();
    let updates = format!(r#""updates":[{}]"#, updates.join(","));
    succeeds(Request::post(format!("/v1/maps/all-{name}/commits")).body(format!(r#"{{"number":1,{updates}}}"#)));
    let mut operations: Vec<String> = documents
        .iter()
        .enumerate()
        .map(|(place, document)| format!(r#"{{"op":"cell.set","name":"t/{name}/{place:02}","value":{document}}}"#))
        .collect();
    operations.push(format!(r#"{{"op":"record.put","name":"t.{name}","fields":{}}}"#, fields(documents)));
    operations.push(format!(r#"{{"op":"map.update","name":"t-{name}",{updates}}}"#));
    operations.push(format!(r#"{{"op":"run.append","run":"t-{name}","event":{}}}"#, event(0, &documents[0])));
    let transaction = |guards: &str, operations: &[String]| {
        let body = format!(r#"{{"if":[{guards}],"do":[{}]}}"#, operations.join(","));
        Request::post(format!("/v1/groups/g-{name}/txn")).body(body)
    };
    succeeds(transaction("", &operations));
    // A condition holds on what was written, spelled in the same way.
    if documents[0] != "null" {
        let patch = format!(r#"{{"set":{{"0":{0}}},"expect":{{"0":{0}}}}}"#, documents[0]);
        succeeds(Request::patch(format!("/v1/records/r.{name}")).body(patch));
        let guard = format!(r#"{{"record":"t.{name}","field":"0","is":{}}}"#, documents[0]);
        succeeds(transaction(
            &guard,
            &[format!(r#"{{"op":"record.patch","name":"t.{name}","set":{{"0":{}}}}}"#, documents[0])],
        ));
    }
}

/// Half a surrogate pair, on one of the ways in.
fn refuse(client: &Client, made: &mut Documents, number: usize, found: &Found) {
    let document = made.lone_surrogate();
    let request = match number % 7 {
        0 => Request::put("/v1/cells/refused").body(document.as_str()),
        1 => Request::put("/v1/records/refused").body(format!("{{\"fields\":{{\"f\":{document}}}}}")),
        2 => Request::post("/v1/runs/refused/events").body(event(0, &document)),
        3 => Request::patch("/v1/records/refused").body(format!("{{\"set\":{{\"f\":{document}}}}}")),
        4 => Request::put("/v1/maps/refused/keys/k?version=1").body(document.as_str()),
        5 => Request::post("/v1/maps/refused/updates")
            .body(format!(r#"{{"updates":[{{"op":"put","key":"k","version":1,"value":{document}}}]}}"#)),
        _ => Request::post("/v1/groups/refused/txn")
            .body(format!(r#"{{"do":[{{"op":"cell.set","name":"refused","value":{document}}}]}}"#)),
    };
    match client.send(request) {
        Ok(answer) if answer.status == 400 && answer.text().contains("lone surrogate") => add(&found.refused),
        answered => {
            println!("{document} was not refused by name: {answered:?}");
            add(&found.not_refused)
        }
    };
}

fn read(client: &Client, batch: &Batch, found: &Found) {
    let Batch { name, documents } = batch;
    let group = format!("g-{name}");
    let get = |request: Request| {
        Answer::new(client.send(request).map_or_else(|error| error.to_string(), |answer| answer.text()))
    };
    let one = &documents[..1];
    let cell = get(Request::get(format!("/v1/cells/one/{name}")));
    compare(one, cell.at(&["value"]), found);
    let history = get(Request::get(format!("/v1/cells/one/{name}")).query("view", "history"));
    compare(one, history.of_each(&["versions"], &["value"]), found);
    let cells = get(Request::get("/v1/cells").query("prefix", format!("t/{name}/")).query("group", &group));
    compare(documents, cells.of_each(&["cells"], &["value"]), found);
    let record = get(Request::get(format!("/v1/records/r.{name}")));
    compare(documents, record.numbered(&["fields"]), found);
    let scanned = get(Request::get("/v1/records").query("prefix", format!("r.{name}")).query("limit", 1));
    compare(documents, scanned.first(&["records"]).numbered(&["fields"]), found);
    let record = get(Request::get(format!("/v1/records/t.{name}")).query("group", &group));
    compare(documents, record.numbered(&["fields"]), found);
    let key = get(Request::get(format!("/v1/maps/one-{name}/keys/{name}")));
    compare(one, key.at(&["value"]), found);
    for (map, group) in [(format!("all-{name}"), None), (format!("t-{name}"), Some(&group))] {
        let mut request = Request::get(format!("/v1/maps/{map}/keys")).query("limit", 1_000);
        if let Some(group) = group {
            request = request.query("group", group);
        }
        compare(documents, get(request).of_each(&["keys"], &["value"]), found);
    }
    let runs = [(format!("run-{name}"), None, documents.as_slice()), (format!("t-{name}"), Some(&group), one)];
    for (run, group, documents) in runs {
        let mut request = Request::get(format!("/v1/runs/{run}/events"));
        if let Some(group) = group {
            request = request.query("group", group);
        }
        let events = get(request);
        compare(documents, events.of_each(&["events"], &["eventData"]), found);
        compare(documents, events.of_each(&["events"], &["extra member"]), found);
        // A reference that is null is none.
        let references: Vec<String> = documents.iter().filter(|document| *document != "null").cloned().collect();
        compare(&references, events.of_each(&["events"], &["engineRunRef"]), found);
    }
}

/// Compares the sent and the returned text, and runs the canary on them.
fn compare(sent: &[String], came_back: Vec<String>, found: &Found) {
    if sent.len() != came_back.len() {
        println!("{} documents were sent, {} came back", sent.len(), came_back.len());
        add(&found.changed);
    }
    for (sent, came_back) in sent.iter().zip(&came_back) {
        add(&found.compared);
        if sent != came_back && add(&found.changed) < 10 {
            println!("sent {sent}\n got {came_back}");
        }
        let planted = through_a_tree(came_back);
        if *sent != planted {
            add(&found.planted_text);
        }
        if decoded(sent) != decoded(&planted) {
            add(&found.planted_decoded);
        }
    }
}

fn decoded(text: &str) -> Option<JsonValue> {
    serde_json::from_str(text).ok()
}

/// A document after being parsed into a tree of values and written again.
fn through_a_tree(text: &str) -> String {
    decoded(text).map_or_else(|| text.to_owned(), |tree| tree.to_string())
}
