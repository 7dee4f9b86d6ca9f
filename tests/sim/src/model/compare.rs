//! A difference, said so that a person sees it.

/// Fails with what was found and what should have been found.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
    what: impl FnOnce() -> String,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{}\n     found {found:?}\n  expected {expected:?}", what()))
}

/// Fails with where two long texts of bytes begin to differ.
pub(crate) fn same_bytes(what: &str, found: &[u8], expected: &[u8]) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    let at = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    Err(format!("{what}: {} and {} bytes, different from byte {at} on", found.len(), expected.len()))
}
