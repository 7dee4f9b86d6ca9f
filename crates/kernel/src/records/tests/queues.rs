//! Queues: which record is claimed next.

use crate::script::check;

#[test]
fn the_record_that_has_been_ready_longest_is_claimed_first() {
    check(
        "declare job for jobs. lease 10s; put jobs.3; put jobs.1; put jobs.2; next jobs. 2 by w; read jobs.3; next jobs. 5; \
         next jobs.; next jobs. 0",
        "#2; jobs.3 v1; jobs.1 v1; jobs.2 v1; jobs.3 #1, jobs.1 #1; job claimed v2 #1 by w for 10s; jobs.2 #1; nothing; \
         nothing",
    );
}

#[test]
fn a_claim_takes_the_oldest_of_everything_below_its_prefix() {
    check(
        "declare job for jobs.; put jobs.b.1; put jobs.a.b.1; put jobs.1; put jobs.a.1; put jobs.b.2; next jobs. 2; \
         next jobs.a. 5; next * 1; next jobs. 5",
        "#2; jobs.b.1 v1; jobs.a.b.1 v1; jobs.1 v1; jobs.a.1 v1; jobs.b.2 v1; jobs.b.1 #1, jobs.a.b.1 #1; jobs.a.1 #1; \
         jobs.1 #1; jobs.b.2 #1",
    );
}

#[test]
fn many_old_records_of_one_queue_come_before_a_young_one_of_another() {
    check(
        "declare job for jobs.; put jobs.a.1; put jobs.a.2; put jobs.a.3; put jobs.b.1; put jobs.a.4; next jobs. 3; next jobs.; \
         next jobs.",
        "#2; jobs.a.1 v1; jobs.a.2 v1; jobs.a.3 v1; jobs.b.1 v1; jobs.a.4 v1; jobs.a.1 #1, jobs.a.2 #1, jobs.a.3 #1; \
         jobs.b.1 #1; jobs.a.4 #1",
    );
}

#[test]
fn three_characters_end_the_name_of_a_queue() {
    check(
        "declare job for jobs; put /jobs/mail/1; put jobs:mail.1; put /jobs.mail/1; put jobs-mail; next jobs/mail/; next jobs:; \
         next jobs.; next *; count records",
        "#2; jobs/mail/1 v1; jobs:mail.1 v1; jobs.mail/1 v1; jobs-mail v1; jobs/mail/1 #1; jobs:mail.1 #1; jobs.mail/1 #1; \
         jobs-mail #1; job claimed 4",
    );
}

#[test]
fn a_queue_covers_nothing_that_only_starts_like_it() {
    check(
        "declare job for job; put jobs.1; put job; put jobs.mailbox.1; put jobs.mail; next job.; next jobs.mail.; next job:; \
         next jobs.mailbox.; next jobs. 2; next * 2",
        "#2; jobs.1 v1; job v1; jobs.mailbox.1 v1; jobs.mail v1; nothing; nothing; nothing; jobs.mailbox.1 #1; \
         jobs.1 #1, jobs.mail #1; job #1",
    );
}

#[test]
fn the_eighth_separator_ends_the_last_queue() {
    check(
        "declare job for 1.; put 1.2.3.4.5.6.7.8.9.a; put 1.2.3.4.5.6.7.8.b; put 1.2.3.4.5.6.7.c; count records 1.2.3.4.5.6.7.8.; \
         next 1.2.3.4.5.6.7.8. 5; next 1.2.3.4.5.6.7. 5; count records 1.",
        "#2; 1.2.3.4.5.6.7.8.9.a v1; 1.2.3.4.5.6.7.8.b v1; 1.2.3.4.5.6.7.c v1; job pending 2; \
         1.2.3.4.5.6.7.8.9.a #1, 1.2.3.4.5.6.7.8.b #1; 1.2.3.4.5.6.7.c #1; job claimed 3",
    );
}

