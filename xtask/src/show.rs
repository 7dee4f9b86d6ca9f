//! Show: run a topic's checks at full size and end with one line per figure.
//!
//! Touches: the programs named in the tables below, as child processes; `docs/measured.md`, with `--write`; `docs/ledger.tsv`. Keeps: a
//! program that fails or prints nothing counts as short; the figures are printed last. Never: measures anything itself,
//! except how long a clean clone takes to pass, how often the test suite does, what became of earlier speeds, and the
//! tree of sources.
//!
//! A new topic is a file in `show/` with a table, and a line in `TOPICS`.

mod before;
mod breaks;
mod cells;
mod clean_clone;
mod clones;
mod edge;
mod figures;
mod inside;
mod keyed;
mod ledger;
mod measured;
mod pressure;
mod records;
mod runs;
mod secure;
mod server;
mod sessions;
mod structure;
mod suite;
mod summed;
mod unpermitted;

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use crate::process::cargo;
use figures::{Figure, Report};
pub(crate) use measured::PAGE as MEASURED_PAGE;
use summed::{Does, Part};

/// Every topic, in the order in which they were built.
const TOPICS: &[Topic] = &[
    cells::TOPIC,
    records::TOPIC,
    sessions::TOPIC,
    runs::TOPIC,
    server::TOPIC,
    edge::TOPIC,
    pressure::TOPIC,
    inside::TOPIC,
    keyed::TOPIC,
    secure::TOPIC,
];

/// The deterministic and crash tests: optimised, with debug assertions.
const SIM: &str = "run --profile stress -p sim --";
/// The measurements.
const BENCH: &str = "run --release -p bench --";

/// A part of the product and the checks that show it.
struct Topic {
    name: &'static str,
    items: &'static [Item],
}

/// One check. Its number is its place in the table, from 1.
struct Item {
    name: &'static str,
    shows: &'static str,
    work: Work,
    judge: Judge,
}

enum Work {
    /// Clone the repository and run its CI script there.
    CleanClone,
    /// Do some of these, which take too long for one run; or `sim` with these arguments, if any, where time is short.
    Summed { parts: &'static [Part], small: Option<&'static str> },
    /// Measure speeds of an earlier commit and of this one, in turns.
    BeforeAfter,
    /// Measure the tree of sources.
    Structure,
    /// Count the files outside of a contract's folders that name it, beside the goal; tidy keeps them from becoming more.
    ContractFiles(&'static str),
    /// Compile a route that has no permission.
    Unpermitted,
    /// Run a program outside of the workspace, at full size alone: it needs what nobody else has to install.
    Outside(&'static str),
    /// Run these programs one after another.
    Programs(&'static [Program]),
}

/// How the figure of an item is judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judge {
    /// Right or wrong, at any size.
    Correctness,
    /// A speed: at a small size, on a machine with other work, it means nothing.
    Speed,
}

/// One program, at its two sizes.
struct Program {
    cargo: &'static str,
    full: &'static str,
    small: &'static str,
}

impl Program {
    fn line(&self, size: Size) -> String {
        let arguments = match size {
            Size::Full => self.full,
            Size::Small => self.small,
        };
        format!("{} {arguments}", self.cargo)
    }
}

/// The amount of work the programs do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    Full,
    Small,
}

/// Prints the topics and their items.
pub(crate) fn list() {
    for topic in TOPICS {
        println!("{}", topic.name);
        for (index, item) in topic.items.iter().enumerate() {
            println!("  {} {:<8} {}", index + 1, item.name, item.shows);
            for line in command_lines(&item.work) {
                println!("             {line}");
            }
        }
    }
    println!(
        "\nrun all of a topic: cargo xtask show TOPIC; one: cargo xtask show TOPIC ITEM, ITEM.PART; with --write the figures go to {}",
        measured::PAGE
    );
}

fn command_lines(work: &Work) -> Vec<String> {
    match work {
        Work::CleanClone => vec!["bash .ci/run, in a fresh clone of HEAD".to_string()],
        Work::Summed { parts, .. } => parts.iter().map(Part::command_line).collect(),
        Work::BeforeAfter => vec![before::DESCRIPTION.to_string()],
        Work::Structure => vec![structure::DESCRIPTION.to_string()],
        Work::Unpermitted => vec![unpermitted::DESCRIPTION.to_string()],
        Work::ContractFiles(contract) => vec![format!("cargo xtask tidy --contract {contract}")],
        Work::Outside(line) => vec![format!("cargo {line}")],
        Work::Programs(programs) => {
            programs.iter().map(|program| format!("cargo {}", program.line(Size::Full))).collect()
        }
    }
}

/// Where the figures go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figures {
    /// To standard output.
    Print,
    /// Into `docs/measured.md` too.
    Write,
}

