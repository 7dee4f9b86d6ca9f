//! Maps as a whole: where they are, how they are deleted, and what is left of them.

use crate::script::{Stage, check};

#[test]
fn a_map_is_deleted_in_one_step_and_its_rows_go_later() {
    check(
        "number m 1 k=a@1 l+1 topic:4; update m gone=none@1; delete map m; key m k; map m; delete map m; rows of maps; \
         advance 1s; tick; rows of maps; due; advance 86400s; tick; rows of maps; due",
        "m ok; m ok; m v3; no map; no map; no m; 1 heads, 3 keys, 1 positions, 1 deleted, 1 answers; 1 heads; \
         wall 86400s, cluster never; none; wall never, cluster never",
    );
}

#[test]
fn a_map_that_comes_back_knows_nothing_of_the_one_before() {
    check(
        "number m 1 k=a@9 topic:4; delete map m; number m 1 k=b@1; key m k; position m topic; map m; rows of maps; \
         advance 1s; tick; rows of maps; advance 86400s; tick; key m k",
        "m ok; m v2; m ok; b v1; none; 1 keys, 0 deleted, number 1; 1 heads, 2 keys, 1 positions, 2 answers; \
         1 heads, 1 keys, 1 answers; b v1",
    );
}

#[test]
fn a_large_map_goes_in_bounded_steps_beside_other_work() {
    check(
        "repeat 700 update m k%=x@1; delete map m; put j ttl 1s; advance 2s; tick; rows of maps; rows of records; \
         advance 1s; tick; rows of maps",
        "m ok; m v701; j v1; 1 heads, 188 keys; \
         1 records, 2 due by wall; 1 heads",
    );
}

#[test]
fn a_map_is_deleted_again_and_again_up_to_a_limit() {
    check(
        "repeat 64 in g: update m k=x@1, delete map m; map g/m; update g/m k=y@1; delete map g/m; advance 1s; tick; \
         delete map g/m; rows of maps",
        "m ok, m v64; no map; m ok; 65 exceeds keyed_contents_max = 64 [SH-1002]; m v68; 1 heads, 1 keys",
    );
}

#[test]
fn maps_are_in_groups_spaces_and_branches() {
    check(
        "update g/m k=a@1; update m k=b@1; branch draft; on draft; update g/m k=c@1; key g/m k; key m k; on main; key g/m k; \
         key m k; rows of maps; space other; in space other; key m k; update m k=d@1; in space default; key m k; \
         drop draft",
        "m ok; m ok; #2; m ok; c v1; no map; a v1; b v1; 3 heads, 2 names, 3 keys; #2; no map; m ok; b v1",
    );
}

#[test]
fn a_deleted_branch_takes_no_updates() {
    check(
        "branch draft; on draft; drop draft; update m k=a@1",
        "#2; there is no branch \"#2\" in this space [SH-1006]",
    );
}

#[test]
fn a_map_of_a_deleted_branch_goes_with_it() {
    check(
        "branch draft; on draft; number g/m 1 k=a@1 gone=none@1 topic:1 seal@1; on main; drop draft; advance 1s; tick; walk; \
         rows of maps; due",
        "#2; m ok; 1 rounds; none; wall never, cluster never",
    );
}

#[test]
fn only_the_owner_of_a_guarded_group_updates_a_map_there() {
    let refused = "group \"g\" is guarded: a write must carry the fence of the attempt that holds it, and nobody holds it; \
                   claim it first, or force the write [SH-4003]";
    check(
        "guard g open m; update g/m k=a@1; number g/m 1 k+1; seal g/m 1; delete map g/m; create g/m ordered; in g force: update m k=a@1; \
         in g force: delete map m",
        &format!("{refused}; {refused}; {refused}; {refused}; {refused}; m ok; m v8"),
    );
}

#[test]
fn the_change_feed_has_one_change_for_each_operation() {
    check(
        "update m a=1@1 b=2@1; update m a=1@1; number n 1 k+1; seal m 5; delete map m; changes since c0",
        "m ok; m 1: duplicate; n ok; m v4; m v5; map m written v1, map n written v3, map m written v4, map m deleted v5",
    );
}

#[test]
fn an_image_has_maps() {
    check(
        "number m 1 k=a@1 l+1 gone=none@1 topic:4 seal@1; image; keys m; positions m; advance 1s; tick; rows of maps",
        "m ok; same bytes; k=a, l=1; topic:4 c1; 1 heads, 2 keys, 1 positions, 1 answers",
    );
}

#[test]
fn a_tick_takes_a_step_for_each_row_that_it_removes() {
    check(
        "limit tick_steps_max 10; repeat 20 update a k%=x@1; repeat 20 update b k%=x@1; delete map a; delete map b; advance 1s; \
         tick; rows of maps; tick; rows of maps",
        "a ok; b ok; a v42; b v43; 2 heads, 20 keys; 2 heads",
    );
}

/// Of 4 MiB.
#[test]
fn a_sweep_reads_bounded_bytes() {
    let large = "x".repeat(100 << 10);
    check(
        &format!(
            "repeat 50 update m k%={large}@1; delete map m; advance 1s; tick; rows of maps; advance 1s; tick; rows of maps"
        ),
        "m ok; m v51; 1 heads, 9 keys; 1 heads",
    );
}

/// A tick that meets a damaged row drops what was due.
#[test]
fn a_sweep_that_was_dropped_is_scheduled_again() {
    // No entry drops it, so its entries would not give the same.
    let mut stage = Stage::new(1);
    let said = stage.say(
        "update m k=none@1 l=none@2; seal m 1; drop due; due; advance 1s; tick; map m; seal m 2; due; tick; map m",
    );
    let meant = "m ok; m v2; wall never, cluster never; 0 keys, 2 deleted, number 0, sealed to 1; m v4; wall 0s, \
                 cluster never; 0 keys, 0 deleted, number 0, sealed to 2";
    assert_eq!(said, meant);
    stage.assert_sound();
}
