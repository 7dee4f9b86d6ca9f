//! A thousand that wait for one group get it one after the other, and waiting writes nothing.
//!
//! `sim one-writer-waiters --waiters N`. Clients of a server wait for the owner of one group; each writes once
//! in it and gives it up.
//! Would see broken: a release that wakes everybody (each of those woken would propose a claim), a wake that is lost (somebody
//! waits for ever), two owners at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use client::ClientOptions;
use testkit::arguments::Arguments;
use testkit::http::{Client, Request, block_on};
use testkit::report::Report;
use testkit::server_process::{Launch, binary};
use wire::owners::OwnGroup;
use wire::values::DurationText;

use crate::directories::fast_directory;

const GROUP: &str = "agents.1";
const WAIT: Duration = Duration::from_secs(60);
/// How long each owns it, besides its write.
const HELD: Duration = Duration::from_millis(1);

/// What the clients found.
#[derive(Default)]
struct Seen {
    owners_now: AtomicUsize,
    owners_most: AtomicUsize,
    owned: AtomicU64,
    highest_attempt: AtomicU64,
    refused: AtomicU64,
}

/// Runs the test.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let waiters = arguments.number("waiters", 1_000);
    let directory = fast_directory().expect("a directory");
    let server = Launch::serve(binary(), directory.path().join("house")).start().expect("a server");
    let watched = Client::to(server.address());
    watched.call(Request::put("/v1/guards/agents.").body("{}")).expect("a guard");
    let url = format!("http://{}", server.address());
    // Without a session, everything in the journal is a claim, a write or a release.
    let options = ClientOptions::default().without_sessions();
    let connect = || options.clone().connect(&url).expect("a client");
    let first = block_on(connect().own(GROUP, &OwnGroup::by("first"))).expect("it is free");
    let applied = || {
        let status = watched.call(Request::get("/status").header("accept", "application/json")).expect("a status");
        status.json()["applied_index"].as_u64().expect("an index")
    };
    let before = applied();
    let seen = Arc::new(Seen::default());
    let began = Instant::now();
    block_on(async {
        let all: Vec<_> = (0..waiters).map(|n| tokio::spawn(wait_once(connect(), n, Arc::clone(&seen)))).collect();
        // Whoever comes too late to wait is served all the same.
        tokio::time::sleep(Duration::from_secs(3)).await;
        first.release().await.expect("it owns the group");
        for one in all {
            one.await.expect("no panic");
        }
    });
    let entries = applied() - before;
    let owned = seen.owned.load(Ordering::SeqCst);
    let most = seen.owners_most.load(Ordering::SeqCst);
    let refused = seen.refused.load(Ordering::SeqCst);
    println!(
        "one-writer-waiters: {owned} owned it in {:.1} s, {most} at once, {refused} were refused, {entries} entries",
        began.elapsed().as_secs_f64()
    );
    let mut report = Report::new("keyed");
    // A claim, a write and a release each, the release of the first, and ticks that leases ask for.
    let entries_max = 3 * waiters + 1 + waiters / 10 + 20;
    let ok = owned == waiters && most == 1 && refused == 0 && entries <= entries_max;
    let figure = format!("{owned}-owned-it-{most}-at-a-time-{entries}-entries");
    let goal =
        format!("{waiters} waiters own it one at a time, in at most {entries_max} entries: nobody is woken in vain");
    report.add("waiters", figure, &goal, ok);
    report
}

async fn wait_once(client: client::Client, n: u64, seen: Arc<Seen>) {
    let own = OwnGroup { wait: Some(DurationText(WAIT)), ..OwnGroup::by(format!("w{n}")) };
    let owned = match client.own(GROUP, &own).await {
        Ok(owned) => owned,
        Err(error) => {
            seen.refused.fetch_add(1, Ordering::SeqCst);
            println!("one-writer-waiters: w{n}: {error}");
            return;
        }
    };
    let now = seen.owners_now.fetch_add(1, Ordering::SeqCst) + 1;
    seen.owners_most.fetch_max(now, Ordering::SeqCst);
    let before = seen.highest_attempt.fetch_max(owned.attempt(), Ordering::SeqCst);
    if before < owned.attempt() {
        seen.owned.fetch_add(1, Ordering::SeqCst);
    }
    // It is the owner across two waits, in which a second one would be seen; and it writes as one.
    let written = owned.cells().set("last", i64::try_from(n).expect("it is small")).await;
    tokio::time::sleep(HELD).await;
    seen.owners_now.fetch_sub(1, Ordering::SeqCst);
    if let Err(error) = written {
        seen.refused.fetch_add(1, Ordering::SeqCst);
        println!("one-writer-waiters: w{n} owns it and cannot write: {error}");
    }
    owned.release().await.expect("it owns the group");
}
