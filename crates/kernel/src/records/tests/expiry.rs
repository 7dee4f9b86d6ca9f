//! The end of a record: its TTL, and what remains of it.

use crate::script::check;

#[test]
fn a_record_is_absent_from_its_moment_on_even_before_a_tick() {
    check(
        "put a x=1 ttl 5s; read a; advance 4999ms; put b; read a; advance 1ms; put b; read a; scan; rows of records; commit; \
         tick; changes since c3; rows of records",
        "a v1; v1 ttl 5s x=1; b v1; v1 ttl 1ms x=1; b v2; absent; b; 2 records, 1 due by wall; c3; record a expired v2; \
         2 records, 1 due by wall",
    );
}

#[test]
fn a_write_after_the_end_creates_a_new_record() {
    check(
        "put a x=1 ttl 5s; put b x=1 ttl 5s; put c n=1 ttl 5s; put d x=1 ttl 5s; advance 5s; patch a y=1; read a; \
         swap b x 1 2; swap b x none 2; read b; incr c n 5; read c; put d y=1; read d",
        "a v1; b v1; c v1; d v1; a v3; v3 y=1; field \"x\" of record \"b\" is not as expected [SH-1019]; b v3; v3 x=2; \
         c v3 is 5; v3 n=5; d v3; v3 y=1",
    );
}

#[test]
fn what_needs_a_record_finds_none_after_its_end() {
    check(
        "declare job for jobs.; put jobs.1 ttl 5s; advance 5s; update jobs.1 x=1; touch jobs.1 9s; claim jobs.1; next jobs.; \
         delete record jobs.1; put jobs.2 ttl 5s; advance 5s; delete record jobs.2; put jobs.2; read jobs.2",
        "#2; jobs.1 v1; there is no record \"jobs.1\" [SH-1013]; there is no record \"jobs.1\" [SH-1013]; \
         there is no record \"jobs.1\" [SH-1013]; nothing; no jobs.1; jobs.2 v1; no jobs.2; jobs.2 v3; job pending v3",
    );
}

#[test]
fn a_held_record_expires_and_its_worker_is_fenced() {
    check(
        "declare job for jobs. sweep rescued exhausted; put jobs.1 ttl 5s; claim jobs.1 by w for 60s; advance 5s; \
         step jobs.1 #1 x=1; commit; tick; changes since c4; advance 60s; tick; changes since c5; messages; put jobs.1; \
         claim jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; \
         attempt 1 holds nothing: there is no record \"jobs.1\" here; it was deleted, or is in a group [SH-4002]; c4; \
         record jobs.1 expired v3; none; none; jobs.1 v4; jobs.1 #2",
    );
}

#[test]
fn a_record_whose_time_and_lease_are_over_expires_and_is_not_rescued() {
    check(
        "declare job for jobs. lease 5s sweep rescued exhausted; put jobs.1 ttl 5s; claim jobs.1 by w; advance 60s; commit; \
         tick; changes since c3; messages; read jobs.1; count records",
        "#2; jobs.1 v1; jobs.1 #1; c3; record jobs.1 expired v3; none; absent; none",
    );
}

#[test]
fn only_a_put_and_a_touch_set_how_long_a_record_lives() {
    check(
        "put a ttl 10s; patch a x=1; incr a n 1; swap a x 1 2; read a; touch a 20s; read a; touch a keep; read a; \
         put a ttl keep; read a; put a; read a; touch a 5s; touch a forever; read a; advance 1h; tick; read a",
        "a v1; a v2; a v3 is 1; a v4; v4 ttl 10s n=1 x=2; a v5; v5 ttl 20s n=1 x=2; a v6; v6 ttl 20s n=1 x=2; a v7; \
         v7 ttl 20s; a v8; v8; a v9; a v10; v10; v10",
    );
}

#[test]
fn a_touch_needs_a_record_that_exists() {
    check(
        "touch a 10s; put a; touch a 10s; delete record a; touch a forever",
        "there is no record \"a\" [SH-1013]; a v1; a v2; a v3; there is no record \"a\" [SH-1013]",
    );
}

#[test]
fn a_record_can_end_with_its_session_only_inside_one() {
    let refused = "a record that ends with its session cannot be declared: it is written outside a session [SH-1018]";
    check(
        "put a ttl session; read a; put a; touch a session; read a",
        &format!("{refused}; absent; a v1; {refused}; v1"),
    );
}

