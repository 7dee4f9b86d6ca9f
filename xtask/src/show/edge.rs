//! The topic `edge`: who is let in, and what a stranger can make a server do.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: is
//! the only place that says what a program's arguments mean; the program does.

use super::{Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "edge",
    items: &[
        Item {
            name: "gate",
            shows: "other hosts and pages of other origins get nothing: a matrix of requests, and pages in a real Chromium",
            work: Work::Programs(&[Program { cargo: SIM, full: "edge-gate", small: "edge-gate --cases 2000" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "listings",
            shows: "1,024 unread listings of 4 MiB in 512 MiB: never killed, and a client that behaves hardly notices",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "edge-listings --listings 1024 --rounds 3 --seconds 10",
                small: "edge-listings --small --listings 64 --rounds 1 --seconds 3",
            }]),
            judge: Judge::Correctness,
        },
    ],
};
