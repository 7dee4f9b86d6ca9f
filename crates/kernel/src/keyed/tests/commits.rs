//! Numbered commits: merges, input positions, and the first answer again.

use crate::script::check;

#[test]
fn a_merge_counts_once_however_often_its_commit_is_sent() {
    check(
        "number m 1 k+5 topic:41; number m 1 k+5 topic:41; key m k; number m 2 k+1 topic:42; number m 2 k+1 topic:42; \
         key m k; positions m; map m; commit",
        "m ok; m ok; 5 merged; m ok; m ok; 6 merged; topic:42 c3; 1 keys, 0 deleted, number 2; c4",
    );
}

#[test]
fn integers_are_added_and_the_smaller_or_larger_one_is_kept() {
    check(
        "number m 1 a+5 b<5 c>5 a+-7 b<3 b<9 c>9 c>3; keys m; number m 2 a+9223372036854775807; \
         number m 2 a+9223372036854775807 a+3; keys m",
        "m ok; a=-2, b=3, c=9; m ok; commit 2 of map \"m\" was another one; the next number is 3 [SH-8005]; \
         a=9223372036854775805, b=3, c=9",
    );
}

#[test]
fn an_overflow_refuses_the_whole_commit() {
    check(
        "number m 1 k+9223372036854775807; number m 2 l+1 topic:3 k+1; keys m; positions m; number m 2 k+-1; keys m",
        "m ok; key \"k\" of map \"m\" holds 9223372036854775807, and adding 1 to it would overflow [SH-8003]; \
         k=9223372036854775807; none; m ok; k=9223372036854775806",
    );
}

#[test]
fn a_key_is_put_or_merged_and_never_both() {
    check(
        "number m 1 sum+1 name=x@1; number m 2 name+1; number m 2 sum=x@9; update m sum=none@9; number m 2 name-; \
         number m 2 sum-; number m 3 sum-; update m sum=x@9; update m name=none@2; number m 4 name+1; number m 4 name-; \
         seal m 2; number m 4 name+1; keys m; map m",
        "m ok; key \"name\" of map \"m\" is put, and a key is put or merged, never both [SH-8002]; \
         key \"sum\" of map \"m\" is merged, and a key is put or merged, never both [SH-8002]; \
         key \"sum\" of map \"m\" is merged, and a key is put or merged, never both [SH-8002]; \
         key \"name\" of map \"m\" is put, and a key is put or merged, never both [SH-8002]; \
         m ok; m 1: duplicate; m ok; m ok; \
         key \"name\" of map \"m\" is put, and a key is put or merged, never both [SH-8002]; \
         key \"name\" of map \"m\" is put, and a key is put or merged, never both [SH-8002]; \
         m v12; m ok; name=1, sum=x; 2 keys, 0 deleted, number 4, sealed to 2",
    );
}

#[test]
fn a_removal_of_what_the_seal_has_passed_finds_nothing() {
    check(
        "update m k=none@1; seal m 1; number m 1 k-; advance 1s; tick; number m 2 k-; rows of maps",
        "m ok; m v2; m 1: duplicate; m 1: duplicate; 1 heads, 1 answers",
    );
}

#[test]
fn a_merge_needs_a_numbered_commit() {
    let refused = "can be merged in a numbered commit only: sent twice, it would count twice [SH-8004]";
    check(
        "merge m k+1; merge m k-; map m",
        &format!("key \"k\" of map \"m\" {refused}; key \"k\" of map \"m\" {refused}; no map"),
    );
}

#[test]
fn numbers_rise_by_one() {
    check(
        "number m 2 k+1; number m 0 k+1; number m 1 k+1; number m 3 k+1; number m 0 k+1; number m 2 k+1; number m 1 k+1",
        "map \"m\" takes commit 1 next, not 2 [SH-8006]; map \"m\" takes commit 1 next, not 0 [SH-8006]; m ok; \
         map \"m\" takes commit 2 next, not 3 [SH-8006]; map \"m\" takes commit 2 next, not 0 [SH-8006]; m ok; \
         map \"m\" takes commit 3 next, not 1 [SH-8006]",
    );
}

