//! The topic `sessions`: requests executed exactly once, pushes, and users' machines.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: documents a program's
//! arguments; the program does.

use super::{BENCH, Item, Judge, Program, SIM, Topic, Work};

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
        Item {
            name: "dead-workers",
            shows: "sessions that die give their jobs back in time, while the others go on",
            work: Work::Programs(&[Program { cargo: SIM, full: "dead-workers", small: "dead-workers --small" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "memory",
            shows: "what many live sessions take in memory and of a core, and what is freed",
            work: Work::Programs(&[Program {
                cargo: BENCH,
                full: "sessions-memory",
                small: "sessions-memory --small",
            }]),
            judge: Judge::Speed,
        },
        Item {
            name: "pushes",
            shows: "no push is lost or doubled over kills and reconnects",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "push-kills --times 100",
                small: "push-kills --times 10",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "waits",
            shows: "a new job is soon with one of many workers that wait, and waiting writes nothing",
            work: Work::Programs(&[Program { cargo: BENCH, full: "claim-wait", small: "claim-wait --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "cost",
            shows: "what a command costs in a session, beside the same without",
            work: Work::Programs(&[Program { cargo: BENCH, full: "sessions-cost", small: "sessions-cost --small" }]),
            judge: Judge::Speed,
        },
    ],
};
