//! The topic `edge`: what a client, a name, a file or a web page can do to a server and a command, and cannot.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: is
//! the only place that says what a program's arguments mean; the program does.

use super::{Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "edge",
    items: &[
        Item {
            name: "names",
            shows: "hostile names through all commands and both streams; suggested commands run by sh",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "edge-names --names 1000",
                small: "edge-names --names 8",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "files",
            shows: "umask 000 and a link at every path that is made: owner only, no link followed",
            work: Work::Programs(&[Program { cargo: SIM, full: "edge-files", small: "edge-files" }]),
            judge: Judge::Correctness,
        },
    ],
};