#[test]
fn a_released_record_goes_to_the_end_of_its_queue() {
    check(
        "declare job for jobs. pause 1s..1s; put jobs.1; put jobs.2; put jobs.3; next jobs.; release jobs.1 #1; next jobs.; \
         fail jobs.2 #1; put jobs.4; advance 1s; tick; next jobs. 5",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; jobs.1 #1; jobs.1 v3; jobs.2 #1; jobs.2 v3 again in 1s; jobs.4 v1; \
         jobs.3 #1, jobs.1 #2, jobs.4 #1, jobs.2 #2",
    );
}

#[test]
fn a_write_that_does_not_move_a_ready_record_leaves_its_place() {
    check(
        "declare job for jobs. and later:ready; put jobs.1; put jobs.2; put jobs.3; patch jobs.1 x=1; put jobs.2 x=1; \
         patch jobs.1 state=pending; touch jobs.1 60s; patch jobs.2 state=later; next jobs. 5",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; jobs.1 v2; jobs.2 v2; jobs.1 v3; jobs.1 v4; jobs.2 v3; \
         jobs.1 #1, jobs.3 #1, jobs.2 #1",
    );
}

#[test]
fn a_type_can_order_claims_by_an_integer_field() {
    check(
        "declare job for jobs. order n; put jobs.1 n=5; put jobs.2 n=-1; put jobs.3; put jobs.4 n=5; put jobs.5 n=first; \
         put jobs.a.1 n=1; next jobs. 2; next jobs.; patch jobs.4 n=-9; next jobs.; put jobs.6 n=-2; next jobs. 9",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; jobs.4 v1; jobs.5 v1; jobs.a.1 v1; jobs.2 #1, jobs.3 #1; jobs.5 #1; jobs.4 v2; \
         jobs.4 #1; jobs.6 v1; jobs.6 #1, jobs.a.1 #1, jobs.1 #1",
    );
}

#[test]
fn a_claim_covers_all_groups_and_names_them() {
    check(
        "declare job for jobs. lease 10s; put g/jobs.1; put jobs.1; put h/jobs.1; put g/jobs.2; next jobs. 3 by w; \
         read g/jobs.1; read jobs.1; next jobs. 3; in g fence jobs.1 #1: complete jobs.1 #1, complete jobs.2 #1; \
         count records; count records g/",
        "#2; jobs.1 v1; jobs.1 v1; jobs.1 v1; jobs.2 v1; g/jobs.1 #1, jobs.1 #1, h/jobs.1 #1; \
         job claimed v2 #1 by w for 10s; job claimed v2 #1 by w for 10s; g/jobs.2 #1; jobs.1 v3, jobs.2 v3; \
         job claimed 2, job completed 2; job completed 2",
    );
}

#[test]
fn a_claim_takes_at_most_so_many_records() {
    check(
        "declare job for jobs.; limit claim_records_max 2; put jobs.1; put jobs.2; put jobs.3; next jobs. 9; next jobs. 9; \
         limit claim_records_max 0; put jobs.4; next jobs.",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; jobs.1 #1, jobs.2 #1; jobs.3 #1; jobs.4 v1; nothing",
    );
}

#[test]
fn a_claim_stops_after_so_many_bytes_but_takes_one_record() {
    check(
        "declare job for jobs.; limit claim_bytes_max 1000; put jobs.1 x=y*800; put jobs.2 x=y*800; put jobs.3 x=y*2000; \
         put jobs.4; next jobs. 9; next jobs. 9",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; jobs.4 v1; jobs.1 #1, jobs.2 #1; jobs.3 #1",
    );
}

#[test]
fn a_record_that_expired_while_it_was_ready_is_not_claimed() {
    check(
        "declare job for jobs.; put jobs.1 ttl 5s; put jobs.2 ttl 6s; put jobs.3; advance 5s; commit; next jobs. 9; \
         changes since c4; count records",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; c4; jobs.2 #1, jobs.3 #1; \
         record jobs.1 expired v2, record jobs.2 claimed v2, record jobs.3 claimed v2; job claimed 2",
    );
}

