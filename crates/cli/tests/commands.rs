//! Every command, run as a program would: stdin closed, nothing in the environment, against a server and against a directory. Exit codes,
//! JSON that a parser takes, and tables that are equal to the golden ones.
//!
//! `GOLDEN=write cargo test -p statehouse-cli --test commands` writes the golden tables anew.

use std::path::Path;

use testkit::commands::{self, Format, Store};

const STATEHOUSE: &str = env!("CARGO_BIN_EXE_statehouse");

fn run(store: Store, format: Format) -> commands::Found {
    let found = commands::run(Path::new(STATEHOUSE), store, format);
    assert!(found.complaints.is_empty(), "{}", found.complaints.join("\n"));
    let exits: Vec<_> = found.exits.iter().copied().collect();
    assert_eq!(exits, [0, 1, 2, 3, 4, 5, 6, 7]);
    found
}

fn tables_are_golden(store: Store) {
    let found = run(store, Format::Table);
    // A directory has fewer commands than a server, so the server's are written.
    if store == Store::Server && std::env::var_os("GOLDEN").is_some_and(|how| how == "write") {
        std::fs::write(commands::GOLDEN_PATH, &found.transcript).expect("written");
        return;
    }
    if let (_, Some(difference)) = commands::compare(store, &found.transcript) {
        panic!("{difference}");
    }
}

#[test]
fn every_command_is_run_and_has_two_examples() {
    let (leaves, complaints) = commands::walk(Path::new(STATEHOUSE));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(leaves > 50, "only {leaves} commands were found");
}

#[test]
fn a_flag_that_says_where_is_honoured_or_refused_by_name() {
    let (pairs, complaints) = commands::check_flags(Path::new(STATEHOUSE));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(pairs > 150, "only {pairs} pairs were tried");
}

#[test]
fn json_of_a_server() {
    run(Store::Server, Format::Json);
}

#[test]
fn json_of_a_directory() {
    run(Store::Directory, Format::Json);
}

#[test]
fn lines_of_a_server() {
    run(Store::Server, Format::Jsonl);
    run(Store::Server, Format::Raw);
}

#[test]
fn tables_of_a_server() {
    tables_are_golden(Store::Server);
}

#[test]
fn tables_of_a_directory() {
    tables_are_golden(Store::Directory);
}
