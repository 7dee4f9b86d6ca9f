//! The probes and the status page over a real socket.

mod holding;
mod running;
mod served;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holding::holdable;
use served::{Served, eventually, served};
use statehouse::records::{ClaimOptions, Put};
use statehouse::{Clock, Options, SystemClock};

/// A clock that a test can put forward.
struct PutForward {
    system: SystemClock,
    by_us: AtomicU64,
}

impl Clock for PutForward {
    fn wall_us(&self) -> u64 {
        self.system.wall_us() + self.by_us.load(Ordering::SeqCst)
    }
    fn monotonic_us(&self) -> u64 {
        self.system.monotonic_us() + self.by_us.load(Ordering::SeqCst)
    }
}

fn served_at() -> (Served, Arc<PutForward>) {
    let clock = Arc::new(PutForward { system: SystemClock::new(), by_us: AtomicU64::new(0) });
    (served(&Options::default().clock(clock.clone())), clock)
}

fn status(served: &Served) -> serde_json::Value {
    let answer = served.get("/status");
    assert_eq!(answer.status, 200);
    serde_json::from_str(&answer.body).expect("JSON")
}

#[test]
fn probes_say_yes_and_why() {
    let served = served(&Options::default());
    for (probe, what) in [("/livez", "alive"), ("/readyz", "ready"), ("/startupz", "started")] {
        let answer = served.get(probe);
        assert_eq!((answer.status, answer.body.as_str()), (200, format!("{{\"{what}\":true}}\n").as_str()));
        let verbose = served.get(&format!("{probe}?verbose"));
        assert!(verbose.head.contains("content-type: text/plain"), "{}", verbose.head);
        assert!(verbose.body.ends_with(&format!("{what}: yes\n")), "{}", verbose.body);
    }
    assert!(served.get("/readyz?verbose").body.contains("journal: ok: accepting commands\n"));
    assert!(served.get("/startupz?verbose").body.contains("replay: ok: replayed 0 entries of the journal in "));
}

#[test]
fn a_store_that_is_gone_is_neither_alive_nor_ready_and_says_so() {
    let served = served(&Options::default());
    served.house.close().expect("close");
    for probe in ["/livez", "/readyz"] {
        assert_eq!(served.get(probe).status, 503);
        let verbose = served.get(&format!("{probe}?verbose"));
        assert!(verbose.status == 503 && verbose.body.contains("store: FAILED: closed\n"), "{}", verbose.body);
    }
    let samples = served.scrape();
    assert_eq!(samples["statehouse_ready"], 0.0, "what needs no view is still there");
    assert!(!samples.contains_key("statehouse_commit_index"));
    assert_eq!(status(&served)["ready"], false);
}

#[test]
fn a_journal_at_its_bound_is_not_ready_until_the_store_has_caught_up() {
    let mut options = Options::default();
    options.journal.files_bytes_max = 1 << 10;
    let (options, holder) = holdable(options);
    let served = served(&options);
    let value = format!("\"{}\"", "x".repeat(2_000));
    let is_ready = || served.get("/readyz").status == 200;
    let names_it = || status(&served)["problems"].to_string().contains("\"journal_full\"");
    assert!(is_ready() && !names_it());
    // While nothing is applied, the store cannot catch up.
    let held = holder.hold(&served.house);
    std::thread::scope(|scope| {
        let written = scope.spawn(|| served.send("PUT", "/v1/cells/a", &[], &value).status);
        eventually("a failing probe", || !is_ready());
        let verbose = served.get("/readyz?verbose");
        let said = "journal: FAILED: its files are at their limit";
        assert!(verbose.status == 503 && verbose.body.contains(said), "{}", verbose.body);
        assert!(names_it() && status(&served)["status"] == "degraded", "{}", status(&served));
        assert_eq!(served.get("/livez").status, 200, "a restart cures nothing here");
        let refused = served.send("PUT", "/v1/cells/b", &[], "1");
        assert!(refused.status == 429 && refused.body.contains("files_bytes_max"), "{}", refused.body);
        drop(held);
        assert_eq!(written.join().expect("a client"), 201);
    });
    served.house.flush().expect("flushed");
    eventually("it is ready again", || is_ready() && !names_it());
}

