//! The thing in each line; `export/lines.rs` does the reverse.

use kernel::keys::things::OwnedId;
use kernel::outbox::Stored;
use kernel::outbox::dead_letters::DeadLetter;
use kernel::portable::{BuildError, Builder, Item};
use kernel::{Catalogue, MessageState, Send, Target};

use super::object::{Object, Wrong};
use crate::export::kinds;
use crate::export::lines::ORDINAL_BITS;
use crate::with_contracts;

/// Why a line could not be put.
pub(crate) enum Unput {
    Wrong(Wrong),
    Build(BuildError),
}

impl From<Wrong> for Unput {
    fn from(wrong: Wrong) -> Self {
        Unput::Wrong(wrong)
    }
}

impl From<BuildError> for Unput {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Refused(wrong) => Unput::Wrong(wrong),
            other => Unput::Build(other),
        }
    }
}

macro_rules! things {
    ($($folder:ident: $kind:ident { $done:ident, $overview:ident })*) => {
        /// Puts what a line declares in a space; whether it declares something.
        pub(super) fn declare(catalogue: &mut Catalogue, kind: &str, line: Object<'_>) -> Result<bool, Wrong> {
            Ok($(crate::$folder::import::declare(catalogue, kind, line)? ||)* false)
        }

        /// Puts the thing of a line.
        pub(super) fn put(builder: &mut Builder<'_>, kind: &str, line: Object<'_>) -> Result<(), Unput> {
            match kind {
                $(kind if crate::$folder::import::KINDS.contains(&kind) => crate::$folder::import::put(builder, kind, line),)*
                other => of_nobody(builder, other, line),
            }
        }

        /// The kinds of the lines of each contract.
        #[cfg(test)]
        const KINDS: &[&[&str]] = &[$(crate::$folder::import::KINDS),*];
    };
}

with_contracts!(things);

/// Puts what belongs to no contract.
fn of_nobody(builder: &mut Builder<'_>, kind: &str, line: Object<'_>) -> Result<(), Unput> {
    match kind {
        kinds::MESSAGE => message(builder, line),
        kinds::DEAD_LETTER => {
            let row = line.octets("letter")?;
            let letter = DeadLetter::decode(&row).map_err(|halt| halt.to_string())?;
            Ok(builder.put(&Item::DeadLetter { number: line.number("number")?, letter })?)
        }
        kinds::MESSAGE_NUMBERS => {
            let (bucket, last) = (line.number("bucket")?, line.number("last")?);
            Ok(builder.put(&Item::MessageNumbers { bucket, last })?)
        }
        kinds::RECEIVED => {
            let (bucket, source) = (line.number("bucket")?, line.number("source_bucket")?);
            Ok(builder.put(&Item::Received { bucket, source, last: line.number("last")? })?)
        }
        kinds::MACHINE_STATE => {
            let (space, group) = (space_of(builder.catalogue(), line)?, line.text("group")?);
            let (key, value) = (line.octets("key")?, line.octets("value")?);
            let machine = line.number("machine")?;
            Ok(builder.put(&Item::MachineState { space, machine, group, key: &key, value: &value })?)
        }
        kinds::MACHINE_MEMBER => {
            let (space, group) = (space_of(builder.catalogue(), line)?, line.text("group")?);
            let (session, machine) = (line.number("session")?, line.number("machine")?);
            Ok(builder.put(&Item::MachineMember { session, space, machine, group })?)
        }
        other => Err(format!("a line of the kind {other:?} cannot be here").into()),
    }
}

fn space_of(catalogue: &Catalogue, line: Object<'_>) -> Result<u32, Wrong> {
    catalogue.space_named(line.text("space")?).map_err(|rejection| rejection.to_string())
}

/// The place of a thing, and its name, which is in `name`.
pub(crate) fn thing(catalogue: &Catalogue, line: Object<'_>, name: &str) -> Result<OwnedId, Wrong> {
    let (space, branch) = branch_of(catalogue, line)?;
    Ok(OwnedId { space, branch, group: line.string_if("group")?, name: line.text(name)?.to_owned() })
}

pub(crate) fn branch_of(catalogue: &Catalogue, line: Object<'_>) -> Result<(u32, u32), Wrong> {
    let space = space_of(catalogue, line)?;
    let found = catalogue.space(space).and_then(|found| found.branch_named(line.text("branch").unwrap_or_default()));
    Ok((space, found.map_err(|rejection| rejection.to_string())?))
}

fn message(builder: &mut Builder<'_>, line: Object<'_>) -> Result<(), Unput> {
    let space = space_of(builder.catalogue(), line)?;
    let bytes = line.octets(if line.has("topic") { "payload" } else { "command" })?;
    let target = match line.text_if("topic")? {
        Some(topic) => Target::Topic { topic, payload: &bytes },
        None => Target::Transact(&bytes),
    };
    let send = Send { target, after_us: line.number_if("after_us")? };
    let message = Stored { space, branch: line.number("branch_number")?, source: line.text("source")?, send };
    let state = match (line.number_if("due_us")?, line.flag("outgoing")?) {
        (Some(due_us), false) => MessageState::Due(due_us),
        (None, false) => MessageState::Publish,
        (None, true) => MessageState::Outgoing,
        (Some(_), true) => return Err(Unput::Wrong("a message for another shard has been due before".into())),
    };
    // Half of the number each, so that neither runs into the other.
    let (commit, ordinal): (u32, u32) = (line.number_or_zero("commit")?, line.number("ordinal")?);
    let number = u64::from(commit) << ORDINAL_BITS | u64::from(ordinal);
    Ok(builder.put(&Item::Message { state, number, message })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_belongs_to_one_contract() {
        let mut kinds = KINDS.concat();
        let count = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), count);
    }
}
