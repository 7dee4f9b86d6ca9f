//! Scans, indexes and counts.

use crate::script::check;

#[test]
fn a_scan_is_in_the_order_of_name_and_group() {
    check(
        "put b; put g/a; put a; put h/ab; put g/g; put ac; delete record ac; scan; scan a; scan g/; scan own/; scan g/a; scan c",
        "b v1; a v1; a v1; ab v1; g v1; ac v1; ac v2; a, g/a, h/ab, b, g; a, g/a, h/ab; g/a, g; a, b, g; g/a; none",
    );
}

#[test]
fn a_scan_reads_large_fields_of_what_it_returns_and_of_what_it_tests() {
    check(
        "declare job for jobs.; put jobs.1 n=1 x=y*2000 z=y*3000; put jobs.2 n=2 x=y*2000; put other x=y*2000; \
         scan counting; scan where n = 1 counting; scan where n = 3 counting; scan of job where n = 2 counting; \
         scan where x = y*2000 and n = 2 counting; scan where n = 2 and x = y*2000 counting; scan where z exists counting; \
         scan of job where state = claimed counting",
        "#2; jobs.1 v1; jobs.2 v1; other v1; jobs.1, jobs.2, other, 4 large fields read; jobs.1, 2 large fields read; \
         0 large fields read; jobs.2, 1 large fields read; jobs.2, 4 large fields read; jobs.2, 2 large fields read; \
         jobs.1, 3 large fields read; 0 large fields read",
    );
}

#[test]
fn a_scan_comes_in_pages_that_continue_where_they_ended() {
    check(
        "put a; put b; put g/b; put c x=1; put d; scan limit 2; scan limit 2 more; scan limit 2 more; scan limit 5; \
         scan limit 5 more; scan examine 2 where x exists; scan examine 2 where x exists more; scan examine 2 where x exists more",
        "a v1; b v1; b v1; c v1; d v1; a, b, more; g/b, c, more; d; a, b, g/b, c, d, more; none; more; c, more; none",
    );
}

#[test]
fn each_test_of_a_filter_compares_with_the_field() {
    check(
        "put a n=1 t=x; put b n=2 t=y; put c n=3; scan where n = 2; scan where n != 2; scan where n < 2; scan where n <= 2; \
         scan where n > 2; scan where n >= 2; scan where n in 1|3|9; scan where n not-in 1|3; scan where t exists; \
         scan where n > 1 and t exists; scan where n = 1 and n = 2",
        "a v1; b v1; c v1; b; a, c; a; a, b; c; b, c; a, c; b; a, b; b; none",
    );
}

#[test]
fn a_missing_field_is_unequal_and_in_no_order() {
    check(
        "put a; put b n=1; scan where n = 1; scan where n != 1; scan where n < 9; scan where n > 0; scan where n in 1; \
         scan where n not-in 1; scan where n exists",
        "a v1; b v1; b; a; b; b; b; a; b",
    );
}

#[test]
fn values_of_different_kinds_are_unequal_and_have_no_order() {
    check(
        "put a n=10; put b n=0x9; put c n=nine; put d n=null; put e n=true; put f n={\"a\":1}; scan where n < 11; \
         scan where n >= 0x9; scan where n > mine; scan where n = null; scan where n != 10; scan where n in true|nine; \
         scan where n >= null; scan where n = {\"a\":1}; scan where n = {\"a\":1.0}",
        "a v1; b v1; c v1; d v1; e v1; f v1; a; b; c; d; b, c, d, e, f; c, e; none; f; none",
    );
}

#[test]
fn a_scan_tests_what_the_store_maintains() {
    check(
        "declare job for jobs.; advance 10s; put jobs.1; advance 10s; put jobs.2; claim jobs.2 by w; scan where state = pending; \
         scan where state in pending|claimed; scan where created_at < 20000; scan where updated_at >= 20000; \
         scan where worker = w; scan where timeout_at exists; scan where state exists",
        "#2; jobs.1 v1; jobs.2 v1; jobs.2 #1; jobs.1; jobs.1, jobs.2; jobs.1; jobs.2; jobs.2; jobs.2; jobs.1, jobs.2",
    );
}

