//! Ordered maps: updates wait for the seal, and are applied in the order of their versions.

use crate::script::check;

#[test]
fn updates_are_applied_in_the_order_of_their_versions_when_the_seal_passes() {
    check(
        "create m ordered; update m k=c@3 k=a@1; update m k=b@2; key m k; map m; rows of maps; seal m 2; key m k; map m; \
         seal m 9; key m k; map m; rows of maps",
        "m v1; m ok; m ok; none; 0 keys, 0 deleted, number 0, 3 waiting; 1 heads, 1 keys, 3 waiting; m v4; b v2; \
         1 keys, 0 deleted, number 0, sealed to 2, 1 waiting; m v5; c v3; \
         1 keys, 0 deleted, number 0, sealed to 9, 0 waiting; 1 heads, 1 keys",
    );
}

#[test]
fn an_update_counts_once_whether_it_waits_or_is_over() {
    check(
        "create m ordered; update m k+5@7; update m k+5@7; update m k+6@7; update m k+1@6; seal m 7; key m k; update m k+5@7; \
         update m k+9@3; update m k+2@8; update m k+2@8; seal m 8; key m k",
        "m v1; m ok; m 1: duplicate; m 1: conflict; m ok; m v6; 6 merged; m 1: stale 7; m 1: stale 7; m ok; \
         m 1: duplicate; m v11; 8 merged",
    );
}

#[test]
fn late_updates_of_other_keys_are_stale_too() {
    check(
        "create m ordered; seal m 5; update m new=x@5 other=y@6; map m",
        "m v1; m v2; m 1: stale 5; 0 keys, 0 deleted, number 0, sealed to 5, 1 waiting",
    );
}

#[test]
fn a_deletion_in_order_leaves_no_row() {
    check(
        "create m ordered; update m k=a@1 k=none@3 k=b@2; seal m 3; key m k; rows of maps; update m k+4@5 k=none@6; seal m 6; \
         rows of maps; map m",
        "m v1; m ok; m v3; none; 1 heads; m ok; m v5; 1 heads; 0 keys, 0 deleted, number 0, sealed to 6, 0 waiting",
    );
}

#[test]
fn a_key_is_put_or_merged_as_long_as_anything_of_it_is_there() {
    let refused = |key: &str, is: &str| {
        format!("key \"{key}\" of map \"m\" is {is}, and a key is put or merged, never both [SH-8002]")
    };
    check(
        "create m ordered; update m a=x@1; update m a+1@2; update m b+1@1; update m b=x@2; update m c=none@1; update m c+1@2; \
         update m c=x@3; seal m 2; update m c=x@3; update m a+1@3; update m b=none@3; update m b=x@4; seal m 3; update m b=x@4; \
         update m a=none@4; seal m 4; update m a+1@5; seal m 5; keys m",
        &[
            "m v1",
            "m ok",
            &refused("a", "put"),
            "m ok",
            &refused("b", "merged"),
            "m ok",
            "m ok",
            &refused("c", "merged"),
            "m v9",
            &refused("c", "merged"),
            &refused("a", "put"),
            "m ok",
            &refused("b", "merged"),
            "m v14",
            "m ok",
            "m ok",
            "m v17",
            "m ok",
            "m v19",
            "a=1, b=x, c=1",
        ]
        .join("; "),
    );
}

#[test]
fn what_might_overflow_in_some_order_is_refused_when_it_comes() {
    check(
        "create m ordered; update m k+9223372036854775800@1; update m k+7@2; update m k+1@3; update m k+-1@4; seal m 2; \
         update m k+1@5; key m k; update m k=none@6; seal m 6; update m k+1@7; seal m 7; key m k",
        "m v1; m ok; m ok; \
         key \"k\" of map \"m\" holds 0, and adding 1 to it would overflow [SH-8003]; \
         key \"k\" of map \"m\" holds 0, and adding -1 to it would overflow [SH-8003]; m v6; \
         key \"k\" of map \"m\" holds 9223372036854775807, and adding 1 to it would overflow [SH-8003]; \
         9223372036854775807 merged; m ok; m v9; m ok; m v11; 1 merged",
    );
}

