//! Messages: to other groups, to brokers, and those of the sweeper.

use crate::script::check;

#[test]
fn a_message_is_applied_once_by_the_next_tick() {
    check(
        "in g: send in h then incr x n 1 & set c 1; messages; read h/x; tick; read h/x; get h/c; messages; tick; read h/x; \
         changes since c0",
        "sent; g to a group at 0s; absent; v1 n=1; 1 v1; none; v1 n=1; record h/x written v1, cell h/c written v1, \
         message g delivered v1",
    );
}

#[test]
fn a_timer_waits_for_its_time() {
    check(
        "advance 10s; in g: send after 5s in h then put x; messages; due; advance 4999ms; tick; read h/x; advance 1ms; tick; \
         read h/x; messages; due",
        "sent; g to a group at 15s; wall 15s, cluster never; absent; v1; none; wall never, cluster never",
    );
}

#[test]
fn messages_of_one_group_are_applied_in_the_order_they_were_sent() {
    check(
        "in g: send in h then put x n=1, send in h then put x n=2; in g: send in h then put x n=3; \
         in g: send after 5s in h then put x n=5; in g: send after 4s in h then put x n=4; tick; read h/x; advance 9s; tick; \
         read h/x; changes since c5",
        "sent, sent; sent; sent; sent; v3 n=3; v5 n=5; record h/x written v4, message g delivered v5, record h/x written v5, \
         message g delivered v4",
    );
}

#[test]
fn so_many_messages_wait_and_no_more() {
    check(
        "limit messages_waiting_max 2; in g: publish t p; in g: send after 5s in h then put x; in g: put a, publish t q; \
         in g: put a, send in h then put y; read g/a; advance 5s; tick; read h/x; in g: publish t q, publish t r; \
         in g: publish t q; in g: publish t r; messages",
        "sent; sent; 3 exceeds messages_waiting_max = 2 [SH-1002]; 3 exceeds messages_waiting_max = 2 [SH-1002]; absent; v1; \
         3 exceeds messages_waiting_max = 2 [SH-1002]; sent; 3 exceeds messages_waiting_max = 2 [SH-1002]; \
         g to t: p, g to t: q",
    );
}

#[test]
fn a_sweep_tells_however_many_messages_wait() {
    check(
        "declare job for j. lease 10s attempts 1 sweep r e; limit messages_waiting_max 1; in g: publish t p; put j.a; \
         claim j.a by w; advance 11s; tick; in g: publish t q",
        "#2; sent; j.a v1; j.a #1; 3 exceeds messages_waiting_max = 1 [SH-1002]",
    );
}

#[test]
fn what_a_message_sends_was_accepted_with_it() {
    check(
        "limit messages_waiting_max 1; in g: send in h then put x & publish t p & publish t q; in g: publish t r; tick; messages; \
         in g: publish t r",
        "sent; 2 exceeds messages_waiting_max = 1 [SH-1002]; h to t: p, h to t: q; 3 exceeds messages_waiting_max = 1 [SH-1002]",
    );
}

#[test]
fn a_refused_commit_sends_nothing() {
    check(
        "in g: send in h then put x, publish t p, update a x=1; in g if record a exists: publish t p; messages; tick; read h/x",
        "there is no record \"a\" [SH-1013]; record \"a\" is not as expected: it does not exist [SH-1017]; none; absent",
    );
}

#[test]
fn a_message_is_refused_when_it_is_applied_and_then_dropped() {
    check(
        "in g: send in h if record x exists then put y & set c 1, send in h then put y & update x n=1, send in h then put z; \
         tick; scan; messages; changes since c1; tick; scan",
        "sent, sent, sent; h/z; none; message g refused v1, message g refused v2, record h/z written v1, \
         message g delivered v3; h/z",
    );
}

#[test]
fn the_fence_of_a_message_is_checked_when_it_is_applied() {
    check(
        "declare job for jobs.; put h/jobs.1; put h/jobs.2; next jobs. 2; in g: send in h fence jobs.1 #1 then put x; \
         in g: send after 5s in h fence jobs.2 #1 then put y; tick; read h/x; complete h/jobs.2 #1; advance 5s; tick; \
         read h/y; messages",
        "#2; jobs.1 v1; jobs.2 v1; h/jobs.1 #1, h/jobs.2 #1; sent; sent; v1; jobs.2 v3; absent; none",
    );
}

