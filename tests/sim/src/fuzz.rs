//! Anything at all, into everything of the server that reads bytes from outside: `sim fuzz [--executions 2000000]`.
//!
//! Two generators: one changes what is well formed by a few bytes, one makes JSON of its own. Whatever is decoded must come back
//! as the text that it was, whatever is refused must be the client's mistake, and nothing may panic.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use server::fuzzing::{self, Decoders, Read};
use statehouse::Statehouse;
use testkit::arguments::Arguments;
use testkit::random::Random;
use testkit::report::Report;
use tokio::runtime::Runtime;
use wire::records::PutRecord;
use wire::transactions::Transaction;

use crate::edge::documents::Documents;

/// What is fed.
const TARGETS: &[&str] = &["value", "object", "duration", "place", "transaction", "route", "name"];

/// Well-formed inputs to begin with.
const JSON: &[&str] = &[
    r#"{"type":"task","fields":{"to":"ann@example.org","n":-9223372036854775808},"ttl":"30s"}"#,
    r#"{"set":{"a":{"$b64":"AP8="}},"unset":["b"],"incr":{"c":-1},"expect":{"d":null}}"#,
    r#"{"prefix":"jobs.","n":1,"worker":"w1","lease":"30s","wait":"10s"}"#,
    r#"[1.5e300,-0,0.1,"\ud83d\ude00\u0000",true,null,{"":[{}]}]"#,
    r#"{"if":[{"cell":"a","version":7},{"cell":"b","absent":true},{"record":"r","state_in":["pending"]}],"fence":{"record":"r","attempt":1},
       "do":[{"op":"cell.set","name":"a","value":1},{"op":"cell.delete","name":"b"},{"op":"record.put","name":"r","fields":{},"ttl":"keep"},
       {"op":"record.patch","name":"r","set":{"x":1},"unset":["y"]},{"op":"record.incr","name":"r","field":"n","by":-1},
       {"op":"record.complete","name":"r","attempt":1,"fields":{}},{"op":"record.delete","name":"r"}]}"#,
    r#"{"do":[{"op":"run.append","run":"x","event":{"eventType":"E","idempotencyKey":"k","emittedAt":"2026-02-11T10:00:00Z","eventData":{}},"expect":3},
       {"op":"publish","topic":"t","payload":{"$b64":"AA=="},"after":"1s"},{"op":"push","session":"s-1","payload":"p"},
       {"op":"send","group":"g","after":"5s","if":[],"do":[{"op":"cell.set","name":"a","value":null}]}]}"#,
];
const PATHS: &[&str] = &[
    "/v1/cells/a/b%2Fc?at=3&space=default&branch=main&group=g",
    "/v1/cells?prefix=a&cursor=Yg&limit=10\nstatehouse-space: default",
    "/v1/records/jobs.1?at=2026-02-11T10:00:00Z\nif-match: \"7\"",
    "/v1/records?prefix=jobs.&where=%5B%5B%22state%22%2C%22eq%22%2C%22pending%22%5D%5D&type=task&limit=5&cursor=x",
    "/v1/runs/nightly/events?after=0&limit=3\naccept: application/json\nlast-event-id: 4",
    "/v1/runs?status=RUNNING&type=etl&stalled=10m",
    "/v1/changes?prefix=&from=c-0&limit=3\nstatehouse-session: s-7\nstatehouse-session-secret: 000102030405060708090a0b0c0d0e0f\nstatehouse-request: 1\nstatehouse-lowest-pending: 1",
    "/v1/sessions?after=s-1&limit=2\nif-none-match: *\nidempotency-key: k",
    "/v1/counts?prefix=\nprefer: wait=0",
];
const DURATIONS: &[&str] = &["500ms", "30s", "10m", "2h", "7d", "18446744073709551615", ""];
/// What is put into the middle.
const TOKENS: &[&str] = &[
    "null",
    "true",
    "-1",
    "1e309",
    "18446744073709551616",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "$b64",
    "%00",
    "%",
    "%2F",
    "?",
    "&",
    "=",
    "\n",
    "\r\n",
    "\u{0}",
    "\u{feff}",
    "é",
    "../",
    "_statehouse",
    "99999999999999999999d",
    "follow=true",
];

