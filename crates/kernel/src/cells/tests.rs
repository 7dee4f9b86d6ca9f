//! Cells by script and transcript; `crate::script` says what a script can say.

use crate::script::{Stage, check};

#[test]
fn a_set_writes_whatever_is_there() {
    check("get a; set a red; get a; set a blue; get a", "absent; a v1; red v1; a v2; blue v2");
}

#[test]
fn a_value_keeps_its_kind() {
    check(
        "set a null; get a; set a true; get a; set a -7; get a; set a {\"n\":[1,2]}; get a; set a 0xff; get a",
        "a v1; null v1; a v2; true v2; a v3; -7 v3; a v4; {\"n\":[1,2]} v4; a v5; 0xff v5",
    );
}

#[test]
fn an_init_creates_once_and_then_says_what_is_there() {
    check("init a red; init a blue; get a", "a v1; a is v1; red v1");
}

#[test]
fn a_swap_needs_the_version_that_is_there() {
    check(
        "cas a v1 red; cas a absent red; cas a absent blue; cas a v2 blue; cas a v1 blue; get a",
        "cell \"a\" is not as expected: it does not exist [SH-1003]; a v1; \
         cell \"a\" is not as expected: it is at version 1 [SH-1003]; \
         cell \"a\" is not as expected: it is at version 1 [SH-1003]; a v2; blue v2",
    );
}

#[test]
fn a_deletion_is_a_version_and_the_count_goes_on() {
    check(
        "set a red; delete a; get a; delete a; cas a v2 x; cas a absent blue; init a x; history a",
        "a v1; a v2; absent; no a; cell \"a\" is not as expected: it does not exist [SH-1003]; \
         a v3; a is v3; v3 blue, v2 deleted, v1 red",
    );
}

#[test]
fn a_history_comes_in_pages_newest_first() {
    check(
        "set a 1; set a 2; set a 3; set a 4; history a limit 3; history a limit 3 before v2; \
         history a limit 2 before v3; history a before v1; history b",
        "a v1; a v2; a v3; a v4; v4 4, v3 3, v2 2, more before v2; v1 1; v2 2, v1 1",
    );
}

#[test]
fn the_past_is_read_by_version() {
    check(
        "set a red; delete a; set a blue; at a v0; at a v1; at a v2; at a v3; at a v4; at b v1",
        "a v1; a v2; a v3; absent; red v1; absent; blue v3; absent; absent",
    );
}

#[test]
fn the_past_is_read_by_time_and_a_write_counts_from_its_own_moment() {
    check(
        "advance 10s; set a red; advance 10s; set a blue; advance 10s; delete a; \
         at a 9s; at a 10s; at a 19s; at a 20s; at a 29s; at a 30s; at a 99s",
        "a v1; a v2; a v3; absent; red v1; red v1; blue v2; blue v2; absent; absent",
    );
}

#[test]
fn two_writes_of_one_entry_share_a_time_and_the_later_one_is_seen() {
    check(
        "advance 10s; in g: set a red, set a blue; at g/a 10s; at g/a 9s; history g/a",
        "a v1, a v2; blue v2; absent; v2 blue, v1 red",
    );
}

#[test]
fn a_list_is_in_name_order_and_leaves_out_what_was_deleted() {
    check(
        "set b 1; set a 2; set ab 3; set ac 4; delete ac; list; list a; list a limit 1; \
         list a limit 1 after a; list after ab; list c",
        "b v1; a v1; ab v1; ac v1; ac v2; a=2, ab=3, b=1; a=2, ab=3; a=2, more after a; \
         ab=3; b=1; none",
    );
}

#[test]
fn a_group_has_its_own_cells_and_shares_the_one_with_its_name() {
    check(
        "set a own; set g/a in-g; set h/a in-h; get a; get g/a; set g/g shared; get g; \
         set g/z last; list g/; list; list g/ limit 1; list g/ after g; list g/g",
        "a v1; a v1; a v1; own v1; in-g v1; g v1; shared v1; z v1; \
         g/a=in-g, g=shared, g/z=last; a=own, g/a=in-g, h/a=in-h, g=shared, g/z=last; \
         g/a=in-g, more after g/a; g/z=last; g=shared",
    );
}

