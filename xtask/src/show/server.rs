//! The topic `server`: every contract over HTTP, limits, the command line, backups, and the state after a crash.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: documents a program's
//! arguments; the program does.

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
            name: "new-user",
            shows: "README's commands from a clean folder, each contract by curl; start, idle memory, size",
            work: Work::Programs(&[Program { cargo: BENCH, full: "new-user", small: "new-user --small" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "shell-blocks",
            shows: "every shell block of every page for users runs, and prints what the page shows",
            work: Work::Programs(&[Program { cargo: SIM, full: "shell-blocks", small: "shell-blocks" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "commands",
            shows: "every command of the tree, without a terminal: exit codes, JSON that jq takes, golden tables",
            work: Work::Programs(&[Program { cargo: SIM, full: "commands", small: "commands --small" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "hostile",
            shows: "hostile clients of a server in 512 MiB are refused by name, and one that behaves hardly notices",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "hostile --each 200 --readers 1000 --idle 2000 --seconds 10",
                small: "hostile --each 6 --readers 10 --idle 50 --seconds 1",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "fuzz",
            shows: "anything at all into the decoders of paths and bodies: nothing panics, what is decoded comes back",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "fuzz --executions 2000000",
                small: "fuzz --executions 40000",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "backups",
            shows: "a store in use is backed up, exported, restored and imported: equal by hash",
            work: Work::Programs(&[Program { cargo: SIM, full: "backups", small: "backups --small" }]),
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
        Item {
            name: "batches",
            shows: "claims and appends over HTTP, 64 in each request, beside one in each",
            work: Work::Programs(&[Program { cargo: BENCH, full: "http-batches", small: "http-batches --small" }]),
            judge: Judge::Speed,
        },
        Item {
            name: "metrics",
            shows: "alert rules are checked and tested, a scrape of a server is linted, by promtool",
            work: Work::Programs(&[Program { cargo: SIM, full: "monitoring", small: "monitoring" }]),
            judge: Judge::Correctness,
        },
    ],
};
