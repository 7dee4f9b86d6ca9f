//! Rejections about cells, as bytes.

use contract::CellRejection;
use kv::{DecodeError, Reader, Writer};

use crate::command::act::unlisted;

const CONFLICT: u8 = 3;

/// The codes that they begin with.
pub(crate) const CODES: &[u8] = &[CONFLICT];

/// The limits that are only about cells, with the numbers of their names.
pub(crate) const LIMITS: &[(u8, &str)] = &[(15, "transaction_range_cells_max")];

pub(crate) fn encode(writer: &mut Writer, rejection: &CellRejection) {
    match rejection {
        CellRejection::Conflict { cell, current } => {
            writer.u8(CONFLICT).bytes(cell.as_bytes()).optional_u64(*current);
        }
        other => unreachable!("the kernel does not give this rejection: {other}"),
    }
}

pub(crate) fn decode(code: u8, reader: &mut Reader<'_>) -> Result<CellRejection, DecodeError> {
    Ok(match code {
        CONFLICT => CellRejection::Conflict { cell: reader.text()?.to_owned(), current: reader.optional_u64()? },
        _ => unlisted(code),
    })
}
