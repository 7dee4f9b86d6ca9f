//! Attempts: how they start, and how each of their ends goes on.

use crate::script::check;

#[test]
fn a_claim_starts_an_attempt_with_the_lease_of_the_type_or_its_own() {
    check(
        "declare job for jobs. lease 10s; put jobs.1; claim jobs.1 by w; read jobs.1; field jobs.1 worker; release jobs.1 #1; \
         claim jobs.1 for 5s; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; job claimed v2 #1 by w for 10s; w v2; jobs.1 v3; jobs.1 #2; \
         job claimed v4 #2 by somebody for 5s",
    );
}

#[test]
fn only_a_ready_record_of_a_type_can_be_claimed() {
    check(
        "declare job for jobs.; claim jobs.1; put a; claim a; put jobs.1; claim jobs.1 by v; claim jobs.1 by w; \
         fail jobs.1 #1; claim jobs.1; read jobs.1; delete record jobs.1; claim jobs.1",
        "#2; there is no record \"jobs.1\" [SH-1013]; a v1; \
         \"a\" is not a record type of this space, or the record has no type [SH-1014]; jobs.1 v1; jobs.1 #1; \
         record \"jobs.1\" cannot be claimed yet: attempt 1 is held by \"v\" until 1970-01-01T00:05:00Z [SH-1021]; jobs.1 v3 again in 1s; \
         record \"jobs.1\" is pending: its pause after a failure is not over yet [SH-1015]; \
         job pending v3 #1 1 failed again in 1s; jobs.1 v4; there is no record \"jobs.1\" [SH-1013]",
    );
}

#[test]
fn an_extension_restarts_the_lease_from_now() {
    check(
        "declare job for jobs. lease 10s; put jobs.1; claim jobs.1 by w; advance 8s; extend jobs.1 #1; read jobs.1; \
         extend jobs.1 #1 for 60s; read jobs.1; extend jobs.1 #1 for 1s; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; job claimed v3 #1 by w for 10s; jobs.1 v4; job claimed v4 #1 by w for 60s; \
         jobs.1 v5; job claimed v5 #1 by w for 1s",
    );
}

#[test]
fn a_release_makes_the_record_claimable_at_once_and_is_no_failure() {
    check(
        "declare job for jobs. attempts 1; put jobs.1 x=1; claim jobs.1 by w; release jobs.1 #1; read jobs.1; next jobs.; \
         release jobs.1 #2; next jobs.; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; job pending v3 #1 x=1; jobs.1 #2; jobs.1 v5; jobs.1 #3; \
         job claimed v6 #3 by somebody for 300s x=1",
    );
}

#[test]
fn a_completed_record_has_the_fields_that_came_with_it() {
    check(
        "declare job for jobs.; put jobs.1 x=1 y=2; claim jobs.1 by w; complete jobs.1 #1 x=none result=5; read jobs.1; \
         field jobs.1 result; field jobs.1 timeout_at; count records; put jobs.2; claim jobs.2; complete jobs.2 #1; \
         read jobs.2",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; job completed v3 #1 result=5 y=2; 5 v3; absent; job completed 1; jobs.2 v1; \
         jobs.2 #1; jobs.2 v3; job completed v3 #1",
    );
}

#[test]
fn what_ends_an_attempt_cannot_finish_the_record_otherwise_by_its_fields() {
    check(
        "declare job for jobs.; put jobs.1; claim jobs.1 by w; complete jobs.1 #1 state=cancelled; \
         fail jobs.1 #1 state=cancelled; complete jobs.1 #1 state=pending; read jobs.1; complete jobs.1 #1 state=completed; \
         read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; record \"jobs.1\" is claimed: the fields written with it move it to another state [SH-1015]; \
         record \"jobs.1\" is claimed: a failed attempt cannot finish it by writing fields [SH-1015]; \
         record \"jobs.1\" is claimed: the fields written with it move it to another state [SH-1015]; \
         job claimed v2 #1 by w for 300s; jobs.1 v3; job completed v3 #1",
    );
}

#[test]
fn the_pause_after_a_failure_doubles_up_to_its_limit() {
    check(
        "declare job for jobs. attempts 5 pause 1s..3s; put jobs.1; claim jobs.1; fail jobs.1 #1; advance 1s; claim jobs.1; \
         fail jobs.1 #2; advance 2s; claim jobs.1; fail jobs.1 #3; advance 3s; claim jobs.1; fail jobs.1 #4; advance 3s; \
         claim jobs.1; read jobs.1; fail jobs.1 #5 error=late; read jobs.1; next jobs.",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3 again in 1s; jobs.1 #2; jobs.1 v5 again in 2s; jobs.1 #3; \
         jobs.1 v7 again in 3s; jobs.1 #4; jobs.1 v9 again in 3s; jobs.1 #5; \
         job claimed v10 #5 by somebody for 300s 4 failed; jobs.1 v11 exhausted; job failed v11 #5 5 failed error=late; \
         nothing",
    );
}

