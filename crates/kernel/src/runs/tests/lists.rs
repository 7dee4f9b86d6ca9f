//! Lists and counts of runs.

use crate::script::check;

#[test]
fn a_list_is_in_the_order_of_name_and_group() {
    check(
        "append b k X; append g/a k X; append a k X; append h/ab k X; append g/g k X; runs; runs a; runs g/; runs own/; runs g/a; \
         runs c",
        "b 1; a 1; a 1; ab 1; g 1; a PENDING 1, g/a PENDING 1, h/ab PENDING 1, b PENDING 1, g PENDING 1; \
         a PENDING 1, g/a PENDING 1, h/ab PENDING 1; g/a PENDING 1, g PENDING 1; a PENDING 1, b PENDING 1, g PENDING 1; \
         g/a PENDING 1; none",
    );
}

#[test]
fn a_list_comes_in_pages_that_continue_where_they_ended() {
    check(
        "append a k X; append b k X; append g/b k X; append c k X; runs limit 2; runs limit 2 more; runs limit 2 more; \
         runs limit 3; runs limit 3 more; runs examine 1; runs examine 1 more",
        "a 1; b 1; b 1; c 1; a PENDING 1, b PENDING 1, more; g/b PENDING 1, c PENDING 1, more; none; \
         a PENDING 1, b PENDING 1, g/b PENDING 1, more; c PENDING 1; a PENDING 1, more; b PENDING 1, more",
    );
}

#[test]
fn a_list_by_status_or_kind_has_the_longest_idle_first_in_each_kind() {
    check(
        "advance 1s; append c k RunStarted kind y; advance 1s; append a k RunStarted kind x; advance 1s; append b k RunStarted kind x; \
         advance 1s; append d k RunPaused kind x; advance 1s; append g/e k RunStarted kind x; runs status RUNNING; \
         runs status PAUSED|RUNNING; runs kind x; runs kind y status PAUSED; runs kind x status RUNNING; runs kind z; \
         runs g/ status RUNNING; runs own/ kind x status RUNNING; runs b status RUNNING",
        "c 1; a 1; b 1; d 1; e 1; a x RUNNING 1, b x RUNNING 1, g/e x RUNNING 1, c y RUNNING 1; \
         a x RUNNING 1, b x RUNNING 1, d x PAUSED 1, g/e x RUNNING 1, c y RUNNING 1; \
         a x RUNNING 1, b x RUNNING 1, d x PAUSED 1, g/e x RUNNING 1; none; a x RUNNING 1, b x RUNNING 1, g/e x RUNNING 1; none; \
         g/e x RUNNING 1; a x RUNNING 1, b x RUNNING 1; b x RUNNING 1",
    );
}

#[test]
fn a_list_by_status_comes_in_pages_too() {
    check(
        "append a k RunStarted kind x; append b k RunStarted kind y; append c k RunStarted kind x; runs status RUNNING limit 2; \
         runs status RUNNING limit 2 more; runs kind x limit 1; runs kind x limit 1 more; runs kind x limit 1 more",
        "a 1; b 1; c 1; a x RUNNING 1, c x RUNNING 1, more; b y RUNNING 1; a x RUNNING 1, more; c x RUNNING 1, more; none",
    );
}

#[test]
fn a_cursor_belongs_to_its_list() {
    let other = "a cursor is not allowed: it belongs to another list [SH-1001]";
    check(
        "append a k X; append b k X; runs limit 1; runs status PENDING limit 1 more; runs status PENDING limit 1; runs limit 1 more",
        &format!("a 1; b 1; a PENDING 1, more; {other}; a PENDING 1, more; {other}"),
    );
}

#[test]
fn idle_runs_are_those_without_an_event_since_then() {
    check(
        "advance 10s; append a k RunStarted kind x; append b k RunStarted kind y; advance 10s; append c k RunStarted kind x; \
         append a k2 X; runs idle 10s; runs idle 5s; runs status RUNNING idle 10s; runs kind x idle 5s; advance 10s; append d k X; \
         runs status RUNNING idle 5s; runs idle 5s; runs idle 0s; runs status RUNNING idle 1h",
        "a 1; b 1; c 1; a 2; b y RUNNING 1; b y RUNNING 1; b y RUNNING 1; none; d 1; \
         a x RUNNING 2, c x RUNNING 1, b y RUNNING 1; a x RUNNING 2, b y RUNNING 1, c x RUNNING 1; \
         a x RUNNING 2, b y RUNNING 1, c x RUNNING 1, d PENDING 1; none",
    );
}

#[test]
fn an_entry_may_lag_a_minute_and_is_then_moved() {
    check(
        "append a k1 RunStarted kind x; advance 1s; append b k1 RunStarted kind x; advance 59s; append a k2 X; runs kind x; \
         quietest x; advance 2s; append a k3 X; runs kind x; quietest x; rows of runs",
        "a 1; b 1; a 2; a x RUNNING 2, b x RUNNING 1; a x RUNNING 2; a 3; b x RUNNING 1, a x RUNNING 3; b x RUNNING 1; \
         2 heads, 4 events, 4 keys, 2 listed",
    );
}

#[test]
fn the_quietest_run_of_a_kind_is_running() {
    check(
        "quietest x; append a k X kind x; quietest x; advance 1s; append b k RunStarted kind x; append c k RunStarted kind y; \
         advance 1s; append a k2 RunStarted; quietest x; append b k2 RunCompleted; quietest x; append a k3 RunPaused; quietest x; \
         quietest y",
        "none; a 1; none; b 1; c 1; a 2; b x RUNNING 1; b 2; a x RUNNING 2; a 3; none; c y RUNNING 1",
    );
}

#[test]
fn counts_of_a_group_read_its_runs_up_to_a_limit() {
    check(
        "append g/a k X kind x; append g/b k RunStarted kind x; append g/c k X; append h/a k X; append a k X; count runs g/; \
         count runs h/; count runs z/; count runs; count runs g/ examine 3; count runs g/ examine 2",
        "a 1; b 1; c 1; a 1; a 1; PENDING 1, x PENDING 1, x RUNNING 1; PENDING 1; none; PENDING 3, x PENDING 1, x RUNNING 1; \
         PENDING 1, x PENDING 1, x RUNNING 1; 3 exceeds scan_rows_max = 2 [SH-1002]",
    );
}

#[test]
fn all_runs_are_found_whatever_the_size_of_a_page() {
    check(
        "all runs; append a k X; append g/b k X; append h/c k X; append d k X; append g/g k X; all runs; all runs limit 1; \
         all runs limit 2; delete run d; all runs limit 1",
        "none; a 1; b 1; c 1; d 1; g 1; a, d, g, g/b, h/c; a, d, g, g/b, h/c; a, d, g, g/b, h/c; d at 1; a, g, g/b, h/c",
    );
}
