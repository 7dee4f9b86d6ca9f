//! Conditions on keyed state.

use crate::script::check;

#[test]
fn a_condition_is_on_a_key() {
    let refused = |key: &str, what: &str| format!("key \"{key}\" of map \"m\" is not as expected: it {what} [SH-8008]");
    let (at_7, none) = ("is at version 7", "has no version");
    check(
        "update m k=a@7 gone=a@1; update m gone=none@2; in m if key m k absent: set m x; in m if key m gone absent: set m x; \
         in m if key m gone exists: set m x; in m if key m k exists: set m x; in m if key m k is 7: set m x; \
         in m if key m k is 6: set m x; in m if key m gone is 2: set m x; in m if key m k below 7: set m x; \
         in m if key m k below 8: set m x; in m if key m gone below 1: set m x; in m if key none k absent: set m x",
        &[
            "m ok".into(),
            "m ok".into(),
            refused("k", at_7),
            "m v1".into(),
            refused("gone", none),
            "m v2".into(),
            "m v3".into(),
            refused("k", at_7),
            refused("gone", none),
            refused("k", at_7),
            "m v4".into(),
            "m v5".into(),
            "m v6".into(),
        ]
        .join("; "),
    );
}

#[test]
fn a_key_was_not_changed_since_a_commit() {
    let refused = "is not as expected: it has no version [SH-8008]";
    check(
        "update m k=a@1; update m l=a@1; in m if key m k unchanged since c1: set m x; update m k=none@2; \
         in m if key m k unchanged since c3: set m x; in m if key m k unchanged since c4: set m x; seal m 2; advance 1s; tick; \
         in m if key m k unchanged since c3: set m x; in m if key m k unchanged since c4: set m x; \
         in m if key m l unchanged since c2: set m x",
        &format!(
            "m ok; m ok; m v1; m ok; key \"k\" of map \"m\" {refused}; m v2; m v7; key \"k\" of map \"m\" {refused}; m v3; m v4"
        ),
    );
}

#[test]
fn no_key_of_a_range_was_changed_since_a_commit() {
    let refused = |key: &str| format!("key \"{key}\" of map \"m\" is not as expected: it");
    check(
        "update m b=a@1; update m d=a@1; in m if keys m a..c unchanged since c1: set m x; \
         in m if keys m a.. unchanged since c1: set m x; update m c=none@9; in m if keys m b..d unchanged since c4: set m x; \
         seal m 9; advance 1s; tick; in m if keys m b..d unchanged since c4: set m x; \
         in m if keys m b..d unchanged since c7: set m x; in m if keys none b.. unchanged since c0: set m x",
        &format!(
            "m ok; m ok; m v1; {} is at version 1 [SH-8008]; m ok; {} has no version [SH-8008]; m v7; \
             {} has no version [SH-8008]; m v2; m v3",
            refused("d"),
            refused("c"),
            refused("b")
        ),
    );
}

#[test]
fn whoever_read_a_deleted_map_learns_of_it() {
    let refused = "is not as expected: it has no version [SH-8008]";
    check(
        "update m k=a@1; delete map m; in m if key m k unchanged since c1: set m x; in m if keys m a.. unchanged since c1: set m x; \
         update m l=a@1; in m if key m k unchanged since c1: set m x; in m if key m k unchanged since c2: set m x",
        &format!(
            "m ok; m v2; key \"k\" of map \"m\" {refused}; key \"a\" of map \"m\" {refused}; m ok; \
             key \"k\" of map \"m\" {refused}; m v1"
        ),
    );
}

#[test]
fn an_input_is_where_it_is_expected() {
    check(
        "in m if input m topic at none: number m 1 topic:4; in m if input m topic at 4: number m 2 topic:5; \
         in m if input m topic at 4: number m 3 topic:6; in m if input m topic at none: number m 3 topic:6; \
         in m if input m other at none: number m 3 topic:6",
        "m ok; m ok; input \"topic\" of map \"m\" is not as expected: it is at 5 [SH-8009]; \
         input \"topic\" of map \"m\" is not as expected: it is at 5 [SH-8009]; m ok",
    );
}