#[test]
fn a_list_covers_all_groups_in_the_order_of_name_and_group() {
    check(
        "set g/b 1; set b 2; set h/a 3; set a/b 4; set c 5; set g/c 6; list; list b; list limit 2; \
         list limit 2 after b; list after a/b; list after b limit 1; list own/; list g/; list a/; list x/",
        "b v1; b v1; a v1; b v1; c v1; c v1; h/a=3, b=2, a/b=4, g/b=1, c=5, g/c=6; b=2, a/b=4, g/b=1; \
         h/a=3, b=2, more after b; a/b=4, g/b=1, more after g/b; g/b=1, c=5, g/c=6; a/b=4, more after a/b; \
         b=2, c=5; g/b=1, g/c=6; a/b=4; none",
    );
}

#[test]
fn a_list_of_a_group_goes_on_after_any_cell() {
    check(
        "set g/b 1; set g/c 2; set g/g 3; set g/h 4; list g/ after b; list g/ after a/b; list g/ after g/b; \
         list g/ after h/b; list g/ after f/g; list g/ after g; list g/ after h limit 1; list g/ after z",
        "b v1; c v1; g v1; h v1; g/b=1, g/c=2, g=3, g/h=4; g/b=1, g/c=2, g=3, g/h=4; g/c=2, g=3, g/h=4; \
         g/c=2, g=3, g/h=4; g/h=4; g/h=4; g/h=4; none",
    );
}

#[test]
fn a_name_is_in_the_index_as_long_as_its_cell_exists() {
    check(
        "set g/a 1; rows; set g/a 2; rows; delete g/a; rows; list; list g/; in g: init a 3, delete a, init a 4; \
         rows; list; in g: set b 1, cas c v9 1; rows; delete g/a; delete g/a; rows; set a 1; rows",
        "a v1; 1 cells, 0 old versions, 1 names; a v2; 1 cells, 1 old versions, 1 names; \
         a v3; 1 cells, 2 old versions; none; none; a v4, a v5, a v6; 1 cells, 5 old versions, 1 names; g/a=4; \
         cell \"c\" is not as expected: it does not exist [SH-1003]; 1 cells, 5 old versions, 1 names; a v7; no a; \
         1 cells, 6 old versions; a v1; 2 cells, 6 old versions",
    );
}

#[test]
fn a_restored_image_lists_what_is_in_groups() {
    check(
        "set g/a 1; set h/a 2; delete h/a; image; list; rows; delete g/a; rows; list",
        "a v1; a v1; a v2; same bytes; g/a=1; 2 cells, 1 old versions, 1 names; a v2; 2 cells, 2 old versions; none",
    );
}

#[test]
fn a_transaction_is_all_or_nothing() {
    check(
        "set g/a 1; in g: set a 2, set b 2, cas c v1 2; get g/a; get g/b; history g/a; \
         in g: set a 2, delete a, init a 3, cas a v4 4; history g/a",
        "a v1; cell \"c\" is not as expected: it does not exist [SH-1003]; 1 v1; absent; v1 1; \
         a v2, a v3, a v4, a v5; v5 4, v4 3, v3 deleted, v2 2, v1 1",
    );
}

#[test]
fn guards_on_existence_and_version_hold_or_name_the_cell() {
    check(
        "in g if a absent: set a 1; in g if a absent: set b 1; in g if a exists, a is v1: set a 2; \
         in g if a is v1: set a 3; in g if a below v3, b below v1: set b 1; in g if a below v2: set b 2; \
         delete g/a; in g if a exists: set b 3; in g if a is v3: set b 3; in g if a absent, a below v1: set b 3",
        "a v1; cell \"a\" is not as expected: it is at version 1 [SH-1003]; a v2; \
         cell \"a\" is not as expected: it is at version 2 [SH-1003]; b v1; \
         cell \"a\" is not as expected: it is at version 2 [SH-1003]; a v3; \
         cell \"a\" is not as expected: it does not exist [SH-1003]; \
         cell \"a\" is not as expected: it does not exist [SH-1003]; b v2",
    );
}

#[test]
fn guards_see_the_state_before_any_operation_of_their_transaction() {
    check("in g if a absent: set a 1, cas a v1 2; get g/a", "a v1, a v2; 2 v2");
}

