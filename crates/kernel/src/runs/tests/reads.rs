//! Reading events.

use crate::script::check;

#[test]
fn events_are_read_after_a_sequence_and_up_to_a_limit() {
    check(
        "append r k1 A; append r k2 B; append r k3 C; events r after 1; events r after 1 limit 1; events r limit 2; \
         events r limit 0; events r after 3; events r after 9",
        "r 1; r 2; r 3; 2 B, 3 C of 3; 2 B of 3; 1 A, 2 B of 3; none of 3; none of 3; none of 3",
    );
}

#[test]
fn a_sequence_is_found_by_time() {
    check(
        "advance 10s; append r k1 A; advance 10s; append r k2 B; append r k3 C; advance 10s; append r k4 D; before r 0s; before r 10s; \
         before r 11s; before r 20s; before r 21s; before r 30s; before r 99s",
        "r 1; r 2; r 3; r 4; 0; 0; 1; 1; 3; 3; 4",
    );
}

#[test]
fn a_sequence_is_found_by_time_through_a_fork() {
    check(
        "advance 10s; append g/r k1 A; advance 10s; append g/r k2 B; advance 10s; fork g/s from r at 1; advance 10s; \
         append g/s k3 C; before g/s 11s; before g/s 21s; before g/s 40s; before g/s 41s",
        "r 1; r 2; s at 1; s 2; 1; 1; 1; 2",
    );
}

#[test]
fn a_run_that_does_not_exist_has_nothing_to_read() {
    let none = "there is no run \"r\" [SH-3002]";
    check(
        "events r; event r 1; snapshot r; before r 1s; append g/r k X; events r",
        &format!("{none}; {none}; {none}; {none}; r 1; {none}"),
    );
}
