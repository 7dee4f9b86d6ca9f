//! Types: which records have them, and which can be declared.

use crate::script::check;

#[test]
fn the_longest_declared_prefix_gives_a_record_its_type() {
    check(
        "declare job for jobs.; declare mail for jobs.mail.; put jobs.1; put jobs.mail.1; put other.1; put x as job; \
         put gbe.state.tasks.1; read jobs.1; read jobs.mail.1; read other.1; read x; read gbe.state.tasks.1",
        "#2; #3; jobs.1 v1; jobs.mail.1 v1; other.1 v1; x v1; gbe.state.tasks.1 v1; job pending v1; mail pending v1; v1; \
         job pending v1; task pending v1",
    );
}

#[test]
fn a_put_with_an_unknown_type_is_refused() {
    check(
        "put a as job; read a; declare job for jobs.; put a as job; read a",
        "\"job\" is not a record type of this space, or the record has no type [SH-1014]; absent; #2; a v1; job pending v1",
    );
}

#[test]
fn a_record_keeps_its_type_until_it_is_put_again() {
    check(
        "put jobs.1; declare job for jobs.; patch jobs.1 x=1; read jobs.1; put jobs.1; read jobs.1; put jobs.1 as task; \
         read jobs.1; patch jobs.1 x=1; read jobs.1; put jobs.1; read jobs.1; count records",
        "jobs.1 v1; #2; jobs.1 v2; v2 x=1; jobs.1 v3; job pending v3; jobs.1 v4; task pending v4; jobs.1 v5; \
         task pending v5 x=1; jobs.1 v6; job pending v6; job pending 1",
    );
}

#[test]
fn a_field_write_that_creates_a_record_is_like_a_put() {
    check(
        "declare job for jobs. ttl 10s; patch jobs.1 x=1; swap jobs.2 x none 1; incr jobs.3 n 1; patch jobs.4 state=failed; \
         read jobs.1; read jobs.2; read jobs.3; read jobs.4",
        "#2; jobs.1 v1; jobs.2 v1; jobs.3 v1 is 1; jobs.4 v1; job pending v1 ttl 10s x=1; job pending v1 ttl 10s x=1; \
         job pending v1 ttl 10s n=1; job failed v1 ttl 10s",
    );
}

#[test]
fn declaring_a_type_again_changes_it_for_all_its_records() {
    check(
        "declare job for jobs. lease 10s; put jobs.1; put jobs.2; declare job for others. lease 20s attempts 1; \
         claim jobs.1; read jobs.1; fail jobs.1 #1; put others.1; read others.1; put jobs.3; read jobs.3",
        "#2; jobs.1 v1; jobs.2 v1; #2; jobs.1 #1; job claimed v2 #1 by somebody for 20s; jobs.1 v3 exhausted; others.1 v1; \
         job pending v1; jobs.3 v1; job pending v1",
    );
}

#[test]
fn states_can_be_added_and_nothing_that_rows_contain_can_change() {
    let refused = "type \"job\" cannot be declared: existing states and indexes cannot change, only new ones can be added \
                   [SH-1018]";
    check(
        "declare job for jobs.; put jobs.1; declare job for jobs. and late:ready; patch jobs.1 state=late; read jobs.1; \
         declare job for jobs.; declare job for jobs. and soon:ready,late:ready; \
         declare job for jobs. and late:ready order n; declare job for jobs. and late:ready state-field s; \
         declare job for jobs. and late:ready; declare job for jobs. and late:ready index x:text; \
         declare job for jobs. and late:ready; declare job for jobs. and late:ready index x:bytes; claim jobs.1; read jobs.1",
        &format!(
            "#2; jobs.1 v1; #2; jobs.1 v2; job late v2; {refused}; {refused}; {refused}; {refused}; #2; #2; {refused}; {refused}; \
             jobs.1 #1; job claimed v3 #1 by somebody for 300s"
        ),
    );
}

#[test]
fn a_prefix_has_the_type_that_was_declared_for_it_last() {
    check(
        "declare job for jobs.; declare mail for jobs.; put jobs.1; read jobs.1; put jobs.2 as job; read jobs.2; \
         declare job for jobs.; put jobs.3; read jobs.3",
        "#2; #3; jobs.1 v1; mail pending v1; jobs.2 v1; job pending v1; #2; jobs.3 v1; job pending v1",
    );
}

