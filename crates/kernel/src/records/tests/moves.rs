//! Moves between states: which are allowed, and what each does. The type has at least two states of each kind.

use crate::script::check;

#[test]
fn a_ready_record_moves_to_ready_by_any_write() {
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1; patch jobs.1 state=later; read jobs.1; update jobs.1 state=pending; swap jobs.1 state pending later; \
         put jobs.1 state=pending; read jobs.1; put jobs.2 state=later; read jobs.2; next jobs. 2",
        "#2; jobs.1 v1; jobs.1 v2; job later v2; jobs.1 v3; jobs.1 v4; jobs.1 v5; job pending v5; jobs.2 v1; job later v1; \
         jobs.1 #1, jobs.2 #1",
    );
}

#[test]
fn a_ready_record_is_held_only_after_a_claim_or_a_swap() {
    let refused =
        |name: &str| format!("record \"{name}\" is pending: nobody has claimed it, or its claim is over [SH-1015]");
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1; patch jobs.1 state=claimed; update jobs.1 state=running; put jobs.1 state=claimed; \
         put jobs.2 state=claimed; read jobs.2; swap jobs.1 state pending running; read jobs.1",
        &format!(
            "#2; jobs.1 v1; {0}; {0}; {0}; {1}; absent; jobs.1 v2; job running v2 #1 by somebody for 10s",
            refused("jobs.1"),
            refused("jobs.2"),
        ),
    );
}

#[test]
fn a_ready_record_finishes_by_any_write_but_is_not_completed() {
    let refused = |state: &str| {
        format!(
            "record \"jobs.1\" is {state}: nobody has claimed it, or its claim is over; it cannot be completed [SH-1015]"
        )
    };
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1; patch jobs.1 state=completed; swap jobs.1 state pending completed; put jobs.1 state=completed; \
         patch jobs.1 state=later; update jobs.1 state=completed; patch jobs.1 state=cancelled; read jobs.1; \
         put jobs.2 state=failed; read jobs.2; put jobs.3; swap jobs.3 state pending cancelled; read jobs.3; next jobs.",
        &format!(
            "#2; jobs.1 v1; {0}; {0}; {0}; jobs.1 v2; {1}; jobs.1 v3; job cancelled v3; jobs.2 v1; job failed v1; jobs.3 v1; \
             jobs.3 v2; job cancelled v2; nothing",
            refused("pending"),
            refused("later"),
        ),
    );
}

#[test]
fn a_held_record_that_is_moved_to_ready_has_not_failed() {
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1; claim jobs.1 by w; patch jobs.1 state=later; read jobs.1; claim jobs.1; \
         swap jobs.1 state claimed pending; read jobs.1; next jobs. by w; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; job later v3 #1; jobs.1 #2; jobs.1 v5; job pending v5 #2; jobs.1 #3; \
         job claimed v6 #3 by w for 10s",
    );
}

#[test]
fn the_same_attempt_continues_between_held_states() {
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1; claim jobs.1 by w; advance 4s; patch jobs.1 state=running; read jobs.1; \
         swap jobs.1 state running claimed; step jobs.1 #1 state=running; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; job running v3 #1 by w for 6s; jobs.1 v4; jobs.1 v5; \
         job running v5 #1 by w for 6s",
    );
}

#[test]
fn a_held_record_finishes_by_any_write_and_its_attempt_is_over() {
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1; claim jobs.1; patch jobs.1 state=completed; read jobs.1; extend jobs.1 #1; put jobs.2; claim jobs.2; \
         swap jobs.2 state claimed cancelled; complete jobs.2 #1; put jobs.3; claim jobs.3; step jobs.3 #1 state=failed; \
         read jobs.3",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; job completed v3 #1; \
         attempt 1 of record \"jobs.1\" is over: it is completed at attempt 1 [SH-4002]; jobs.2 v1; jobs.2 #1; jobs.2 v3; \
         attempt 1 of record \"jobs.2\" is over: it is cancelled at attempt 1 [SH-4002]; jobs.3 v1; jobs.3 #1; jobs.3 v3; \
         job failed v3 #1",
    );
}

