//! Closing and deleting runs.

use crate::script::check;

#[test]
fn a_closed_run_takes_no_new_events() {
    check(
        "append r k1 X; close r; append r k2 X; append r k2 X expect 1; append r k2 X expect 9; events r",
        "r 1; r at 1; run \"r\" is closed at sequence 1 [SH-3005]; run \"r\" is closed at sequence 1 [SH-3005]; \
         run \"r\" is closed at sequence 1 [SH-3005]; 1 X of 1",
    );
}

#[test]
fn a_closed_run_still_answers_for_the_events_that_it_has() {
    check(
        "append r k1 X id e; close r; append r k1 X; append r k1 Y; append r k9 X id e; append r k1 Y strict; append r k1 X once",
        "r 1; r at 1; r 1 known; r 1 differs; r 1 known; \
         this idempotency key or id belongs to event 1 of run \"r\" [SH-3004]; \
         this idempotency key or id belongs to event 1 of run \"r\" [SH-3004]",
    );
}

#[test]
fn a_close_needs_a_run_and_may_be_repeated() {
    check(
        "close r; append r k RunStarted; close r; close r; snapshot r; runs; count runs; delete run r; close r",
        "there is no run \"r\" [SH-3002]; r 1; r at 1; r at 1; RUNNING at 1 from 0s; r RUNNING 1; RUNNING 1; r at 1; \
         run \"r\" was deleted at sequence 1; its name is never reused [SH-3006]",
    );
}

#[test]
fn a_deleted_run_answers_everything_with_its_last_sequence() {
    let archived = "run \"r\" was deleted at sequence 2; its name is never reused [SH-3006]";
    check(
        "delete run r; append r k1 X; append r k2 X; delete run r; append r k1 X; append r k3 X; append r k3 X expect 0; close r; \
         delete run r; events r; snapshot r; event r 1; before r 9s",
        &format!(
            "there is no run \"r\" [SH-3002]; r 1; r 2; r at 2; {archived}; {archived}; {archived}; {archived}; {archived}; \
             {archived}; {archived}; {archived}; {archived}"
        ),
    );
}

#[test]
fn a_closed_run_can_be_deleted() {
    check(
        "append r k X; close r; delete run r; append r k X; tick; rows of runs",
        "r 1; r at 1; r at 1; run \"r\" was deleted at sequence 1; its name is never reused [SH-3006]; 1 heads",
    );
}

#[test]
fn a_deleted_run_is_neither_listed_nor_counted() {
    check(
        "append g/r k RunStarted kind a; append g/s k RunStarted kind a; append t k X kind b; delete run g/r; runs; \
         runs status RUNNING; runs kind a; runs g/; all runs; count runs; count runs g/; quietest a; rows of runs; \
         delete run t; count runs",
        "r 1; s 1; t 1; r at 1; g/s a RUNNING 1, t b PENDING 1; g/s a RUNNING 1; g/s a RUNNING 1; g/s a RUNNING 1; g/s, t; \
         a RUNNING 1, b PENDING 1; a RUNNING 1; g/s a RUNNING 1; 3 heads, 1 names, 3 events, 3 keys, 2 listed; t at 1; \
         a RUNNING 1",
    );
}

#[test]
fn a_tick_removes_everything_but_the_head() {
    check(
        "append r k1 StepStarted step a id e1; append r k2 X; rows of runs; delete run r; rows of runs; due; tick; rows of runs; \
         due",
        "r 1; r 2; 1 heads, 2 events, 2 keys, 1 ids, 1 steps, 1 listed; r at 2; 1 heads, 2 events, 2 keys, 1 ids, 1 steps; \
         wall 0s, cluster never; 1 heads; wall never, cluster never",
    );
}

#[test]
fn a_step_of_a_tick_removes_64_rows() {
    check(
        "limit tick_steps_max 1; repeat 40 append r k% X; delete run r; rows of runs; tick; rows of runs; due; tick; rows of runs; \
         due",
        "r 40; r at 40; 1 heads, 40 events, 40 keys; 1 heads, 16 keys; wall 0s, cluster never; 1 heads; \
         wall never, cluster never",
    );
}

#[test]
fn a_run_of_exactly_64_rows_is_gone_after_one_more_step() {
    check(
        "limit tick_steps_max 1; repeat 32 append r k% X; delete run r; tick; rows of runs; due; tick; rows of runs; due",
        "r 32; r at 32; 1 heads; wall 0s, cluster never; 1 heads; wall never, cluster never",
    );
}

#[test]
fn several_deleted_runs_share_a_tick() {
    check(
        "in g: append r k X, append s k X, append t k X; in g: delete run r, delete run s; tick; rows of runs; append g/r k X; \
         append g/s k X; events g/t",
        "r 1, s 1, t 1; r at 1, s at 1; 3 heads, 1 names, 1 events, 1 keys, 1 listed; \
         run \"r\" was deleted at sequence 1; its name is never reused [SH-3006]; \
         run \"s\" was deleted at sequence 1; its name is never reused [SH-3006]; 1 X of 1",
    );
}

#[test]
fn a_removal_goes_on_after_a_restart_and_from_an_image() {
    check(
        "limit tick_steps_max 1; repeat 80 append r k% X; delete run r; tick; restart; rows of runs; tick; image; rows of runs; \
         tick; rows of runs; due; append r k1 X",
        "r 80; r at 80; 1 heads, 16 events, 80 keys; same bytes; 1 heads, 32 keys; 1 heads; wall never, cluster never; \
         run \"r\" was deleted at sequence 80; its name is never reused [SH-3006]",
    );
}

#[test]
fn the_name_of_a_deleted_run_is_never_used_again() {
    let archived = "run \"r\" was deleted at sequence 1; its name is never reused [SH-3006]";
    check(
        "append g/r k X; append g/s k X; delete run g/r; tick; append g/r k X; restart; append g/r k X expect 0; image; \
         fork g/r from s at 1; forget; walk; append g/r k X; append h/r k X",
        &format!(
            "r 1; s 1; r at 1; {archived}; {archived}; same bytes; {archived}; 0 rounds; 0 rounds; {archived}; r 1"
        ),
    );
}

#[test]
fn a_run_can_be_created_and_ended_in_one_commit() {
    check(
        "in g: append r k RunStarted, append r k2 RunCompleted, close r; snapshot g/r; in g: append s k X, delete run s; events g/s; \
         in g: append t k X, close t, append t k2 X; events g/t; tick; rows of runs",
        "r 1, r 2, r at 2; COMPLETED at 2 from 0s to 0s took 0s; s 1, s at 1; \
         run \"s\" was deleted at sequence 1; its name is never reused [SH-3006]; run \"t\" is closed at sequence 1 [SH-3005]; \
         there is no run \"t\" [SH-3002]; 2 heads, 1 names, 2 events, 2 keys, 1 listed",
    );
}
