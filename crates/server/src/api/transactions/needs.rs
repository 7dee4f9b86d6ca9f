//! What a transaction needs: what its conditions read, what its operations do, and the same of what it sends to other groups.
//!
//! Keeps: no condition and no operation is left out; each contract says what its own need. Never: looks at what is stored.

use contract::access::{Area, Verb};
use wire::contracts::{Guard, Operation};
use wire::query::NoQuery;
use wire::transactions::messages::{MessageOperation, Publish, Push, Send};
use wire::transactions::{Fence, Transaction};

use crate::access::{Needs, Permission};
use crate::api::{guard_needs, operation_needs};
#[cfg(feature = "canary")]
use crate::canary::Hole;

/// What a transaction in the group of the path needs.
pub(crate) fn permission() -> Permission<NoQuery, Transaction> {
    Permission::of("read what its conditions name; what each operation does", |asking, needs| {
        // Who shows the token of the owner has owned the group: that was asked then.
        let Transaction { guards, fence, owner: _, force, operations } = asking.body;
        let place = needs.count();
        of_commit(asking.name, guards.as_deref(), fence.as_ref(), operations, needs);
        if *force == Some(true) {
            needs.force_from(place);
        }
    })
}

/// Collects what a commit in a group needs.
pub(in crate::api) fn of_commit<'request>(
    group: &'request str,
    guards: Option<&'request [Guard]>,
    fence: Option<&'request Fence>,
    operations: &'request [Operation],
    needs: &mut Needs<'request>,
) {
    if let Some(Fence { record, attempt: _ }) = fence {
        needs.fence(group, record);
    }
    #[cfg(feature = "canary")]
    let guards = guards.filter(|_| !Hole::Conditions.is_open());
    #[cfg(feature = "canary")]
    let operations = if Hole::FirstOperation.is_open() { &operations[..operations.len().min(1)] } else { operations };
    for guard in guards.unwrap_or_default() {
        guard_needs(guard, group, needs);
    }
    for operation in operations {
        operation_needs(operation, group, needs);
    }
}

/// Collects what an operation needs that sends something.
pub(in crate::api) fn of_message<'request>(operation: &'request MessageOperation, needs: &mut Needs<'request>) {
    match operation {
        MessageOperation::Publish(Publish { topic, payload: _, after: _ }) => {
            needs.thing(Verb::Write, Area::Message, None, topic);
        }
        MessageOperation::Push(Push { session: _, payload: _ }) => needs.everything(Verb::Write, Area::Session),
        MessageOperation::Send(Send { group, after: _, guards, fence, owner: _, force, operations }) => {
            #[cfg(feature = "canary")]
            if Hole::Nested.is_open() {
                return;
            }
            let place = needs.count();
            of_commit(group, guards.as_deref(), fence.as_ref(), operations, needs);
            if *force == Some(true) {
                needs.force_from(place);
            }
        }
    }
}

#[cfg(test)]
mod tests;
