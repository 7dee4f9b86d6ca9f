//! Snapshots that are not what was written: each is refused by name, and the state stays as it was.

use contract::BackendError;

use super::{Tested, fill, put, time};

/// Flips every bit, cuts at every length and adds bytes, to a snapshot of a whole state and to one of some keys.
pub(super) fn no_damaged_snapshot_is_restored(from: &impl Tested, to: &mut impl Tested) {
    fill(from);
    put(to, "here", 1, time(1));
    let before = to.snapshot().expect("snapshot");
    let whole = from.snapshot().expect("snapshot");
    let part = from.snapshot_for_keys(&["a".to_owned(), "gone".to_owned()]).expect("snapshot_for_keys");
    for damaged in damages(&whole) {
        check_refused(to.restore(&damaged));
        check_refused(to.restore_keys(&damaged));
    }
    for damaged in damages(&part) {
        check_refused(to.restore_keys(&damaged));
    }
    assert_eq!(to.snapshot().expect("snapshot"), before, "the state is as it was");
    to.restore(&whole).expect("the whole bytes are restored");
    assert_eq!(to.snapshot().expect("snapshot"), whole);
}

fn check_refused(refused: Result<(), BackendError>) {
    let error = refused.expect_err("it is damaged");
    assert!(matches!(error, BackendError::DamagedSnapshot { .. }), "{error:?}");
}

fn damages(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    let flipped = (0..bytes.len() * 8).map(|bit| {
        let mut damaged = bytes.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        damaged
    });
    let zeroed =
        (0..bytes.len()).filter(|at| bytes[*at] != 0).map(|at| [&bytes[..at], &[0], &bytes[at + 1..]].concat());
    let cut = (0..bytes.len()).map(|length| bytes[..length].to_vec());
    let longer = [[bytes, &[0]].concat(), [bytes, bytes].concat()];
    flipped.chain(zeroed).chain(cut).chain(longer)
}
