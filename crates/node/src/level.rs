//! The level of behaviour of a shard is raised by its owner, by a command.

use contract::{Error, FailureKind};
use kernel::{Answer, Body, LEVEL};

use crate::access::Access;

/// Raises the level to that of this release. Releases before it refuse the shard by name from then on. On a full disk it
/// stays as it is, for the next time: what is there can be read and deleted at any level.
pub(crate) fn raise_level(access: &Access) -> Result<(), Error> {
    let catalogue = access.catalogue();
    if catalogue.level >= LEVEL {
        return Ok(());
    }
    let raised = access.propose(&catalogue, &Body::Level(LEVEL), |answer| match answer {
        Answer::Done { .. } => Ok(()),
        Answer::Rejected(rejection) => Err(rejection.into()),
    });
    match raised.wait() {
        Err(Error::Failed(failure)) if failure.kind == FailureKind::DiskFull => Ok(()),
        raised => raised,
    }
}
