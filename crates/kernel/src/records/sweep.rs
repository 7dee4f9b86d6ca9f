//! Messages that nobody sends: a record was rescued, or its attempts are used up.

use contract::records::sweep_message;
use session::Halt;

use crate::catalogue::Declared;
use crate::context::Applying;
use crate::keys::ThingId;
use crate::outbox::command::{Send, Target};
use crate::outbox::send;

/// Why the sweeper sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sweep {
    Rescued,
    Exhausted,
}

/// Sends the message that a type asks for when a record is rescued or its attempts are used up. Nobody is there who could be
/// refused, so it is sent however many wait: one for an attempt of a record, and records are bounded.
pub(super) fn sweep(
    applying: &mut Applying<'_>,
    record: &ThingId<'_>,
    declared: &Declared,
    sweep: Sweep,
    attempt: u64,
) -> Result<(), Halt> {
    let (topic, reason) = match sweep {
        Sweep::Rescued => (&declared.definition.rescued_to, "rescued"),
        Sweep::Exhausted => (&declared.definition.exhausted_to, "exhausted"),
    };
    let Some(topic) = topic else {
        return Ok(());
    };
    let payload = sweep_message(record.group, record.name, attempt, reason);
    let message = Send { target: Target::Topic { topic, payload: payload.as_bytes() }, after_us: None };
    send::put(applying, record, &message)
}
