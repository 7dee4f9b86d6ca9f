//! The topic `inside`: what holds between the contracts, not in each of them alone.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: documents a program's
//! arguments; the program does.

use super::summed::{Does, Part};
use super::{BENCH, Item, Judge, Program, SIM, Topic, Work, breaks};

/// The waits, on locks and atomics that try out the orders of events.
const LOOM: &str = "test --profile stress --locked --config build.rustflags=\"--cfg=loom\" -p statehouse-waiting";

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "inside",
    items: &[
        Item {
            name: "mixed",
            shows: "cells, records, runs, keyed state, messages, guards, sessions, users' machines and branches in one model, in the same transactions",
            work: Work::Summed {
                parts: &[Part {
                    figure: "mixed",
                    goal: 4_000_000,
                    unit: "ops",
                    each: 250_000,
                    does: Does::Program { cargo: SIM, arguments: "mixed-model --ops 250000" },
                }],
                small: Some("mixed-model --ops 20000"),
            },
            judge: Judge::Correctness,
        },
        Item {
            name: "breaks",
            shows: "one line of the product is changed, and the mixed model fails",
            // Each builds the product again.
            work: Work::Summed { parts: breaks::BREAKS, small: None },
            judge: Judge::Correctness,
        },
        Item {
            name: "log",
            shows: "what every log of entries must do, on files and on one that delays, forgets and does not answer; eight appenders fight for a shard",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "entry-log",
                small: "entry-log --ops 20000 --rounds 2000",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "roles",
            shows: "a follower that is equal to the owner at every image, and that takes over from 100 owners that are killed",
            work: Work::Programs(&[Program { cargo: SIM, full: "take-overs", small: "take-overs --kills 15" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "shards",
            shows: "two shards over one journal, each with half of the buckets: neither touches what is the other's",
            work: Work::Programs(&[Program { cargo: SIM, full: "two-shards", small: "two-shards --seconds 3" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "syncs",
            shows: "the syncs of these two shards, which share them",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "two-shards-syncs",
                small: "two-shards-syncs --seconds 3",
            }]),
            judge: Judge::Speed,
        },
        Item {
            name: "waits",
            shows: "nobody sleeps through an answer, a change, a push or a turn, in any order of events of small models",
            work: Work::Programs(&[Program { cargo: LOOM, full: "--test loom", small: "--test loom" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "polls",
            shows: "the server's memory after 100,000 long polls that got nothing, over ten minutes",
            work: Work::Programs(&[Program { cargo: BENCH, full: "idle-polls", small: "idle-polls --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "followers",
            shows: "what 1,000 followers of quiet runs take of a core while others commit 10,000 times a second",
            work: Work::Programs(&[Program { cargo: BENCH, full: "idle-followers", small: "idle-followers --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "structure",
            shows: "import circles, files that name a contract outside of its folders, long files, and what there is one of",
            work: Work::Structure,
            judge: Judge::Correctness,
        },
        Item {
            name: "speed",
            shows: "set, get, claim and append in process at 64 callers, beside the same of the commit before all this",
            work: Work::BeforeAfter,
            judge: Judge::Speed,
        },
    ],
};
