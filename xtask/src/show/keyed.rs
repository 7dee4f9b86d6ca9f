//! The topic `keyed`: one writer for a group, and counts that are right after a crash.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: documents a program's
//! arguments; the program does.

use super::{BENCH, Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "keyed",
    items: &[
        Item {
            name: "one-writer",
            shows: "every operation in a guarded group, with no, an old, the right and a foreign fence, open names and force, over HTTP and in the library",
            work: Work::Programs(&[Program { cargo: SIM, full: "one-writer", small: "one-writer" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "model",
            shows: "maps behave as a naive model does, with owners that change and some that go on; every row is what the maps say",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "keyed-model --ops 1000000",
                small: "keyed-model --ops 20000",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "paused",
            shows: "the owner of a run is stopped in the middle of a step, replaced, and wakes up: one unbroken chain",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "one-writer-paused --times 1000",
                small: "one-writer-paused --times 20",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "speed",
            shows: "commits of 100 puts at 1, 4 and 16 operators, beside the bare journal and the bare map with the same bytes",
            work: Work::Programs(&[Program { cargo: BENCH, full: "keyed-speed", small: "keyed-speed --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "flat",
            shows: "puts and gets among 1,000,000 keys of a partition, and among 20,000,000: the same cost, the same memory",
            work: Work::Programs(&[Program { cargo: BENCH, full: "keyed-flat", small: "keyed-flat --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "waiters",
            shows: "a thousand that wait for one group own it one after the other, and waiting writes nothing",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "one-writer-waiters --waiters 1000",
                small: "one-writer-waiters --waiters 100",
            }]),
            judge: Judge::Correctness,
        },
    ],
};
