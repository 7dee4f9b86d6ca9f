//! The topic `edge`: a request means exactly what it says or is refused by name, and nobody gets in by accident.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: is
//! the only place that says what a program's arguments mean; the program does.

use super::{Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "edge",
    items: &[Item {
        name: "strictness",
        shows: "every body, parameter and header of every route: honoured, or refused by name; nothing is changed",
        work: Work::Programs(&[Program { cargo: SIM, full: "edge-strictness", small: "edge-strictness" }]),
        judge: Judge::Correctness,
    }],
};