#[test]
fn positions_never_go_back() {
    check(
        "number m 1 a:5 b:7; number m 2 a:5 b:9; number m 3 b:8 a:6; position m a; position m b; position m c; \
         position n a; positions m",
        "m ok; m ok; input \"b\" of map \"m\" is at 9, and cannot go back to 8 [SH-8007]; 5; 9; none; no map; \
         a:5 c2, b:9 c2",
    );
}

#[test]
fn a_commit_seals_after_its_own_updates() {
    check(
        "number m 1 k=a@5 old=x@1 seal@5; number m 2 k=b@5; number m 3 seal@3; map m; number m 4 old=none@6 seal@6; \
         advance 1s; tick; map m; rows of maps",
        "m ok; m 1: conflict; m ok; 2 keys, 0 deleted, number 3, sealed to 5; m ok; \
         1 keys, 0 deleted, number 4, sealed to 6; 1 heads, 1 keys, 1 answers",
    );
}

#[test]
fn the_first_answer_comes_before_conditions_and_covers_every_operation() {
    check(
        "in g if c absent: set c red, number m 1 k+1, append r one Note; in g if c absent: set c red, number m 1 k+1, \
         append r one Note; key g/m k; get g/c; in g if c absent: set c red, number m 1 k+2, append r one Note; \
         in g if c absent: set c red, number m 2 k+1",
        "c v1, m ok, r 1; c v1, m ok, r 1; 1 merged; red v1; \
         commit 1 of map \"m\" was another one; the next number is 2 [SH-8005]; \
         cell \"c\" is not as expected: it is at version 1 [SH-1003]",
    );
}

/// Found by `sim keyed-model --seed 1 --ops 40000 --stretch 7`.
#[test]
fn a_commit_whose_map_is_replaced_in_its_transaction_leaves_no_answer() {
    check(
        "in g: number m 1 k+1, delete map m, update m l=a@1; rows of maps; map g/m; advance 1s; tick; rows of maps; \
         number g/m 1 k+1; rows of maps",
        "m ok, m v1, m ok; 1 heads, 1 names, 2 keys; 1 keys, 0 deleted, number 0; 1 heads, 1 names, 1 keys; m ok; \
         1 heads, 1 names, 2 keys, 1 answers",
    );
}

#[test]
fn a_transaction_has_one_number() {
    check(
        "in g: number m 1 k+1, number n 1 k+1; in g: number m 1 k+1, update n k=a@1, seal m 5",
        "a transaction cannot be declared: two of its operations have numbers of commits [SH-1018]; m ok, n ok, m v2",
    );
}

#[test]
fn whoever_lost_the_group_is_told_so_and_its_successor_gets_the_answer() {
    check(
        "guard g; in g force: claim _statehouse.owner w1 10s; in g owned #1: number m 1 k+1; in g owned #1: number m 1 k+1; \
         advance 20s; tick; in g force: claim _statehouse.owner w2 10s; in g owned #1: number m 1 k+1; \
         in g owned #2: number m 1 k+1; in g: number m 1 k+1; key g/m k",
        "g/_statehouse.owner #1; m ok; m ok; g/_statehouse.owner #2; \
         attempt 1 of the group is over: it is owned at attempt 2 [SH-4002]; m ok; \
         group \"g\" is guarded: a write must carry the fence of the attempt that holds it, which is held until \
         1970-01-01T00:00:50Z; claim it first, or force the write [SH-4003]; 1 merged",
    );
}

#[test]
fn a_message_carries_a_numbered_commit_once() {
    check(
        "in a: send in g then number m 1 k+5; in a: send in g then number m 1 k+5; in a: send in g then number m 2 k+9999; in a: send in g then number m 2 k+1; advance 1s; tick; key g/m k; map g/m; changes since c0",
        "sent; sent; sent; sent; 10004 merged; 1 keys, 0 deleted, number 2; map g/m written v5, message a delivered v1, \
         message a delivered v2, map g/m written v5, message a delivered v3, message a refused v4",
    );
}
