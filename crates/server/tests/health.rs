//! The probes and the status page over a real socket.

mod running;
mod served;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use served::{Served, served};
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
    assert!(served.get("/readyz?verbose").body.contains("journal: ok: it takes commands\n"));
    assert!(served.get("/startupz?verbose").body.contains("replay: ok: 0 entries of the journal were replayed in "));
}

#[test]
fn a_store_that_is_gone_is_neither_alive_nor_ready_and_says_so() {
    let served = served(&Options::default());
    served.house.close().expect("close");
    for probe in ["/livez", "/readyz"] {
        assert_eq!(served.get(probe).status, 503);
        let verbose = served.get(&format!("{probe}?verbose"));
        assert!(verbose.status == 503 && verbose.body.contains("store: FAILED: it is closed\n"), "{}", verbose.body);
    }
    let samples = served.scrape();
    assert_eq!(samples["statehouse_ready"], 0.0, "what needs no view is still there");
    assert!(!samples.contains_key("statehouse_commit_index"));
    assert_eq!(status(&served)["ready"], false);
}

#[test]
fn a_journal_at_its_bound_is_not_ready_until_the_store_has_caught_up() {
    let mut options = Options::default();
    options.journal = options.journal.files_bytes_max(1 << 10);
    let served = served(&options);
    assert_eq!(served.get("/livez").status, 200, "a restart cures nothing here");
    let value = format!("\"{}\"", "x".repeat(2_000));
    served.send("PUT", "/v1/cells/a", &[], &value);
    let verbose = served.get("/readyz?verbose");
    assert_eq!(verbose.status, 503, "{}", verbose.body);
    assert!(verbose.body.contains("journal: FAILED: its files are at their bound"), "{}", verbose.body);
    let status = status(&served);
    assert_eq!((&status["status"], &status["problems"][0]["problem"]), (&"degraded".into(), &"journal_full".into()));
    assert_eq!(served.get("/livez").status, 200);
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
fn a_queue_that_nobody_claims_is_named_within_ten_seconds() {
    let (served, clock) = served_at();
    let records = served.house.records();
    records.put("jobs.mail.7", [("n", 1)], Put::typed("task")).expect("put");
    assert_eq!(status(&served)["status"], "ok");
    clock.by_us.fetch_add(10_500_000, Ordering::SeqCst);
    let found = status(&served);
    let problem = &found["problems"][0];
    assert_eq!(
        (&found["status"], &problem["problem"], &problem["object"], &problem["threshold"]),
        (&"degraded".into(), &"nobody_claims".into(), &"queue jobs.mail.".into(), &10.0.into())
    );
    assert_eq!(problem["command"], "statehouse why job jobs.mail.7");
    let text = problem["text"].as_str().expect("text");
    assert!(
        text.starts_with("jobs.mail.7 has been ready for 10 s and nobody claims it; no task was claimed"),
        "{text}"
    );
    let screen = served.send("GET", "/status", &[("accept", "text/plain")], "");
    assert!(screen.head.contains("content-type: text/plain"));
    assert!(screen.body.contains("DEGRADED  ready  1 problem\n"), "{}", screen.body);
    assert!(screen.body.contains("look:  statehouse why job jobs.mail.7\n"), "{}", screen.body);
    assert!(screen.body.lines().count() < 24, "one screen");

    // Somebody claims others of the type: that is a queue, not a queue without workers.
    records.put("jobs.print.1", [("n", 1)], Put::typed("task")).expect("put");
    records.claim("jobs.print.1", &ClaimOptions::worker("w").lease(Duration::from_secs(3_600))).expect("claim");
    assert_eq!(status(&served)["status"], "ok");
    clock.by_us.fetch_add(300_000_000, Ordering::SeqCst);
    records.put("jobs.print.2", [("n", 1)], Put::typed("task")).expect("put");
    records.claim("jobs.print.2", &ClaimOptions::worker("w")).expect("claim");
    assert_eq!(status(&served)["problems"][0]["problem"], "ready_long");
    records.claim("jobs.mail.7", &ClaimOptions::worker("w")).expect("claim");
    assert_eq!(status(&served)["status"], "ok");
}
