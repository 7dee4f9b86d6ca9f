//! Provokes every error code that a call can return, over HTTP or by the process itself; the few that no client can provoke
//! are listed with the test that does. `docs/errors/README.md` lists the codes. Requests are sent exactly as written here:
//! most of them no typed client would send.

mod access;
mod damage;
mod keyed;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value as JsonValue, json};
use statehouse::sessions::UserMachine;
use testkit::http::{Client, Request, Response};

use super::tally_machine::TallyMachine;

const LIST: &str = include_str!("../../../../docs/errors/README.md");

/// Codes provoked elsewhere, because no client can, or because it takes a server with small limits: the file that does, and
/// the text in it that proves it.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("SH-1004", "crates/statehouse/tests/transactions.rs", "two_groups_in_one_transaction_are_refused_with_what_to_do"),
    ("SH-1009", "crates/kernel/tests/catalogue_behind.rs", "a_command_that_was_checked_against_a_newer_catalogue"),
    ("SH-1020", "crates/kernel/src/kernel/tests.rs", "a_thing_is_written_by_the_shard_that_owns_its_bucket"),
    ("SH-2008", "crates/node/src/tenure.rs", "it_holds_until_its_end_and_not_at_it"),
    ("SH-1011", "crates/statehouse/tests/transactions.rs", "limits_on_writes_reads_and_age_are_named"),
    ("SH-1012", "crates/statehouse/tests/seed.rs", "the_seed_commands_give_the_seed_outputs_with_and_without"),
    ("SH-1040", LIMITS, "SH-1040"),
    ("SH-1041", LIMITS, "SH-1041"),
    ("SH-1042", LIMITS, "SH-1042"),
    ("SH-1043", LIMITS_OF_TIME, "SH-1043"),
    ("SH-1044", LIMITS, "SH-1044"),
    ("SH-1045", LIMITS, "SH-1045"),
    ("SH-1046", LIMITS, "SH-1046"),
    ("SH-1047", LIMITS_OF_MEMORY, "SH-1047"),
    ("SH-2001", "crates/statehouse/tests/library.rs", "a_full_queue_is_a_named_refusal_and_nothing_else_is_lost"),
    ("SH-2002", "crates/statehouse/tests/library.rs", "a_second_opener_is_refused_by_name_and_a_closed_handle_says_so"),
    // A defect: provoking this code means having found one. Nothing that schemathesis sends does.
    ("SH-2006", "crates/server/src/problem.rs", "SH-2006"),
    ("SH-2010", LIMITS, "SH-2010"),
    ("SH-2011", LIMITS, "SH-2011"),
    ("SH-2013", LIMITS_OF_TIME, "SH-2013"),
    ("SH-2014", LIMITS_OF_MEMORY, "SH-2014"),
    ("SH-2015", "crates/cli/tests/serving.rs", "SH-2015"),
    ("SH-2016", LIMITS_OF_TIME, "SH-2016"),
    ("SH-2021", "crates/node/src/error.rs", "a_full_disk_is_named_whatever_the_layer_below_says"),
    ("SH-2022", "crates/cli/tests/operator.rs", "SH-2022"),
    ("SH-2023", "crates/statehouse/tests/damage.rs", "SH-2023"),
    ("SH-2024", CHECKPOINTS, "SH-2024"),
    ("SH-2025", CHECKPOINTS, "SH-2025"),
    ("SH-8012", "crates/kernel/src/keyed/tests/restores.rs", "SH-8012"),
    ("SH-8013", "crates/kernel/src/keyed/tests/restores.rs", "SH-8013"),
    ("SH-8014", "crates/kernel/src/keyed/tests/checkpoints.rs", "SH-8014"),
    // Checkpoints of several partitions are begun by the library.
    ("SH-8017", "crates/statehouse/tests/checkpoints.rs", "SH-8017"),
];

const CHECKPOINTS: &str = "crates/server/tests/checkpoints.rs";
const LIMITS: &str = "crates/server/tests/limits.rs";
const LIMITS_OF_MEMORY: &str = "crates/server/tests/limits_of_memory.rs";
const LIMITS_OF_TIME: &str = "crates/server/tests/limits_of_time.rs";

/// Codes with their statuses, and the missing ones.
#[derive(Default)]
pub(super) struct Found {
    pub(super) answered: BTreeMap<String, u16>,
    pub(super) wrong: Vec<String>,
}

