//! Checks a command before it is proposed, and puts it into bytes.
//!
//! Limits are checked against the currently published catalogue; the command carries that catalogue's revision. The kernel
//! checks limits again, with the catalogue in force when it applies the command.

use contract::{Error, Rejection};
use kernel::{Body, Catalogue};
use kv::Writer;
use session::Envelope;

/// The approximate size of an envelope around its operations, and of an operation around its name and value.
const ENVELOPE_BYTES: usize = 48;

/// Puts a command into bytes. `envelope` has all but the body.
pub(crate) fn encode(envelope: &Envelope<'_>, catalogue: &Catalogue, body: &Body<'_>) -> Result<Vec<u8>, Error> {
    let limits = &catalogue.limits;
    let mut bytes = ENVELOPE_BYTES;
    if let Body::Transact(transact) = body {
        for op in &transact.ops {
            let value_bytes = op.value_bytes();
            Rejection::check_limit("value_bytes_max", limits.value_bytes_max as usize, value_bytes)?;
            bytes += ENVELOPE_BYTES + op.name().map_or(0, str::len) + value_bytes;
        }
        Rejection::check_limit("transaction_ops_max", limits.transaction_ops_max as usize, transact.ops.len())?;
    }
    let mut writer = Writer::with_capacity(bytes);
    // The body is written directly after the envelope's other fields, without a separate buffer.
    envelope.encode(&mut writer);
    let body_start = writer.len();
    body.encode(&mut writer);
    if matches!(body, Body::Transact(_)) {
        Rejection::check_limit(
            "transaction_bytes_max",
            limits.transaction_bytes_max as usize,
            writer.len() - body_start,
        )?;
    }
    Ok(writer.finish())
}