#[test]
fn a_type_names_its_states_and_its_state_field() {
    check(
        "declare ticket for t. states new:ready,busy:held,done:terminal,lost:terminal completed done failed lost \
         state-field phase; put t.1 state=free; read t.1; field t.1 phase; claim t.1; read t.1; complete t.1 #1; read t.1; \
         count records; scan t. where phase = done",
        "#2; t.1 v1; ticket new v1 state=free; new v1; t.1 #1; ticket busy v2 #1 by somebody for 300s state=free; t.1 v3; \
         ticket done v3 #1 state=free; ticket done 1; t.1",
    );
}

#[test]
fn a_type_that_contradicts_itself_is_refused_with_the_reason() {
    check(
        "declare \"\" for x.; declare a for x. state-field \"\"; \
         declare a for x. states a:ready,b:held,a:terminal,failed:terminal,completed:terminal; \
         declare a for x. states claimed:held,pending:ready,completed:terminal,failed:terminal; \
         declare a for x. states pending:ready,completed:terminal,failed:terminal; declare a for x. completed pending; \
         declare a for x. failed nowhere; declare a for x. index timeout_at:time; declare a for x. lease 0s; \
         declare a for x. attempts 0; put x.1; read x.1; declare a for x.",
        "type \"\" cannot be declared: its name or the name of its state field is empty [SH-1018]; \
         type \"a\" cannot be declared: its name or the name of its state field is empty [SH-1018]; \
         type \"a\" cannot be declared: two of its states have the same name [SH-1018]; \
         type \"a\" cannot be declared: its first state is not a ready state [SH-1018]; \
         type \"a\" cannot be declared: it has no held state [SH-1018]; \
         type \"a\" cannot be declared: its completed or failed state is not one of its terminal states [SH-1018]; \
         type \"a\" cannot be declared: its completed or failed state is not one of its terminal states [SH-1018]; \
         type \"a\" cannot be declared: an index on the end of a lease would change with time [SH-1018]; \
         type \"a\" cannot be declared: its lease or its number of attempts is zero [SH-1018]; \
         type \"a\" cannot be declared: its lease or its number of attempts is zero [SH-1018]; x.1 v1; v1; #2",
    );
}

#[test]
fn a_type_has_32_states_and_16_indexes_and_no_more() {
    let refused = "type \"a\" cannot be declared: it has more than 32 states or 16 indexes [SH-1018]";
    check(
        "declare a for x. states pending:ready,h:held*30,completed:terminal,failed:terminal; declare a for x. index f:text*17; \
         declare a for x. states pending:ready,h:held*29,completed:terminal,failed:terminal index f:text*16; \
         put x.1 f16=z; claim x.1; patch x.1 state=h29; read x.1; scan of a where f16 = z",
        &format!("{refused}; {refused}; #2; x.1 v1; x.1 #1; x.1 v3; a h29 v3 #1 by somebody for 300s f16=z; x.1"),
    );
}

#[test]
fn the_names_in_a_type_are_at_most_256_bytes_and_its_prefix_1024() {
    let (fits, long, prefix) = ("n".repeat(256), "n".repeat(257), "p".repeat(1_024));
    check(
        &format!("declare {fits} for x.; declare {long} for x.; declare a for {prefix}; declare b for {prefix}p"),
        &format!(
            "#2; type {long:?} cannot be declared: one of its names is too long [SH-1018]; #3; \
             type \"b\" cannot be declared: one of its names is too long [SH-1018]"
        ),
    );
}

/// The types and the prefixes of a space are counted; one that is declared once more is one of them already.
#[test]
fn a_type_can_be_declared_again_at_the_limit() {
    check(
        "repeat 255 declare t% for t%.; declare t7 for t7. lease 7s; declare t7 for other.; declare t9 for t7.; put t7.1; \
         read t7.1",
        "#256; #8; 257 exceeds record_types_max = 256 [SH-1002]; #10; t7.1 v1; t9 pending v1",
    );
}

#[test]
fn a_space_has_256_types_and_no_more() {
    check(
        "repeat 255 declare t% for t%.; declare more for more.; put t255.1; read t255.1; space other; in space other; \
         declare more for more.",
        "#256; 257 exceeds record_types_max = 256 [SH-1002]; t255.1 v1; t255 pending v1; #2; #2",
    );
}
