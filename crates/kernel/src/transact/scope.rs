//! Where a transaction is: what its operations and guards share.

use contract::Rejection;

use crate::catalogue::Catalogue;
use crate::command::Fence;
use crate::keys::{Keys, ThingId};

/// The space, branch and group of a transaction, and the attempt that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'transact> {
    pub(crate) catalogue: &'transact Catalogue,
    pub(crate) keys: Keys,
    pub(crate) space: u32,
    pub(crate) branch: u32,
    pub(crate) group: Option<&'transact str>,
    pub(crate) fence: Option<Fence<'transact>>,
}

impl Scope<'_> {
    /// The thing of this name in the group.
    pub(crate) fn thing<'name>(&'name self, name: &'name str) -> Result<ThingId<'name>, Rejection> {
        self.catalogue.thing(self.space, self.branch, self.group, name)
    }
}
