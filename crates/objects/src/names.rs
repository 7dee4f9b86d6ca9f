//! Names of objects: what is one, and what is kept for ourselves.
//!
//! Touches: nothing. Keeps: a name means the same object in a folder and in a bucket, and never leaves either. Never:
//! repairs a name.

use std::io;

/// The first part of the names of our own: the probe, and files that are being written.
pub(crate) const RESERVED: &str = ".objects";

/// S3 takes keys of 1,024 bytes; the prefix of the target and our own parts are in front.
const NAME_BYTES_MAX: usize = 700;

/// The longest file name of common file systems.
const PART_BYTES_MAX: usize = 255;

/// What is wrong with the name, if anything.
pub(crate) fn check(name: &str) -> Result<(), &'static str> {
    check_parts(name)?;
    if name.split('/').next() == Some(RESERVED) {
        return Err("`.objects` is reserved");
    }
    Ok(())
}

/// Like [`check`], with our own names.
pub(crate) fn check_parts(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("it is empty");
    }
    if name.len() > NAME_BYTES_MAX {
        return Err("it is longer than 700 bytes");
    }
    for part in name.split('/') {
        match part {
            "" => return Err("a part of it is empty"),
            "." | ".." => return Err("a part of it is `.` or `..`"),
            _ if part.len() > PART_BYTES_MAX => return Err("a part of it is longer than 255 bytes"),
            _ if !part.bytes().all(is_allowed) => return Err("it has a character that is not allowed"),
            _ => {}
        }
    }
    Ok(())
}

/// A part of a name that nothing else has.
pub(crate) fn unique() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._=-".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parts_of_plain_letters() {
        let longest_part = "p".repeat(255);
        for name in ["a", "a/b", "A.z_0=1-/x", "..a", "a/.objects", ".objects2", &longest_part] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        let long_part = "p".repeat(256);
        let long = ["p"; 351].join("/");
        for name in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "a b",
            "a\\b",
            "ä",
            "a\0",
            "a%",
            "~a",
            ".objects",
            ".objects/a",
        ] {
            assert!(check(name).is_err(), "{name:?}");
        }
        assert!(check(&long_part).is_err() && check(&long).is_err());
        assert_eq!(check_parts(".objects/probe"), Ok(()));
    }
}
