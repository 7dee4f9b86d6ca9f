//! Ids of events: UUIDs, given by whoever appends or made by the store.

pub(super) fn is_uuid(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match dashes.contains(&place) {
            true => byte == b'-',
            false => byte.is_ascii_hexdigit(),
        })
}

/// The id of an event that came without one: a UUID of version 8, the same on every read. Its sequence is in it, so that the
/// ids of a run differ, and that the event is found by its id.
pub(super) fn derived_id(run_id: &str, run_created_at: u64, run_seq: u64) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    hash.update(run_id.as_bytes());
    hash.update(run_created_at.to_le_bytes());
    hash.update(run_seq.to_le_bytes());
    let hash = hash.finalize();
    let mut bytes: [u8; 16] = *hash.first_chunk().expect("a hash of 32 bytes");
    bytes[..6].copy_from_slice(&run_seq.to_be_bytes()[2..]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The sequence of the event of this run that has the id if it came without one, whether it is there already or not: for
/// implementations of the contract, which keep ids unique. `run_created_at` is as for
/// [`StoredEvent::new`](super::StoredEvent::new).
///
/// ```
/// use statehouse_contract::runs::{NewEvent, StoredEvent, seq_of_derived_id};
/// # fn main() -> Result<(), statehouse_contract::Rejection> {
///
/// let event = NewEvent::from_json("order-7", r#"{"eventType":"Paid","idempotencyKey":"k"}"#)?;
/// let stored = StoredEvent::new("order-7".into(), 1_000, 12, 11, 2_000, 5, event);
/// assert_eq!(seq_of_derived_id("order-7", 1_000, &stored.event_id), Some(12));
/// assert_eq!(seq_of_derived_id("order-8", 1_000, &stored.event_id), None);
/// # Ok(())
/// # }
/// ```
pub fn seq_of_derived_id(run_id: &str, run_created_at: u64, event_id: &str) -> Option<u64> {
    // No hash for the ids that most events come with.
    let (first, second) = (event_id.get(..8)?, event_id.get(9..13)?);
    if event_id.get(13..15)? != "-8" {
        return None;
    }
    let run_seq = u64::from_str_radix(&format!("{first}{second}"), 16).ok()?;
    (event_id == derived_id(run_id, run_created_at, run_seq)).then_some(run_seq)
}

#[cfg(test)]
mod tests {
    use super::super::{NewEvent, StoredEvent};
    use super::*;
    use crate::Json;

    #[test]
    fn an_id_that_is_made_is_a_uuid_that_names_its_event() {
        let event = NewEvent::new("T", "k", "2026-02-11T10:00:00Z", Json::from_checked("1".into()));
        let id = |seq, commit| StoredEvent::new("r".into(), 9, seq, seq - 1, 0, commit, event.clone()).event_id;
        // The last one is the largest that has room: a run with more events than that would be three hundred terabytes.
        for seq in [1, 2, 0xffff, 0x1_0000, (1 << 48) - 1] {
            let made = id(seq, 7);
            assert!(is_uuid(&made) && made.as_bytes()[14] == b'8', "{made}");
            assert_eq!(made, id(seq, 8), "whatever the number of its commit, which an import may change");
            assert_eq!(seq_of_derived_id("r", 9, &made), Some(seq));
            assert_eq!(seq_of_derived_id("s", 9, &made), None, "another run");
            assert_eq!(seq_of_derived_id("r", 8, &made), None, "a run of the same name, at another time");
            assert_eq!(seq_of_derived_id("r", 9, &made.replace("-8", "-4")), None);
        }
        assert!(id(2, 7) < id(11, 7), "they are sorted as the events are");
        for other in ["", "e1", "0190c4d0", "+190c4d0-7a3b-7def-8000-1234567890ab", "aaaaaaa\u{e9}-aaaa"] {
            assert_eq!(seq_of_derived_id("r", 9, other), None, "{other:?}");
        }
    }
}
