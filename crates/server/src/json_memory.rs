//! Estimates how much memory a body takes when parsed, before it is parsed.
//!
//! The seven bytes of `{"":0},` become a map with room for eleven entries, and the two of `0,` a value of 32: a few MiB
//! of these would become hundreds of MiB. One pass therefore counts everything outside of strings, and weighs it.
//!
//! Keeps: the estimate is at least what parsing takes. It may be more: malformed input is weighed too.

/// Bytes per byte of a body: itself, its strings, and its output.
const BYTE: usize = 3;
/// Bytes per value; a growing list has room for twice its values.
const VALUE: usize = 2 * 32;
/// Bytes of a list beyond its values: it starts with room for four.
const LIST: usize = 4 * 32;
/// Bytes of an object beyond its values: the first node of its map has room for eleven names and values.
const OBJECT: usize = 11 * (24 + 32) + 64;

/// The most that a body can take.
pub(crate) fn memory_of(body: &[u8]) -> usize {
    let (mut values, mut lists, mut objects) = (1, 0, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in body {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b',' => values += 1,
            b'[' => (values, lists) = (values + 1, lists + 1),
            b'{' => (values, objects) = (values + 1, objects + 1),
            _ => {}
        }
    }
    body.len() * BYTE + values * VALUE + lists * LIST + objects * OBJECT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dense_is_heavy() {
        let of = |text: &str| memory_of(text.repeat(1000).as_bytes());
        assert!(of("{\"\":0},") > 1000 * 632, "a map for each seven bytes");
        assert!(of("0,") >= 1000 * 64, "a value for each two");
        assert!(of("[0],") >= 1000 * (128 + 32));
        assert!(of("[],") >= 1000 * 32);
    }

    #[test]
    fn what_is_in_a_string_weighs_no_more_than_its_bytes() {
        let text = format!("\"{}\"", "{[,\\\"".repeat(1000));
        assert_eq!(memory_of(text.as_bytes()), text.len() * BYTE + VALUE);
        assert_eq!(memory_of(b"\"a\\\\\",1"), 7 * BYTE + 2 * VALUE, "a backslash that is escaped escapes nothing");
    }

    #[test]
    fn values_are_as_large_as_they_are_weighed() {
        assert_eq!(size_of::<serde_json::Value>(), 32);
        assert_eq!(size_of::<String>(), 24);
    }
}
