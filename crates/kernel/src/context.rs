//! The context in which a command is applied: what every contract needs, and nothing of any contract.

use kv::{Bytes, Staging};
use session::{Call, Halt, Pushes};

use crate::catalogue::Catalogue;
use crate::entry_budget::EntryBudget;
use crate::folded::Folded;
use crate::keys::things::OwnedId;
use crate::keys::{HeldKey, Keys, ThingId};
use crate::schedule::windows::Windows;
use crate::sessions::brought::Hosted;

/// The context in which a command is applied.
pub(crate) struct Applying<'entry> {
    pub(crate) state: &'entry mut Staging,
    pub(crate) folded: &'entry mut Folded,
    pub(crate) catalogue: &'entry Catalogue,
    pub(crate) keys: Keys,
    pub(crate) windows: &'entry mut Windows,
    pub(crate) call: &'entry Call<'entry>,
    /// Whether the fence of the transaction was checked before: its own operations may have ended the attempt since.
    pub(crate) fence_holds: bool,
    /// The row of the fence's record, for the first operation on it.
    pub(crate) fenced_row: Option<(HeldKey, Bytes)>,
    /// The pushes of the command.
    pub(crate) pushes: &'entry mut Pushes,
    pub(crate) pushes_at_savepoint: usize,
    pub(crate) hosted: &'entry Hosted,
    /// Whether the command has left something that ends with its session; perhaps it was rejected then.
    pub(crate) owned: Vec<u16>,
    /// Whether some range of keys is set apart.
    pub(crate) expects_damage: bool,
    /// Whether a message is being delivered: what it sends was accepted with it.
    pub(crate) delivers: bool,
    /// Whether a message of a group to itself is being delivered.
    pub(crate) from_its_own_group: bool,
    /// What the commands of the entry may still do for others.
    pub(crate) budget: &'entry mut EntryBudget,
    /// The number above which attempts start.
    pub(crate) attempts_above: u64,
}

impl Applying<'_> {
    /// The session in which something is done. A message is delivered in none, whoever sends it again.
    pub(crate) fn session(&self) -> Option<u64> {
        self.call.session.filter(|_| !self.delivers)
    }

    /// Undoes everything the command has done so far.
    pub(crate) fn undo(&mut self) {
        self.state.undo();
        self.folded.undo();
        self.windows.undo();
        self.pushes.truncate(self.pushes_at_savepoint);
    }

    /// Commits what was done so far; [`undo`](Self::undo) returns to here.
    pub(crate) fn savepoint(&mut self) {
        self.state.savepoint();
        self.folded.savepoint();
        self.windows.settle();
        self.pushes_at_savepoint = self.pushes.count();
    }

    /// The next number of a bucket's messages.
    pub(crate) fn next_number(&mut self, bucket: u16) -> Result<u64, Halt> {
        self.folded.numbers.next(self.state, &self.keys, bucket)
    }

    /// Whether only the owner of a thing's group writes it.
    pub(crate) fn is_guarded(&self, thing: &ThingId<'_>) -> bool {
        let guards = self.catalogue.space(thing.space).map(|space| &space.guards);
        guards.is_ok_and(|guards| guards.of_group(thing.group.unwrap_or(thing.name)).is_some())
    }

    /// Whether the branch of a thing was not deleted.
    pub(crate) fn is_live(&self, id: &OwnedId) -> bool {
        let space = self.catalogue.space(id.space);
        space.is_ok_and(|space| space.live_branch(id.branch).is_ok())
    }
}
