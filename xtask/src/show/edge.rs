//! The topic `edge`: what a request says is what is done and stored, or it is refused by name.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: is
//! the only place that says what a program's arguments mean; the program does.

use super::{Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "edge",
    items: &[Item {
        name: "fidelity",
        shows: "random JSON through every contract, export and import comes back as the same text",
        work: Work::Programs(&[Program {
            cargo: SIM,
            full: "edge-fidelity --documents 1000000",
            small: "edge-fidelity --documents 5000",
        }]),
        judge: Judge::Correctness,
    }],
};
