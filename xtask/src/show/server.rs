//! The topic `server`: every contract over HTTP, limits, the command line, backups, and what a crash leaves.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: is
//! the only place that says what a program's arguments mean; the program does.

use super::{Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "server",
    items: &[
        Item {
            name: "hostile",
            shows: "hostile clients of a server in 512 MiB are refused by name, and one that behaves hardly notices",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "hostile --each 200 --readers 1000 --idle 2000 --seconds 10",
                small: "hostile --each 6 --readers 10 --idle 50 --seconds 1",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "fuzz",
            shows: "anything at all into the decoders of paths and bodies: nothing panics, what is decoded comes back",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "fuzz --executions 2000000",
                small: "fuzz --executions 40000",
            }]),
            judge: Judge::Correctness,
        },
    ],
};