#[test]
fn an_unchanged_guard_sees_writes_and_deletions_but_not_refusals() {
    check(
        "set g/a 1; commit; in g if a unchanged since c1: set b 1; set g/a 2; \
         in g if a unchanged since c1: set b 2; delete g/a; in g if a unchanged since c3: set b 2; \
         commit; cas g/a v9 x; in g if a unchanged since c6: set b 2",
        "a v1; c1; b v1; a v2; cell \"a\" is not as expected: it is at version 2 [SH-1003]; a v3; \
         cell \"a\" is not as expected: it does not exist [SH-1003]; c6; \
         cell \"a\" is not as expected: it does not exist [SH-1003]; b v2",
    );
}

#[test]
fn a_range_guard_sees_new_cells_deletions_and_the_cell_with_the_groups_name() {
    check(
        "set g/b 1; set g/d 1; commit; in g if b..d unchanged since c2: set x 1; set g/c 1; \
         in g if b..d unchanged since c3: set x 2; in g if b..c unchanged since c3: set x 2; \
         delete g/b; in g if a..c unchanged since c6: set x 3; set g 1; \
         in g if e.. unchanged since c8: set x 3; in g if e..g unchanged since c8: set x 3",
        "b v1; d v1; c2; x v1; c v1; cell \"c\" is not as expected: it is at version 1 [SH-1003]; x v2; \
         b v2; cell \"b\" is not as expected: it does not exist [SH-1003]; g v1; \
         cell \"g\" is not as expected: it is at version 1 [SH-1003]; x v3",
    );
}

#[test]
fn retention_keeps_the_newest_versions_the_current_one_counted() {
    check(
        "keep 2 versions; set a 1; set a 2; set a 3; history a; at a v1; at a v2; rows; \
         keep none; set a 4; history a; rows; keep all; set a 5; history a",
        "a v1; a v2; a v3; v3 3, v2 2; kept from v2; 2 v2; 1 cells, 1 old versions; \
         a v4; v4 4; 1 cells, 0 old versions; a v5; v5 5, v4 4",
    );
}

#[test]
fn retention_by_age_counts_from_when_a_version_was_displaced() {
    check(
        "keep 10s; set a 1; advance 100s; set a 2; history a; advance 10s; set a 3; history a; \
         advance 1s; set a 4; history a; at a 5s",
        "a v1; a v2; v2 2, v1 1; a v3; v3 3, v2 2, v1 1; a v4; v4 4, v3 3, v2 2; kept from v2",
    );
}

#[test]
fn a_write_gives_up_a_bounded_number_and_a_walk_the_rest() {
    check(
        "limit write_trim_rows_max 1; set a 1; set a 2; set a 3; set a 4; set a 5; set a 6; \
         keep 1 versions; set a 7; history a; walk; history a; rows; walk",
        "a v1; a v2; a v3; a v4; a v5; a v6; a v7; v7 7, v6 6, v5 5, v4 4, v3 3; 2 rounds; v7 7; \
         1 cells, 0 old versions; 0 rounds",
    );
}

#[test]
fn a_walk_gives_up_what_has_become_too_old() {
    check(
        "keep 10s; set a 1; set b 1; advance 1s; set a 2; advance 5s; set a 3; advance 6s; walk; \
         history a; history b; advance 99s; walk; history a",
        "a v1; b v1; a v2; a v3; 1 rounds; v3 3, v2 2; v1 1; 1 rounds; v3 3",
    );
}

#[test]
fn deleted_cells_are_forgotten_and_new_ones_start_above_them() {
    check(
        "keep 9 versions; set a 1; set a 2; delete a; set b 1; rows; forget; rows; forget; get a; history a; init a x; \
         cas a v1 y; cas a absent y; history a; get b; restart; delete a; forget; set a z; image",
        "a v1; a v2; a v3; b v1; 2 cells, 2 old versions; 1 rounds; 1 cells, 0 old versions; 0 rounds; absent; a v4; \
         cell \"a\" is not as expected: it is at version 4 [SH-1003]; \
         cell \"a\" is not as expected: it is at version 4 [SH-1003]; v4 x; 1 v1; a v5; 1 rounds; a v6; same bytes",
    );
}

