//! Forks: runs that share the events of another.

use crate::script::check;

#[test]
fn a_fork_shares_events_and_keys_up_to_its_sequence() {
    check(
        "in g: append r k1 A id e1, append r k2 B, append r k3 C id e3; fork g/s from r at 2; events g/s; append g/s k1 A; \
         append g/s k9 A id e1; append g/s k2 X; append g/s k3 C id e3; events g/s; events g/r",
        "r 1, r 2, r 3; s at 2; 1 A, 2 B of 2; s 1 known; s 1 known; s 2 differs; s 3; 1 A, 2 B, 3 C of 3; 1 A, 2 B, 3 C of 3",
    );
}

#[test]
fn a_fork_copies_no_events() {
    check(
        "in g: append r k1 A, append r k2 B, append r k3 C; fork g/s from r at 3; rows of runs; append g/s k4 D; rows of runs",
        "r 1, r 2, r 3; s at 3; 2 heads, 2 names, 3 events, 3 keys, 2 listed; s 4; 2 heads, 2 names, 4 events, 4 keys, 2 listed",
    );
}

#[test]
fn what_follows_a_fork_is_apart() {
    check(
        "append g/r k1 A; fork g/s from r at 1; append g/r k2 B; append g/s k2 C; append g/s k3 D; append g/r k2 B; \
         append g/s k2 C; events g/r; events g/s; event g/s 1; event g/s 2",
        "r 1; s at 1; r 2; s 2; s 3; r 2 known; s 2 known; 1 A, 2 B of 2; 1 A, 2 C, 3 D of 3; \
         A k1 data null emitted 0s persisted 0s c1; C k2 data null emitted 0s persisted 0s c4",
    );
}

#[test]
fn a_fork_needs_a_new_name_and_an_event_of_a_run_that_exists() {
    check(
        "append g/r k1 A; append g/r k2 B; append g/t k A; fork g/s from x at 1; fork g/s from r at 0; fork g/s from r at 3; \
         fork g/t from r at 1; fork g/r from r at 1; fork g/s from r at 2; fork g/s from r at 2; delete run g/t; \
         fork g/u from t at 1; fork g/t from r at 1; events g/u",
        "r 1; r 2; t 1; there is no run \"x\" [SH-3002]; run \"r\" is at sequence 2, not at 0 [SH-3003]; \
         run \"r\" is at sequence 2, not at 3 [SH-3003]; run \"t\" already exists [SH-1007]; \
         run \"r\" already exists [SH-1007]; s at 2; run \"s\" already exists [SH-1007]; t at 1; \
         run \"t\" was deleted at sequence 1; its name is never reused [SH-3006]; \
         run \"t\" was deleted at sequence 1; its name is never reused [SH-3006]; there is no run \"u\" [SH-3002]",
    );
}

#[test]
fn a_fork_is_in_the_group_of_its_run() {
    check(
        "append r k A; append g/q k B; append g k C; fork s from r at 1; fork g/s from r at 1; fork h/s from q at 1; \
         fork g/s from q at 1; fork g/t from g at 1; events g/s; events g/t",
        "r 1; q 1; g 1; there is no run \"r\" [SH-3002]; there is no run \"r\" [SH-3002]; there is no run \"q\" [SH-3002]; \
         s at 1; t at 1; 1 B of 1; 1 C of 1",
    );
}

#[test]
fn a_fork_has_the_projection_of_its_sequence() {
    check(
        "in g: append r k1 RunStarted emitted 1s, append r k2 StepStarted step a emitted 2s, \
         append r k3 StepCompleted step a emitted 3s, append r k4 RunCompleted emitted 4s; fork g/s from r at 2; snapshot g/s; \
         fork g/t from r at 4; snapshot g/t; fork g/u from r at 1; snapshot g/u; snapshot g/r",
        "r 1, r 2, r 3, r 4; s at 2; RUNNING at 2 from 1s, a RUNNING from 2s; t at 4; \
         COMPLETED at 4 from 1s to 4s took 3s, a SUCCESS from 2s to 3s; u at 1; RUNNING at 1 from 1s; \
         COMPLETED at 4 from 1s to 4s took 3s, a SUCCESS from 2s to 3s",
    );
}

#[test]
fn the_projections_of_a_run_and_its_fork_are_apart() {
    check(
        "in g: append r k1 RunStarted emitted 1s, append r k2 StepStarted step a emitted 2s; fork g/s from r at 2; \
         append g/s k3 StepFailed step a emitted 3s; append g/r k3 StepCompleted step a emitted 4s; \
         append g/s k4 RunFailed emitted 5s; snapshot g/r; snapshot g/s; count runs",
        "r 1, r 2; s at 2; s 3; r 3; s 4; RUNNING at 3 from 1s, a SUCCESS from 2s to 4s; \
         FAILED at 4 from 1s to 5s took 4s, a FAILED from 2s to 3s error \"\" \"\"; RUNNING 1, FAILED 1",
    );
}

#[test]
fn a_fork_has_the_kind_of_its_run_and_is_listed_from_its_own_time() {
    check(
        "advance 10s; append g/r k1 RunStarted kind import; advance 10s; fork g/s from r at 1; runs; runs idle 5s; \
         count runs; quietest import; changes since c1",
        "r 1; s at 1; g/r import RUNNING 1, g/s import RUNNING 1; g/r import RUNNING 1; import RUNNING 2; \
         g/r import RUNNING 1; run g/s written v1",
    );
}

