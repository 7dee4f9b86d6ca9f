//! The attempts that a command belongs to, and whether it is forced.

use kv::{DecodeError, Reader, Writer};

/// A command belongs to at most this many attempts.
pub const FENCES_MAX: usize = 16;

/// In the byte that counts the fences: the command is forced.
const FORCE: u8 = 0x80;

/// The check that a command belongs to the live attempt of a record in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence<'bytes> {
    /// The record.
    pub record: &'bytes str,
    /// The attempt.
    pub attempt: u64,
}

/// Appends the fences of a command, and whether it is forced.
///
/// # Panics
/// If there are more than [`FENCES_MAX`].
pub(crate) fn encode(writer: &mut Writer, fences: &[Fence<'_>], force: bool) {
    assert!(fences.len() <= FENCES_MAX, "a command has at most {FENCES_MAX} fences");
    let count = u8::try_from(fences.len()).expect("few");
    writer.u8(if force { count | FORCE } else { count });
    for fence in fences {
        writer.bytes(fence.record.as_bytes()).u64(fence.attempt);
    }
}

/// Reads what [`encode`] has written.
pub(crate) fn decode<'bytes>(reader: &mut Reader<'bytes>) -> Result<(Vec<Fence<'bytes>>, bool), DecodeError> {
    let first = reader.u8()?;
    let (count, force) = (usize::from(first & !FORCE), first & FORCE != 0);
    if count > FENCES_MAX {
        return Err(DecodeError { what: "a command with too many fences" });
    }
    let mut fences = Vec::with_capacity(count);
    for _ in 0..count {
        fences.push(Fence { record: reader.text()?, attempt: reader.u64()? });
    }
    Ok((fences, force))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_read_as_written_up_to_the_limit() {
        let all: Vec<_> = (0..FENCES_MAX as u64).map(|attempt| Fence { record: "r", attempt }).collect();
        for fences in [&all[..0], &all[..1], &all] {
            for force in [false, true] {
                let mut writer = Writer::new();
                encode(&mut writer, fences, force);
                assert_eq!(decode(&mut Reader::new(writer.as_slice())), Ok((fences.to_vec(), force)));
            }
        }
        let mut writer = Writer::new();
        encode(&mut writer, &all[1..2], true);
        assert_eq!(writer.as_slice(), b"\x81\x01\0\0\0r\x01\0\0\0\0\0\0\0", "as docs/formats/entry.md has it");
        let one_more = u8::try_from(FENCES_MAX + 1).expect("few");
        assert!(decode(&mut Reader::new(&[one_more; 1_000])).is_err());
    }
}
