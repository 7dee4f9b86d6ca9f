//! Puts and deletions with versions, seals, and what is forgotten behind them.

use crate::script::check;

#[test]
fn a_put_is_applied_only_if_it_is_strictly_newer() {
    check(
        "update m k=red@7; update m k=red@7; update m k=blue@7; update m k=blue@6; key m k; update m k=blue@8; key m k; \
         update m k=late@1:0; update m k=x@99; key m k; map m",
        "m ok; m 1: duplicate; m 1: conflict; m 1: stale 7; red v7; m ok; blue v8; m ok; m 1: stale 1:0; late v1:0; \
         1 keys, 0 deleted, number 0",
    );
}

#[test]
fn values_of_all_kinds_come_back() {
    check(
        "update m a=null@1 b=true@1 c=-7@1 d={\"n\":[1]}@1 e=0xff@1; keys m; update m c=-7@1 c=7@1; update m a=x@0",
        "m ok; a=null, b=true, c=-7, d={\"n\":[1]}, e=0xff; m 1: duplicate 2: conflict; m 1: stale 1",
    );
}

#[test]
fn the_first_write_at_version_0_is_an_insert_that_only_happens_once() {
    check("update m id=a@0; update m id=a@0; update m id=b@0; key m id", "m ok; m 1: duplicate; m 1: conflict; a v0");
}

#[test]
fn a_deleted_key_remembers_its_version() {
    check(
        "update m k=red@7; update m k=none@8; key m k; map m; update m k=red@7; update m k=none@8; update m k=red@8; \
         update m k=new@9; key m k; map m; update m gone=none@3; update m gone=x@2; rows of maps",
        "m ok; m ok; none; 0 keys, 1 deleted, number 0; m 1: stale 8; m 1: duplicate; m 1: conflict; m ok; new v9; \
         1 keys, 0 deleted, number 0; m ok; m 1: stale 3; 1 heads, 2 keys, 1 deleted",
    );
}

#[test]
fn updates_of_one_operation_are_applied_in_order() {
    check(
        "update m k=a@1 k=b@3 k=c@2 k=none@4 l=x@1; keys m; rows of maps",
        "m 3: stale 3; l=x; 1 heads, 2 keys, 1 deleted",
    );
}

#[test]
fn nothing_at_or_below_the_seal_is_applied_whatever_the_sweep_has_done() {
    // Twice the same, before and after the sweep.
    let updates = "update m k=x@9; update m k=none@5; update m k=none@10; update m live=a@2; update m live=b@3; \
                   update m new=x@10";
    let answers = "m 1: stale 10; m 1: stale 10; m 1: stale 10; m 1: duplicate; m 1: stale 10; m 1: stale 10";
    check(
        &format!(
            "update m k=a@1 live=a@2; update m k=none@5; seal m 10; rows of maps; {updates}; advance 1s; tick; \
             rows of maps; {updates}; update m k=y@11; key m k; map m"
        ),
        &format!(
            "m ok; m ok; m v3; 1 heads, 2 keys, 1 deleted; {answers}; 1 heads, 1 keys; {answers}; m ok; y v11; \
             2 keys, 0 deleted, number 0, sealed to 10"
        ),
    );
}

#[test]
fn a_seal_never_goes_back() {
    check(
        "seal m 7; seal m 7; seal m 3; map m; seal m 1:0; map m",
        "m v1; m is v1; m is v1; 0 keys, 0 deleted, number 0, sealed to 7; m v4; 0 keys, 0 deleted, number 0, sealed to 1:0",
    );
}

#[test]
fn deleted_keys_above_the_seal_stay_and_the_others_go_in_bounded_steps() {
    check(
        "repeat 600 update m k%=none@%; update m late=none@1:0; seal m 600; advance 1s; tick; rows of maps; due; \
         advance 1s; tick; rows of maps; due; update m k7=x@7; update m late=x@5; update m k7=x@601",
        "m ok; m ok; m v602; 1 heads, 89 keys, 89 deleted; wall 1001ms, cluster never; 1 heads, 1 keys, 1 deleted; \
         wall never, cluster never; m 1: stale 600; m 1: stale 1:0; m ok",
    );
}

#[test]
fn a_scan_skips_deleted_keys_and_comes_in_pages() {
    check(
        "update m a=1@1 b=2@1 c=3@1 d=4@1 da=5@1; update m b=none@2; keys m limit 2; keys m after c limit 2; \
         keys m prefix d; keys m from b to d; keys m from c prefix d; keys m after a prefix d; keys none; keys m after z",
        "m ok; m ok; a=1, c=3, more after c; d=4, da=5, more after da; d=4, da=5; c=3; d=4, da=5; d=4, da=5; no map; none",
    );
}

#[test]
fn what_is_too_large_is_refused() {
    check(
        "limit value_bytes_max 3; update m k=abcd@1; number m 1 k=abcd@1; key m k; update m k=abc@1",
        "4 exceeds value_bytes_max = 3 [SH-1002]; 4 exceeds value_bytes_max = 3 [SH-1002]; no map; m ok",
    );
}
