//! Where a transaction is: what its operations and guards share.

use contract::Rejection;
use contract::access::audit::SYSTEM_SPACE;

use crate::catalogue::{Catalogue, Space};
use crate::command::hosted::HostedCommand;
use crate::command::{Fence, Transact};
use crate::keys::{Keys, ThingId};

/// The space, branch and group of a transaction, and the attempts that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'transact> {
    pub(crate) catalogue: &'transact Catalogue,
    pub(crate) keys: Keys,
    pub(crate) space: u32,
    pub(crate) of_space: &'transact Space,
    pub(crate) branch: u32,
    pub(crate) group: Option<&'transact str>,
    pub(crate) fences: &'transact [Fence<'transact>],
    /// Whether it writes what only the holder of an attempt may write.
    pub(crate) force: bool,
}

impl<'transact> Scope<'transact> {
    /// That of a transaction, if its space exists.
    pub(crate) fn of(
        catalogue: &'transact Catalogue,
        keys: Keys,
        transact: &'transact Transact<'transact>,
    ) -> Result<Self, Rejection> {
        let Transact { space, branch, group, ref fences, force, .. } = *transact;
        refuse_system_space(catalogue, space)?;
        Ok(Self { catalogue, keys, space, of_space: catalogue.space(space)?, branch, group, fences, force })
    }

    /// That of a command for a user's machine, if its space exists.
    pub(crate) fn of_machine(
        catalogue: &'transact Catalogue,
        keys: Keys,
        command: &'transact HostedCommand<'transact>,
    ) -> Result<Self, Rejection> {
        let HostedCommand { space, branch, ref fences, force, .. } = *command;
        refuse_system_space(catalogue, space)?;
        let (of_space, group) = (catalogue.space(space)?, Some(command.group));
        Ok(Self { catalogue, keys, space, of_space, branch, group, fences, force })
    }

    /// The thing of this name in the group.
    pub(crate) fn thing<'name>(&'name self, name: &'name str) -> Result<ThingId<'name>, Rejection> {
        self.catalogue.thing(self.space, self.branch, self.group, name)
    }
}

/// Only the store itself writes there.
fn refuse_system_space(catalogue: &Catalogue, space: u32) -> Result<(), Rejection> {
    match catalogue.system_space() == Some(space) {
        true => Err(Rejection::NoSuchSpace { space: SYSTEM_SPACE.to_owned() }),
        false => Ok(()),
    }
}
