//! The topic `server`: every contract over HTTP, limits, the command line, backups, and what a crash leaves.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: is
//! the only place that says what a program's arguments mean; the program does.

use super::{BENCH, Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "server",
    items: &[
        Item {
            name: "new-user",
            shows: "README's commands from a clean folder, each contract by curl; start, idle memory, size",
            work: Work::Programs(&[Program { cargo: BENCH, full: "new-user", small: "new-user --small" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "shell-blocks",
            shows: "every shell block of every page for users runs, and prints what the page shows",
            work: Work::Programs(&[Program { cargo: SIM, full: "shell-blocks", small: "shell-blocks" }]),
            judge: Judge::Correctness,
        },
    ],
};