/// Provokes every code, with a client of a server that hosts the suite's machine, and has its checkpoints in this folder.
pub(super) fn bring_about(client: &Client, checkpoints: &Path) -> Found {
    let mut codes = Codes { client, found: Found::default() };
    codes.names_and_limits();
    codes.cells_and_records();
    codes.attempts();
    codes.runs();
    codes.sessions();
    codes.keyed(checkpoints);
    codes.principals();
    codes.senders();
    let mut found = codes.found;
    damage::bring_about(&mut found);
    let rows = LIST.lines().filter_map(|line| line.strip_prefix('|')?.trim_start_matches([' ', '[']).get(..7));
    let listed: BTreeSet<&str> = rows.filter(|code| code.starts_with("SH-")).collect();
    assert!(listed.len() > 30, "the list of codes cannot be read any more: {listed:?}");
    for code in listed {
        if found.answered.contains_key(code) {
            continue;
        }
        match ELSEWHERE.iter().find(|(elsewhere, ..)| *elsewhere == code) {
            None => found.wrong.push(format!("{code} is brought about by nothing")),
            Some((_, file, sign)) if !says(file, sign) => {
                found.wrong.push(format!("{code}: {file} does not say {sign:?} any more"));
            }
            Some(_) => {}
        }
    }
    found
}

/// Whether a file of the repository contains a text.
fn says(file: &str, sign: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(file)).is_ok_and(|text| text.contains(sign))
}

struct Codes<'client> {
    client: &'client Client,
    found: Found,
}

