//! The topic `runs`: append-only logs of events, with projections that are never behind, readers and projectors.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: documents a program's
//! arguments; the program does.

use super::{BENCH, Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "runs",
    items: &[
        Item {
            name: "model",
            shows: "runs behave as a naive model does, every row is what the heads and events say",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "runs-model --ops 1000000",
                small: "runs-model --ops 20000",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "readers",
            shows: "tails and pollers that start and stop anywhere: each event once, in order",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "runs-readers --seconds 60",
                small: "runs-readers --seconds 3",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "delivery",
            shows: "from an append to a tail that has the event, at 5,000 appends a second",
            work: Work::Programs(&[Program { cargo: BENCH, full: "runs-delivery", small: "runs-delivery --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "cliff",
            shows: "the millionth append to a run costs what the first did, and memory is flat",
            work: Work::Programs(&[Program { cargo: BENCH, full: "runs-cliff", small: "runs-cliff --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "speed",
            shows: "appends a second, beside the bare journal, and rows for each",
            work: Work::Programs(&[Program { cargo: BENCH, full: "runs-speed", small: "runs-speed --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "projector",
            shows: "a projector that is killed over and over comes out right, a read model always is",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "projector-kills --times 100 --events 100000",
                small: "projector-kills --times 8 --events 4000",
            }]),
            judge: Judge::Correctness,
        },
    ],
};