#[test]
fn an_ordered_map_takes_versions_and_a_monotonic_one_takes_commits() {
    check(
        "create m ordered; number m 1 k+1; number m 1 k-; number m 1 k+1@1 topic:4; number m 1 k+1@1 topic:4; \
         number m 2 k+1@2 seal@2; key m k; update n k+1@1; create n monotonic; create n monotonic; create n ordered; \
         create m monotonic; create m ordered; delete map m; create m monotonic; update m k=x@1; key m k",
        "m v1; map \"m\" is ordered, so key \"k\" is merged and removed with versions only [SH-8010]; \
         map \"m\" is ordered, so key \"k\" is merged and removed with versions only [SH-8010]; m ok; m ok; m ok; 2 merged; \
         map \"n\" is monotonic, so key \"k\" is merged and removed without a version, in a numbered commit [SH-8010]; \
         n v8; n is v8; map \"n\" exists and is monotonic; its policy cannot change [SH-8011]; \
         map \"m\" exists and is ordered; its policy cannot change [SH-8011]; m is v6; m v13; m v14; m ok; x v1",
    );
}

#[test]
fn as_many_updates_of_a_key_wait_as_the_limit_allows() {
    check(
        "create m ordered; repeat 1000 update m k+1@%; update m k+1@1001; update m k+1@1; update m other+1@1001; seal m 1; \
         update m k+1@1001; seal m 2000; key m k; rows of maps",
        "m v1; m ok; 1001 exceeds keyed_waiting_max = 1000 [SH-1002]; m 1: duplicate; m ok; m v1005; m ok; m v1007; \
         1001 merged; 1 heads, 2 keys",
    );
}

#[test]
fn a_guard_sees_what_was_applied() {
    check(
        "create m ordered; update m k=a@5; in m if key m k absent: set c 1; in m if key m k unchanged since c1: set c 1; seal m 5; \
         in m if key m k is 5: set c 1; in m if key m k unchanged since c4: set c 1; update m k=none@6; seal m 6; \
         in m if key m k unchanged since c5: set c 1",
        "m v1; m ok; c v1; c v2; m v5; c v3; key \"k\" of map \"m\" is not as expected: it is at version 5 [SH-8008]; m ok; \
         m v9; key \"k\" of map \"m\" is not as expected: it has no version [SH-8008]",
    );
}

#[test]
fn an_image_a_restart_and_a_deletion_treat_waiting_updates_as_the_rest() {
    check(
        "create m ordered; update m k=a@5 l+1@6; image; restart; seal m 5; keys m; delete map m; advance 1s; tick; rows of maps",
        "m v1; m ok; same bytes; m v3; k=a; m v4; 1 heads",
    );
}

/// Whoever has read it before its deletion must read again.
#[test]
fn a_key_that_comes_back_was_changed_when_it_went() {
    check(
        "create m ordered; update m k=a@1; seal m 1; update m k=none@2; seal m 2; update m k=b@3; \
         in m if key m k unchanged since c3: set c 1; in m if keys m a.. unchanged since c3: set c 1; \
         in m if key m k unchanged since c5: set c 1; delete map m; create m ordered; update m k=a@1; \
         in m if key m k unchanged since c9: set c 1",
        "m v1; m ok; m v3; m ok; m v5; m ok; key \"k\" of map \"m\" is not as expected: it has no version [SH-8008]; \
         key \"a\" of map \"m\" is not as expected: it has no version [SH-8008]; c v1; m v10; m v11; m ok; \
         key \"k\" of map \"m\" is not as expected: it has no version [SH-8008]",
    );
}

#[test]
fn the_smaller_and_the_larger_of_integers_overflow_nothing() {
    check(
        "create m ordered; update m k>9223372036854775807@1 k<-9223372036854775808@2 k>5@3; update m k+1@4; seal m 3; key m k; \
         update m k+9223372036854775800@4; update m k>7@5; update m k<8@6; seal m 6; key m k; update m k+1@7",
        "m v1; m ok; key \"k\" of map \"m\" holds 0, and adding 1 to it would overflow [SH-8003]; m v4; 5 merged; m ok; m ok; \
         key \"k\" of map \"m\" holds 5, and adding 8 to it would overflow [SH-8003]; m v8; 9223372036854775805 merged; m ok",
    );
}

/// Of 4 MiB; the sweep does the rest.
#[test]
fn the_seals_of_an_entry_read_bounded_bytes_between_them() {
    let large = "x".repeat(100 << 10);
    check(
        &format!(
            "in g: create m ordered, create n ordered; repeat 25 in g: update m k%={large}@%, update n k%={large}@%; \
             in g: seal m 25, seal n 25; map g/m; map g/n; advance 1s; tick; map g/n; rows of maps"
        ),
        "m v1, n v1; m ok, n ok; m v27, n v27; 25 keys, 0 deleted, number 0, sealed to 25, 0 waiting; \
         16 keys, 0 deleted, number 0, sealed to 25, 9 waiting; 25 keys, 0 deleted, number 0, sealed to 25, 0 waiting; \
         2 heads, 2 names, 50 keys",
    );
}