#[test]
fn a_failed_attempt_leaves_its_fields() {
    check(
        "declare job for jobs.; put jobs.1 x=1; claim jobs.1 by w; fail jobs.1 #1 error=broken x=none; read jobs.1; \
         field jobs.1 error; advance 1s; tick; next jobs.; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3 again in 1s; job pending v3 #1 1 failed again in 1s error=broken; broken v3; \
         jobs.1 #2; job claimed v4 #2 by somebody for 300s 1 failed error=broken",
    );
}

#[test]
fn without_a_pause_a_failed_record_is_ready_at_once() {
    check(
        "declare job for jobs. attempts 2 pause 0s..0s; put jobs.1; next jobs.; fail jobs.1 #1; read jobs.1; next jobs.; \
         fail jobs.1 #2; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3 again in 0s; job pending v3 #1 1 failed; jobs.1 #2; jobs.1 v5 exhausted; \
         job failed v5 #2 2 failed",
    );
}

#[test]
fn a_swap_of_the_state_is_a_claim_and_does_not_wait_for_the_pause() {
    check(
        "declare job for jobs. lease 10s; put jobs.1; swap jobs.1 state pending claimed; swap jobs.1 state pending claimed; \
         fail jobs.1 #1; claim jobs.1; swap jobs.1 state pending claimed; read jobs.1; advance 10s; tick; read jobs.1",
        "#2; jobs.1 v1; jobs.1 v2; field \"state\" of record \"jobs.1\" is not as expected [SH-1019]; \
         jobs.1 v3 again in 1s; record \"jobs.1\" is pending: its pause after a failure is not over yet [SH-1015]; \
         jobs.1 v4; job claimed v4 #2 by somebody for 10s 1 failed; job pending v5 #2 2 failed again in 2s",
    );
}

#[test]
fn writes_without_a_fence_succeed_while_a_worker_holds_the_record() {
    check(
        "declare job for jobs. lease 10s; put jobs.1 x=1; claim jobs.1 by w; patch jobs.1 x=2; update jobs.1 y=1; \
         swap jobs.1 y 1 2; incr jobs.1 n 1; touch jobs.1 60s; read jobs.1; delete record jobs.1; read jobs.1; next jobs.",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; jobs.1 v4; jobs.1 v5; jobs.1 v6 is 1; jobs.1 v7; \
         job claimed v7 #1 by w for 10s ttl 60s n=1 x=2 y=2; jobs.1 v8; absent; nothing",
    );
}

#[test]
fn a_whole_attempt_fits_into_a_transaction() {
    check(
        "declare job for jobs.; in g: put jobs.1, claim jobs.1 by w, extend jobs.1 #1 for 5s, release jobs.1 #1, claim jobs.1, \
         complete jobs.1 #2 x=1; read g/jobs.1; in g: put jobs.2, claim jobs.2, fail jobs.2 #1; read g/jobs.2; \
         in g: put jobs.3, claim jobs.3, complete jobs.3 #2; read g/jobs.3; count records",
        "#2; jobs.1 v1, g/jobs.1 #1, jobs.1 v3, jobs.1 v4, g/jobs.1 #2, jobs.1 v6; job completed v6 #2 x=1; \
         jobs.2 v1, g/jobs.2 #1, jobs.2 v3 again in 1s; job pending v3 #1 1 failed again in 1s; \
         attempt 2 of record \"jobs.3\" is over: it is claimed at attempt 1 [SH-4002]; absent; \
         job completed 1, job pending 1",
    );
}

#[test]
fn the_feed_says_why_a_record_changed() {
    check(
        "declare job for jobs. lease 10s attempts 3; put jobs.1; claim jobs.1; release jobs.1 #1; next jobs.; \
         step jobs.1 #2 x=1; fail jobs.1 #2; advance 1s; claim jobs.1; advance 10s; tick; advance 9s; claim jobs.1; \
         fail jobs.1 #4; delete record jobs.1; put jobs.2 ttl 1s; claim jobs.2; complete jobs.2 #1; advance 1s; tick; \
         update jobs.2 x=1; changes since c1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; jobs.1 #2; jobs.1 v5; jobs.1 v6 again in 1s; jobs.1 #3; jobs.1 #4; \
         jobs.1 v10 exhausted; jobs.1 v11; jobs.2 v1; jobs.2 #1; jobs.2 v3; there is no record \"jobs.2\" [SH-1013]; \
         record jobs.1 written v1, record jobs.1 claimed v2, record jobs.1 released v3, record jobs.1 claimed v4, \
         record jobs.1 written v5, record jobs.1 failed v6, record jobs.1 claimed v7, record jobs.1 rescued v8, \
         record jobs.1 claimed v9, record jobs.1 exhausted v10, record jobs.1 deleted v11, record jobs.2 written v1, \
         record jobs.2 claimed v2, record jobs.2 finished v3, record jobs.2 expired v4",
    );
}
