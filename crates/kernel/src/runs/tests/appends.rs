//! Appends: sequences, keys, ids and expectations.

use crate::script::check;

#[test]
fn the_first_append_creates_the_run() {
    check(
        "events r; append r k1 RunStarted kind import; append r k2 StepStarted step a; events r; runs",
        "there is no run \"r\" [SH-3002]; r 1; r 2; 1 RunStarted, 2 StepStarted of 2; r import RUNNING 2",
    );
}

#[test]
fn an_event_comes_back_as_it_was_sent() {
    check(
        "advance 10s; append r k1 Paid id e1 step s logical 1 engine 2 adapter v3 ref {\"w\":1} signal g parent p \
         extra {\"x\":1.0} data {\"n\":1.50} emitted 3s; event r 1; event r 2",
        "r 1; Paid k1 id e1 step s logical 1 engine 2 adapter v3 ref {\"w\":1} signal g parent p extra {\"x\":1.0} \
         data {\"n\":1.50} emitted 3s persisted 10s c1; absent",
    );
}

#[test]
fn an_event_without_a_time_gets_that_of_its_commit() {
    check(
        "advance 10s; append r k1 X; event r 1; advance 5s; append r k1 X; event r 1; append r k2 X emitted 99s; event r 2",
        "r 1; X k1 data null emitted 10s persisted 10s c1; r 1 known; X k1 data null emitted 10s persisted 10s c1; r 2; \
         X k2 data null emitted 99s persisted 15s c3",
    );
}

#[test]
fn a_known_key_is_answered_with_the_first_event() {
    check(
        "append r k1 X data {\"a\":1}; append r k2 Y; append r k1 X data {\"a\":1}; append r k2 Y; append r k1 X data {\"a\":1}; \
         events r",
        "r 1; r 2; r 1 known; r 2 known; r 1 known; 1 X, 2 Y of 2",
    );
}

#[test]
fn a_known_event_with_other_content_differs_and_the_first_one_stays() {
    check(
        "append r k X step s logical 1 data {\"a\":1} extra {\"b\":1}; append r k Y step s logical 1 data {\"a\":1} extra {\"b\":1}; \
         append r k X step t logical 1 data {\"a\":1} extra {\"b\":1}; append r k X step s logical 2 data {\"a\":1} extra {\"b\":1}; \
         append r k X step s logical 1 data {\"a\":1.0} extra {\"b\":1}; append r k X step s logical 1 data {\"a\":1}; \
         append r k X step s logical 1 data {\"a\":1} extra {\"b\":1}; event r 1; events r",
        "r 1; r 1 differs; r 1 differs; r 1 differs; r 1 differs; r 1 differs; r 1 known; \
         X k step s logical 1 extra {\"b\":1} data {\"a\":1} emitted 0s persisted 0s c1; 1 X of 1",
    );
}

#[test]
fn who_emitted_an_event_again_and_when_makes_no_difference() {
    check(
        "append r k X engine 1 emitted 1s adapter v1 ref {\"a\":1} signal s parent p id e1; append r k X engine 2; \
         append r k X emitted 9s; append r k X adapter v2 ref {\"a\":2}; append r k X signal t parent q; append r k X id e2; \
         events r",
        "r 1; r 1 known; r 1 known; r 1 known; r 1 known; r 1 known; 1 X of 1",
    );
}

#[test]
fn an_id_identifies_an_event_too() {
    check(
        "append r k1 X id e1; append r k2 X id e1; append r k3 Y id e1; append r k4 X id e2; append r e2 X; events r",
        "r 1; r 1 known; r 1 differs; r 2; r 3; 1 X, 2 X, 3 X of 3",
    );
}

#[test]
fn an_id_that_the_store_made_identifies_its_event_too() {
    check(
        "advance 5s; append r k1 X; append r k2 Y id e2; advance 1s; append r k3 X id made(r,5s,1); append r k3 Z id made(r,5s,1); \
         append r k3 Z id made(r,5s,1) strict; append r k3 Z id made(r,5s,2); append r k4 Z id made(r,5s,2); events r",
        "r 1; r 2; r 1 known; r 1 differs; this idempotency key or id belongs to event 1 of run \"r\" [SH-3004]; \
         r 3; r 3 known; 1 X, 2 Y, 3 Z of 3",
    );
}

