//! Checks a command before it is proposed, and puts it into bytes.
//!
//! Names are resolved and limits checked against the catalogue that is published now; the command carries that
//! catalogue's revision. The kernel checks limits again, by the catalogue that is in force when it applies.

use contract::{Error, Rejection};
use kernel::machine::MACHINE;
use kernel::{Body, BranchId, Catalogue, SpaceId};
use kv::Writer;
use session::Envelope;

use crate::shard::Shard;

/// Which branch of which space, by name.
#[derive(Clone)]
pub(crate) struct Scope {
    pub(crate) shard: std::sync::Arc<Shard>,
    pub(crate) space: std::sync::Arc<str>,
    pub(crate) branch: std::sync::Arc<str>,
}

/// The same, by number, as the published catalogue has it.
#[derive(Clone, Copy)]
pub(crate) struct ScopeIds {
    pub(crate) space: SpaceId,
    pub(crate) branch: BranchId,
}

impl Scope {
    pub(crate) fn resolve(&self, catalogue: &Catalogue) -> Result<ScopeIds, Rejection> {
        let space = catalogue.space_named(&self.space)?;
        let branch = catalogue.space(space)?.branch_named(&self.branch)?;
        Ok(ScopeIds { space, branch })
    }
}

/// The envelope of a command without a session.
pub(crate) fn envelope(catalogue: &Catalogue, body: &Body<'_>) -> Result<Vec<u8>, Error> {
    let mut encoded = Writer::with_capacity(128);
    body.encode(&mut encoded);
    let limits = &catalogue.limits;
    if let Body::Transact(transact) = body {
        for value in transact.ops.iter().filter_map(kernel::Op::value) {
            within("value_bytes_max", limits.value_bytes_max, value.len())?;
        }
        within("transaction_ops_max", limits.transaction_ops_max, transact.ops.len())?;
        within("transaction_bytes_max", limits.transaction_bytes_max, encoded.len())?;
    }
    let mut writer = Writer::with_capacity(encoded.len() + 24);
    Envelope {
        machine: MACHINE,
        session: None,
        request: 0,
        lowest_pending: 0,
        catalogue_revision: catalogue.revision,
        identity: b"",
        body: encoded.as_slice(),
    }
    .encode(&mut writer);
    Ok(writer.finish())
}

fn within(limit: &'static str, max: u32, got: usize) -> Result<(), Rejection> {
    if got > max as usize { Err(Rejection::too_large(limit, max as usize, got)) } else { Ok(()) }
}
