//! The machines that users brought, and where their state is.

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::Rejection;
use session::{BytesMachine, Halt};

use crate::catalogue::Catalogue;
use crate::keys::sessions::HostedId;

/// The lowest number of a machine that a user brings.
pub const FIRST_NUMBER: u16 = 256;

/// The machines that users brought, by number.
pub type Hosted = BTreeMap<u16, Arc<dyn BytesMachine>>;

/// The place of a machine's state in a group.
pub fn hosted_id<'name>(
    catalogue: &Catalogue,
    space: u32,
    machine: u16,
    group: &'name str,
) -> Result<HostedId<'name>, Rejection> {
    let bucket = catalogue.bucket_here(catalogue.space(space)?, group)?;
    Ok(HostedId { bucket, space, machine, group })
}

/// Checks that every registered machine was supplied, in a version that understands its past commands.
pub fn check_brought(catalogue: &Catalogue, hosted: &Hosted) -> Result<(), Halt> {
    for (number, version) in catalogue.machines() {
        let brought = hosted.get(&number).map(|machine| machine.version());
        if brought.is_none_or(|brought| brought < version) {
            return Err(Halt::MachineMissing { number, version, brought });
        }
    }
    Ok(())
}