#[test]
fn an_id_that_the_store_will_make_is_refused() {
    check(
        "advance 5s; append r k1 X; append r k2 X id made(r,5s,2); append r k2 X id made(r,5s,9); append r k2 X id made(s,5s,2); \
         append r k3 X id made(r,6s,9); events r; advance 1s; append s k X id made(s,6s+4,1); append s k X; events s; close r; \
         append r k4 X id made(r,5s,1); append r k4 X id made(r,5s,4)",
        "r 1; this idempotency key or id belongs to event 2 of run \"r\" [SH-3004]; \
         this idempotency key or id belongs to event 9 of run \"r\" [SH-3004]; r 2; r 3; 1 X, 2 X, 3 X of 3; \
         this idempotency key or id belongs to event 1 of run \"s\" [SH-3004]; s 1; 1 X of 1; r at 3; r 1 known; \
         run \"r\" is closed at sequence 3 [SH-3005]",
    );
}

#[test]
fn a_fork_knows_the_ids_that_its_own_readers_see() {
    check(
        "append g/r k1 X; append g/r k2 Y; append g/r k3 Z id e3; advance 3s; fork g/f from r at 2; append g/f f3 F; \
         append g/f a X id made(f,3s+3,1); append g/f a Y id made(f,3s+3,2); append g/f a F id made(f,3s+3,3); \
         append g/f a G id made(r,0s+1,2); append g/r a Y id made(r,0s+1,2); events g/f; events g/r",
        "r 1; r 2; r 3; f at 2; f 3; f 1 known; f 2 known; f 3 known; f 4; r 2 known; 1 X, 2 Y, 3 F, 4 G of 4; \
         1 X, 2 Y, 3 Z of 3",
    );
}

#[test]
fn a_key_counts_before_an_id() {
    check(
        "append r k1 X id e1; append r k2 Y id e2; append r k1 X id e2; append r k2 Y id e1; append r k3 Y id e2; events r",
        "r 1; r 2; r 1 known; r 2 known; r 2 known; 1 X, 2 Y of 2",
    );
}

#[test]
fn a_strict_append_refuses_a_known_event_with_other_content() {
    check(
        "append r k X strict; append r k X strict; append r k Y strict; append r k2 X id e strict; append r k3 Y id e strict; \
         append r k3 X id e strict; events r",
        "r 1; r 1 known; this idempotency key or id belongs to event 1 of run \"r\" [SH-3004]; r 2; \
         this idempotency key or id belongs to event 2 of run \"r\" [SH-3004]; r 2 known; 1 X, 2 X of 2",
    );
}

#[test]
fn an_append_that_must_be_the_first_is_refused_with_the_rest_of_its_commit() {
    check(
        "in g: append r k X once, incr a n 1; in g: append r k X once, incr a n 1; in g: incr a n 1, append r k Y once; \
         read g/a; events g/r",
        "r 1, a v1 is 1; this idempotency key or id belongs to event 1 of run \"r\" [SH-3004]; \
         this idempotency key or id belongs to event 1 of run \"r\" [SH-3004]; v1 n=1; 1 X of 1",
    );
}

#[test]
fn an_append_can_expect_the_last_sequence_and_zero_means_no_run() {
    check(
        "append r k1 X expect 1; events r; append r k1 X expect 0; append r k2 X expect 0; append r k2 X expect 1; \
         append r k3 X expect 1; append r k3 X expect 3; append r k3 X expect 2",
        "run \"r\" is at sequence 0, not at 1 [SH-3003]; there is no run \"r\" [SH-3002]; r 1; \
         run \"r\" is at sequence 1, not at 0 [SH-3003]; r 2; run \"r\" is at sequence 2, not at 1 [SH-3003]; \
         run \"r\" is at sequence 2, not at 3 [SH-3003]; r 3",
    );
}

