//! Clients that write something of every contract until they are stopped.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use client::records::fields;
use client::{Client, ClientOptions, Error, Value};
use contract::records::Ttl;
use serde_json::json;
use testkit::http::block_on;
use testkit::random::Random;
use wire::records::claims::Claim;
use wire::records::{PutRecord, TtlText};
use wire::runs::{AppendEvents, NewEvents};
use wire::values::{DurationText, JsonText};

const CLIENTS: u64 = 4;
/// Names of each kind; few, so that there are histories.
const NAMES: u64 = 40;
/// Records that expire while the test goes on.
pub(super) const SHORT_TTL: Duration = Duration::from_secs(2);

/// Longer than the test: the end of a session would be a change between two copies of one state.
const SESSION_TIMEOUT: Duration = Duration::from_secs(3_600);
const LEASE: Duration = Duration::from_secs(7_200);

/// Clients at work.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    pub(super) fn start(address: SocketAddr, seed: u64) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let options = ClientOptions::default().session_timeout(SESSION_TIMEOUT);
        let client = move |options: ClientOptions| testkit::http::Client::to(address).typed(options);
        block_on(client(options.clone()).catalogue().create_space("shop")).expect("a space");
        let clients = (0..CLIENTS).map(|number| {
            let (stop, answered) = (stop.clone(), answered.clone());
            let (client, claims) = (client(options.clone()), client(options.clone().without_sessions()));
            std::thread::spawn(move || {
                let mut random = Random::new(seed.wrapping_add(number));
                let mut client = One { client, claims, number, events: 0 };
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
    /// Without a session: in an imported store every session has ended, and what one held is given back.
    claims: Client,
    number: u64,
    events: u64,
}

/// What may be refused, because another client was faster.
fn told<A>(answered: Result<A, Error>) -> Option<A> {
    match answered {
        Ok(answer) => Some(answer),
        Err(Error::Refused(refusal)) if refusal.status < 500 => None,
        Err(error) => panic!("{error}"),
    }
}

impl One {
    fn turn(&mut self, random: &mut Random) {
        let name = random.below(NAMES);
        match random.below(12) {
            0..=2 => self.set_cell(random, name),
            3 => drop(told(block_on(self.client.cells().delete(&format!("cells/{name}"), None)))),
            4 => {
                let fields = [("n", Value::from(name.cast_signed())), ("large", "y".repeat(3_000).into())];
                self.put_plain(name, fields, Duration::from_secs(3_600));
            }
            5 => self.put_plain(name, [("n", Value::from(1))], SHORT_TTL),
            6 => drop(told(block_on(self.client.records().delete(&format!("jobs.{name}"), None)))),
            7 => self.put_job(random),
            8..=9 => self.work(random),
            _ => self.append(random, name),
        }
    }

    fn set_cell(&self, random: &mut Random, name: u64) {
        let value = match random.below(4) {
            0 => Value::json(random.next().to_string()),
            1 => Value::json(json!({ "a": [1.5, null], "by": self.number }).to_string()),
            2 => Ok(Value::Bytes(vec![0, 255, 10])),
            _ => Ok("x".repeat(usize::try_from(random.below(4_000)).expect("small")).into()),
        };
        let value = value.expect("JSON");
        let client = if random.below(3) == 0 { self.client.space("shop") } else { self.client.clone() };
        told(block_on(client.cells().set(&format!("cells/{name}"), value)));
    }

    fn put_plain<const N: usize>(&self, name: u64, of: [(&str, Value); N], ttl: Duration) {
        let put = PutRecord { ttl: Some(TtlText(Ttl::After(ttl))), ..PutRecord::of(fields(of)) };
        told(block_on(self.client.records().put(&format!("plain/{name}"), &put, None)));
    }

    fn put_job(&self, random: &mut Random) {
        let job = random.below(100_000);
        let of = [("to", Value::from(format!("user-{job}"))), ("size", Value::from(job.cast_signed()))];
        let put = PutRecord { record_type: Some("task".to_owned()), ..PutRecord::of(fields(of)) };
        told(block_on(self.client.records().put(&format!("jobs.{job}"), &put, None)));
    }

    /// Claims a job, and completes it, fails it, or holds it.
    fn work(&self, random: &mut Random) {
        let worker = Some(format!("w{}", self.number));
        let claim = Claim { n: Some(1), worker, lease: Some(DurationText(LEASE)), ..Claim::of_queue("jobs.") };
        let records = self.claims.records();
        for job in told(block_on(records.claim(&claim))).unwrap_or_default() {
            match random.below(4) {
                0..=1 => drop(told(block_on(records.complete(&job.token, [("result", "sent")])))),
                2 => drop(told(block_on(records.fail(&job.token, "no route")))),
                _ => {}
            }
        }
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
        let event = NewEvents::One(JsonText(event.to_string()));
        let flow = AppendEvents { run_type: Some("flow".to_owned()), ..AppendEvents::default() };
        told(block_on(self.client.runs().send(&format!("run-{name}"), &event, &flow, None)));
    }
}
