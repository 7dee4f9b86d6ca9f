//! Restoring a map (D4): aside, in steps, and then at once.

use crate::script::check;

#[test]
fn a_restored_map_is_there_in_one_step() {
    check(
        "number m 1 old+1 topic:9; begin restore m monotonic 7 5; restore m 2 a=x@6 b=none@8; restore m 2 sum+4 topic:41 answer; \
         keys m; positions m; map m; end restore m 2 2 1 0; keys m; positions m; map m; tick; rows of maps",
        "m ok; m number 2; m is v3; m is v4; old=1; topic:9 c1; 1 keys, 0 deleted, number 1; m v5; a=x, sum=4; topic:41 c4; \
         2 keys, 1 deleted, number 7, sealed to 5; 1 heads, 3 keys, 1 positions, 1 deleted, 1 answers",
    );
}

#[test]
fn updates_go_on_from_what_was_restored() {
    check(
        "begin restore m monotonic 3 5; restore m 2 a=x@6 b=none@8 sum+4 topic:41 answer; end restore m 2 2 1 0; \
         update m a=y@6 b=y@7 c=y@5; number m 3 sum+1; number m 4 sum+1 topic:42; keys m; positions m",
        "m number 2; m is v2; m v3; m 1: conflict 2: stale 8 3: stale 5; \
         commit 3 of map \"m\" was another one; the next number is 4 [SH-8005]; m ok; a=x, sum=5; topic:42 c6",
    );
}

/// Whoever has looked before must look again, at keys that are there and at those that are not.
#[test]
fn every_key_was_changed_by_a_restore() {
    let conflict = |key: &str, now: &str| format!("key \"{key}\" of map \"m\" is not as expected: it {now} [SH-8008]");
    check(
        "update m a=x@1 z=x@1; begin restore m monotonic 0; restore m 2 a=x@1; end restore m 2 1 0 0; \
         in m if key m a unchanged since c3: set c 1; in m if key m z unchanged since c3: set c 1; \
         in m if keys m a..b unchanged since c3: set c 1; in m if keys m a.. unchanged since c4: set c 1",
        &[
            "m ok",
            "m number 2",
            "m is v3",
            "m v4",
            &conflict("a", "is at version 1"),
            &conflict("z", "has no version"),
            &conflict("a", "has no version"),
            "c v1",
        ]
        .join("; "),
    );
}

#[test]
fn a_restore_that_is_incomplete_changes_nothing() {
    let incomplete = "restore 2 of map \"m\" is incomplete, and the map stays as it is; restore it again [SH-8013]";
    check(
        "update m old=x@1; begin restore m monotonic 0; restore m 2 a=x@1; end restore m 2 2 0 0; end restore m 2 1 1 0; \
         end restore m 2 1 0 1; restore m 2 answer; end restore m 2 1 0 0; keys m",
        &["m ok", "m number 2", "m is v3", incomplete, incomplete, incomplete, "m is v7", incomplete, "old=x"]
            .join("; "),
    );
}

#[test]
fn rows_that_are_sent_again_count_once() {
    check(
        "begin restore m monotonic 0; restore m 2 a=x@1 b=none@2; restore m 2 a=x@1 b=none@2 c+3; end restore m 2 2 1 0; keys m",
        "m number 2; m is v2; m is v3; m v4; a=x, c=3",
    );
}

#[test]
fn one_that_is_begun_again_replaces_the_one_before() {
    let lost = |number: &str| {
        format!(
            "restore {number} of map \"m\" is over: another one was begun, or the map was deleted; begin again [SH-8012]"
        )
    };
    check(
        "update m old=x@1; begin restore m monotonic 0; restore m 2 a=x@1; begin restore m monotonic 0; restore m 2 b=x@1; \
         end restore m 2 1 0 0; restore m 3 b=x@1; tick; end restore m 3 1 0 0; restore m 3 c=x@1; keys m; tick; rows of maps",
        &[
            "m ok",
            "m number 2",
            "m is v3",
            "m number 3",
            &lost("2"),
            &lost("2"),
            "m is v7",
            "m v9",
            &lost("3"),
            "b=x",
            "1 heads, 1 keys",
        ]
        .join("; "),
    );
}

#[test]
fn one_that_is_abandoned_or_deleted_leaves_no_row() {
    check(
        "update m old=x@1; begin restore m monotonic 0; restore m 2 a=x@1; abandon restore m 2; abandon restore m 2; tick; \
         rows of maps; begin restore m monotonic 0; restore m 3 a=x@1; delete map m; tick; rows of maps; map m",
        "m ok; m number 2; m is v3; m is v4; no m; 1 heads, 1 keys; m number 3; m is v8; m v9; 1 heads; no map",
    );
}

#[test]
fn what_waits_in_an_ordered_map_waits_in_the_restored_one() {
    let refused =
        "map \"m\" is monotonic, so key \"k\" is merged and removed without a version, in a numbered commit [SH-8010]";
    check(
        "begin restore m ordered 0 6; restore m 2 k=a@5 sum+1 k~b@7 sum+5@6 new~c@9; end restore m 2 2 0 3; map m; tick; keys m; \
         update m k=z@7; seal m 8; keys m; map m; begin restore m monotonic 0; restore m 3 k~b@7",
        &[
            "m number 2",
            "m is v2",
            "m v3",
            "2 keys, 0 deleted, number 0, sealed to 6, 3 waiting",
            "k=a, sum=6",
            "m 1: conflict",
            "m v6",
            "k=b, sum=6",
            "2 keys, 0 deleted, number 0, sealed to 8, 1 waiting",
            "m number 3",
            refused,
        ]
        .join("; "),
    );
}

#[test]
fn a_map_is_restored_again_and_again_up_to_a_limit() {
    check(
        "repeat 65 begin restore m monotonic 0; begin restore m monotonic 0; restore m 66 k=a@1; advance 1s; tick; \
         begin restore m monotonic 0; restore m 67 k=a@1; end restore m 67 1 0 0; tick; rows of maps",
        "m number 66; 65 exceeds keyed_contents_max = 64 [SH-1002]; m is v67; m number 67; m is v70; m v71; 1 heads, 1 keys",
    );
}

#[test]
fn only_the_owner_of_a_guarded_group_restores_a_map_there() {
    let unfenced = "group \"g\" is guarded: a write must carry the fence of the attempt that holds it, and nobody holds it; \
                    claim it first, or force the write [SH-4003]";
    check(
        "guard g open m; in g: begin restore m monotonic 0; in g: restore m 2 k=a@1; in g: end restore m 2 1 0 0; \
         in g: abandon restore m 2; in g: begin checkpoint m; in g: end checkpoint m c1; rows of maps",
        &format!("{}; none", [unfenced; 6].join("; ")),
    );
}

#[test]
fn a_map_that_a_restore_makes_is_as_the_restored_one_and_goes_if_that_is_given_up() {
    check(
        "begin restore m ordered 0; create m ordered; restore m 2 k=a@1; begin restore m ordered 0; abandon restore m 3; map m; \
         advance 1s; tick; rows of maps; begin restore m monotonic 0; update m k=a@1; abandon restore m 5; keys m; \
         create n monotonic; begin restore n monotonic 0; abandon restore n 2; map n",
        "m number 2; m is v1; m is v3; m number 3; m is v5; no map; 1 heads; m number 5; m ok; m is v9; k=a; n v10; n number 2; \
         n is v12; 0 keys, 0 deleted, number 0",
    );
}
