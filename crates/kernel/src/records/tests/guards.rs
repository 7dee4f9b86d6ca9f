//! Guards on records: each holds, or names the record.

use crate::script::check;

#[test]
fn a_guard_on_existence_holds_or_names_the_version() {
    check(
        "in g if record a absent: put a x=1; in g if record a absent: put a x=2; in g if record a exists: put b; \
         in g if record c exists: put b; delete record g/a; in g if record a exists: put b; in g if record a absent: put b; \
         read g/a; read g/b",
        "a v1; record \"a\" is not as expected: it is at version 1 [SH-1017]; b v1; \
         record \"c\" is not as expected: it does not exist [SH-1017]; a v2; \
         record \"a\" is not as expected: it does not exist [SH-1017]; b v2; absent; v2",
    );
}

#[test]
fn a_guard_on_a_version_needs_exactly_that_one() {
    check(
        "in g if record a is v0: put a; in g if record a is v1: put a; put g/a; in g if record a is v1: put a; \
         in g if record a is v1: put a; in g if record a is v3: put a; delete record g/a; in g if record a is v3: put a; \
         put g/a; in g if record a is v4: put b",
        "record \"a\" is not as expected: it does not exist [SH-1017]; \
         record \"a\" is not as expected: it does not exist [SH-1017]; a v1; a v2; \
         record \"a\" is not as expected: it is at version 2 [SH-1017]; \
         record \"a\" is not as expected: it is at version 2 [SH-1017]; a v3; \
         record \"a\" is not as expected: it does not exist [SH-1017]; a v4; b v1",
    );
}

#[test]
fn a_guard_on_a_field_compares_kind_and_value_and_none_means_absent() {
    let other = "field \"x\" of record \"a\" is not as expected [SH-1019]";
    check(
        "in g if record a x = none: put a x=1; in g if record a x = 1: put b; in g if record a x = none: put b; \
         in g if record a x = 2: put b; in g if record a x = 0x1: put b; in g if record a y = none: put b; patch g/a x=none; \
         in g if record a x = 1: put b; in g if record a x = none: put b; in g if record c x = 1: put b; patch g/a x=y*2000; \
         in g if record a x = y*2000: put b; in g if record a x = y*1999: put b",
        &format!(
            "a v1; b v1; {other}; {other}; {other}; b v2; a v2; {other}; b v3; \
             field \"x\" of record \"c\" is not as expected [SH-1019]; a v3; b v4; {other}"
        ),
    );
}

#[test]
fn a_guard_on_a_field_sees_what_the_store_maintains() {
    check(
        "declare job for jobs.; advance 10s; put g/jobs.1; next jobs. by w; \
         in g if record jobs.1 state = claimed, record jobs.1 worker = w, record jobs.1 created_at = 10000: set c 1; \
         in g if record jobs.1 state = pending: set c 2; in g if record jobs.1 worker = none: set c 2; \
         in g if record jobs.2 state = none: set c 2",
        "#2; jobs.1 v1; g/jobs.1 #1; c v1; field \"state\" of record \"jobs.1\" is not as expected [SH-1019]; \
         field \"worker\" of record \"jobs.1\" is not as expected [SH-1019]; c v2",
    );
}

#[test]
fn a_guard_on_states_holds_in_each_of_them() {
    check(
        "declare job for jobs.; put g/jobs.1; in g if record jobs.1 in pending: set c 1; \
         in g if record jobs.1 in claimed|running: set c 2; next jobs.; in g if record jobs.1 in claimed|running: set c 2; \
         in g if record jobs.1 in pending: set c 3; put g/a state=pending; in g if record a in pending: set c 3; \
         in g if record b in pending: set c 3; complete g/jobs.1 #1; in g if record jobs.1 in completed: set c 3; \
         delete record g/jobs.1; in g if record jobs.1 in completed|gone: set c 4",
        "#2; jobs.1 v1; c v1; record \"jobs.1\" is not as expected: it is at version 1 [SH-1017]; g/jobs.1 #1; c v2; \
         record \"jobs.1\" is not as expected: it is at version 2 [SH-1017]; a v1; \
         record \"a\" is not as expected: it is at version 1 [SH-1017]; \
         record \"b\" is not as expected: it does not exist [SH-1017]; jobs.1 v3; c v3; jobs.1 v4; \
         record \"jobs.1\" is not as expected: it does not exist [SH-1017]",
    );
}

