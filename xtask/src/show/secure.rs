//! The topic `secure`: only who may, and what is recorded of it.
//!
//! Touches: nothing; a table. Keeps: every full-size check has its small size beside it. Never: documents a program's
//! arguments; the program does.

use super::{BENCH, Item, Judge, Program, SIM, Topic, Work};

/// The table.
pub(super) const TOPIC: Topic = Topic {
    name: "secure",
    items: &[
        Item {
            name: "permissions",
            shows: "every route, operation and condition, alone and combined, sent by everyone who must not and by who may, plain and over TLS; seven holes that other servers had are found",
            work: Work::Programs(&[Program { cargo: SIM, full: "permissions", small: "permissions --small" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "routes",
            shows: "a route without a permission fails to compile",
            work: Work::Unpermitted,
            judge: Judge::Correctness,
        },
        Item {
            name: "revoked",
            shows: "a revoked token is refused at once, and what its principal had going is cut",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "revocations --times 300",
                small: "revocations --times 10",
            }]),
            judge: Judge::Speed,
        },
        Item {
            name: "rotations",
            shows: "certificates that are replaced under load, in every way, fail no request and are soon in use; pairs that cannot be used are refused",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "rotations --times 100 --rate 2000",
                small: "rotations --times 7 --rate 500",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "handshakes",
            shows: "broken handshakes of every kind each name their cause, in the metric and in the log",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "handshakes --rounds 20",
                small: "handshakes --rounds 1",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "scanners",
            shows: "sslscan and testssl.sh find nothing of severity LOW or above",
            work: Work::Programs(&[Program { cargo: SIM, full: "scanners", small: "scanners --short" }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "audit",
            shows: "administrative acts on a server that is killed are recorded; what is changed in the record is found",
            work: Work::Programs(&[Program {
                cargo: SIM,
                full: "audited --acts 1000 --kills 50",
                small: "audited --acts 60 --kills 4",
            }]),
            judge: Judge::Correctness,
        },
        Item {
            name: "package",
            shows: "the Debian package in a clean Debian: the first write over TLS, the rights of the service, a purge",
            work: Work::Outside("run --quiet --package xtask -- package try-deb"),
            judge: Judge::Correctness,
        },
        Item {
            name: "cost",
            shows: "what tokens and permissions, and TLS, cost a get and a claim",
            work: Work::Programs(&[Program { cargo: BENCH, full: "http-protected", small: "http-protected --small" }]),
            judge: Judge::Speed,
        },
    ],
};