#[test]
fn a_message_to_its_own_group_comes_after_the_commit() {
    check(
        "in g: put x n=1, send in g if record x n = 1 then put x n=2, put x n=1 m=1; read g/x; tick; read g/x",
        "x v1, sent, x v2; v2 m=1 n=1; v3 n=2",
    );
}

#[test]
fn a_published_message_waits_until_a_broker_has_taken_it() {
    check(
        "in g: publish t one, publish u two; publish t x; in no group: put g, publish t three; messages; tick; messages; \
         restart; image; published; messages; published; messages",
        "sent, sent; a transaction cannot be declared: it must be sent from a group [SH-1018]; g v1, sent; \
         g to t: one, g to u: two, g to t: three; g to t: one, g to u: two, g to t: three; same bytes; none; none",
    );
}

#[test]
fn a_timed_message_follows_all_that_were_sent_before_it_was_due() {
    check(
        "in g: publish t late after 5s; in g: publish t now; messages; advance 5s; in g: publish t later; tick; messages; \
         published; messages",
        "sent; sent; g to t: now, g to t at 5s; sent; g to t: now, g to t: later, g to t: late; none",
    );
}

#[test]
fn numbers_rise_in_the_order_of_release_and_go_on_after_a_refusal_a_restart_and_an_image() {
    check(
        "in g: publish t late after 5s; in g: publish t now; numbers; in g: publish t no, update a x=1; numbers; advance 5s; tick; \
         numbers; published; numbers; restart; in g: publish t p; published; image; in g: publish t q; in g: send in g then put a; \
         numbers; tick; numbers",
        "sent; sent; g: 2 to publish, 1 due, last 2; there is no record \"a\" [SH-1013]; g: 2 to publish, 1 due, last 2; \
         g: 2, 3 to publish, last 3; g: last 3; sent; same bytes; sent; sent; g: 5 to publish, 6 due, last 6; \
         g: 5 to publish, last 6",
    );
}

#[test]
fn a_message_is_a_transaction_and_is_as_long_as_a_value_may_be() {
    check(
        "in g: send nonsense; limit value_bytes_max 37; in g: send in h then put x; in g: send in h then put x y=1; \
         limit value_bytes_max 3; in g: publish t abc; in g: publish t abcd; messages",
        "a message cannot be declared: its body is not a transaction [SH-1018]; sent; 55 exceeds value_bytes_max = 37 [SH-1002]; \
         sent; 4 exceeds value_bytes_max = 3 [SH-1002]; g to t: abc, g to a group at 0s",
    );
}

#[test]
fn the_sweeper_tells_of_rescues_and_of_used_up_attempts() {
    check(
        "declare job for jobs. lease 10s attempts 2 pause 1s..1s sweep rescued exhausted; put g/jobs.1; next jobs.; advance 10s; \
         tick; messages; published; advance 1s; tick; next jobs.; advance 10s; tick; messages; read g/jobs.1",
        "#2; jobs.1 v1; g/jobs.1 #1; \
         g to rescued: {\"attempt\":1,\"reason\":\"rescued\",\"record\":\"jobs.1\",\"token\":\"g#jobs.1#1\"}; g/jobs.1 #2; \
         g to exhausted: {\"attempt\":2,\"reason\":\"exhausted\",\"record\":\"jobs.1\",\"token\":\"g#jobs.1#2\"}; \
         job failed v5 #2 2 failed",
    );
}

#[test]
fn the_sweeper_tells_of_a_failure_only_if_it_was_the_last() {
    check(
        "declare job for jobs. attempts 2 pause 0s..0s sweep rescued exhausted; put jobs.1; next jobs.; fail jobs.1 #1; messages; \
         next jobs.; fail jobs.1 #2; messages; put jobs.2 state=failed; put jobs.3; claim jobs.3; complete jobs.3 #1; \
         published; messages",
        "#2; jobs.1 v1; jobs.1 #1; jobs.1 v3 again in 0s; none; jobs.1 #2; jobs.1 v5 exhausted; \
         jobs.1 to exhausted: {\"attempt\":2,\"reason\":\"exhausted\",\"record\":\"jobs.1\",\"token\":\"jobs.1#2\"}; \
         jobs.2 v1; jobs.3 v1; jobs.3 #1; jobs.3 v3; none",
    );
}

#[test]
fn a_message_goes_to_the_branch_that_it_was_sent_in() {
    check(
        "branch draft; on draft; in g: send in h then put x; on main; tick; read h/x; on draft; read h/x; \
         in g: send after 5s in h then put y; drop draft; advance 5s; tick; on main; read h/y; messages",
        "#2; sent; absent; v1; sent; absent; none",
    );
}