impl Codes<'_> {
    /// Sends a request that must be refused with a code and a status, in the common form of refusals.
    fn refused(&mut self, code: &str, status: u16, request: Request) {
        let said = format!("{} {}", request.method, request.path);
        let response = self.client.send(request).expect("an answer");
        let problem: JsonValue = serde_json::from_slice(&response.body).unwrap_or_default();
        let form = response.header("content-type") == Some("application/problem+json")
            && problem["status"] == response.status
            && ["type", "title", "detail"].iter().all(|member| problem[*member].is_string());
        if (problem["code"].as_str(), response.status, form) != (Some(code), status, true) {
            let got = format!("{} {}", response.status, response.text());
            self.found.wrong.push(format!("{code} was to be answered to {said}, not {got}"));
        }
        self.found.answered.insert(code.to_owned(), response.status);
    }

    fn sent(&self, request: Request) -> Response {
        let said = format!("{} {}", request.method, request.path);
        let response = self.client.send(request).expect("an answer");
        assert!(response.is_success(), "{said}: {}", response.text());
        response
    }

    fn names_and_limits(&mut self) {
        self.refused("SH-1001", 400, Request::put("/v1/cells/_strata/x").body("1"));
        self.refused("SH-1002", 413, Request::put(format!("/v1/cells/{}", "x".repeat(1025))).body("1"));
        self.refused("SH-1005", 404, Request::get("/v1/cells/a?space=none"));
        self.refused("SH-1006", 404, Request::get("/v1/cells/a?branch=none"));
        self.sent(Request::put("/v1/spaces/codes"));
        self.refused("SH-1007", 409, Request::put("/v1/spaces/codes"));
        self.refused("SH-1008", 400, Request::delete("/v1/branches/main"));
        self.refused("SH-1022", 404, Request::delete("/v1/guards/codes.guarded"));
        self.refused("SH-1023", 404, Request::post("/v1/letters/drop?group=codes").body(r#"{"number":1}"#));
        self.sent(Request::put("/v1/guards/codes.guarded").body("{}"));
        self.refused("SH-4003", 409, Request::put("/v1/cells/a?group=codes.guarded").body("1"));
        let declared = json!({ "name": "odd", "completed": "nowhere" });
        self.refused("SH-1018", 400, Request::put("/v1/types/odd.").body(declared.to_string()));
        self.refused("SH-1030", 400, Request::put("/v1/cells/a").body("{"));
        self.refused("SH-1031", 404, Request::get("/v1/cells/none"));
        self.refused("SH-1034", 412, Request::get("/v1/cells/none").header("statehouse-history", "0"));
        self.refused("SH-1032", 404, Request::get("/v2"));
        self.refused("SH-1032", 405, Request::delete("/v1/claims"));
        self.refused("SH-1060", 421, Request::get("/v1/cells/none").header("host", "evil.example"));
        self.refused("SH-1061", 403, Request::get("/v1/cells/none").header("origin", "https://evil.example"));
    }

    fn cells_and_records(&mut self) {
        self.sent(Request::put("/v1/cells/codes").body("1"));
        self.refused("SH-1003", 412, Request::put("/v1/cells/codes").header("if-match", "\"7\"").body("2"));
        let guarded = json!({
            "if": [{ "cell": "codes", "version": 7 }],
            "do": [{ "op": "cell.set", "name": "codes", "value": 2 }],
        });
        self.refused("SH-1003", 409, Request::post("/v1/groups/codes/txn").body(guarded.to_string()));
        self.sent(Request::put("/v1/spaces/short"));
        self.sent(Request::put("/v1/spaces/short/retention").body(r#"{"versions":1}"#));
        for value in ["1", "2", "3"] {
            self.sent(Request::put("/v1/cells/codes?space=short").body(value));
        }
        self.refused("SH-1033", 410, Request::get("/v1/cells/codes?space=short&at=1"));
        self.sent(Request::put("/v1/records/codes").body(r#"{"fields":{"text":"a"}}"#));
        self.refused("SH-1016", 400, Request::patch("/v1/records/codes").body(r#"{"incr":{"text":1}}"#));
        let late = Request::put("/v1/records/codes").header("if-match", "\"7\"").body(r#"{"fields":{}}"#);
        self.refused("SH-1017", 412, late);
        let expecting = r#"{"set":{"text":"c"},"expect":{"text":"b"}}"#;
        self.refused("SH-1019", 409, Request::patch("/v1/records/codes").body(expecting));
    }

    fn attempts(&mut self) {
        self.refused("SH-1013", 404, Request::post("/v1/claims").body(r#"{"name":"codes.none"}"#));
        self.refused("SH-1014", 404, Request::post("/v1/claims").body(r#"{"name":"codes"}"#));
        self.sent(Request::put("/v1/records/codes.job").body(r#"{"type":"task","fields":{}}"#));
        self.sent(Request::post("/v1/claims").body(r#"{"name":"codes.job","worker":"w1"}"#));
        self.refused("SH-1021", 409, Request::post("/v1/claims").body(r#"{"name":"codes.job","worker":"w2"}"#));
        self.refused("SH-4002", 409, Request::post("/v1/records/codes.job/complete").body(r#"{"attempt":7}"#));
        self.sent(Request::post("/v1/records/codes.job/complete").body(r#"{"attempt":1}"#));
        self.refused("SH-1015", 409, Request::post("/v1/claims").body(r#"{"name":"codes.job","worker":"w2"}"#));
    }

    fn runs(&mut self) {
        let append = |run: &str, kind: &str| {
            let event = json!({ "eventType": kind, "idempotencyKey": kind });
            Request::post(format!("/v1/runs/{run}/events")).body(event.to_string())
        };
        self.refused("SH-3001", 400, append("codes", ""));
        self.refused("SH-3002", 404, Request::post("/v1/runs/codes.none/close"));
        self.sent(append("codes", "first"));
        self.refused("SH-3003", 409, append("codes", "second").header("if-match", "\"7\""));
        let event = json!({ "eventType": "other", "idempotencyKey": "first" });
        let body = json!({ "do": [{ "op": "run.append", "run": "codes.txn", "event": event }] }).to_string();
        self.sent(Request::post("/v1/groups/codes/txn").body(body.clone()));
        self.refused("SH-3004", 422, Request::post("/v1/groups/codes/txn").body(body));
        self.sent(Request::post("/v1/runs/codes/close"));
        self.refused("SH-3005", 409, append("codes", "third"));
        self.sent(append("codes.gone", "first"));
        self.sent(Request::delete("/v1/runs/codes.gone"));
        self.refused("SH-3006", 410, append("codes.gone", "second"));
    }

    fn sessions(&mut self) {
        let opened = self.sent(Request::post("/v1/sessions")).json();
        let [session, secret] = ["session", "secret"].map(|member| opened[member].as_str().expect("text"));
        let request = |number: u64, lowest: u64| {
            Request::put("/v1/cells/codes.session")
                .header("statehouse-session", session)
                .header("statehouse-session-secret", secret)
                .header("statehouse-request", number)
                .header("statehouse-lowest-pending", lowest)
                .body("1")
        };
        let answers_max =
            self.sent(Request::get("/v1/limits")).json()["session_answers_max"].as_u64().expect("a limit");
        for number in 1..=answers_max {
            self.sent(request(number, 1));
        }
        self.refused("SH-5001", 429, request(answers_max + 1, 1));
        self.sent(request(answers_max + 2, answers_max + 2));
        self.refused("SH-5003", 410, request(1, 1));
        let other = request(answers_max + 2, answers_max + 2).body("2");
        self.refused("SH-5006", 422, other);
        let command = Request::post(format!("/v1/sessions/{session}/requests")).query("machine", TallyMachine::NUMBER);
        let command = command
            .header("statehouse-session-secret", secret)
            .header("statehouse-request", answers_max + 3)
            .body("no command");
        self.refused("SH-5005", 400, command);
        self.refused("SH-5007", 403, Request::delete(format!("/v1/sessions/{session}")));
        self.sent(Request::delete(format!("/v1/sessions/{session}")).query("force", true));
        self.refused("SH-5004", 410, request(answers_max + 4, answers_max + 4));
    }
}
