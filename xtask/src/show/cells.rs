//! The topic `cells`: durable versioned cells and transactions over them, in a library.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: documents a program's
//! arguments; the program does.

use super::{BENCH, Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "cells",
    items: &[
        Item {
            name: "verify",
            shows: "cargo xtask verify and .ci/run pass from a clean clone",
            work: Work::CleanClone,
            judge: Judge::Correctness,
        },
        Item {
            name: "model",
            shows: "the kernel answers as a naive model does, and replays to the same bytes",
            work: Work::Programs(&[Program { cargo: SIM, full: "model --ops 1000000", small: "model --ops 60000" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "power",
            shows: "nothing acknowledged is lost or torn after power loss or bit rot",
            work: Work::Programs(&[
                Program { cargo: SIM, full: "power-journal --images 20000", small: "power-journal --images 1000" },
                Program { cargo: SIM, full: "power-store --images 500", small: "power-store --images 20" },
                Program { cargo: SIM, full: "power-syncs", small: "power-syncs --small" },
                Program { cargo: SIM, full: "flips --flips 5000", small: "flips --flips 500" },
            ]),
            judge: Judge::Correctness,
        },
        Item {
            name: "kill",
            shows: "nothing acknowledged is lost when the process is killed",
            work: Work::Programs(&[Program { cargo: SIM, full: "kill --times 500", small: "kill --times 20" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "serial",
            shows: "concurrent transactions are serialisable",
            work: Work::Programs(&[Program { cargo: SIM, full: "serial --seconds 30", small: "serial --seconds 5" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "speed",
            shows: "commands a second and latency, beside the bare parts",
            work: Work::Programs(&[Program {
                cargo: BENCH,
                full: "speed --cells 1000000",
                small: "speed --cells 20000 --small",
            }]),
            judge: Judge::Speed,
        },
        Item {
            name: "flat",
            shows: "the cost of a write and the disk it takes stay flat over many writes",
            work: Work::Programs(&[Program {
                cargo: BENCH,
                full: "flat --sets 10000000 --cells 100000",
                small: "flat --sets 200000 --cells 5000 --small",
            }]),
            judge: Judge::Speed,
        },
    ],
};
