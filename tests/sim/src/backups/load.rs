//! Clients that write something of every contract until they are stopped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value as JsonValue, json};
use testkit::http::{Client, Request};
use testkit::random::Random;

const CLIENTS: u64 = 4;
/// Names of each kind; few, so that there are histories.
const NAMES: u64 = 40;
/// Records that expire while the test goes on.
pub(super) const SHORT_TTL: Duration = Duration::from_secs(2);

/// Clients at work.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    pub(super) fn start(address: SocketAddr, seed: u64) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let made = Client::to(address).send(Request::put("/v1/spaces/shop").body("{}")).expect("an answer");
        assert!(made.is_success(), "{made:?}");
        let clients = (0..CLIENTS).map(|number| {
            let (stop, answered) = (stop.clone(), answered.clone());
            std::thread::spawn(move || {
                let mut random = Random::new(seed.wrapping_add(number));
                let mut client = One { client: Client::to(address), number, events: 0 };
                while !stop.load(Ordering::Relaxed) {
                    client.turn(&mut random);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let clients = clients.collect();
        Self { stop, answered, clients }
    }

    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Waits until as many requests are answered.
    pub(super) fn await_answers(&self, count: u64) {
        while self.answered() < count {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops the clients. Gives how many turns they had.
    pub(super) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().expect("a client");
        }
        self.answered.load(Ordering::Relaxed)
    }
}

struct One {
    client: Client,
    number: u64,
    events: u64,
}

impl One {
    fn turn(&mut self, random: &mut Random) {
        let name = random.below(NAMES);
        match random.below(12) {
            0..=2 => self.set_cell(random, name),
            3 => self.tell(Request::delete(format!("/v1/cells/cells/{name}"))),
            4 => self.put(name, json!({ "fields": { "n": name, "large": "y".repeat(3_000) }, "ttl": "1h" })),
            5 => {
                let ttl = format!("{}ms", SHORT_TTL.as_millis());
                self.put(name, json!({ "fields": { "n": 1 }, "ttl": ttl }));
            }
            6 => self.tell(Request::delete(format!("/v1/records/jobs.{name}"))),
            7 => self.put_job(random),
            8..=9 => self.work(random),
            _ => self.append(random, name),
        }
    }

    /// Sends something that may be refused, because another client was faster.
    fn tell(&self, request: Request) {
        let answer = self.client.send(request).expect("an answer");
        assert!(answer.status < 500, "{answer:?}");
    }

    fn set_cell(&self, random: &mut Random, name: u64) {
        let body = match random.below(4) {
            0 => json!(random.next()),
            1 => json!({ "a": [1.5, null], "by": self.number }),
            2 => json!({ "$b64": "AP8K" }),
            _ => json!("x".repeat(usize::try_from(random.below(4_000)).expect("small"))),
        };
        let space = if random.below(3) == 0 { "?space=shop" } else { "" };
        self.tell(Request::put(format!("/v1/cells/cells/{name}{space}")).body(body.to_string()));
    }

    fn put(&self, name: u64, body: JsonValue) {
        self.tell(Request::put(format!("/v1/records/plain/{name}")).body(body.to_string()));
    }

    fn put_job(&self, random: &mut Random) {
        let job = random.below(100_000);
        let body = json!({ "type": "task", "fields": { "to": format!("user-{job}"), "size": job } });
        self.tell(Request::put(format!("/v1/records/jobs.{job}")).body(body.to_string()));
    }

    /// Claims a job, and completes it, fails it, or holds it.
    fn work(&self, random: &mut Random) {
        let body = json!({ "prefix": "jobs.", "n": 1, "worker": format!("w{}", self.number), "lease": "2h" });
        let answer = self.client.send(Request::post("/v1/claims").body(body.to_string())).expect("an answer");
        let claimed: JsonValue = serde_json::from_slice(&answer.body).unwrap_or_default();
        let job = &claimed["claimed"][0];
        let (Some(name), attempt) = (job["record"].as_str(), &job["attempt"]) else { return };
        let (act, body) = match random.below(4) {
            0..=1 => ("complete", json!({ "attempt": attempt, "fields": { "result": "sent" } })),
            2 => ("fail", json!({ "attempt": attempt, "error": "no route" })),
            _ => return,
        };
        self.tell(Request::post(format!("/v1/records/{name}/{act}")).body(body.to_string()));
    }

    fn append(&mut self, random: &mut Random, name: u64) {
        self.events += 1;
        let types = ["RunStarted", "StepStarted", "StepCompleted", "Custom", "Custom"];
        let event = json!({
            "eventType": random.choose(&types),
            "idempotencyKey": format!("{}-{}", self.number, self.events),
            "emittedAt": "2026-01-02T03:04:05Z",
            "stepId": format!("step-{}", random.below(3)),
            "eventData": { "n": self.events, "text": "z".repeat(200) },
        });
        self.tell(Request::post(format!("/v1/runs/run-{name}/events?type=flow")).body(event.to_string()));
    }
}
