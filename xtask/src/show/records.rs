//! The topic `records`: job state that workers claim, move and finish, with leases, TTLs and messages.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: documents a program's
//! arguments; the program does.

use super::{BENCH, Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "records",
    items: &[
        Item {
            name: "model",
            shows: "records behave as a naive model does, every index row is what the records say",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "records-model --ops 1000000",
                small: "records-model --ops 40000",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "doubles",
            shows: "workers that die, stall and come back: each effect once, none lost",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "doubles --workers 64 --jobs 100000",
                small: "doubles --workers 64 --jobs 2000",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "due",
            shows: "a sweep and a claim cost what is due, not what exists",
            work: Work::Programs(&[Program { cargo: BENCH, full: "records-due", small: "records-due --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "speed",
            shows: "claims, steps and completions a second, beside the bare journal",
            work: Work::Programs(&[Program { cargo: BENCH, full: "records-speed", small: "records-speed --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "growth",
            shows: "claims, steps and appends cost the same among 10,000,000 records as among 100,000, merging included",
            work: Work::Programs(&[Program {
                cargo: BENCH,
                full: "growth",
                small: "growth --sizes 5000,15000 --small",
            }]),
            judge: Judge::Speed,
        },
    ],
};
