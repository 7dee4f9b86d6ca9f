//! Runs among other things: groups, branches, spaces, records, cells and messages.

use crate::script::check;

#[test]
fn a_group_has_its_own_runs_and_shares_the_one_with_its_name() {
    check(
        "append r k Own; append g/r k InG; append h/r k InH; append g/g k1 Shared; append g k2 Too; events r; events g/r; \
         events h/r; events g/g; rows of runs",
        "r 1; r 1; r 1; g 1; g 2; 1 Own of 1; 1 InG of 1; 1 InH of 1; 1 Shared, 2 Too of 2; \
         4 heads, 2 names, 5 events, 5 keys, 4 listed",
    );
}

#[test]
fn a_branch_begins_without_runs_and_its_rows_go_after_it() {
    check(
        "append r k1 RunStarted; branch draft; on draft; events r; append r k1 StepStarted step a id e; append g/r k1 X; \
         fork g/s from r at 1; count runs; on main; count runs; drop draft; rows of runs; walk; rows of runs; events r; runs",
        "r 1; #2; there is no run \"r\" [SH-3002]; r 1; r 1; s at 1; PENDING 3; RUNNING 1; \
         4 heads, 2 names, 3 events, 3 keys, 1 ids, 1 steps, 4 listed; 1 rounds; 1 heads, 1 events, 1 keys, 1 listed; \
         1 RunStarted of 1; r RUNNING 1",
    );
}

#[test]
fn a_deleted_branch_forgets_its_deleted_runs_too() {
    check(
        "branch draft; on draft; append r k1 X; delete run r; append s k1 X; on main; drop draft; tick; due; walk; rows of runs; \
         branch draft; on draft; append r k1 X",
        "#2; r 1; r at 1; s 1; wall never, cluster never; 1 rounds; none; #3; r 1",
    );
}

#[test]
fn a_deleted_branch_takes_no_events() {
    let gone = "there is no branch \"#2\" in this space [SH-1006]";
    check(
        "branch draft; on draft; append r k X; drop draft; append r k2 X; append r k X",
        &format!("#2; r 1; {gone}; {gone}"),
    );
}

#[test]
fn spaces_have_their_own_runs() {
    check(
        "append r k RunStarted kind a; space other; in space other; events r; count runs; append r k X kind b; append r k2 X; \
         count runs; delete run r; in space default; events r; count runs; tick; events r",
        "r 1; #2; there is no run \"r\" [SH-3002]; none; r 1; r 2; b PENDING 1; r at 2; 1 RunStarted of 1; a RUNNING 1; \
         1 RunStarted of 1",
    );
}

#[test]
fn conditions_on_cells_and_records_cover_appends() {
    check(
        "in g if c absent: append r k1 X, set c 1; in g if c absent: append r k2 X; put g/a x=1; \
         in g if record a x = 2: append r k2 X; in g if record a x = 1, c is v1: append r k2 X, patch a x=2; events g/r",
        "r 1, c v1; cell \"c\" is not as expected: it is at version 1 [SH-1003]; a v1; \
         field \"x\" of record \"a\" is not as expected [SH-1019]; r 2, a v2; 1 X, 2 X of 2",
    );
}

#[test]
fn a_read_model_in_the_group_is_written_with_the_event_or_not_at_all() {
    check(
        "in g: append r k1 X expect 0 once, put m n=1; in g: append r k2 X expect 1 once, put m n=2; \
         in g: append r k2 X expect 1 once, put m n=2; in g: append r k3 X expect 1 once, put m n=9; read g/m; events g/r",
        "r 1, m v1; r 2, m v2; this idempotency key or id belongs to event 2 of run \"r\" [SH-3004]; \
         run \"r\" is at sequence 2, not at 1 [SH-3003]; v2 n=2; 1 X, 2 X of 2",
    );
}

#[test]
fn a_fence_covers_appends() {
    check(
        "declare job for jobs.; put g/jobs.1; next jobs. by w; in g fence jobs.1 #1: append r k1 X; \
         in g fence jobs.1 #1: append r k2 X, complete jobs.1 #1; in g fence jobs.1 #1: append r k3 X; \
         in g fence jobs.1 #1: append r k1 X; events g/r",
        "#2; jobs.1 v1; g/jobs.1 #1; r 1; r 2, jobs.1 v3; \
         attempt 1 of record \"jobs.1\" is over: it is completed at attempt 1 [SH-4002]; \
         attempt 1 of record \"jobs.1\" is over: it is completed at attempt 1 [SH-4002]; 1 X, 2 X of 2",
    );
}

#[test]
fn a_message_appends_to_a_run_of_another_group() {
    check(
        "in g: append r k1 X, send in h then append r k1 X & append r k2 X; tick; events h/r; in g: send in h then append r k1 X once, \
         send in h then append r k3 X expect 2, send after 5s in h then close r; tick; events h/r; advance 5s; tick; append h/r k4 X; \
         changes since c2",
        "r 1, sent; 1 X, 2 X of 2; sent, sent, sent; 1 X, 2 X, 3 X of 3; run \"r\" is closed at sequence 3 [SH-3005]; \
         message g refused v2, run h/r written v3, message g delivered v3, run h/r finished v3, message g delivered v4",
    );
}

#[test]
fn a_restart_and_an_image_find_runs_as_they_were() {
    check(
        "append g/r k1 RunStarted kind x emitted 1s; append g/r k2 StepStarted step a emitted 2s; restart; append g/r k1 RunStarted; \
         append g/r k3 StepCompleted step a emitted 3s; image; append g/r k3 StepCompleted step a; fork g/s from r at 2; image; \
         append g/s k3 StepFailed step a emitted 4s; append g/r k4 RunCompleted emitted 5s; restart; snapshot g/r; snapshot g/s; \
         runs; count runs; close g/r; image; append g/r k5 X",
        "r 1; r 2; r 1 known; r 3; same bytes; r 3 known; s at 2; same bytes; s 3; r 4; \
         COMPLETED at 4 from 1s to 5s took 4s, a SUCCESS from 2s to 3s; \
         RUNNING at 3 from 1s, a FAILED from 2s to 4s error \"\" \"\"; g/r x COMPLETED 4, g/s x RUNNING 3; \
         x RUNNING 1, x COMPLETED 1; r at 4; same bytes; run \"r\" is closed at sequence 4 [SH-3005]",
    );
}
