//! The topic `pressure`: the store when it is large, stopped, killed in the middle of something, or used in unusual ways.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: documents a program's
//! arguments; the program does.

use super::{BENCH, Does, Item, Judge, Part, Program, SIM, Topic, Work};

/// Ten times full and empty on one kind of disk.
const fn fill(figure: &'static str, each: u64, arguments: &'static str) -> Part {
    Part { figure, goal: 10, unit: "cycles", each, does: Does::Program { cargo: SIM, arguments } }
}

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "pressure",
    items: &[
        Item {
            name: "queues",
            shows: "claims and puts cost the same among 10, 10,000 and 1,000,000 queues; so does replaying them",
            work: Work::Programs(&[Program { cargo: BENCH, full: "queues", small: "queues --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "order",
            shows: "the records model with 10,000 queues: every claim takes what is first, compared with all records",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "records-model --ops 100000 --queues 10000",
                small: "records-model --ops 2500 --queues 400",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "fill",
            shows: "a full disk is freed by deleting, again and again, amid kills; a disk that others fill stops no read",
            work: Work::Summed {
                parts: &[
                    // A disk as fast as memory: what is written meets flushes and merges at their worst moments.
                    Part { goal: 100, ..fill("fill.tmpfs-320", 10, "pressure-fill --disks tmpfs:320x10") },
                    fill("fill.ext4-320", 10, "pressure-fill --disks ext4:320x10"),
                    fill("fill.xfs-320", 10, "pressure-fill --disks xfs:320x10"),
                    fill("fill.ext4-1000", 5, "pressure-fill --disks ext4:1000x5"),
                    fill("fill.xfs-1000", 5, "pressure-fill --disks xfs:1000x5"),
                    fill("fill.ext4-2000", 5, "pressure-fill --disks ext4:2000x5"),
                    fill("fill.xfs-2000", 5, "pressure-fill --disks xfs:2000x5"),
                    fill("fill.ext4-6000", 2, "pressure-fill --disks ext4:6000x2"),
                    fill("fill.xfs-6000", 2, "pressure-fill --disks xfs:6000x2"),
                ],
                small: Some("pressure-fill --disks tmpfs:320x2"),
            },
            judge: Judge::Correctness,
        },
        Item {
            name: "faults",
            shows: "calls to the disk that fail lose nothing and leave nothing behind; only a failed sync stops the store",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "pressure-faults --points 500",
                small: "pressure-faults --points 40",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "transfers",
            shows: "restores and imports that were killed are refused by name, not served as an empty store",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "pressure-transfers --kills 200 --faults 200",
                small: "pressure-transfers --kills 12 --faults 20",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "growth",
            shows: "10,000,000 records cost no more than 100,000: CPU, merging, stalls, memory, reads",
            work: Work::Programs(&[Program {
                cargo: BENCH,
                full: "growth --pressure",
                small: "growth --pressure --sizes 2000,4000 --small",
            }]),
            judge: Judge::Speed,
        },
        Item {
            name: "claims",
            shows: "claims from one thread among 1,000,000 records, 256 under way",
            work: Work::Programs(&[Program { cargo: BENCH, full: "claims", small: "claims --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "rot",
            shows: "a flipped bit in the store costs no more than its block: found, named, never a wrong answer, the rest salvaged",
            work: Work::Summed {
                parts: &[Part {
                    figure: "rot",
                    goal: 1_000,
                    unit: "flips",
                    each: 100,
                    does: Does::Program { cargo: SIM, arguments: "pressure-rot --flips 100 --things 300000" },
                }],
                small: Some("pressure-rot --flips 24 --things 2000"),
            },
            judge: Judge::Correctness,
        },
        Item {
            name: "stopped",
            shows: "a server that was stopped ends no session and no lease whose heartbeat was in time",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "pressure-stopped --stops 10",
                small: "pressure-stopped --stops 1",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "suite",
            shows: "no test depends on the machine's speed: the whole suite, again and again, beside three busy loops",
            // CI runs all tests itself.
            work: Work::Summed {
                parts: &[Part { figure: "suite", goal: 20, unit: "rounds", each: 1, does: Does::Suite }],
                small: None,
            },
            judge: Judge::Correctness,
        },
    ],
};
