//! The row that has how far the audit has come; `docs/formats/audit.md`.

use contract::access::audit::AuditHead;
use kv::{DecodeError, Reader, Writer};

const FORMAT: u8 = 1;

/// The row of a head.
pub fn encode_head(head: &AuditHead) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u8(FORMAT).u64(head.number).raw(&head.digest);
    writer.finish()
}

/// Reads the row of a head.
pub fn decode_head(row: &[u8]) -> Result<AuditHead, DecodeError> {
    let mut reader = Reader::new(row);
    reader.format(FORMAT)?;
    let number = reader.u64()?;
    let digest = reader.raw(32)?.try_into().map_err(|_| DecodeError { what: "a digest of another length" })?;
    reader.end()?;
    Ok(AuditHead { number, digest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = AuditHead { number: 258, digest: [7; 32] };
        let row = encode_head(&head);
        assert_eq!(row, [&[1, 2, 1, 0, 0, 0, 0, 0, 0][..], &[7; 32]].concat(), "as docs/formats/audit.md has it");
        assert_eq!(decode_head(&row), Ok(head));
        assert!(decode_head(&row[..40]).is_err());
    }
}
