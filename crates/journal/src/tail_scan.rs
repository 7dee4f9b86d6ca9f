//! Tells a torn tail from bit rot (J3).
//!
//! Each batch is synced before the next is written, so power loss tears at most the last one. Anything intact behind
//! the damage that was written later proves that the damage is not a tail. Trusts nothing but hashes. Never: changes a
//! file.

use std::io;

use crate::batch::{ALIGNMENT, BATCH_MAGIC, BatchHeader, BatchPart};
use crate::disk::DiskFile;
use crate::frame::{Frame, MAGIC, MAGIC_OFFSET, ShardId};
use crate::segment::Segment;

/// Proof that something was written behind the damage after the damaged bytes were durable.
pub(crate) struct Evidence {
    /// Where it is in the segment.
    pub(crate) offset: u64,
    pub(crate) what: String,
}

/// Searches a segment from `from` on, in `buffer`. `last_kept` says where the entries of a shard end before the damage.
pub(crate) fn evidence_in<F: DiskFile>(
    segment: &Segment<F>,
    from: u64,
    id: u64,
    last_kept: impl Fn(ShardId) -> u64,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Evidence>> {
    let bytes = rest_of(segment, from, buffer)?;
    let mut position = 0;
    while let Some(found) = find_either(bytes, position) {
        position = found + ALIGNMENT;
        let offset = from + found as u64;
        if let Some(header) = BatchHeader::decode(&bytes[found..], segment.place(id, offset)) {
            let BatchPart { first_index, shard, .. } = header.parts[0];
            let what = format!(
                "entry {first_index} of shard {shard} is in a batch of its own behind the damage, so what is damaged was \
                 durable"
            );
            return Ok(Some(Evidence { offset, what }));
        }
        // Only what was written to this place: a copy of an entry, or one from an earlier use of the file, may name an entry
        // as durable that was never here.
        let frame = found.checked_sub(MAGIC_OFFSET).and_then(|start| {
            let at = segment.place(id, from + start as u64);
            Frame::decode_at(&bytes[start..], at).ok()
        });
        if let Some(Frame { place, .. }) = frame {
            let kept = last_kept(place.shard);
            if place.durable > kept {
                let what = format!(
                    "entry {} of shard {} is readable behind the damage and says that entry {} was durable, but the \
                     readable entries before the damage end at {kept}",
                    place.index, place.shard, place.durable
                );
                return Ok(Some(Evidence { offset: offset - MAGIC_OFFSET as u64, what }));
            }
        }
    }
    Ok(None)
}

/// Whether a segment holds an entry of any journal, or a part of one.
pub(crate) fn holds_entries<F: DiskFile>(segment: &Segment<F>) -> io::Result<bool> {
    Ok(find_either(rest_of(segment, 0, &mut Vec::new())?, 0).is_some())
}

fn rest_of<'buffer, F: DiskFile>(
    segment: &Segment<F>,
    from: u64,
    buffer: &'buffer mut Vec<u8>,
) -> io::Result<&'buffer [u8]> {
    debug_assert!(from.is_multiple_of(ALIGNMENT as u64));
    let length = usize::try_from(segment.length.saturating_sub(from)).expect("a segment fits into memory");
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    let read = segment.file.read_at(&mut buffer[..length], from)?;
    Ok(&buffer[..read])
}

/// The next place where a batch could begin or the magic bytes of an entry are. Both are aligned.
fn find_either(bytes: &[u8], from: usize) -> Option<usize> {
    let (chunks, _) = bytes.get(from..)?.as_chunks::<ALIGNMENT>();
    let found = chunks.iter().position(|chunk| *chunk == BATCH_MAGIC || *chunk == MAGIC)?;
    Some(from + found * ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_bytes_are_found_where_they_can_be() {
        let mut bytes = vec![0; 64];
        assert_eq!(find_either(&bytes, 0), None);
        bytes[9..17].copy_from_slice(&MAGIC);
        assert_eq!(find_either(&bytes, 0), None, "not aligned");
        bytes[24..32].copy_from_slice(&MAGIC);
        bytes[56..64].copy_from_slice(&BATCH_MAGIC);
        assert_eq!((find_either(&bytes, 0), find_either(&bytes, 32)), (Some(24), Some(56)));
        assert_eq!((find_either(&bytes, 64), find_either(&bytes, 72)), (None, None));
    }
}