/// Runs a topic, or one item of it by name or number, at full size; of an item that is summed over runs, one figure if it is
/// named.
pub(crate) fn run(root: &Path, topic: &str, item: Option<&str>, figures: Figures) -> Result<bool, String> {
    let (topic, items) = select(topic, item)?;
    let mut reports = Vec::new();
    for chosen in items {
        let mut report = Report::default();
        match chosen.part {
            Some((parts, part)) => summed::run(root, topic.name, parts, Some(part), &mut report)?,
            None => run_item(root, topic, chosen.item, Size::Full, &mut report)?,
        }
        reports.push((chosen.item.name, report));
    }
    println!();
    reports.iter().for_each(|(_, report)| print!("{report}"));
    if figures == Figures::Write {
        write(root, topic, &reports)?;
    }
    Ok(reports.iter().all(|(_, report)| report.is_free_of(|figure| figure.short)))
}

/// Writes the items whose programs printed all of their figures; a figure that is short is written as it is.
fn write(root: &Path, topic: &Topic, reports: &[(&str, Report)]) -> Result<(), String> {
    let (whole, broken): (Vec<_>, Vec<_>) =
        reports.iter().partition(|(_, report)| report.figures().iter().all(|figure| figure.measured));
    let parts: Vec<_> = whole
        .iter()
        .map(|(item, report)| measured::Part {
            item,
            lines: report.figures().iter().map(|figure| figure.text.as_str()).collect(),
        })
        .collect();
    let order: Vec<_> = topic.items.iter().map(|item| item.name).collect();
    measured::write(root, topic.name, &order, &parts)?;
    for (item, _) in broken {
        println!("show: {} keeps its old figures of {} {item}, whose program broke down", measured::PAGE, topic.name);
    }
    Ok(())
}

/// Runs every program of every topic at its small size; a short speed passes. Returns the items that failed, by name.
pub(crate) fn run_small(root: &Path) -> Result<Vec<String>, String> {
    let (mut failed, mut reports, mut took) = (Vec::new(), Vec::new(), Vec::new());
    for topic in TOPICS {
        let began = Instant::now();
        for item in topic.items {
            let mut report = Report::default();
            run_item(root, topic, item, Size::Small, &mut report)?;
            if !report.is_free_of(|figure| counts_when_small(item, figure)) {
                failed.push(format!("{} {}", topic.name, item.name));
                let short = report.figures().iter().filter(|figure| figure.short);
                failed.extend(short.map(|figure| format!("  {}", figure.text)));
                failed.extend(report.last_lines().map(|line| format!("  | {line}")));
            }
            reports.push(report);
        }
        took.push((topic.name, began.elapsed().as_secs()));
    }
    println!();
    reports.iter().for_each(|report| print!("{report}"));
    took.iter().for_each(|(topic, seconds)| println!("{topic} took {seconds} s, with what had to be built"));
    Ok(failed)
}

/// Whether a figure of a small run fails it. A program that broke down does, whatever it measures.
fn counts_when_small(item: &Item, figure: &Figure) -> bool {
    figure.short && (item.judge == Judge::Correctness || !figure.measured)
}

/// What to run of a topic.
struct Chosen {
    item: &'static Item,
    /// One of the parts that the item is summed over.
    part: Option<(&'static [Part], &'static Part)>,
}

impl Chosen {
    fn whole(item: &'static Item) -> Self {
        Self { item, part: None }
    }
}

fn select(topic: &str, item: Option<&str>) -> Result<(&'static Topic, Vec<Chosen>), String> {
    let found = TOPICS.iter().find(|candidate| candidate.name == topic);
    let found = found.ok_or_else(|| format!("no topic `{topic}`; `cargo xtask show` lists them"))?;
    let Some(wanted) = item else {
        return Ok((found, found.items.iter().map(Chosen::whole).collect()));
    };
    let number = wanted.parse::<usize>().ok();
    let mut items = found.items.iter().enumerate();
    let whole = items.find(|(index, each)| each.name == wanted || number == Some(index + 1));
    let mut parts = found.items.iter().filter_map(|item| match item.work {
        Work::Summed { parts, .. } => {
            let part = parts.iter().find(|part| part.figure == wanted)?;
            Some(Chosen { item, part: Some((parts, part)) })
        }
        _ => None,
    });
    let chosen = whole.map(|(_, item)| Chosen::whole(item)).or_else(|| parts.next());
    let chosen = chosen.ok_or_else(|| format!("topic `{topic}` has no item `{wanted}`"))?;
    Ok((found, vec![chosen]))
}