/// Whoever looked before a cell was forgotten cannot know whether it was there.
#[test]
fn a_forgotten_cell_has_changed_for_those_who_looked_before() {
    check(
        "set g/a 1; commit; delete g/a; forget; in g if a unchanged since c1: set b 1; in g if a..b unchanged since c1: set b 1; \
         commit; in g if a unchanged since c5: set b 1",
        "a v1; c1; a v2; 1 rounds; cell \"a\" is not as expected: it does not exist [SH-1003]; \
         cell \"a\" is not as expected: it does not exist [SH-1003]; c5; b v3",
    );
}

#[test]
fn a_branch_begins_empty_and_its_rows_go_after_it() {
    check(
        "set a main; branch draft; branch draft; on draft; get a; set a 1; set a 2; set g/b 3; rows; \
         on main; get a; drop draft; rows; walk; rows; branch draft; on draft; get a; set a x",
        "a v1; #2; branch \"draft\" already exists [SH-1007]; absent; a v1; a v2; b v1; \
         3 cells, 1 old versions, 1 names; main v1; 3 cells, 1 old versions, 1 names; 1 rounds; \
         1 cells, 0 old versions; \
         #3; absent; a v1",
    );
}

#[test]
fn a_deleted_branch_takes_no_writes_and_main_cannot_be_deleted() {
    check(
        "branch draft; on draft; set a 1; drop draft; set a 2; drop main",
        "#2; a v1; there is no branch \"#2\" in this space [SH-1006]; \
         the branch `main` cannot be deleted [SH-1008]",
    );
}

#[test]
fn spaces_are_apart_and_each_has_its_own_retention() {
    check(
        "keep none; space other; set a 1; set a 2; history a; in space other; get a; set a 1; set a 2; \
         history a; space other",
        "#2; a v1; a v2; v2 2; absent; a v1; a v2; v2 2, v1 1; \
         space \"other\" already exists [SH-1007]",
    );
}

#[test]
fn a_limit_refuses_by_its_name_and_leaves_nothing() {
    check(
        "limit value_bytes_max 8; set a red; set a much-too-long; get a; \
         limit transaction_ops_max 2; in g: set a 1, set b 2; in g: set a 1, set b 2, set c 3; \
         limit branches_per_space_max 1; branch draft; limit spaces_max 1; space other; \
         limit transaction_bytes_max 50; set g/a 2; set g/a-name-that-makes-the-command-too-large 2; list g/",
        "a v1; 13 exceeds value_bytes_max = 8 [SH-1002]; red v1; a v1, b v1; \
         3 exceeds transaction_ops_max = 2 [SH-1002]; 2 exceeds branches_per_space_max = 1 [SH-1002]; \
         2 exceeds spaces_max = 1 [SH-1002]; a v2; 81 exceeds transaction_bytes_max = 50 [SH-1002]; g/a=2, g/b=2",
    );
}

#[test]
fn a_restart_finds_cells_catalogue_and_time_as_they_were() {
    check(
        "advance 50s; keep 2 versions; limit value_bytes_max 8; branch draft; set a 1; restart; \
         set a much-too-long; set a 2; set a 3; history a; on draft; get a; commit",
        "#2; a v1; 13 exceeds value_bytes_max = 8 [SH-1002]; a v2; a v3; v3 3, v2 2; absent; c7",
    );
}

#[test]
fn an_image_goes_on_where_it_was_taken_and_is_the_same_bytes_again() {
    check(
        "keep 3 versions; set a 1; set a 2; branch draft; on draft; set g/b 1; drop draft; image; \
         on main; set a 3; history a; image; walk; rows; image",
        "a v1; a v2; #2; b v1; same bytes; a v3; v3 3, v2 2, v1 1; same bytes; 1 rounds; \
         1 cells, 2 old versions; same bytes",
    );
}

#[test]
fn other_entries_give_another_hash() {
    let hash = |script| {
        let mut stage = Stage::new(1);
        stage.say(script);
        stage.hash()
    };
    assert_eq!(hash("set a 1; set b 1"), hash("set a 1; set b 1"));
    assert_ne!(hash("set a 1; set b 1"), hash("set b 1; set a 1"));
    assert_ne!(hash("set a 1"), hash("set a 2"));
    assert_ne!(hash("set a 1"), hash("advance 1s; set a 1"));
    assert_ne!(hash("set a 1; cas a v9 2"), hash("set a 1"), "a refusal counts as an entry too");
}