#[test]
fn a_finished_record_never_leaves_its_state() {
    let finished = "record \"jobs.1\" is cancelled: it is finished and stays finished [SH-1015]";
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1 state=cancelled; patch jobs.1 state=pending; update jobs.1 state=claimed; patch jobs.1 state=failed; \
         swap jobs.1 state cancelled completed; swap jobs.1 state cancelled claimed; put jobs.1; claim jobs.1; next jobs.; \
         patch jobs.1 state=cancelled x=1; read jobs.1",
        &format!(
            "#2; jobs.1 v1; {finished}; {finished}; {finished}; {finished}; {finished}; \
             record \"jobs.1\" is cancelled: it is finished; delete it before putting it again [SH-1015]; \
             record \"jobs.1\" is cancelled: it is not ready to be claimed [SH-1015]; nothing; jobs.1 v2; \
             job cancelled v2 x=1"
        ),
    );
}

#[test]
fn a_finished_record_still_takes_writes_of_other_fields() {
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1; claim jobs.1 by w; complete jobs.1 #1; patch jobs.1 x=1; incr jobs.1 n 2; swap jobs.1 x 1 2; \
         touch jobs.1 5s; read jobs.1; delete record jobs.1; put jobs.1; read jobs.1; claim jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; jobs.1 v4; jobs.1 v5 is 2; jobs.1 v6; jobs.1 v7; \
         job completed v7 #1 ttl 5s n=2 x=2; jobs.1 v8; jobs.1 v9; job pending v9 #1; jobs.1 #2",
    );
}

#[test]
fn a_put_is_refused_while_a_worker_holds_the_record_unless_it_is_fenced() {
    let held = "record \"jobs.1\" is claimed: a worker holds it; write its fields instead, or wait [SH-1015]";
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1 x=1; claim jobs.1 by w; put jobs.1 x=2; put jobs.1 as task; in no group fence jobs.1 #1: put jobs.1 x=3; \
         read jobs.1; in no group fence jobs.1 #2: put jobs.1 x=4; in no group fence jobs.1 #1: put jobs.1 as task x=5; \
         read jobs.1",
        &format!(
            "#2; jobs.1 v1; jobs.1 #1; {held}; {held}; jobs.1 v3; job claimed v3 #1 by w for 10s x=3; \
             attempt 2 of record \"jobs.1\" is over: it is claimed at attempt 1, held by \"w\" [SH-4002]; \
             record \"jobs.1\" is claimed: a worker holds it; its type cannot change [SH-1015]; \
             job claimed v3 #1 by w for 10s x=3"
        ),
    );
}

#[test]
fn a_move_between_ready_states_does_not_end_a_pause() {
    check(
        "declare job for jobs. lease 10s pause 5s..5s and later:ready; put jobs.1; put jobs.2; claim jobs.1; fail jobs.1 #1; \
         patch jobs.1 state=later; next jobs. 5; claim jobs.1; advance 4999ms; tick; next jobs.; advance 1ms; tick; next jobs.",
        "#2; jobs.1 v1; jobs.2 v1; jobs.1 #1; jobs.1 v3 again in 5s; jobs.1 v4; jobs.2 #1; \
         record \"jobs.1\" is later: its pause after a failure is not over yet [SH-1015]; nothing; jobs.1 #2",
    );
}

#[test]
fn a_fence_on_another_record_does_not_let_a_put_through() {
    check(
        "declare job for jobs. lease 10s and later:ready; \
         in g: put jobs.1, put jobs.2; next jobs. 2 by w; in g fence jobs.1 #1: put jobs.2 x=1; \
         in g fence jobs.2 #1: put jobs.2 x=1; read g/jobs.2",
        "#2; jobs.1 v1, jobs.2 v1; g/jobs.1 #1, g/jobs.2 #1; \
         record \"jobs.2\" is claimed: a worker holds it; write its fields instead, or wait [SH-1015]; jobs.2 v3; \
         job claimed v3 #1 by w for 10s x=1",
    );
}

#[test]
fn a_put_of_the_same_type_keeps_attempts_failures_and_pause() {
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1; claim jobs.1; fail jobs.1 #1; put jobs.1 x=1; read jobs.1; claim jobs.1; put jobs.1 as task; \
         read jobs.1; claim jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3 again in 1s; jobs.1 v4; job pending v4 #1 1 failed again in 1s x=1; \
         record \"jobs.1\" is pending: its pause after a failure is not over yet [SH-1015]; jobs.1 v5; task pending v5 #1; \
         jobs.1 #2",
    );
}

