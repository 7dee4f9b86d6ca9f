//! The guard on a run: it holds, or names the run and its last sequence.

use crate::script::check;

#[test]
fn a_guard_on_a_run_needs_exactly_that_sequence() {
    check(
        "in g if run r at 0: append r k1 X; in g if run r at 0: append r k2 X; in g if run r at 1: append r k2 X; \
         in g if run r at 1: set c 1; in g if run r at 3: set c 1; in g if run r at 2: set c 1; in g if run q at 1: set c 2; \
         events g/r; get g/c",
        "r 1; run \"r\" is at sequence 1, not at 0 [SH-3003]; r 2; \
         run \"r\" is at sequence 2, not at 1 [SH-3003]; run \"r\" is at sequence 2, not at 3 [SH-3003]; \
         c v1; run \"q\" is at sequence 0, not at 1 [SH-3003]; 1 X, 2 X of 2; 1 v1",
    );
}

#[test]
fn a_guard_sees_a_closed_run_and_a_fork_but_no_deleted_run() {
    let archived = "run \"r\" was deleted at sequence 2; its name is never reused [SH-3006]";
    check(
        "append g/r k1 X; append g/r k2 X; in g: close r; in g if run r at 2: set c 1; in g: fork s from r at 1; \
         in g if run s at 1: set c 2; in g: delete run r; in g if run r at 2: set c 3; in g if run r at 0: set c 3; \
         in g if run r at 9: set c 3; in g if run s at 1: set c 3",
        &format!("r 1; r 2; r at 2; c v1; s at 1; c v2; r at 2; {archived}; {archived}; {archived}; c v3"),
    );
}

#[test]
fn guards_on_two_runs_must_both_hold() {
    check(
        "append g/a k X; append g/b k X; in g if run a at 1, run b at 0: append a k2 X; \
         in g if run a at 0, run b at 1: append a k2 X; in g if run a at 1, run b at 1: append a k2 X",
        "a 1; b 1; run \"b\" is at sequence 1, not at 0 [SH-3003]; \
         run \"a\" is at sequence 1, not at 0 [SH-3003]; a 2",
    );
}

#[test]
fn a_guard_on_a_run_needs_its_branch() {
    check(
        "branch draft; on draft; in g if run r at 0: append r k X; drop draft; in g if run r at 1: set c 1",
        "#2; r 1; there is no branch \"#2\" in this space [SH-1006]",
    );
}