#[test]
fn a_guard_on_an_attempt_holds_whether_the_record_is_held_or_not() {
    check(
        "declare job for jobs.; put g/jobs.1; in g if record jobs.1 at #0: set c 1; next jobs.; \
         in g if record jobs.1 at #0: set c 2; in g if record jobs.1 at #1: set c 2; release g/jobs.1 #1; \
         in g if record jobs.1 at #1: set c 3; in g if record jobs.1 at #2: set c 4; in g if record jobs.2 at #0: set c 4",
        "#2; jobs.1 v1; c v1; g/jobs.1 #1; record \"jobs.1\" is not as expected: it is at version 2 [SH-1017]; c v2; \
         jobs.1 v3; c v3; record \"jobs.1\" is not as expected: it is at version 3 [SH-1017]; \
         record \"jobs.2\" is not as expected: it does not exist [SH-1017]",
    );
}

#[test]
fn an_unchanged_guard_sees_writes_claims_and_deletions_but_not_refusals() {
    check(
        "declare job for jobs.; put g/jobs.1; commit; in g if record jobs.1 unchanged since c2: set c 1; update g/jobs.9 x=1; \
         in g if record jobs.1 unchanged since c2: set c 2; next jobs.; in g if record jobs.1 unchanged since c2: set c 3; \
         commit; in g if record jobs.1 unchanged since c6: set c 3; delete record g/jobs.1; \
         in g if record jobs.1 unchanged since c8: set c 4; commit; in g if record jobs.1 unchanged since c10: set c 4; \
         in g if record other unchanged since c0: set c 5",
        "#2; jobs.1 v1; c2; c v1; there is no record \"jobs.9\" [SH-1013]; c v2; g/jobs.1 #1; \
         record \"jobs.1\" is not as expected: it is at version 2 [SH-1017]; c7; c v3; jobs.1 v3; \
         record \"jobs.1\" is not as expected: it does not exist [SH-1017]; c10; c v4; c v5",
    );
}

/// Whoever looked before a record was forgotten cannot know whether it was there.
#[test]
fn a_forgotten_record_has_changed_for_those_who_looked_before() {
    check(
        "put g/a x=1; commit; delete record g/a; forget; in g if record a unchanged since c1: put b; \
         in g if record b unchanged since c1: put b; in g if record a unchanged since c2: put b",
        "a v1; c1; a v2; 1 rounds; record \"a\" is not as expected: it does not exist [SH-1017]; \
         record \"b\" is not as expected: it does not exist [SH-1017]; b v3",
    );
}

#[test]
fn no_guard_sees_a_record_after_its_end() {
    let gone = "record \"a\" is not as expected: it does not exist [SH-1017]";
    check(
        "put g/a x=1 ttl 5s; advance 5s; in g if record a exists: put b; in g if record a is v1: put b; \
         in g if record a at #0: put b; in g if record a x = 1: put b; in g if record a unchanged since c1: put b; \
         in g if record a absent, record a x = none: put b",
        &format!(
            "a v1; {gone}; {gone}; {gone}; field \"x\" of record \"a\" is not as expected [SH-1019]; {gone}; b v1"
        ),
    );
}

#[test]
fn guards_see_the_state_before_any_operation_of_their_transaction() {
    check(
        "in g if record a absent, record a x = none: put a x=1, swap a x 1 2; read g/a; \
         in g if record a is v2: patch a y=1, patch a z=1; read g/a",
        "a v1, a v2; v2 x=2; a v3, a v4; v4 x=2 y=1 z=1",
    );
}

#[test]
fn the_first_guard_that_fails_is_named_and_nothing_happens() {
    check(
        "set g/c 1; put g/a; in g if c is v1, record a is v9, c absent: put a x=1, set c 2; \
         in g if c absent, record a is v9: put a x=1, set c 2; in g if c is v1, record a is v1: put a x=1, set c 2; \
         read g/a; get g/c",
        "c v1; a v1; record \"a\" is not as expected: it is at version 1 [SH-1017]; \
         cell \"c\" is not as expected: it is at version 1 [SH-1003]; a v2, c v2; v2 x=1; 2 v2",
    );
}

#[test]
fn a_transaction_of_guards_alone_answers_whether_they_hold() {
    check(
        "put g/a; in g if record a exists:; in g if record a absent:; commit",
        "a v1; record \"a\" is not as expected: it is at version 1 [SH-1017]; c3",
    );
}