#[test]
fn a_fork_of_a_closed_run_is_open() {
    check(
        "append g/r k1 A; close g/r; fork g/s from r at 1; append g/s k2 B; close g/s; append g/s k3 C; append g/r k2 B",
        "r 1; r at 1; s at 1; s 2; s at 2; run \"s\" is closed at sequence 2 [SH-3005]; \
         run \"r\" is closed at sequence 1 [SH-3005]",
    );
}

#[test]
fn forks_of_forks_are_read_through_all_of_them() {
    check(
        "in g: append a k1 A, append a k2 B, append a k3 C; fork g/b from a at 2; append g/b k4 D; fork g/c from b at 3; \
         append g/c k5 E; fork g/d from c at 1; append g/d k6 F; events g/c; events g/d; events g/c after 1 limit 2; \
         events g/c after 2 limit 1; events g/c after 3; append g/c k1 A; append g/c k4 D; append g/c k3 C; append g/d k4 G",
        "a 1, a 2, a 3; b at 2; b 3; c at 3; c 4; d at 1; d 2; 1 A, 2 B, 3 D, 4 E of 4; 1 A, 2 F of 2; 2 B, 3 D of 4; \
         3 D of 4; 4 E of 4; c 1 known; c 3 known; c 5; d 3",
    );
}

#[test]
fn forks_are_16_deep_and_no_deeper() {
    check(
        "in g: append r k A, fork r1 from r at 1, fork r2 from r1 at 1, fork r3 from r2 at 1, fork r4 from r3 at 1, \
         fork r5 from r4 at 1, fork r6 from r5 at 1, fork r7 from r6 at 1, fork r8 from r7 at 1, fork r9 from r8 at 1, \
         fork r10 from r9 at 1, fork r11 from r10 at 1, fork r12 from r11 at 1, fork r13 from r12 at 1, fork r14 from r13 at 1, \
         fork r15 from r14 at 1; fork g/r16 from r15 at 1; fork g/r17 from r16 at 1; append g/r16 k A; append g/r16 k2 B; \
         events g/r16; fork g/s from r15 at 1",
        "r 1, r1 at 1, r2 at 1, r3 at 1, r4 at 1, r5 at 1, r6 at 1, r7 at 1, r8 at 1, r9 at 1, r10 at 1, r11 at 1, r12 at 1, \
         r13 at 1, r14 at 1, r15 at 1; r16 at 1; 17 exceeds run_fork_depth_max = 16 [SH-1002]; r16 1 known; r16 2; \
         1 A, 2 B of 2; s at 1",
    );
}

/// A fork at the last event copies its projection, one in the middle replays at most 10,000 events.
#[test]
fn a_fork_in_the_middle_replays_10_000_events_and_no_more() {
    let batch = |first: u32| {
        let appends: Vec<String> = (first..first + 126).map(|number| format!("append r k{number} X")).collect();
        format!("in g: {}; ", appends.join(", "))
    };
    // 80 times 126 is 10,080.
    let appends: String = (0..80).map(|number| batch(number * 126)).collect();
    let mut stage = crate::script::Stage::new(1);
    stage.say(&appends);
    let said = stage.say(
        "fork g/s from r at 10000; fork g/t from r at 10001; fork g/t from r at 10080; events g/s after 9999; events g/t after 10079",
    );
    assert!(said.ends_with(
        "; s at 10000; 10001 exceeds run_fork_events_max = 10000 [SH-1002]; t at 10080; 10000 X of 10000; 10080 X of 10080"
    ));
}

#[test]
fn shared_events_remain_until_the_last_fork_is_deleted() {
    check(
        "append g/r k1 A; append g/r k2 B; fork g/s from r at 1; fork g/t from r at 2; delete run g/r; tick; rows of runs; \
         events g/s; append g/s k1 A; delete run g/s; tick; events g/t; rows of runs; delete run g/t; tick; rows of runs; due; \
         append g/r k1 A",
        "r 1; r 2; s at 1; t at 2; r at 2; 3 heads, 2 names, 2 events, 2 keys, 2 listed; 1 A of 1; s 1 known; s at 1; \
         1 A, 2 B of 2; 3 heads, 1 names, 2 events, 2 keys, 1 listed; t at 2; 3 heads; wall never, cluster never; \
         run \"r\" was deleted at sequence 2; its name is never reused [SH-3006]",
    );
}

#[test]
fn a_run_outlives_its_forks() {
    check(
        "append g/r k1 A; fork g/s from r at 1; append g/s k2 B; delete run g/s; tick; rows of runs; events g/r; append g/r k2 C; \
         delete run g/r; tick; rows of runs",
        "r 1; s at 1; s 2; s at 2; 2 heads, 1 names, 1 events, 1 keys, 1 listed; 1 A of 1; r 2; r at 2; 2 heads",
    );
}

#[test]
fn a_chain_of_forks_goes_link_by_link_from_its_end() {
    check(
        "append g/a k1 A; fork g/b from a at 1; append g/b k2 B; fork g/c from b at 2; append g/c k3 C; delete run g/a; \
         delete run g/b; tick; events g/c; image; append g/c k1 A; restart; append g/c k2 B; fork g/d from c at 3; \
         delete run g/c; tick; events g/d; rows of runs; delete run g/d; tick; rows of runs; image",
        "a 1; b at 1; b 2; c at 2; c 3; a at 1; b at 2; 1 A, 2 B, 3 C of 3; same bytes; c 1 known; c 2 known; d at 3; c at 3; \
         1 A, 2 B, 3 C of 3; 4 heads, 1 names, 3 events, 3 keys, 1 listed; d at 3; 4 heads; same bytes",
    );
}
