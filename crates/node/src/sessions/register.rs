//! Machines that users bring, made known to the store.

use contract::Error;
use kernel::{Answer, Body, CatalogueChange};

use crate::access::Access;
use crate::options::Options;

/// Registers the supplied machines that are new or newer.
pub(crate) fn register_machines(access: &Access, options: &Options) -> Result<(), Error> {
    for (machine, brought) in options.machines.clone() {
        let catalogue = access.catalogue();
        let version = brought.version();
        if catalogue.machine(machine) == Some(version) {
            continue;
        }
        let change = CatalogueChange::RegisterMachine { machine, version };
        let registered = access.propose(&catalogue, &Body::Catalogue(change), |answer| match answer {
            Answer::Done { .. } => Ok(()),
            Answer::Rejected(rejection) => Err(rejection.into()),
        });
        registered.wait()?;
    }
    Ok(())
}
