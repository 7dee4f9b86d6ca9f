//! Pages of a machine's state.

use super::*;
use kv::{MemoryStore, Store};

#[test]
fn pages_have_so_many_rows_or_bytes_and_together_all_rows() {
    let large = USER_PAGE_BYTES_MAX / 4 - 3;
    for (rows, value_bytes, pages) in [
        (0, 1, vec![]),
        (USER_PAGE_ROWS_MAX, 1, vec![USER_PAGE_ROWS_MAX]),
        (USER_PAGE_ROWS_MAX + 1, 1, vec![USER_PAGE_ROWS_MAX, 1]),
        (4, large, vec![4]),
        (5, large, vec![4, 1]),
        (5, large - 1, vec![5]),
    ] {
        let store = MemoryStore::new();
        let mut staging = Staging::new(store.view().expect("a view"));
        let mut state = UserState::new(&mut staging, Key::from(b"own".as_slice()));
        state.put(b"a", b"before");
        state.put(b"c", b"after");
        for row in 0..rows {
            let row = u16::try_from(row).expect("few");
            state.put(&[b"b".as_slice(), &row.to_be_bytes()].concat(), &vec![0; value_bytes]);
        }
        let (mut after, mut found) = (None, Vec::new());
        loop {
            let page = state.page(b"b", after.as_deref()).expect("a page");
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            found.push(page.len());
            // What was read can be removed before the next page.
            page.iter().for_each(|(key, _)| state.delete(key));
        }
        assert_eq!(found, pages, "{rows} rows of {value_bytes}");
        assert_eq!(state.scan(b"").count(), 2);
    }
}

#[test]
fn pages_end_after_a_row_whose_key_is_empty_too() {
    let store = MemoryStore::new();
    let mut staging = Staging::new(store.view().expect("a view"));
    let mut state = UserState::new(&mut staging, Key::from(b"own".as_slice()));
    state.put(b"", b"value");
    assert_eq!(state.page(b"", None).expect("a page").len(), 1);
    assert_eq!(state.page(b"", Some(b"")).expect("a page").len(), 0);
}
