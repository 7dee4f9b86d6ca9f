//! Leases and pauses: what happens by time alone.

use crate::script::check;

#[test]
fn a_tick_ends_an_attempt_when_its_lease_is_over() {
    check(
        "declare job for jobs. lease 10s; put jobs.1; claim jobs.1 by w; due; advance 9s; tick; read jobs.1; advance 999ms; \
         tick; read jobs.1; advance 1ms; tick; read jobs.1; step jobs.1 #1 x=1; due",
        "#2; jobs.1 v1; jobs.1 #1; wall never, cluster 10s; job claimed v2 #1 by w for 1s; job claimed v2 #1 by w for 1ms; \
         job pending v3 #1 1 failed again in 1s; \
         attempt 1 of record \"jobs.1\" is over: it is pending at attempt 1 [SH-4002]; wall 11s, cluster never",
    );
}

#[test]
fn an_attempt_is_live_until_its_rescue_is_committed() {
    check(
        "declare job for jobs. lease 10s; put jobs.1; claim jobs.1 by w; advance 60s; step jobs.1 #1 x=1; read jobs.1; \
         extend jobs.1 #1; tick; read jobs.1; advance 60s; complete jobs.1 #1; tick; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; job claimed v3 #1 by w for 0s x=1; jobs.1 v4; \
         job claimed v4 #1 by w for 10s x=1; jobs.1 v5; job completed v5 #1 x=1",
    );
}

#[test]
fn an_extended_lease_does_not_end_at_its_first_end() {
    check(
        "declare job for jobs. lease 10s; put jobs.1; claim jobs.1 by w; advance 5s; extend jobs.1 #1; due; advance 5s; tick; \
         read jobs.1; due; advance 5s; tick; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; wall never, cluster 10s; job claimed v3 #1 by w for 5s; \
         wall never, cluster 15s; job pending v4 #1 1 failed again in 1s",
    );
}

#[test]
fn a_shortened_lease_ends_early() {
    check(
        "declare job for jobs. lease 60s; put jobs.1; claim jobs.1; extend jobs.1 #1 for 5s; due; advance 5s; tick; \
         read jobs.1; rows of records",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; wall never, cluster 5s; job pending v4 #1 1 failed again in 1s; \
         1 records, 1 ready, 2 lanes, 1 due by wall, 2 counts",
    );
}

#[test]
fn a_write_to_timeout_at_moves_the_lease_of_a_held_record() {
    check(
        "declare job for jobs. lease 10s; advance 10s; put jobs.1; claim jobs.1 by w; field jobs.1 timeout_at; \
         patch jobs.1 timeout_at=60000; read jobs.1; advance 49s; tick; read jobs.1; patch jobs.1 timeout_at=1; tick; \
         read jobs.1; patch jobs.1 timeout_at=90000; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; 20000 v2; jobs.1 v3; job claimed v3 #1 by w for 50s; job claimed v3 #1 by w for 1s; \
         jobs.1 v4; job pending v5 #1 1 failed again in 1s; jobs.1 v6; job pending v6 #1 1 failed again in 1s",
    );
}

#[test]
fn leases_do_not_run_while_the_store_is_closed() {
    check(
        "declare job for jobs. lease 10s; put jobs.1; claim jobs.1 by w; advance 4s; closed 1h; tick; read jobs.1; advance 6s; \
         tick; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; job claimed v2 #1 by w for 6s; job pending v3 #1 1 failed again in 1s",
    );
}

#[test]
fn pauses_run_while_the_store_is_closed() {
    check(
        "declare job for jobs. pause 10s..60s; put jobs.1; claim jobs.1; fail jobs.1 #1; closed 9s; tick; read jobs.1; \
         next jobs.; closed 1s; tick; next jobs.",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3 again in 10s; job pending v3 #1 1 failed again in 1s; nothing; jobs.1 #2",
    );
}

#[test]
fn during_the_pause_a_record_is_skipped_and_a_tick_ends_it() {
    check(
        "declare job for jobs. pause 1s..2s; put jobs.1; put jobs.2; next jobs.; fail jobs.1 #1; due; next jobs. 5; \
         advance 999ms; tick; next jobs.; claim jobs.1; advance 1ms; tick; due; next jobs.",
        "#2; jobs.1 v1; jobs.2 v1; jobs.1 #1; jobs.1 v3 again in 1s; wall 1s, cluster never; jobs.2 #1; nothing; \
         record \"jobs.1\" is pending: its pause after a failure is not over yet [SH-1015]; wall never, cluster 300s; \
         jobs.1 #2",
    );
}

#[test]
fn the_last_rescue_moves_the_record_to_the_failed_state() {
    check(
        "declare job for jobs. lease 10s attempts 2 pause 1s..1s; put jobs.1; next jobs.; advance 10s; tick; advance 1s; \
         tick; next jobs.; advance 10s; tick; read jobs.1; advance 1h; tick; next jobs.; count records",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 #2; job failed v5 #2 2 failed; nothing; job failed 1",
    );
}

#[test]
fn a_tick_does_so_many_steps_and_the_next_one_the_rest() {
    check(
        "declare job for jobs. lease 10s; limit tick_steps_max 2; put jobs.1; put jobs.2; put jobs.3; next jobs. 3; \
         advance 10s; tick; count records; tick; count records; limit tick_steps_max 0; advance 1s; tick; next jobs. 3; tick; \
         tick; next jobs. 3",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; jobs.1 #1, jobs.2 #1, jobs.3 #1; job claimed 1, job pending 2; job pending 3; \
         jobs.1 #2; jobs.2 #2, jobs.3 #2",
    );
}

#[test]
fn a_restart_and_an_image_keep_leases_pauses_and_places() {
    check(
        "declare job for jobs. lease 10s; put jobs.1; put jobs.2; put jobs.3; next jobs. 2 by w; fail jobs.1 #1; restart; \
         next jobs.; image; step jobs.2 #1 x=1; advance 1s; tick; image; next jobs. 5; restart; advance 9s; tick; image; \
         read jobs.1; read jobs.2; due",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; jobs.1 #1, jobs.2 #1; jobs.1 v3 again in 1s; jobs.3 #1; same bytes; jobs.2 v3; \
         same bytes; jobs.1 #2; same bytes; job claimed v4 #2 by somebody for 1s 1 failed; \
         job pending v4 #1 1 failed again in 1s x=1; wall 11s, cluster 11s",
    );
}
