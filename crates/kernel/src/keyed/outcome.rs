//! What became of updates, as bytes; `docs/formats/entry.md`. Most are applied, so only the others are listed.

use contract::keyed::{UpdateOutcome, Updated};
use kv::{DecodeError, Reader, Writer};

use super::entry::{decode_version, encode_version};

const DUPLICATE: u8 = 1;
const STALE: u8 = 2;
const VERSION_CONFLICT: u8 = 3;

pub(crate) fn encode_updated<'writer>(writer: &'writer mut Writer, updated: &Updated) -> &'writer mut Writer {
    writer.varint(updated.count() as u64).varint(updated.others().len() as u64);
    for (place, outcome) in updated.others() {
        writer.varint(u64::from(*place));
        match outcome {
            UpdateOutcome::Duplicate => writer.u8(DUPLICATE),
            UpdateOutcome::Stale { current } => encode_version(writer.u8(STALE), *current),
            UpdateOutcome::VersionConflict => writer.u8(VERSION_CONFLICT),
            other => unreachable!("only what was not applied is listed: {other:?}"),
        };
    }
    writer
}

pub(crate) fn decode_updated(reader: &mut Reader<'_>) -> Result<Updated, DecodeError> {
    let unlikely = DecodeError { what: "outcomes of updates that cannot be" };
    let small = |number: u64| u32::try_from(number).map_err(|_| unlikely);
    let count = small(reader.varint()?)?;
    let mut others: Vec<(u32, UpdateOutcome)> = Vec::new();
    for _ in 0..reader.varint()? {
        let place = small(reader.varint()?)?;
        if place >= count || others.last().is_some_and(|(last, _)| *last >= place) {
            return Err(unlikely);
        }
        let outcome = match reader.u8()? {
            DUPLICATE => UpdateOutcome::Duplicate,
            STALE => UpdateOutcome::Stale { current: decode_version(reader)? },
            VERSION_CONFLICT => UpdateOutcome::VersionConflict,
            _ => return Err(unlikely),
        };
        others.push((place, outcome));
    }
    Ok(Updated::new(count, others))
}

#[cfg(test)]
mod tests {
    use contract::keyed::LogicalTime;

    use super::*;

    /// Part of a stored format; `docs/formats/entry.md`.
    #[test]
    fn golden_outcomes() {
        let current = LogicalTime::new(1, 300);
        let others = vec![
            (0, UpdateOutcome::Duplicate),
            (2, UpdateOutcome::Stale { current }),
            (3, UpdateOutcome::VersionConflict),
        ];
        let (updated, mut writer) = (Updated::new(4, others), Writer::new());
        encode_updated(&mut writer, &updated);
        let bytes = [4, 3, 0, 1, 2, 2, 1, 0xac, 2, 3, 3];
        assert_eq!(writer.as_slice(), bytes);
        assert_eq!(decode_updated(&mut Reader::new(&bytes)), Ok(updated));
        let wrong: [&[u8]; 4] = [&[1, 1, 1, 1], &[2, 2, 1, 1, 0, 1], &[1, 1, 0, 0], &[1, 2, 0, 1]];
        for bytes in wrong {
            assert!(decode_updated(&mut Reader::new(bytes)).is_err(), "{bytes:?}");
        }
    }
}