fn run_item(root: &Path, topic: &Topic, item: &Item, size: Size, report: &mut Report) -> Result<(), String> {
    let lines: Vec<String> = match (&item.work, size) {
        (Work::CleanClone, Size::Full) => {
            report.push(clean_clone::run(root, topic.name, item.name)?);
            return Ok(());
        }
        // The small run is part of the CI script, which the clean clone runs.
        (Work::CleanClone, Size::Small) => return Ok(()),
        (Work::BeforeAfter, Size::Full) => return before::run(root, topic.name, item.name, report),
        // It would build the product twice.
        (Work::BeforeAfter, Size::Small) => return Ok(()),
        (Work::Outside(line), Size::Full) => vec![(*line).to_owned()],
        (Work::Outside(_), Size::Small) => return Ok(()),
        (Work::Structure, _) => return structure::run(root, topic.name, item.name, report),
        (Work::Unpermitted, _) => return unpermitted::run(root, topic.name, item.name, report),
        (Work::ContractFiles(_), Size::Small) => return Ok(()),
        (Work::ContractFiles(contract), Size::Full) => {
            return structure::run_contract(root, topic.name, item.name, contract, report);
        }
        (Work::Summed { parts, .. }, Size::Full) => return summed::run(root, topic.name, parts, None, report),
        (Work::Summed { small, .. }, Size::Small) => {
            small.iter().map(|arguments| format!("{SIM} {arguments}")).collect()
        }
        (Work::Programs(programs), _) => programs.iter().map(|program| program.line(size)).collect(),
    };
    for line in lines {
        println!("\nshow: cargo {line}");
        io::stdout().flush().map_err(|error| format!("standard output: {error}"))?;
        report.collect(topic.name, item.name, &mut cargo(root, &line), &mut io::stdout())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_found_by_name_and_by_number() {
        for (wanted, name) in [("model", "model"), ("2", "model"), ("7", "flat")] {
            let (_, items) = select("cells", Some(wanted)).unwrap();
            assert_eq!(items.iter().map(|chosen| chosen.item.name).collect::<Vec<_>>(), [name]);
        }
        for (wanted, part) in [("fill", None), ("rot", None), ("fill.xfs-2000", Some("fill.xfs-2000"))] {
            let (_, items) = select("pressure", Some(wanted)).unwrap();
            assert_eq!(items.iter().map(|chosen| chosen.part.map(|(_, part)| part.figure)).collect::<Vec<_>>(), [part]);
        }
        assert_eq!(select("cells", None).unwrap().1.len(), 7);
        for (topic, item) in
            [("cell", None), ("cells", Some("0")), ("cells", Some("mod")), ("pressure", Some("fill.x"))]
        {
            assert!(select(topic, item).is_err(), "{topic} {item:?}");
        }
    }

    #[test]
    fn no_name_can_be_taken_for_another_or_for_a_number() {
        for topic in TOPICS {
            for (index, item) in topic.items.iter().enumerate() {
                assert!(item.name.parse::<usize>().is_err());
                let others = topic.items.iter().enumerate().filter(|(other, _)| *other != index);
                for (_, other) in others {
                    assert!(!other.name.starts_with(item.name), "{} {}", other.name, item.name);
                }
            }
        }
    }

    #[test]
    fn a_small_speed_may_be_short_but_not_missing() {
        let item = |judge| Item { name: "x", shows: "", work: Work::CleanClone, judge };
        let figure = |short, measured| Figure { text: String::new(), short, measured };
        assert!(!counts_when_small(&item(Judge::Speed), &figure(true, true)));
        assert!(counts_when_small(&item(Judge::Speed), &figure(true, false)));
        assert!(counts_when_small(&item(Judge::Correctness), &figure(true, true)));
        assert!(!counts_when_small(&item(Judge::Correctness), &figure(false, true)));
    }
}
