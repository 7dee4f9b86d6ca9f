//! Writes of fields, and their limits.

use crate::script::check;

#[test]
fn a_put_replaces_the_record() {
    check(
        "read a; put a x=1 y=2; read a; put a y=3; read a; put a; read a",
        "absent; a v1; v1 x=1 y=2; a v2; v2 y=3; a v3; v3",
    );
}

#[test]
fn a_field_keeps_its_kind_and_the_version_that_wrote_it() {
    check(
        "put a n=null b=true i=-7 t=red j={\"k\":1} y=0xff; read a; patch a i=8; field a i; field a t; field a u; \
         field b i",
        "a v1; v1 b=true i=-7 j={\"k\":1} n=null t=red y=0xff; a v2; 8 v2; red v1; absent; absent",
    );
}

#[test]
fn a_patch_writes_and_removes_fields_and_creates_the_record() {
    check(
        "patch a x=1 y=2; read a; patch a x=none z=3; read a; patch a w=none; read a; patch a; read a",
        "a v1; v1 x=1 y=2; a v2; v2 y=2 z=3; a v3; v3 y=2 z=3; a v4; v4 y=2 z=3",
    );
}

#[test]
fn an_update_needs_a_record_that_exists() {
    check(
        "update a x=1; read a; put a; update a x=1; read a; delete record a; update a x=2; read a",
        "there is no record \"a\" [SH-1013]; absent; a v1; a v2; v2 x=1; a v3; there is no record \"a\" [SH-1013]; absent",
    );
}

#[test]
fn a_swap_needs_the_value_that_is_there_and_none_means_absent() {
    check(
        "swap a x 1 2; read a; swap a x none 1; swap a x none 2; swap a x 1 2; read a; swap a x 0x2 3; \
         swap a x 2 none; read a; delete record a; swap a x 2 3; swap a x none 3",
        "field \"x\" of record \"a\" is not as expected [SH-1019]; absent; a v1; \
         field \"x\" of record \"a\" is not as expected [SH-1019]; a v2; v2 x=2; \
         field \"x\" of record \"a\" is not as expected [SH-1019]; a v3; v3; a v4; \
         field \"x\" of record \"a\" is not as expected [SH-1019]; a v5",
    );
}

#[test]
fn an_increment_adds_to_an_integer_and_a_missing_field_counts_as_zero() {
    check(
        "incr a n 5; incr a n -7; read a; patch a t=text; incr a t 1; incr a n 9223372036854775807; incr a n 3; \
         incr a n 2; incr a n 0; read a",
        "a v1 is 5; a v2 is -2; v2 n=-2; a v3; field \"t\" of record \"a\" does not hold an integer [SH-1016]; \
         a v4 is 9223372036854775805; \
         field \"n\" of record \"a\" does not hold an integer that can be incremented by this amount [SH-1016]; \
         a v5 is 9223372036854775807; a v6 is 9223372036854775807; v6 n=9223372036854775807 t=text",
    );
}

#[test]
fn a_deletion_is_a_version_and_the_count_goes_on() {
    check(
        "delete record a; put a x=1; delete record a; read a; delete record a; put a y=1; read a; field a y",
        "no a; a v1; a v2; absent; no a; a v3; v3 y=1; 1 v3",
    );
}

#[test]
fn a_record_without_a_type_has_no_fields_of_the_stores_own() {
    check(
        "put a state=x created_at=1 updated_at=2 timeout_at=3 worker=w; read a; incr a created_at 1; patch a state=none; \
         read a; count records",
        "a v1; v1 created_at=1 state=x timeout_at=3 updated_at=2 worker=w; a v2 is 2; a v3; \
         v3 created_at=2 timeout_at=3 updated_at=2 worker=w; none",
    );
}

#[test]
fn a_record_has_so_many_fields_and_no_more_whoever_writes_them() {
    check(
        "declare job for jobs.; limit record_fields_max 2; put a x=1 y=2; put b x=1 y=2 z=3; patch a z=3; update a z=3; \
         swap a z none 3; incr a z 1; patch a x=none z=3; read a; read b",
        "#2; a v1; 3 exceeds record_fields_max = 2 [SH-1002]; 3 exceeds record_fields_max = 2 [SH-1002]; \
         3 exceeds record_fields_max = 2 [SH-1002]; 3 exceeds record_fields_max = 2 [SH-1002]; \
         3 exceeds record_fields_max = 2 [SH-1002]; a v2; v2 y=2 z=3; absent",
    );
}

#[test]
fn the_fields_that_the_store_maintains_do_not_count() {
    check(
        "declare job for jobs.; limit record_fields_max 2; put jobs.1 x=1 y=2; claim jobs.1 by w; \
         complete jobs.1 #1 z=1; fail jobs.1 #1 z=1; complete jobs.1 #1 y=none z=1; read jobs.1",
        "#2; jobs.1 v1; jobs.1 #1; 3 exceeds record_fields_max = 2 [SH-1002]; 3 exceeds record_fields_max = 2 [SH-1002]; \
         jobs.1 v3; job completed v3 #1 x=1 z=1",
    );
}

