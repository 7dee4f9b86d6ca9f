//! How large a transaction may be.

use contract::Rejection;
use contract::limits::TRANSACTION_GUARDS_MAX;

use crate::catalogue::Catalogue;
use crate::command::Transact;

/// Refuses a transaction that is too large, sent as so many bytes.
pub(crate) fn within_limits(catalogue: &Catalogue, bytes: usize, transact: &Transact<'_>) -> Result<(), Rejection> {
    let limits = &catalogue.limits;
    let check = |limit, max: u32, got| Rejection::check_limit(limit, max as usize, got);
    check("transaction_ops_max", limits.transaction_ops_max, transact.ops.len())?;
    check("transaction_bytes_max", limits.transaction_bytes_max, bytes)?;
    Rejection::check_limit("transaction_guards_max", TRANSACTION_GUARDS_MAX, transact.guards.len())?;
    for op in &transact.ops {
        check("value_bytes_max", limits.value_bytes_max, op.value_bytes())?;
    }
    Ok(())
}
