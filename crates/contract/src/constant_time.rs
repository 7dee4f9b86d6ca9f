//! Comparing what is secret.

use std::hint::black_box;

/// Whether two secrets are the same. Takes the same time, wherever they differ.
///
/// ```
/// use statehouse_contract::constant_time::is_same;
/// assert!(is_same(&[1, 2], &[1, 2]));
/// assert!(!is_same(&[1, 2], &[1, 3]) && !is_same(&[1, 2], &[0, 2]));
/// ```
pub fn is_same<const BYTES: usize>(one: &[u8; BYTES], other: &[u8; BYTES]) -> bool {
    let different = one.iter().zip(other).fold(0, |different, (one, other)| different | (one ^ other));
    black_box(different) == 0
}