#[test]
fn the_bytes_of_a_record_are_those_of_names_and_values() {
    check(
        "limit record_bytes_max 10; put a x=abcdefghi; put a x=abcdefghij; patch a y=z; swap a y none z; \
         patch a x=abcdefg y=z; read a; put b n=1; put b nn=1; put b nnn=1",
        "a v1; 11 exceeds record_bytes_max = 10 [SH-1002]; 12 exceeds record_bytes_max = 10 [SH-1002]; \
         12 exceeds record_bytes_max = 10 [SH-1002]; a v2; v2 x=abcdefg y=z; b v1; b v2; \
         11 exceeds record_bytes_max = 10 [SH-1002]",
    );
}

#[test]
fn a_value_is_at_most_so_long_wherever_it_is_written() {
    check(
        "declare job for jobs.; limit value_bytes_max 3; put jobs.1 x=abc; put jobs.1 x=abcd; patch jobs.1 x=abcd; \
         update jobs.1 x=abcd; swap jobs.1 x abc abcd; claim jobs.1; complete jobs.1 #1 x=abcd; fail jobs.1 #1 x=abcd; \
         incr jobs.1 n 1; in g: publish t abc; in g: publish t abcd; read jobs.1",
        "#2; jobs.1 v1; 4 exceeds value_bytes_max = 3 [SH-1002]; 4 exceeds value_bytes_max = 3 [SH-1002]; \
         4 exceeds value_bytes_max = 3 [SH-1002]; 4 exceeds value_bytes_max = 3 [SH-1002]; jobs.1 #1; \
         4 exceeds value_bytes_max = 3 [SH-1002]; 4 exceeds value_bytes_max = 3 [SH-1002]; \
         8 exceeds value_bytes_max = 3 [SH-1002]; sent; \
         4 exceeds value_bytes_max = 3 [SH-1002]; job claimed v2 #1 by somebody for 300s x=abc",
    );
}

#[test]
fn a_large_field_has_a_row_of_its_own_as_long_as_it_is_large() {
    check(
        "put a x=y*1025 z=y*1024; read a; rows of records; patch a x=1; rows of records; put a x=y*2000; patch a w=1; \
         read a; rows of records; swap a x y*2000 none; rows of records; put a x=y*2000; delete record a; rows of records",
        "a v1; v1 x=y*1025 z=y*1024; 1 records, 1 large fields; a v2; 1 records; a v3; a v4; v4 w=1 x=y*2000; \
         1 records, 1 large fields; a v5; 1 records; a v6; a v7; 1 records, 1 due by wall",
    );
}

#[test]
fn a_transaction_is_all_or_nothing_across_contracts() {
    check(
        "in g: put a x=1, set c 1, append r k RunStarted, publish t x, update b x=1; read g/a; get g/c; events g/r; \
         messages; in g: put a x=1, set c 1, append r k RunStarted; read g/a; get g/c; events g/r; \
         in g: put a x=2, cas c v7 2; in g: put a x=2, append r k2 X expect 9; read g/a; get g/c",
        "there is no record \"b\" [SH-1013]; absent; absent; there is no run \"r\" [SH-3002]; none; a v1, c v1, r 1; \
         v1 x=1; 1 v1; 1 RunStarted of 1; cell \"c\" is not as expected: it is at version 1 [SH-1003]; \
         run \"r\" is at sequence 1, not at 9 [SH-3003]; v1 x=1; 1 v1",
    );
}

#[test]
fn the_operations_of_a_transaction_see_each_other() {
    check(
        "in g: put a n=1, incr a n 1, swap a n 2 3, delete record a, update a x=1; read g/a; \
         in g: put a n=1, incr a n 1, swap a n 2 3, delete record a, put a z=1; read g/a; commit",
        "there is no record \"a\" [SH-1013]; absent; a v1, a v2 is 2, a v3, a v4, a v5; v5 z=1; c2",
    );
}

#[test]
fn a_transaction_has_so_many_operations_and_bytes_and_no_more() {
    check(
        "limit transaction_ops_max 2; in g: put a, put b; in g: put a, put b, put c; \
         limit transaction_bytes_max 50; put a x=y*8; put a x=y*9; read a; scan g/",
        "a v1, b v1; 3 exceeds transaction_ops_max = 2 [SH-1002]; a v1; 51 exceeds transaction_bytes_max = 50 [SH-1002]; \
         v1 x=yyyyyyyy; g/a, g/b",
    );
}

#[test]
fn a_transaction_without_a_group_is_about_one_name() {
    let two = |group: &str, other: &str| {
        format!(
            "a transaction can change one group only: this one is in \"{group}\", not in \"{other}\"; \
             use house.group(name) for things that must change together [SH-1004]"
        )
    };
    check(
        "in no group: put a x=1, put b; in no group: put a x=1, patch a y=2, publish t x; \
         in no group if record b absent: put a; in no group fence b #1: put a; in no group: publish t x; in no group:; \
         read a; messages",
        &format!(
            "{}; a v1, a v2, sent; {}; {}; a transaction cannot be declared: it must be sent from a group [SH-1018]; \
             v2 x=1 y=2; a to t: x",
            two("a", "b"),
            two("a", "b"),
            two("b", "a"),
        ),
    );
}
