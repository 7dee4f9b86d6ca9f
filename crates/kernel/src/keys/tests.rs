//! Keys sort as their parts do, are read back as built (K5), and never change.

use super::*;

fn cell<'name>(group: Option<&'name str>, name: &'name str) -> ThingId<'name> {
    ThingId { bucket: 5, space: 1, branch: 2, group, name }
}

#[test]
fn a_head_key_is_read_back() {
    let keys = Keys::new(7, crate::BucketRange::ALL);
    for id in [cell(None, "x"), cell(Some("g"), "x"), cell(Some("g\0h"), "\0")] {
        let key = keys.cell_head(&id);
        assert_eq!(cells::read_cell_key(&key).expect("a head key").id(), id);
        assert_eq!(cells::read_cell_key(&keys.cell_old(&id, 3)), None);
    }
}

#[test]
fn names_sort_as_bytes_and_prefixes_are_prefixes() {
    let keys = Keys::new(7, crate::BucketRange::ALL);
    let names = ["a", "a\0", "a\0b", "a\u{1}", "ab", "b", "é"];
    let sorted = names.map(|name| keys.cell_head(&cell(Some("g"), name)));
    assert!(sorted.is_sorted(), "names sort as their bytes do");
    for prefix in names {
        let range = keys.things_with_prefix(Kind::CellHead, &cell(Some("g"), ""), prefix);
        for name in names {
            let inside = range.contains(&keys.cell_head(&cell(Some("g"), name)));
            assert_eq!(inside, name.starts_with(prefix), "{name:?} with prefix {prefix:?}");
        }
    }
}

#[test]
fn a_range_of_names_holds_the_names_between() {
    let keys = Keys::new(7, crate::BucketRange::ALL);
    let names = ["a", "a\0", "ab", "b", "c"];
    for from in names {
        for to in names.map(Some).into_iter().chain([None]) {
            let range = keys.cell_heads_between(&cell(Some("g"), ""), from, to);
            for name in names {
                let expected = name >= from && to.is_none_or(|to| name < to);
                assert_eq!(range.contains(&keys.cell_head(&cell(Some("g"), name))), expected);
            }
            assert!(!range.contains(&keys.cell_head(&cell(Some("h"), "a"))), "another group is outside");
            assert!(!range.contains(&keys.cell_head(&cell(None, "a"))), "no group is outside");
        }
    }
}

#[test]
fn groups_and_names_are_not_joined() {
    let keys = Keys::new(7, crate::BucketRange::ALL);
    assert_ne!(keys.cell_head(&cell(Some("ab"), "c")), keys.cell_head(&cell(Some("a"), "bc")));
    assert_ne!(keys.cell_head(&cell(None, "a")), keys.cell_head(&cell(Some("a"), "a")));
}

/// The bytes of `docs/formats/keys.md`. A change here is a change of the format.
#[test]
fn golden_keys() {
    let keys = Keys::new(1, crate::BucketRange::ALL);
    let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&keys.cell_head(&cell(None, "hi"))), "000000010005030000000100000002".to_owned() + "0068690000");
    assert_eq!(
        hex(&keys.cell_old(&cell(Some("g"), "hi"), 258)),
        "000000010005040000000100000002".to_owned() + "0167000068690000" + "0000000000000102"
    );
    assert_eq!(hex(&keys.applied()), "00000001ffff000001");
    assert_eq!(hex(&keys.catalogue_branch(1, 2)), "00000001ffff0000040000000100000002");
    assert_eq!(hex(&keys.usage(258)), "00000001ffff00000f00000102");
}

#[test]
fn rows_of_changes_sort_by_commit_behind_their_floor() {
    let keys = Keys::new(1, BucketRange::new(3, 4).expect("a range"));
    assert_eq!(*keys.changes_floor(), [0, 0, 0, 1, 0xff, 0xff, 0, 3, 5]);
    assert_eq!(*keys.changes(258), [0, 0, 0, 1, 0xff, 0xff, 0, 3, 5, 0, 0, 0, 0, 0, 0, 1, 2]);
    let range = keys.changes_from(256);
    for (commit, inside) in [(0, false), (255, false), (256, true), (u64::MAX, true)] {
        let key = keys.changes(commit);
        assert_eq!((range.contains(&key), keys.commit_of_changes(&key)), (inside, Some(commit)));
    }
    for other in [keys.changes_floor(), keys.applied(), keys.counts(1, 1, "q", 1)] {
        assert_eq!((keys.changes_from(0).contains(&other), keys.commit_of_changes(&other)), (false, None));
    }
}