#[test]
fn the_state_field_holds_the_name_of_a_state_of_the_type() {
    let no_name = "field \"state\" of record \"jobs.1\" does not hold the name of a state [SH-1016]";
    let no_state = "field \"state\" of record \"jobs.1\" does not hold the name of a state of its type [SH-1016]";
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1 state=asleep; put jobs.1; patch jobs.1 state=5; patch jobs.1 state=none; update jobs.1 state=asleep; \
         swap jobs.1 state pending asleep; swap jobs.1 state pending none; swap jobs.1 state claimed pending; \
         incr jobs.1 state 1; claim jobs.1; complete jobs.1 #1 state=asleep; fail jobs.1 #1 state=7; read jobs.1",
        &format!(
            "#2; {no_state}; jobs.1 v1; {no_name}; {no_name}; {no_state}; {no_state}; {no_name}; \
             field \"state\" of record \"jobs.1\" is not as expected [SH-1019]; \
             field \"state\" of record \"jobs.1\" does not hold an integer [SH-1016]; jobs.1 #1; {no_state}; {no_name}; \
             job claimed v2 #1 by somebody for 10s"
        ),
    );
}

#[test]
fn the_times_of_a_record_are_the_stores() {
    check(
        "declare job for jobs. lease 10s and later:ready; \
         advance 10s; put jobs.1 created_at=1 updated_at=2 timeout_at=3; read jobs.1; field jobs.1 created_at; \
         field jobs.1 updated_at; field jobs.1 timeout_at; advance 5s; patch jobs.1 created_at=7 updated_at=none x=1; \
         field jobs.1 created_at; field jobs.1 updated_at; incr jobs.1 created_at 1; incr jobs.1 updated_at 1; \
         patch jobs.1 timeout_at=none; claim jobs.1; field jobs.1 timeout_at; patch jobs.1 timeout_at=soon",
        "#2; jobs.1 v1; job pending v1; 10000 v1; 10000 v1; absent; jobs.1 v2; 10000 v2; 15000 v2; \
         field \"created_at\" of record \"jobs.1\" does not hold a number that callers may change; \
         the store maintains it [SH-1016]; \
         field \"updated_at\" of record \"jobs.1\" does not hold a number that callers may change; \
         the store maintains it [SH-1016]; jobs.1 v3; jobs.1 #1; 25000 v4; \
         field \"timeout_at\" of record \"jobs.1\" does not hold a time in ms [SH-1016]",
    );
}

#[test]
fn an_increment_of_a_field_that_the_store_maintains_is_refused() {
    let kept = |field: &str, record: &str| {
        format!(
            "field \"{field}\" of record \"{record}\" does not hold a number that callers may change; \
             the store maintains it [SH-1016]"
        )
    };
    check(
        "declare job for jobs. lease 10s; advance 10s; incr jobs.1 created_at 1; incr jobs.1 updated_at 1; \
         incr jobs.1 timeout_at 1; read jobs.1; put jobs.1; incr jobs.1 timeout_at 1; claim jobs.1; \
         incr jobs.1 timeout_at -99999999999; incr jobs.1 timeout_at 500; field jobs.1 timeout_at; \
         incr a created_at 1; incr a timeout_at 2; read a",
        &format!(
            "#2; {}; {}; {}; absent; jobs.1 v1; {}; jobs.1 #1; \
             field \"timeout_at\" of record \"jobs.1\" does not hold an integer that can be incremented by this amount \
             [SH-1016]; jobs.1 v3 is 20500; 20500 v3; a v1 is 1; a v2 is 2; v2 created_at=1 timeout_at=2",
            kept("created_at", "jobs.1"),
            kept("updated_at", "jobs.1"),
            kept("timeout_at", "jobs.1"),
            kept("timeout_at", "jobs.1"),
        ),
    );
}

#[test]
fn a_write_to_the_worker_field_renames_the_holder() {
    check(
        "declare job for jobs. lease 10s and later:ready; \
         put jobs.1; swap jobs.1 state pending claimed; patch jobs.1 worker=w; read jobs.1; field jobs.1 worker; \
         patch jobs.1 worker=none; read jobs.1; patch jobs.1 worker=5",
        "#2; jobs.1 v1; jobs.1 v2; jobs.1 v3; job claimed v3 #1 by w for 10s; w v3; jobs.1 v4; \
         job claimed v4 #1 by somebody for 10s; \
         field \"worker\" of record \"jobs.1\" does not hold the name of a worker [SH-1016]",
    );
}
