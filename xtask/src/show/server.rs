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
            name: "suites",
            shows: "the contracts' suites pass over HTTP, against server processes",
            work: Work::Programs(&[Program { cargo: SIM, full: "http-suites", small: "http-suites" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "surface",
            shows: "every route does what it is for, and every code is brought about",
            work: Work::Programs(&[Program { cargo: SIM, full: "http-surface", small: "http-surface" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "schemathesis",
            shows: "made-up requests to every operation of /openapi.json: no server error",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "http-schemathesis --examples 200",
                small: "http-schemathesis --examples 5",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "kills",
            shows: "the server is killed under load from clients that retry in sessions: counts are exact",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "http-kills --times 100 --clients 32",
                small: "http-kills --times 8 --clients 32",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "speed",
            shows: "get, claim and append over HTTP, beside a bare axum echo of the same bytes",
            work: Work::Programs(&[Program { cargo: BENCH, full: "http-speed", small: "http-speed --small" }]),
            judge: Judge::Speed,
        },
    ],
};
