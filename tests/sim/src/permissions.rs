//! Who may do what: every route, every operation and every condition of a transaction, sent by everyone who must not, and by who may.
//!
//! - [`needed`]: what a request needs, said anew.
//! - [`scene`]: the server, and those who send.
//! - [`contracts`], [`keyed`], [`transactions`], [`store`]: the requests.
//!
//! Keeps: the routes come from the table of the wire, and the operations and conditions from its lists: one that has no request here
//! is a wrong cell. Never: asks the server what a request needs.

mod contracts;
mod keyed;
mod needed;
mod scene;
mod store;
mod transactions;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use server::canary::{self, Hole};
use testkit::arguments::Arguments;
use testkit::report::Report;
use wire::contracts::{Guard, Operation};
use wire::routes::{ALL, Route};

use self::needed::{ALL_NAMINGS, Case, Naming, Target};
use self::scene::{Over, Scene, Sent};
use self::transactions::ALL_WITHIN;

/// A hole is found within this time.
const HOLE_TIME_MAX: Duration = Duration::from_secs(30);

/// What was tried, and what came out otherwise than it must.
#[derive(Default)]
struct Cells {
    tried: usize,
    wrong: Vec<String>,
}

impl Cells {
    fn compare(&mut self, what: &dyn Fn() -> String, found: &str, expected: &str) {
        self.tried += 1;
        if found != expected {
            self.wrong.push(format!("{}: {found}, not {expected}", what()));
        }
    }
}

/// How much of the matrix is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Whole,
    /// Each route, operation and condition in the first way in which it is named, and sent plainly.
    EachOnce,
}

/// `sim permissions [--small]`: everyone sends everything. A small run has all the time that it needs, and sends less over TLS.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let mut report = Report::new("secure");
    let is_small = arguments.flag("small");
    let over_tls = if is_small { Extent::EachOnce } else { Extent::Whole };
    let both = [("permissions.http", Over::Plain, Extent::Whole), ("permissions.https", Over::Tls, over_tls)];
    let wrong = both.map(|(item, over, extent)| {
        let started = Instant::now();
        let cells = try_all(over, extent);
        cells.wrong.iter().take(200).for_each(|wrong| println!("permissions: {wrong}"));
        println!("permissions: {over:?}, {extent:?}, {} cells in {:?}", cells.tried, started.elapsed());
        let figure = format!("{}-cells-{}-wrong", cells.tried, cells.wrong.len());
        let goal = "every route, operation and condition, for 8 identities: 0 wrong";
        report.add(item, figure, goal, cells.wrong.is_empty() && cells.tried > 0);
        cells.wrong.len()
    });
    let within = if is_small { Duration::MAX } else { HOLE_TIME_MAX };
    find_holes(&mut report, wrong[0], within);
    report
}

/// Opens one hole after another in the permissions of the server: each must make cells wrong.
fn find_holes(report: &mut Report, wrong_anyway: usize, within: Duration) {
    let mut found = 0;
    let mut longest = Duration::ZERO;
    for hole in Hole::ALL {
        let started = Instant::now();
        canary::open(Some(hole));
        let cells = try_all(Over::Plain, Extent::Whole);
        canary::open(None);
        let wrong = cells.wrong.len().saturating_sub(wrong_anyway);
        println!("permissions: {hole:?} makes {wrong} cells wrong, in {:?}", started.elapsed());
        cells.wrong.iter().take(2).for_each(|wrong| println!("permissions:   {wrong}"));
        found += usize::from(wrong > 0);
        longest = longest.max(started.elapsed());
    }
    let figure = format!("{found}-of-{}-found-within-{:.0}s", Hole::ALL.len(), longest.as_secs_f64());
    let goal = "holes that other servers had are each found within 30 s";
    report.add("permissions.holes", figure, goal, found == Hole::ALL.len() && longest <= within);
}

fn try_all(over: Over, extent: Extent) -> Cells {
    let mut scene = Scene::start(over);
    let mut names = BTreeSet::new();
    for naming in ALL_NAMINGS {
        for place in 0.. {
            // Each request is about things that were never named before.
            let Some(first) = case_at(&mut scene, naming, place) else { break };
            let is_new = names.insert(first.name.clone());
            if extent == Extent::EachOnce && !is_new {
                continue;
            }
            let route = ALL.iter().find(|route| route.name == first.name).copied();
            scene.try_case(first, Sent::Plainly, &format!("{naming:?}"));
            for sent in further(route, extent) {
                let again = case_at(&mut scene, naming, place).expect("the same case");
                scene.try_case(again, sent, &format!("{naming:?}"));
            }
        }
    }
    is_complete(&mut scene, &names);
    scene.cells
}

/// How a route is sent besides plainly.
fn further(route: Option<Route>, extent: Extent) -> Vec<Sent> {
    let Some(route) = route.filter(|_| extent == Extent::Whole) else { return Vec::new() };
    let mut sent = Vec::new();
    if route.can_be_forced() && !route.is_forced_always() {
        sent.push(Sent::ByForce);
    }
    if route.numbered {
        sent.push(Sent::InSession);
    }
    sent
}

/// One of all cases, about a thing of its own.
fn case_at(scene: &mut Scene, naming: Naming, place: usize) -> Option<Case> {
    let target = Target::new(naming, scene.next());
    let doomed = scene.another_session();
    let (history, session) = (&scene.root.history, scene.session());
    let mut cases = contracts::cells(&target);
    cases.extend(contracts::records(&target, history));
    cases.extend(contracts::runs(&target));
    cases.extend(contracts::changes(&target));
    cases.extend(keyed::maps(&target));
    cases.extend(keyed::operators(&target));
    cases.extend(store::letters(&target));
    cases.extend(store::sessions(&target, session, &doomed));
    match naming {
        Naming::Alone => {
            cases.extend(contracts::groups(&target, history));
            cases.extend(store::catalogue(&target));
            cases.extend(store::principals(&target));
            cases.extend(store::server(history));
        }
        Naming::InGroup | Naming::ByGroup => {
            for within in ALL_WITHIN {
                cases.extend(transactions::operations(&target, within, &session[0]));
                cases.extend(transactions::guards(&target, within));
            }
        }
    }
    (place < cases.len()).then(|| cases.swap_remove(place))
}

/// Every route, every operation and every condition has a case.
fn is_complete(scene: &mut Scene, names: &BTreeSet<String>) {
    let committed = |prefix: &str| -> BTreeSet<String> {
        let alone = names.iter().filter_map(|name| name.strip_suffix(" Alone"));
        alone.filter_map(|name| name.strip_prefix(prefix)).map(str::to_owned).collect()
    };
    let operations: BTreeSet<String> = Operation::names().iter().map(|name| (*name).to_owned()).collect();
    let guards: BTreeSet<String> = Guard::things().into_iter().map(str::to_owned).collect();
    let routes: BTreeSet<String> =
        ALL.iter().map(|route| route.name.to_owned()).filter(|name| name != "transactions.commit").collect();
    let found_operations: BTreeSet<String> = committed("").intersection(&operations).cloned().collect();
    let found_routes: BTreeSet<String> = names.intersection(&routes).cloned().collect();
    for (found, expected) in [(found_operations, operations), (committed("if "), guards), (found_routes, routes)] {
        scene.cells.compare(&|| "requests for every name".to_owned(), &format!("{found:?}"), &format!("{expected:?}"));
    }
}