#[test]
fn a_record_that_is_finished_or_deleted_while_it_is_ready_leaves_its_queue() {
    check(
        "declare job for jobs.; put jobs.a.1; put jobs.a.2; put jobs.a.3; put jobs.b.1; delete record jobs.a.1; \
         patch jobs.a.2 state=cancelled; put jobs.a.3 as task; next jobs. 9; count records",
        "#2; jobs.a.1 v1; jobs.a.2 v1; jobs.a.3 v1; jobs.b.1 v1; jobs.a.1 v2; jobs.a.2 v2; jobs.a.3 v2; \
         jobs.b.1 #1, jobs.a.3 #1; job cancelled 1, job claimed 1, task claimed 1",
    );
}

#[test]
fn an_empty_queue_is_forgotten_by_a_walk() {
    check(
        "declare job for jobs.; put jobs.a.1; rows of records; next jobs.a.; complete jobs.a.1 #1; rows of records; walk; \
         rows of records; next jobs.; walk; put jobs.a.2; next jobs.",
        "#2; jobs.a.1 v1; 1 records, 3 ready, 3 lanes, 3 counts; jobs.a.1 #1; jobs.a.1 v3; \
         1 records, 2 ready, 3 lanes, 3 counts; 3 rounds; 1 records, 3 counts; nothing; 0 rounds; jobs.a.2 v1; jobs.a.2 #1",
    );
}

/// A claim corrects at most 64 lanes that lead to nothing. One that has found no record by then must be repeated.
#[test]
fn a_claim_that_meets_many_empty_queues_is_repeated() {
    check(
        "declare job for jobs.; repeat 65 put jobs.%.1; repeat 65 delete record jobs.%.1; put jobs.66.1; next jobs.; next jobs.; \
         next jobs.",
        "#2; jobs.65.1 v1; jobs.65.1 v2; jobs.66.1 v1; unfinished; jobs.66.1 #1; nothing",
    );
}

#[test]
fn a_claim_that_meets_64_empty_queues_goes_on_to_the_next() {
    check(
        "declare job for jobs.; repeat 64 put jobs.%.1; repeat 64 delete record jobs.%.1; put jobs.66.1; next jobs.; next jobs.",
        "#2; jobs.64.1 v1; jobs.64.1 v2; jobs.66.1 v1; jobs.66.1 #1; nothing",
    );
}

#[test]
fn the_oldest_of_each_queue_is_shown() {
    check(
        "declare job for jobs. pause 1s..1s; oldest 9; advance 10s; put jobs.a.1; advance 5s; put jobs.b.1; put g/jobs.a.2; \
         advance 5s; put jobs.1; oldest 9; oldest 1; oldest 0; next jobs.; oldest 9; fail jobs.a.1 #1; oldest 1",
        "#2; none; jobs.a.1 v1; jobs.b.1 v1; jobs.a.2 v1; jobs.1 v1; \
         jobs.1 job since 20s, jobs.a.1 job since 10s, jobs.b.1 job since 15s; jobs.a.1 job since 10s; none; jobs.a.1 #1; \
         jobs.1 job since 20s, g/jobs.a.2 job since 15s, jobs.b.1 job since 15s; jobs.a.1 v3 again in 1s; \
         jobs.b.1 job since 15s",
    );
}

#[test]
fn a_deleted_branch_has_no_queues() {
    check(
        "declare job for jobs.; branch draft; put jobs.1; on draft; next jobs.; put jobs.2; next jobs. 5; drop draft; next jobs.; \
         on main; next jobs. 5",
        "#2; #2; jobs.1 v1; nothing; jobs.2 v1; jobs.2 #1; there is no branch \"#2\" in this space [SH-1006]; jobs.1 #1",
    );
}
