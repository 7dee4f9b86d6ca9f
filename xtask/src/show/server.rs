//! The topic `server`: every contract over HTTP, limits, the command line, backups, and what a crash leaves.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: is
//! the only place that says what a program's arguments mean; the program does.

use super::{Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "server",
    items: &[Item {
        name: "commands",
        shows: "every command of the tree, without a terminal: exit codes, JSON that jq takes, golden tables",
        work: Work::Programs(&[Program { cargo: SIM, full: "commands", small: "commands --small" }]),
        judge: Judge::Correctness,
    }],
};