#[test]
fn the_status_is_ok_when_nothing_is_wrong_and_holds_what_the_manual_lists() {
    let served = served(&Options::default());
    served.house.cells().set("a", 1).expect("set");
    let status = status(&served);
    assert_eq!((&status["status"], &status["ready"]), (&"ok".into(), &true.into()));
    assert_eq!((&status["commit"], &status["problems"]), (&1.into(), &serde_json::json!([])));
    let manual = include_str!("../../../docs/operations.md");
    let mut listed: Vec<&str> = manual
        .lines()
        .skip_while(|line| !line.starts_with("| field of `/status`"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.split('`').nth(1))
        .collect();
    let mut fields: Vec<&str> = status.as_object().expect("an object").keys().map(String::as_str).collect();
    listed.sort_unstable();
    fields.sort_unstable();
    assert_eq!(listed, fields);
}

#[test]
fn an_owned_partition_in_which_nothing_moves_is_a_problem_after_an_hour() {
    let (served, clock) = served_at();
    let owned = served.done("POST", "/v1/keyed/words/3/acquire", r#"{"worker":"w1","lease":"3h"}"#);
    let owned: serde_json::Value = serde_json::from_str(&owned.body).expect("JSON");
    let token = [("statehouse-owner", owned["token"].as_str().expect("a token"))];
    let commit = |number: u64| {
        let body = format!(r#"{{"number":{number},"positions":{{"in":{number}}}}}"#);
        assert_eq!(served.send("POST", "/v1/keyed/words/3/commits", &token, &body).status, 200);
    };
    commit(1);
    clock.by_us.fetch_add(3_590_000_000, Ordering::SeqCst);
    let silent = || {
        let found = status(&served)["problems"].clone();
        found.as_array()?.iter().find(|problem| problem["problem"] == "partition_silent").cloned()
    };
    assert_eq!(silent(), None);
    clock.by_us.fetch_add(20_000_000, Ordering::SeqCst);
    let problem = silent().expect("a problem");
    assert_eq!(
        (&problem["object"], &problem["threshold"], &problem["command"]["shell"]),
        (&"partition words/3".into(), &3_600.0.into(), &"statehouse why operator --partition=3 words".into())
    );
    let text = problem["text"].as_str().expect("text");
    assert!(text.starts_with("it is owned, and nothing of it has changed for 60 minutes"), "{text}");
    commit(2);
    assert_eq!(silent(), None);
}

#[test]
fn a_queue_that_nobody_claims_is_noted_within_ten_seconds_and_a_problem_after_five_minutes() {
    let (served, clock) = served_at();
    let records = served.house.records();
    records.put("jobs.mail.7", [("n", 1)], Put::typed("task")).expect("put");
    assert_eq!(status(&served)["status"], "ok");
    clock.by_us.fetch_add(10_500_000, Ordering::SeqCst);
    let found = status(&served);
    // A queue without a worker is how everybody begins: it is said, and is no problem yet.
    let note = &found["notes"][0];
    assert_eq!((&found["status"], &found["problems"]), (&"ok".into(), &serde_json::json!([])));
    assert_eq!(
        (&note["problem"], &note["severity"], &note["object"], &note["threshold"]),
        (&"nobody_claims".into(), &"note".into(), &"queue jobs.mail.".into(), &10.0.into())
    );
    let command = serde_json::json!({
        "argv": ["statehouse", "why", "job", "jobs.mail.7"],
        "shell": "statehouse why job jobs.mail.7",
    });
    assert_eq!(note["command"], command);
    let text = note["text"].as_str().expect("text");
    assert!(
        text.starts_with("jobs.mail.7 has been ready for 10 s and nobody claims it; no task has been claimed"),
        "{text}"
    );
    let screen = served.send("GET", "/status", &[("accept", "text/plain")], "");
    assert!(screen.head.contains("content-type: text/plain"));
    assert!(screen.body.contains("OK  ready  no problems, 1 note\n"), "{}", screen.body);
    assert!(screen.body.contains("   $ statehouse why job jobs.mail.7\n"), "{}", screen.body);
    assert!(screen.body.lines().count() < 24, "one screen");
    assert!(screen.body.lines().all(|line| line.chars().count() <= 80), "{}", screen.body);
    clock.by_us.fetch_add(300_000_000, Ordering::SeqCst);
    let found = status(&served);
    let problem = &found["problems"][0];
    assert_eq!(
        (&found["status"], &problem["problem"], &problem["threshold"]),
        (&"degraded".into(), &"nobody_claims".into(), &300.0.into())
    );

    // Somebody claims others of the type: that is a queue, not a queue without workers.
    records.put("jobs.print.1", [("n", 1)], Put::typed("task")).expect("put");
    records.claim("jobs.print.1", &ClaimOptions::worker("w").lease(Duration::from_secs(3_600))).expect("claim");
    assert_eq!(status(&served)["problems"][0]["problem"], "ready_long");
    records.put("jobs.print.2", [("n", 1)], Put::typed("task")).expect("put");
    records.claim("jobs.print.2", &ClaimOptions::worker("w")).expect("claim");
    assert_eq!(status(&served)["problems"][0]["problem"], "ready_long");
    records.claim("jobs.mail.7", &ClaimOptions::worker("w")).expect("claim");
    assert_eq!(status(&served)["status"], "ok");
}

#[test]
fn hostile_names_reach_no_terminal_and_the_command_names_the_place() {
    let (served, clock) = served_at();
    served.house.create_space("s p").expect("a space");
    let group = served.house.space("s p").group("-g");
    group.records().put("jobs.$(touch pwned)\x1b[2J\n\u{202e}", [("n", 1)], Put::typed("task")).expect("put");
    clock.by_us.fetch_add(10_500_000, Ordering::SeqCst);
    let note = &status(&served)["notes"][0];
    let argv = ["statehouse", "why", "job", "--space=s p", "--group=-g", "jobs.$(touch pwned)\x1b[2J\n\u{202e}"];
    assert_eq!(note["command"]["argv"], serde_json::json!(argv));
    let screen = served.send("GET", "/status", &[("accept", "text/plain")], "").body;
    let control = |letter: char| letter != '\n' && contract::terminal::is_control(letter);
    assert!(!screen.contains(control), "{screen:?}");
    assert!(screen.contains(r"jobs.$(touch pwned)\u{1b}[2J\n\u{202e} has been ready"), "{screen}");
}
