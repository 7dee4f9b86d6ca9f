//! Where checkpoints lie: `SPACE/BRANCH/OPERATOR/SCOPE/NUMBER/OBJECT`; `docs/formats/checkpoint.md`.

use xxhash_rust::xxh3::xxh3_128;

/// The longest part of a name; file systems take 255 bytes.
const PART_BYTES_MAX: usize = 200;

/// What a series of checkpoints is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Series {
    /// One partition.
    Alone(u32),
    /// Several partitions of an operator together.
    Together,
}

/// The folder of a series.
pub(super) fn folder_of(space: &str, branch: &str, operator: &str, series: Series) -> String {
    let series = match series {
        Series::Alone(partition) => partition.to_string(),
        Series::Together => "together".to_owned(),
    };
    format!("{}/{}/{}/{series}", escaped(space), escaped(branch), escaped(operator))
}

/// The folder of a checkpoint.
pub(super) fn folder_of_checkpoint(series: &str, number: u64) -> String {
    format!("{series}/{number:020}")
}

/// Reads the number of a checkpoint from the last part of its folder.
pub(super) fn read_number(part: &str) -> Option<u64> {
    (part.len() == 20).then(|| part.parse().ok())?
}

/// A name as a part of the name of an object: what is neither a letter of ASCII, a digit, `_` nor `-` is `=` and two digits.
fn escaped(name: &str) -> String {
    let mut part = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => part.push(char::from(byte)),
            _ => part += &format!("={byte:02x}"),
        }
    }
    if part.len() > PART_BYTES_MAX {
        part.truncate(PART_BYTES_MAX - 34);
        part += &format!("=.{:032x}", xxh3_128(name.as_bytes()));
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of a stored format; `docs/formats/checkpoint.md`.
    #[test]
    fn golden_names_of_checkpoints() {
        let series = folder_of("default", "main", "Wörter.zählen", Series::Alone(3));
        assert_eq!(series, "default/main/W=c3=b6rter=2ez=c3=a4hlen/3");
        let folder = folder_of_checkpoint(&series, 7);
        assert_eq!(folder.rsplit_once('/'), Some((series.as_str(), "00000000000000000007")));
        assert_eq!(read_number("00000000000000000007"), Some(7));
        assert_eq!(read_number("7"), None);
        let long = |last: &str| folder_of("s", "b", &("x".repeat(1000) + last), Series::Together);
        assert_ne!(long("a"), long("b"));
        assert!(long("a").split('/').all(|part| part.len() <= PART_BYTES_MAX));
    }
}
