//! Every command of `statehouse`, against a server process and against a directory, in every format.

use testkit::arguments::Arguments;
use testkit::commands::{self, Format, Store};
use testkit::report::Report;
use testkit::server_process::binary;

/// `sim commands [--small]`: small runs JSON and tables against a server only.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let statehouse = binary();
    let (leaves, mut complaints) = commands::walk(&statehouse);
    let stores = if arguments.flag("small") { &[Store::Server][..] } else { &[Store::Server, Store::Directory] };
    let formats = match arguments.flag("small") {
        true => &[Format::Json, Format::Table][..],
        false => &[Format::Json, Format::Table, Format::Jsonl, Format::Raw],
    };
    let (mut ran, mut golden, mut tables, mut exits) = (0, 0, 0, std::collections::BTreeSet::new());
    for store in stores {
        for format in formats {
            let mut found = commands::run(&statehouse, *store, *format);
            println!("{store:?} {format:?}: {} commands, {} complaints", found.commands, found.complaints.len());
            ran += found.commands;
            complaints.append(&mut found.complaints);
            exits.append(&mut found.exits);
            if *format == Format::Table {
                let (equal, difference) = commands::compare(*store, &found.transcript);
                golden += equal;
                tables += found.transcript.matches("$ statehouse ").count();
                complaints.extend(difference);
            }
        }
    }
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    let exits = exits.iter().map(ToString::to_string).collect::<Vec<_>>().join("-");
    let mut report = Report::new("server");
    let none = complaints.is_empty();
    report.add("commands.tree", format!("{leaves}-commands"), "each in the script, each help with two examples", none);
    let figure = format!("{ran}-run-{}-complaints", complaints.len());
    report.add(
        "commands.run",
        figure,
        "stdin closed, no environment, `jq -e .` takes all JSON, exit codes as said",
        none,
    );
    report.add(
        "commands.tables",
        format!("{golden}-of-{tables}-equal"),
        "equal to the golden ones",
        golden == tables && tables > 0,
    );
    report.add(
        "commands.exits",
        &exits,
        "0-1-2-3-4-5-6-7, each seen where it was expected",
        exits == "0-1-2-3-4-5-6-7",
    );
    report
}