#[test]
fn a_scan_of_a_type_leaves_out_all_others() {
    check(
        "declare job for jobs.; put jobs.1; put a; put b as task; scan of job; scan of task; scan of other; scan a of job",
        "#2; jobs.1 v1; a v1; b v1; jobs.1; b; \"other\" is not a record type of this space, or the record has no type [SH-1014]; \
         none",
    );
}

#[test]
fn an_index_serves_the_first_test_of_its_field_in_its_own_order() {
    check(
        "declare job for jobs. index n:signed; put jobs.1 n=5; put jobs.2 n=-7; put jobs.3 n=5; put jobs.4 n=text; put jobs.5; \
         put g/jobs.6 n=0; scan of job where n > -9; scan of job where n >= 5; scan of job where n < 5; scan of job where n = 5; \
         scan of job where n <= 0; scan g/ of job where n < 9; scan own/ of job where n < 9; scan jobs.2 of job where n < 9; \
         scan where n < 9; scan of job where n = text; scan of job where n != 5",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; jobs.4 v1; jobs.5 v1; jobs.6 v1; jobs.2, g/jobs.6, jobs.1, jobs.3; \
         jobs.1, jobs.3; jobs.2, g/jobs.6; jobs.1, jobs.3; jobs.2, g/jobs.6; g/jobs.6; jobs.2, jobs.1, jobs.3; jobs.2; \
         jobs.1, jobs.2, jobs.3, g/jobs.6; jobs.4; jobs.2, jobs.4, jobs.5, g/jobs.6",
    );
}

#[test]
fn an_index_holds_values_of_its_own_kind_only() {
    check(
        "declare job for jobs. index b:bytes,t:text,u:unsigned; put g/jobs.1 b=0x1 t=x u=3; put g/jobs.2 b=x t=0x1 u=three; \
         put g/jobs.3 b=0x2 t=y u=12; rows of records; scan of job where b >= 0x1; scan of job where t < z; \
         scan of job where u > 2; scan of job where u = 3 and t = x; scan of job where t = 0x1",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; 3 records, 3 names, 4 ready, 2 lanes, 6 indexed, 2 counts; g/jobs.1, g/jobs.3; \
         g/jobs.1, g/jobs.3; g/jobs.1, g/jobs.3; g/jobs.1; g/jobs.2",
    );
}

#[test]
fn an_index_follows_every_write_and_the_end_of_a_record() {
    check(
        "declare job for jobs. index n:signed,state:text; put jobs.1 n=1; scan of job where n > 0; patch jobs.1 n=2; \
         scan of job where n = 1; scan of job where n = 2; incr jobs.1 n 1; scan of job where n = 3; swap jobs.1 n 3 none; \
         scan of job where n > 0; put jobs.1 n=4; claim jobs.1; scan of job where state = claimed; complete jobs.1 #1 n=5; \
         scan of job where state = claimed; scan of job where state = completed; scan of job where n = 5; touch jobs.1 5s; \
         advance 5s; tick; scan of job where n > 0; rows of records; put jobs.1 n=1; put jobs.1 as task; rows of records",
        "#2; jobs.1 v1; jobs.1; jobs.1 v2; none; jobs.1; jobs.1 v3 is 3; jobs.1; jobs.1 v4; none; jobs.1 v5; jobs.1 #1; jobs.1; \
         jobs.1 v7; none; jobs.1; jobs.1; jobs.1 v8; none; 1 records, 1 ready, 2 lanes, 1 due by wall; jobs.1 v10; jobs.1 v11; \
         1 records, 2 ready, 2 lanes, 1 indexed, 2 counts",
    );
}

