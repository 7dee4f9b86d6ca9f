//! Claims from one thread among many records, 256 under way: how many a second, and which threads pay for one.

use testkit::arguments::Arguments;
use testkit::report::Report;

use super::house::House;
use super::phase::{CommandFigures, Phase};
use super::population::Names;
use super::subject::Subject;

/// Claims under way.
const IN_FLIGHT: u64 = 256;

/// Claims a second that one thread should get.
const PER_SECOND_GOAL: f64 = 90_000.0;

/// Measures claims of records that are named in the order of arrival, then of records with random names.
pub fn run(arguments: &Arguments) -> Report {
    let mut report = Report::new("pressure");
    let all = [Names::Ordered, Names::Scattered];
    let wanted = match arguments.text("names") {
        None => all.to_vec(),
        Some(wanted) => all.into_iter().filter(|names| word(*names) == wanted).collect(),
    };
    assert!(!wanted.is_empty(), "--names takes ordered or scattered");
    wanted.into_iter().for_each(|names| measure(arguments, names, &mut report));
    report
}

fn word(names: Names) -> &'static str {
    match names {
        Names::Ordered => "ordered",
        Names::Scattered => "scattered",
    }
}

/// `--records` are loaded, then claimed in rounds and given back in between; the figure is the median round.
fn measure(arguments: &Arguments, names: Names, report: &mut Report) {
    let small = arguments.flag("small");
    let records = arguments.number("records", if small { 10_000 } else { 1_000_000 });
    let rounds = arguments.number("rounds", if small { 3 } else { 9 });
    let count = arguments.number("claims", records / 10);
    let directory = tempfile::tempdir().expect("a directory");
    let mut house = House::create(&directory.path().join("house"), names, arguments);
    house.load(0..records);
    house.settle();
    println!("ready to be profiled: {records} records with {} names are loaded", word(names));
    let mut per_second = Vec::new();
    for _ in 0..rounds {
        let mut phase = Phase::begin(&mut house);
        phase.round("claim", |latency_ns| {
            house.claim_many(count, IN_FLIGHT, latency_ns);
            count
        });
        let figures = phase.settle(&mut house);
        figures.print(records);
        per_second.extend(figures.commands.iter().map(CommandFigures::per_second));
        house.release(&mut crate::latency::histogram());
        house.settle();
    }
    per_second.sort_by(f64::total_cmp);
    let median = per_second[per_second.len() / 2];
    let goal = format!(">={PER_SECOND_GOAL:.0}/s among {records} records, {IN_FLIGHT} under way from one thread");
    report.add(&format!("claims.{}", word(names)), format!("{median:.0}/s"), &goal, median >= PER_SECOND_GOAL);
}
