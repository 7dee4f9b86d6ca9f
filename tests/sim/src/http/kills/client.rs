//! One client: works until it is told to stop, and notes what it was answered.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value as JsonValue, json};
use testkit::http::session::{NumberedSession, until_answered};
use testkit::http::{Request, Response};
use testkit::random::Random;

use super::{Answered, SHARED, Scene, Way};

/// Longer than any run: a session that ended would be a finding.
const SESSION_TIMEOUT: Duration = Duration::from_secs(600);
const LEASE: &str = "10m";

/// See the module.
pub(super) fn work(scene: &Scene, way: Way, number: u64, seed: u64) -> Answered {
    let session = NumberedSession::open(scene.client.clone(), SESSION_TIMEOUT);
    let mut worker = Worker {
        scene,
        way,
        number,
        random: Random::new(seed),
        session,
        answered: Answered::default(),
        done: 0,
        held: Vec::new(),
    };
    while !scene.over.load(Ordering::Acquire) {
        worker.step();
    }
    // What is claimed is completed, and jobs that are left are taken.
    while worker.complete() || worker.claim() {}
    let pains = worker.session.pains;
    worker.answered.pains = pains;
    worker.answered
}

struct Worker<'scene> {
    scene: &'scene Scene,
    way: Way,
    number: u64,
    random: Random,
    session: NumberedSession,
    answered: Answered,
    /// Counts what it did, for names that nobody has used.
    done: u64,
    /// Jobs that it has claimed and not completed, with their attempts.
    held: Vec<(String, u64)>,
}

impl Worker<'_> {
    fn step(&mut self) {
        self.done += 1;
        match self.random.below(7) {
            0 | 1 => self.count(),
            2 => self.write_cell(),
            3 => self.append(),
            4 => self.put_job(),
            5 => drop(self.claim()),
            _ => drop(self.complete()),
        }
    }

    /// Sends a request in the session, one in ten of them twice, and expects that it succeeds.
    fn send(&mut self, request: Request) -> JsonValue {
        let response =
            if self.random.one_in(10) { self.session.send_twice(request) } else { self.session.send(request) };
        self.expect_success(&response)
    }

    fn expect_success(&mut self, response: &Response) -> JsonValue {
        self.scene.answers.fetch_add(1, Ordering::AcqRel);
        if !response.is_success() {
            self.answered.wrong.push(format!("client {} was refused: {}", self.number, response.text()));
            return JsonValue::Null;
        }
        response.json()
    }

    fn count(&mut self) {
        let counter = format!("counter.{}", self.random.below(SHARED));
        let request = Request::patch(format!("/v1/records/{counter}")).body(r#"{"incr":{"n":1}}"#);
        let answer = match self.way {
            Way::InSessions => self.send(request),
            Way::Plain => {
                if self.random.one_in(10) {
                    self.scene.client.abandon(request.clone());
                }
                let response = until_answered(&self.scene.client, &request, &mut self.session.pains);
                self.expect_success(&response)
            }
        };
        if let Some(value) = answer["values"]["n"].as_i64() {
            self.answered.counted.entry(counter).or_default().push(value);
        }
    }

    /// Nobody else writes this cell, so that what was acknowledged last is what is read.
    fn write_cell(&mut self) {
        let cell = format!("cell.{}", self.number);
        let value = self.answered.cells.get(&cell).copied().unwrap_or(0) + 1;
        let answer = self.send(Request::put(format!("/v1/cells/{cell}")).body(value.to_string()));
        if answer["version"] != value {
            self.answered.wrong.push(format!("{cell} was answered {answer} for write {value}"));
        }
        self.answered.cells.insert(cell.clone(), value);
        let read = Request::get(format!("/v1/cells/{cell}"));
        let response = until_answered(&self.scene.client, &read, &mut self.session.pains);
        let found = self.expect_success(&response);
        if (&found["value"], &found["version"]) != (&json!(value), &json!(value)) {
            self.answered.wrong.push(format!("{cell} was written {value} times and read {found}"));
        }
    }

    /// Not in the session: the key is enough.
    fn append(&mut self) {
        let run = format!("run.{}", self.random.below(SHARED));
        let key = format!("{}-{}", self.number, self.done);
        let event = json!({
            "eventType": "Progress",
            "idempotencyKey": key,
            "emittedAt": "2026-02-11T10:00:00Z",
            "eventData": { "by": self.number },
        });
        let request = Request::post(format!("/v1/runs/{run}/events")).body(event.to_string());
        if self.random.one_in(10) {
            self.scene.client.abandon(request.clone());
        }
        let response = until_answered(&self.scene.client, &request, &mut self.session.pains);
        let answer = self.expect_success(&response);
        if let Some(seq) = answer["runSeq"].as_u64() {
            self.answered.appended.entry(run).or_default().insert(key, seq);
        }
    }

    fn put_job(&mut self) {
        let job = format!("jobs.{}.{}-{}", self.random.below(SHARED), self.number, self.done);
        self.send(Request::put(format!("/v1/records/{job}")).body(r#"{"type":"task","fields":{"state":"pending"}}"#));
        self.answered.jobs_put.insert(job);
    }

    /// Claims a job; false if there is none.
    fn claim(&mut self) -> bool {
        let worker = format!("w{}", self.number);
        let body = json!({ "prefix": "jobs.", "n": 1, "worker": worker, "lease": LEASE });
        let answer = self.send(Request::post("/v1/claims").body(body.to_string()));
        let claimed = answer["claimed"].as_array().cloned().unwrap_or_default();
        for claimed in &claimed {
            let job = claimed["record"].as_str().expect("a record").to_owned();
            self.answered.jobs_claimed.push(job.clone());
            self.held.push((job, claimed["attempt"].as_u64().expect("an attempt")));
        }
        !claimed.is_empty()
    }

    /// Completes a job that it holds; false if it holds none.
    fn complete(&mut self) -> bool {
        let Some((job, attempt)) = self.held.pop() else {
            return false;
        };
        let body = json!({ "attempt": attempt, "fields": { "by": self.number } });
        self.send(Request::post(format!("/v1/records/{job}/complete")).body(body.to_string()));
        self.answered.jobs_completed.push(job);
        true
    }
}