#[test]
fn a_type_gives_its_records_a_ttl_that_touch_can_take_away() {
    check(
        "declare job for jobs. ttl 10s; put jobs.1; read jobs.1; put jobs.1 ttl 60s; read jobs.1; put jobs.1; read jobs.1; \
         put jobs.1 ttl keep; read jobs.1; touch jobs.1 forever; read jobs.1; put jobs.2 ttl keep; read jobs.2",
        "#2; jobs.1 v1; job pending v1 ttl 10s; jobs.1 v2; job pending v2 ttl 60s; jobs.1 v3; job pending v3 ttl 10s; \
         jobs.1 v4; job pending v4 ttl 10s; jobs.1 v5; job pending v5; jobs.2 v1; job pending v1 ttl 10s",
    );
}

#[test]
fn a_finished_record_lives_as_long_as_its_type_says() {
    check(
        "declare job for jobs. end-ttl 5s attempts 1; put jobs.1 ttl 60s; claim jobs.1; complete jobs.1 #1; read jobs.1; \
         put jobs.2; claim jobs.2; fail jobs.2 #1; read jobs.2; put jobs.3 state=cancelled; read jobs.3; count records; \
         advance 5s; tick; scan; count records",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; job completed v3 #1 ttl 5s; jobs.2 v1; jobs.2 #1; jobs.2 v3 exhausted; \
         job failed v3 #1 1 failed ttl 5s; jobs.3 v1; job cancelled v1 ttl 5s; job cancelled 1, job completed 1, job failed 1; \
         none; none",
    );
}

#[test]
fn a_longer_ttl_does_not_end_at_its_first_end_and_a_shorter_one_ends_early() {
    check(
        "put a ttl 5s; put b ttl 60s; touch a 20s; touch b 10s; due; advance 5s; tick; read a; due; advance 5s; tick; read b; \
         due; advance 10s; tick; read a",
        "a v1; b v1; a v2; b v2; wall 5s, cluster never; v2 ttl 15s; wall 10s, cluster never; absent; \
         wall 20s, cluster never; absent",
    );
}

#[test]
fn ttls_run_while_the_store_is_closed() {
    check("put a ttl 1h; closed 59m; tick; read a; closed 1m; tick; read a", "a v1; v1 ttl 60s; absent");
}

#[test]
fn a_refused_command_does_not_commit_an_expiry() {
    check(
        "put a x=1 ttl 5s; advance 5s; update a y=1; changes since c1; in a: patch a y=1, update b y=1; changes since c1; \
         patch a y=1; changes since c1; read a",
        "a v1; there is no record \"a\" [SH-1013]; none; there is no record \"b\" [SH-1013]; none; a v3; \
         record a expired v2, record a written v3; v3 y=1",
    );
}

#[test]
fn the_row_of_a_deleted_record_goes_when_its_time_is_over() {
    check(
        "limit tombstone_age_us 10s; put g/a x=1; delete record g/a; rows of records; advance 9999ms; tick; rows of records; \
         advance 1ms; tick; rows of records; put g/a; put g/b; put g/a; image",
        "a v1; a v2; 1 records, 1 due by wall; 1 records, 1 due by wall; 1 floors; a v3; b v3; a v4; same bytes",
    );
}

#[test]
fn a_forgotten_record_gives_its_numbers_to_the_bucket() {
    check(
        "declare job for jobs.; put g/jobs.1; next jobs.; delete record g/jobs.1; forget; rows of records; restart; \
         put g/jobs.2; read g/jobs.2; claim g/jobs.2; delete record g/jobs.2; forget; image; put g/jobs.1; read g/jobs.1; \
         claim g/jobs.1",
        "#2; jobs.1 v1; g/jobs.1 #1; jobs.1 v3; 2 rounds; 1 floors; jobs.2 v4; job pending v4 #1; g/jobs.2 #2; jobs.2 v6; \
         2 rounds; same bytes; jobs.1 v7; job pending v7 #2; g/jobs.1 #3",
    );
}

#[test]
fn nothing_that_exists_is_forgotten() {
    check(
        "put g/a x=1; put g/b x=1 ttl 5s; put g/c; delete record g/c; forget; read g/a; read g/b; rows of records; advance 5s; \
         forget; rows of records; tick; forget; rows of records",
        "a v1; b v1; c v1; c v2; 1 rounds; v1 x=1; v1 ttl 5s x=1; 2 records, 2 names, 1 due by wall, 1 floors; 0 rounds; \
         2 records, 2 names, 1 due by wall, 1 floors; 1 rounds; 1 records, 1 names, 1 floors",
    );
}