#[test]
fn an_index_sorts_long_text_by_its_beginning_and_the_record_decides() {
    check(
        "declare job for jobs. index t:text; put jobs.1 t=x*257; put jobs.2 t=x*256; put jobs.3 t=x*2000; put jobs.4 t=x*255; \
         scan of job where t = x*257; scan of job where t > x*257; scan of job where t >= x*256; scan of job where t < x*256",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; jobs.4 v1; jobs.1; jobs.3; jobs.1, jobs.2, jobs.3; jobs.4",
    );
}

#[test]
fn a_scan_of_an_index_comes_in_pages_and_its_cursor_is_its_own() {
    let other = "a cursor is not allowed: it belongs to another scan [SH-1001]";
    check(
        "declare job for jobs. index n:signed; put jobs.1 n=3; put jobs.2 n=2; put g/jobs.3 n=1; scan of job where n > 0 limit 2; \
         scan of job where n > 0 limit 2 more; scan of job where n > 0 limit 1; scan of job limit 1 more; scan limit 1; \
         scan of job where n > 0 more",
        &format!(
            "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1; g/jobs.3, jobs.2, more; jobs.1; g/jobs.3, more; {other}; jobs.1, more; \
             jobs.2, g/jobs.3"
        ),
    );
}

#[test]
fn counts_cover_a_queue_and_the_queues_below_it() {
    check(
        "declare job for jobs.; declare mail for jobs.mail.; count records; put jobs.1; put jobs.a.1; put jobs.mail.1; put other; \
         put g/jobs.a.2; count records; count records jobs.; count records jobs.a.; count records jobs.mail.; \
         count records jobs.b.; claim jobs.a.1; count records jobs.; complete jobs.a.1 #1; delete record jobs.1; \
         count records jobs.; put jobs.mail.1 as job; count records",
        "#2; #3; none; jobs.1 v1; jobs.a.1 v1; jobs.mail.1 v1; other v1; jobs.a.2 v1; job pending 3, mail pending 1; \
         job pending 3, mail pending 1; job pending 2; mail pending 1; none; jobs.a.1 #1; \
         job claimed 1, job pending 2, mail pending 1; jobs.a.1 v3; jobs.1 v2; \
         job completed 1, job pending 1, mail pending 1; jobs.mail.1 v2; job completed 1, job pending 2",
    );
}

#[test]
fn counts_of_a_group_read_its_records_up_to_a_limit() {
    check(
        "declare job for jobs.; put g/jobs.1; put g/jobs.a.1; put g/other; put h/jobs.1; put jobs.1; count records g/; \
         count records g/jobs.a.; count records h/; count records x/; count records g/ examine 3; count records g/ examine 2",
        "#2; jobs.1 v1; jobs.a.1 v1; other v1; jobs.1 v1; jobs.1 v1; job pending 2; job pending 1; job pending 1; none; \
         job pending 2; 3 exceeds scan_rows_max = 2 [SH-1002]",
    );
}

#[test]
fn counts_include_a_record_until_its_expiry_is_committed() {
    check(
        "declare job for jobs.; put jobs.1 ttl 5s; advance 5s; put other; read jobs.1; count records; tick; count records",
        "#2; jobs.1 v1; other v1; absent; job pending 1; none",
    );
}

#[test]
fn owners_are_not_counted_neither_in_all_groups_nor_in_one() {
    check(
        "in g: own by w; put g/jobs.1 as task; count records; count records g/",
        "g/_statehouse.owner #1; jobs.1 v1; task pending 1; task pending 1",
    );
}

#[test]
fn owners_are_found_by_who_asks_for_them() {
    check(
        "in g: own by w; put g/jobs.1 as task; scan; scan g/; scan where state exists; scan _state; scan g/_state; scan of owner",
        "g/_statehouse.owner #1; jobs.1 v1; g/jobs.1; g/jobs.1; g/jobs.1; g/_statehouse.owner; g/_statehouse.owner; \
         g/_statehouse.owner",
    );
}
