//! What is noted between checkpoints of what has changed.

use crate::script::check;

#[test]
fn a_checkpoint_makes_no_map() {
    check(
        "begin checkpoint m; map m; update m k=a@1; delete map m; begin checkpoint m; map m",
        "there is no map \"m\" [SH-8001]; no map; m ok; m v3; there is no map \"m\" [SH-8001]; no map",
    );
}

#[test]
fn keys_whose_rows_go_are_noted_from_the_first_checkpoint_on() {
    check(
        "number m 1 a+1 b+1 c+1; number m 2 a-; rows of maps; begin checkpoint m; number m 3 b-; number m 4 b+1; \
         number m 5 b- c-; rows of maps",
        "m ok; m ok; 1 heads, 2 keys, 1 answers; m v3; m ok; m ok; m ok; 1 heads, 2 gone, 1 answers",
    );
}

#[test]
fn what_an_ended_checkpoint_has_is_forgotten() {
    check(
        "number m 1 a+1 b+1 c+1; begin checkpoint m; number m 2 a-; begin checkpoint m; number m 3 b-; rows of maps; \
         end checkpoint m c4; tick; rows of maps; end checkpoint m c4; end checkpoint m c2; rows of maps",
        "m ok; m v2; m ok; m v4; m ok; 1 heads, 1 keys, 2 gone, 1 answers; \
         m v4; 1 heads, 1 keys, 1 gone, 1 answers; m is v4; m is v4; 1 heads, 1 keys, 1 gone, 1 answers",
    );
}

#[test]
fn deleted_keys_are_noted_when_the_seal_passes_them() {
    check(
        "create m monotonic; begin checkpoint m; update m k=a@1; update m k=none@2; seal m 2; tick; rows of maps; map m",
        "m v1; m v2; m ok; m ok; m v5; 1 heads, 1 gone; 0 keys, 0 deleted, number 0, sealed to 2",
    );
}

#[test]
fn a_checkpoint_that_nobody_began_cannot_end() {
    let refused = |number: &str| {
        format!(
            "map \"m\" has begun no checkpoint {number}, or was restored since; the next one is a full one [SH-8014]"
        )
    };
    check(
        "end checkpoint m c1; update m k=a@1; end checkpoint m c1; begin checkpoint m; end checkpoint m c9; \
         begin restore m monotonic 0; end restore m 2 0 0 0; end checkpoint m c2",
        &[
            "there is no map \"m\" [SH-8001]",
            "m ok",
            &refused("1"),
            "m v4",
            &refused("9"),
            "m number 2",
            "m v7",
            &refused("2"),
        ]
        .join("; "),
    );
}