#[test]
fn a_retry_of_an_append_that_succeeded_is_answered_whatever_it_expects() {
    check(
        "append r k1 X expect 0; append r k2 X expect 1; append r k1 X expect 0; append r k2 X expect 1; append r k1 X expect 9; \
         append r k1 Y expect 9; events r",
        "r 1; r 2; r 1 known; r 2 known; r 1 known; r 1 differs; 1 X, 2 X of 2",
    );
}

#[test]
fn a_run_knows_its_own_keys_only() {
    check(
        "append r k X id e; append s k Y id e; append g/r k Z id e; append g/r k Z; events s; events g/r",
        "r 1; s 1; r 1; r 1 known; 1 Y of 1; 1 Z of 1",
    );
}

#[test]
fn several_events_of_one_commit_are_in_order_and_share_its_number() {
    check(
        "in g: append r k1 A, append r k2 B, append r k1 A, append s k1 C, append r k3 D expect 2; event g/r 1; event g/r 3; \
         events g/r; events g/s",
        "r 1, r 2, r 1 known, s 1, r 3; A k1 data null emitted 0s persisted 0s c1; D k3 data null emitted 0s persisted 0s c1; \
         1 A, 2 B, 3 D of 3; 1 C of 1",
    );
}

#[test]
fn a_refused_commit_leaves_no_event_no_key_and_no_projection() {
    check(
        "in g: append r k1 RunStarted, append r k2 StepStarted step a, append s k X expect 7; events g/r; rows of runs; \
         append g/r k1 RunStarted; in g: append r k2 RunCompleted, update a x=1; snapshot g/r; append g/r k2 RunPaused; count runs",
        "run \"s\" is at sequence 0, not at 7 [SH-3003]; there is no run \"r\" [SH-3002]; none; r 1; \
         there is no record \"a\" [SH-1013]; RUNNING at 1 from 0s; r 2; PAUSED 1",
    );
}

#[test]
fn the_content_of_an_event_is_at_most_as_long_as_a_value_may_be() {
    check(
        "limit value_bytes_max 8; append r k1 X data {\"a\":12}; append r k2 X data {\"a\":123}; append r k2 X ref {\"a\":12}; \
         append r k3 X ref {\"a\":123}; events r",
        "r 1; 9 exceeds value_bytes_max = 8 [SH-1002]; r 2; 9 exceeds value_bytes_max = 8 [SH-1002]; 1 X, 2 X of 2",
    );
}

#[test]
fn a_commit_has_so_many_appends_and_no_more() {
    check(
        "limit transaction_ops_max 2; in g: append r k1 A, append r k2 B; in g: append r k3 A, append r k4 B, append r k5 C; \
         events g/r",
        "r 1, r 2; 3 exceeds transaction_ops_max = 2 [SH-1002]; 1 A, 2 B of 2",
    );
}

#[test]
fn a_run_has_the_kind_of_its_first_append() {
    check(
        "append r k1 X kind import; append r k2 X kind export; append s k1 X; append s k2 X kind export; runs; count runs",
        "r 1; r 2; s 1; s 2; r import PENDING 2, s PENDING 2; PENDING 1, import PENDING 1",
    );
}

#[test]
fn the_feed_has_one_change_for_each_event() {
    check(
        "append g/r k1 X; append g/r k1 X; append g/r k2 X expect 7; in g: append r k2 X, append r k3 X; close g/r; close g/r; \
         delete run g/r; append g/r k4 X; changes since c0",
        "r 1; r 1 known; run \"r\" is at sequence 1, not at 7 [SH-3003]; r 2, r 3; r at 3; r at 3; r at 3; \
         run \"r\" was deleted at sequence 3; its name is never reused [SH-3006]; \
         run g/r written v1, run g/r written v2, run g/r written v3, run g/r finished v3, run g/r deleted v3",
    );
}