pub(crate) fn run(arguments: &Arguments) -> Report {
    let executions = arguments.number("executions", 2_000_000);
    let seed = arguments.seed();
    println!("seed {seed}");
    // A panic is counted with what it was fed; its own words would only repeat that.
    std::panic::set_hook(Box::new(|_| {}));
    let threads = 2;
    let (decoded, panics) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (decoded, panics) = (&decoded, &panics);
            scope.spawn(move || {
                let mut fuzzer = Fuzzer::new(seed.wrapping_add(thread));
                for _ in 0..executions / threads {
                    fuzzer.execute();
                }
                for (target, [read, refused]) in &fuzzer.counts {
                    println!("thread {thread} {target}: {read} decoded, {refused} refused");
                    decoded.fetch_add(*read, Ordering::AcqRel);
                }
                panics.fetch_add(fuzzer.panics, Ordering::AcqRel);
            });
        }
    });
    let _ = std::panic::take_hook();
    let (decoded, panics) = (decoded.into_inner(), panics.into_inner());
    let mut report = Report::new("server");
    let figure = format!("{}-executions-{decoded}-decoded-{panics}-panics", executions / threads * threads);
    // A fuzzer that never gets through tests nothing but the first check.
    let ok = panics == 0 && decoded > executions / 20;
    report.add("fuzz", figure, "2,000,000 executions, nothing panics, what is decoded comes back", ok);
    if panics > 0 {
        println!("again: sim fuzz --executions {executions} --seed {seed}");
    }
    report
}

struct Fuzzer {
    random: Random,
    documents: Documents,
    runtime: Runtime,
    decoders: Decoders,
    counts: BTreeMap<&'static str, [u64; 2]>,
    panics: u64,
    _directory: tempfile::TempDir,
}

impl Fuzzer {
    fn new(seed: u64) -> Self {
        let directory = crate::directories::fast_directory().expect("a directory");
        let house = Statehouse::open(directory.path().join("house")).expect("a house");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let decoders = Decoders::new(house);
        let documents = Documents::new(seed);
        Self {
            random: Random::new(seed),
            documents,
            runtime,
            decoders,
            counts: BTreeMap::new(),
            panics: 0,
            _directory: directory,
        }
    }

    fn execute(&mut self) {
        // What goes through a whole route takes a hundred times as long as a decoder alone.
        let target = match self.random.below(64) {
            0 => "route",
            1 => "name",
            _ => self.random.pick(&TARGETS[..5]),
        };
        let input = self.input(target);
        let (runtime, decoders) = (&self.runtime, &self.decoders);
        let read = catch_unwind(AssertUnwindSafe(|| match target {
            "value" => fuzzing::value(&input),
            "object" => fuzzing::body::<PutRecord>(&input),
            "duration" => fuzzing::duration(&input),
            "place" => runtime.block_on(decoders.place(&input)),
            "transaction" => fuzzing::body::<Transaction>(&input),
            "route" => runtime.block_on(decoders.route(&input)),
            _ => runtime.block_on(decoders.name(&String::from_utf8_lossy(&input))),
        }));
        let counts = self.counts.entry(target).or_default();
        match read {
            Ok(Read::Decoded) => counts[0] += 1,
            Ok(Read::Refused) => counts[1] += 1,
            Err(panic) => {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| said.to_string()));
                self.panics += 1;
                if self.panics <= 10 {
                    println!(
                        "{target} panicked by {:?}: {}",
                        String::from_utf8_lossy(&input),
                        said.unwrap_or_default()
                    );
                }
            }
        }
    }

    fn input(&mut self, target: &str) -> Vec<u8> {
        let is_json = ["value", "object", "transaction"].contains(&target);
        if is_json && self.random.one_in(3) {
            let json = if target == "value" { self.documents.next() } else { self.documents.object() };
            return json.into_bytes();
        }
        let corpus = match target {
            "place" | "route" => PATHS,
            "duration" => DURATIONS,
            "name" => TOKENS,
            _ => JSON,
        };
        let mut bytes = self.random.pick(corpus).as_bytes().to_vec();
        for _ in 0..self.random.below(4) {
            self.mutate(&mut bytes, corpus);
        }
        bytes
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>, corpus: &[&str]) {
        let random = &mut self.random;
        let at = random.index(bytes.len() + 1);
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => {
                bytes.remove(at);
            }
            2 => bytes.insert(at, random.next().to_le_bytes()[0]),
            3 => drop(bytes.splice(at..at, random.pick(TOKENS).bytes())),
            4 => {
                let end = at + random.index(bytes.len() - at + 1);
                let part = bytes[at..end].to_vec();
                let other = random.index(bytes.len() + 1);
                drop(bytes.splice(other..other, part));
            }
            5 => {
                let other = random.pick(corpus).as_bytes();
                let begin = random.index(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[begin..]);
            }
            _ => bytes.truncate(at),
        }
    }
}
