//! The topic `keyed`: one writer for a group, and counts that are right after a crash.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: documents a program's
//! arguments; the program does.

use super::{BENCH, Item, Judge, Program, SIM, Topic, Work};

/// Debian's RocksDB, not one that is built here.
const ROCKSDB: &str = "run --release --manifest-path bench/rocksdb/Cargo.toml --config env.ROCKSDB_INCLUDE_DIR=\"/usr/include\" \
                       --config env.ROCKSDB_LIB_DIR=\"/usr/lib/x86_64-linux-gnu\" -- keyed";

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
            name: "mixed",
            shows: "keyed state in the same transactions as cells, records and runs, in one model: the program of `inside mixed`",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "mixed-model --topic keyed --ops 1000000",
                small: "mixed-model --topic keyed --ops 5000",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "suite",
            shows: "the suite of state backends on each of them: in memory, over a store of bytes, and over a map of a house",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "keyed-suite --ops 200000",
                small: "keyed-suite --ops 4000",
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
            name: "exactly-once",
            shows: "a word count by event time while operators are killed and moved and the server is killed: every count and every file is right",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "keyed-exactly-once --events 5000000 --kills 200 --moves 50",
                small: "keyed-exactly-once --events 100000 --kills 5 --moves 3",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "zombies",
            shows: "owners of partitions that go on after they were replaced: every kind of write is refused and changes nothing",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "keyed-zombies --attempts 10000",
                small: "keyed-zombies --attempts 500",
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
            name: "rocksdb",
            shows: "the same commits beside RocksDB, its log synced for each batch of 100; bench/rocksdb/README.md says what to install",
            work: Work::Outside(ROCKSDB),
            judge: Judge::Speed,
        },
        Item {
            name: "flat",
            shows: "puts and gets among 1,000,000 keys of a partition, and among 20,000,000: the same cost, the same memory",
            work: Work::Programs(&[Program { cargo: BENCH, full: "keyed-flat", small: "keyed-flat --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "checkpoints",
            shows: "a checkpoint of 10,000,000 keys beside commits, one of what has changed, a restore and a replay",
            work: Work::Programs(&[Program {
                cargo: BENCH,
                full: "keyed-checkpoint",
                small: "keyed-checkpoint --small",
            }]),
            judge: Judge::Speed,
        },
        Item {
            name: "checkpoint-damage",
            shows: "torn and flipped checkpoints are refused by name, and the partition stays as it is",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "keyed-checkpoint-damage --times 500",
                small: "keyed-checkpoint-damage --times 50",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "checkpoint-kills",
            shows: "an operator is killed while it commits and takes checkpoints: the last committed one restores",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "keyed-checkpoint-kills --times 100",
                small: "keyed-checkpoint-kills --times 10",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "objects",
            shows: "a bucket of a real S3 server answers as a folder does, with lost answers and killed writers",
            work: Work::Programs(&[Program { cargo: SIM, full: "objects-s3", small: "objects-s3 --mib 16" }]),
            judge: Judge::Correctness,
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
        Item {
            name: "structure",
            shows: "the files outside of the folders of keyed state that name it: what a contract takes besides its own",
            work: Work::ContractFiles("keyed"),
            judge: Judge::Correctness,
        },
        Item {
            name: "examples",
            shows: "words counted exactly once by examples/word_count.rs, and by curl as docs/guides/word-count.md does it",
            work: Work::Programs(&[Program { cargo: SIM, full: "keyed-examples", small: "keyed-examples" }]),
            judge: Judge::Correctness,
        },
    ],
};
