//! The topic `sessions`: requests that are executed exactly once, pushes, and machines that users bring.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: is
//! the only place that says what a program's arguments mean; the program does.

use super::{Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "sessions",
    items: &[
        Item {
            name: "model",
            shows: "the session machine behaves as a naive model does, on a bad line and across images",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "sessions-model --ops 1000000",
                small: "sessions-model --ops 100000",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "lossy",
            shows: "over a line that loses, doubles and delays, each request is executed once",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "lossy --clients 64 --increments 200000",
                small: "lossy --clients 64 --increments 20000",
            }]),
            judge: Judge::Correctness,
        },
    ],
};
