//! `sim handshakes`: clients that break a handshake, in one or more ways for each cause that a server names. The metric counts each
//! under its cause and under no other, and the log names the cause and the client.
//!
//! - [`cases`]: what the clients do. [`odd_clients`]: clients of an odd kind.
//!
//! Keeps: the causes are those that the server itself lists in `/metrics`, so one without a case is a failure; `docs/tls.md` has all
//! of them, and no other.

mod cases;
mod odd_clients;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use testkit::arguments::Arguments;
use testkit::certificates::Authority;
use testkit::random::Random;
use testkit::report::Report;

use self::cases::{CASES, Case, Scene};
use super::server::{TlsServer, eventually};

/// The page for users.
const PAGE: &str = include_str!("../../../../docs/tls.md");

/// How a row of the page about a cause begins.
const ROW: &str = "| `";

/// What no client can bring about, with the reason.
const NOT_BY_A_CLIENT: &[(&str, &str)] =
    &[("other", "errors of the library that it has for itself, such as no random bytes")];

/// Kinds that there must be.
const KINDS_MIN: usize = 12;

/// As long as a handshake may take here.
pub(super) const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(1);

/// Handshakes at a time.
pub(super) const HANDSHAKES_MAX: usize = 4;

/// `sim handshakes [--rounds 1] [--seed N]`: how often each of them is broken, in an order that differs each time.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let (rounds, mut random) = (arguments.number("rounds", 1), Random::new(arguments.seed()));
    let authority = Authority::new("handshakes");
    let (times, places) = (format!("{}ms", HANDSHAKE_TIME_MAX.as_millis()), HANDSHAKES_MAX.to_string());
    let settings = [
        ("STATEHOUSE_LIMITS__HANDSHAKE_TIME_MAX", times.as_str()),
        ("STATEHOUSE_LIMITS__HANDSHAKES_MAX", places.as_str()),
    ];
    let server = TlsServer::start(&authority, &authority.server("server"), &authority.file(), &settings);
    let scene = Scene::new(server.address(), authority);
    let mut wrong = uncovered(&server);
    let (mut broken, mut logged) = (0, BTreeSet::new());
    for _ in 0..rounds {
        let mut order: Vec<&Case> = CASES.iter().collect();
        (1..order.len()).rev().for_each(|last| order.swap(last, random.index(last + 1)));
        for case in order {
            broken += 1;
            wrong.extend(complaints(&server, &scene, case, &mut logged));
        }
    }
    wrong.iter().take(50).for_each(|wrong| println!("handshakes: {wrong}"));
    let kinds: BTreeSet<_> = CASES.iter().map(|case| case.cause).collect();
    let mut report = Report::new("secure");
    let figure = format!("{broken}-broken-of-{}-causes-{}-wrong", kinds.len(), wrong.len());
    let goal = "every cause of the server has a case, and each is named in the metric and the log: 0 wrong, at least 12 causes";
    report.add("handshakes", figure, goal, wrong.is_empty() && kinds.len() >= KINDS_MIN && rounds > 0);
    report
}

/// The causes that the server lists and no case brings about, and those that the page does not have.
fn uncovered(server: &TlsServer) -> Vec<String> {
    let listed: BTreeSet<String> = server.failed_handshakes().into_keys().collect();
    let brought = CASES.iter().map(|case| case.cause).chain(NOT_BY_A_CLIENT.iter().map(|(cause, _)| *cause));
    let brought: BTreeSet<String> = brought.map(str::to_owned).collect();
    let (_, section) = PAGE.split_once("## Handshakes that fail").expect("a section about them");
    let rows = section.lines().filter(|line| line.starts_with(ROW));
    let named = rows.flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2));
    let named: BTreeSet<String> = named.map(str::to_owned).collect();
    let differ = |what: &str, found: &BTreeSet<String>| {
        let wrong: Vec<_> = listed.symmetric_difference(found).cloned().collect();
        (!wrong.is_empty()).then(|| format!("{what}: {}", wrong.join(", ")))
    };
    [differ("without a case, or not of the server", &brought), differ("not in docs/tls.md, or only there", &named)]
        .into_iter()
        .flatten()
        .collect()
}

/// Breaks a handshake, and says what is not as it must be.
fn complaints(server: &TlsServer, scene: &Scene, case: &Case, logged: &mut BTreeSet<&str>) -> Vec<String> {
    let before = server.failed_handshakes();
    let log_before = server.process.stderr().len();
    let broken = (case.breaks)(scene);
    let mut expected: BTreeMap<&str, f64> = BTreeMap::from([(case.cause, 1.0)]);
    broken.besides.iter().for_each(|(cause, count)| *expected.entry(cause).or_default() += count);
    let more = || -> BTreeMap<String, f64> {
        let now = server.failed_handshakes().into_iter();
        now.map(|(cause, count)| (cause.clone(), count - before[&cause])).filter(|(_, more)| *more != 0.0).collect()
    };
    let is_expected =
        |more: &BTreeMap<String, f64>| more.iter().map(|(cause, more)| (cause.as_str(), *more)).eq(expected.clone());
    let mut wrong = Vec::new();
    let name = format!("{}, {}", case.cause, case.name);
    if eventually(|| is_expected(&more()).then_some(())).is_none() {
        wrong.push(format!("{name}: counted as {:?}, not as {expected:?}", more()));
    }
    // The log has one line for a cause in ten seconds.
    let is_first = logged.insert(case.cause);
    logged.extend(broken.besides.iter().map(|(cause, _)| *cause));
    if is_first {
        let peer = broken.from.to_string();
        let says = |line: &serde_json::Value| {
            line["message"].as_str().is_some_and(|message| message.starts_with("tls handshake failed: "))
                && line["cause"] == case.cause
                && line["peer"] == peer.as_str()
        };
        if eventually(|| server.log_after(log_before).iter().any(says).then_some(())).is_none() {
            wrong.push(format!("{name}: the log does not say that it was {peer}: {:?}", server.log_after(log_before)));
        }
    }
    wrong.extend(broken.wrong.into_iter().map(|wrong| format!("{name}: {wrong}")));
    wrong
}
