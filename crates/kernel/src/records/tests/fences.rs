//! Fences: an attempt that is over is refused wherever it is named.

use crate::script::check;

#[test]
fn a_stale_attempt_is_refused_everywhere() {
    let over = "attempt 1 of record \"jobs.1\" is over: it is claimed at attempt 2, held by \"w\" [SH-4002]";
    check(
        "declare job for jobs. lease 10s; put jobs.1; claim jobs.1 by v; release jobs.1 #1; claim jobs.1 by w; \
         step jobs.1 #1 x=1; extend jobs.1 #1; release jobs.1 #1; complete jobs.1 #1 x=1; fail jobs.1 #1; \
         in no group fence jobs.1 #1: put jobs.1; in jobs.1 fence jobs.1 #1: set c 1; \
         in jobs.1 if record jobs.1 at #1: set c 1; read jobs.1; get jobs.1/c; step jobs.1 #2 x=1; read jobs.1",
        &format!(
            "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; jobs.1 #2; {over}; {over}; {over}; {over}; {over}; {over}; {over}; \
             record \"jobs.1\" is not as expected: it is at version 4 [SH-1017]; job claimed v4 #2 by w for 10s; absent; \
             jobs.1 v5; job claimed v5 #2 by w for 10s x=1"
        ),
    );
}

#[test]
fn an_attempt_that_has_not_started_is_refused_too() {
    let over = |attempt: u64, state: &str, current: u64| {
        format!("attempt {attempt} of record \"jobs.1\" is over: it is {state} at attempt {current} [SH-4002]")
    };
    check(
        "declare job for jobs.; put jobs.1; extend jobs.1 #0; step jobs.1 #1 x=1; claim jobs.1; release jobs.1 #2; \
         complete jobs.1 #0; read jobs.1",
        &format!(
            "#2; jobs.1 v1; {}; {}; jobs.1 #1; {}; {}; job claimed v2 #1 by somebody for 300s",
            over(0, "pending", 0),
            over(1, "pending", 0),
            over(2, "claimed", 1),
            over(0, "claimed", 1),
        ),
    );
}

#[test]
fn a_refused_attempt_hears_what_became_of_the_record() {
    check(
        "declare job for jobs.; put jobs.1; claim jobs.1; release jobs.1 #1; step jobs.1 #1; claim jobs.1; \
         complete jobs.1 #2; complete jobs.1 #2; delete record jobs.1; fail jobs.1 #2; put jobs.1; step jobs.1 #2 x=1; \
         put a; extend a #1; extend b #1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; \
         attempt 1 of record \"jobs.1\" is over: it is pending at attempt 1 [SH-4002]; jobs.1 #2; jobs.1 v5; \
         attempt 2 of record \"jobs.1\" is over: it is completed at attempt 2 [SH-4002]; jobs.1 v6; \
         attempt 2 holds nothing: there is no record \"jobs.1\" here; it was deleted, or is in a group [SH-4002]; \
         jobs.1 v7; attempt 2 of record \"jobs.1\" is over: it is pending at attempt 2 [SH-4002]; a v1; \
         attempt 1 of record \"a\" is over: it is not of a type that can be claimed at attempt 0 [SH-4002]; \
         attempt 1 holds nothing: there is no record \"b\" here; it was deleted, or is in a group [SH-4002]",
    );
}

#[test]
fn a_fence_covers_everything_in_its_transaction() {
    check(
        "declare job for jobs.; put g/jobs.1; next jobs. by w; \
         in g fence jobs.1 #1: set c 1, append r k RunStarted, put other x=1, complete jobs.1 #1 x=1; get g/c; \
         in g fence jobs.1 #1: set c 2, append r k2 RunCompleted, put other x=2; get g/c; events g/r; read g/other; \
         read g/jobs.1",
        "#2; jobs.1 v1; g/jobs.1 #1; c v1, r 1, other v1, jobs.1 v3; 1 v1; \
         attempt 1 of record \"jobs.1\" is over: it is completed at attempt 1 [SH-4002]; 1 v1; 1 RunStarted of 1; v1 x=1; \
         job completed v3 #1 x=1",
    );
}

#[test]
fn a_fence_looks_in_the_group_of_its_transaction() {
    check(
        "declare job for jobs.; put jobs.1; put g/jobs.1; claim jobs.1; in g fence jobs.1 #1: set c 1; \
         in jobs.1 fence jobs.1 #1: set c 1; claim g/jobs.1; in g fence jobs.1 #1: set c 1; get g/c; get jobs.1/c",
        "#2; jobs.1 v1; jobs.1 v1; jobs.1 #1; \
         attempt 1 of record \"jobs.1\" is over: it is pending at attempt 0 [SH-4002]; c v1; g/jobs.1 #1; c v1; 1 v1; 1 v1",
    );
}

#[test]
fn a_record_moved_on_by_its_own_fenced_transaction_is_written_from_there() {
    check(
        "declare job for jobs.; put g/jobs.1 n=1; next jobs. by w; \
         in g fence jobs.1 #1: incr jobs.1 n 1, patch jobs.1 state=running, incr jobs.1 n 1, release jobs.1 #1; \
         read g/jobs.1; in g fence jobs.1 #1: patch jobs.1 x=1",
        "#2; jobs.1 v1; g/jobs.1 #1; jobs.1 v3 is 2, jobs.1 v4, jobs.1 v5 is 3, jobs.1 v6; job pending v6 #1 n=3; \
         attempt 1 of record \"jobs.1\" is over: it is pending at attempt 1 [SH-4002]",
    );
}

#[test]
fn attempts_go_on_after_a_deletion_and_after_the_tombstone() {
    check(
        "declare job for jobs.; limit tombstone_age_us 10s; put jobs.1; claim jobs.1 by w; delete record jobs.1; \
         step jobs.1 #1 x=1; put jobs.1; claim jobs.1; step jobs.1 #1 x=1; delete record jobs.1; advance 10s; tick; \
         rows of records; put jobs.1; claim jobs.1; complete jobs.1 #2; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3; \
         attempt 1 holds nothing: there is no record \"jobs.1\" here; it was deleted, or is in a group [SH-4002]; \
         jobs.1 v4; jobs.1 #2; attempt 1 of record \"jobs.1\" is over: it is claimed at attempt 2 [SH-4002]; jobs.1 v6; \
         1 ready, 2 lanes, 1 floors; jobs.1 v7; jobs.1 #3; \
         attempt 2 of record \"jobs.1\" is over: it is claimed at attempt 3 [SH-4002]; \
         job claimed v8 #3 by somebody for 300s",
    );
}
