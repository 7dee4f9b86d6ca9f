//! The topic `edge`: a request means exactly what it says or is refused by name, and nobody gets in by accident.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: is
//! the only place that says what a program's arguments mean; the program does.

use super::{BENCH, Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "edge",
    items: &[
        Item {
            name: "strictness",
            shows: "every body, parameter and header of every route: honoured, or refused by name; nothing is changed",
            work: Work::Programs(&[Program { cargo: SIM, full: "edge-strictness", small: "edge-strictness" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "fidelity",
            shows: "random JSON through every contract, export and import comes back as the same text",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "edge-fidelity --documents 1000000",
                small: "edge-fidelity --documents 5000",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "reuse",
            shows: "a number of a session is bound to its command: all pairs of operations",
            work: Work::Programs(&[Program { cargo: SIM, full: "edge-reuse", small: "edge-reuse --stride 11" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "halts",
            shows: "a panic while an entry is applied stops the store at once, names the entry and the way out",
            work: Work::Programs(&[Program { cargo: SIM, full: "edge-halts", small: "edge-halts" }]),
            judge: Judge::Correctness,
        },
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
        Item {
            name: "names",
            shows: "hostile names through all commands and both streams; suggested commands run by sh",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "edge-names --names 1000",
                small: "edge-names --names 8",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "files",
            shows: "umask 000 and a link at every path that is made: owner only, no link followed",
            work: Work::Programs(&[Program { cargo: SIM, full: "edge-files", small: "edge-files" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "speed",
            shows: "get and claim over HTTP at 64 connections, beside the server as it was before requests had types",
            work: Work::Programs(&[Program {
                cargo: BENCH,
                full: "http-earlier",
                small: "http-earlier --small --earlier self",
            }]),
            judge: Judge::Speed,
        },
    ],
};
