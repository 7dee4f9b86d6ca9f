//! Messages between shards: applied once in the shard of their group, and removed in the shard that sent them.
//!
//! A bucket remembers the last number that it has received from each other bucket. The node that hands messages over keeps
//! those from one bucket to another in the order of their numbers, and repeats what it has no answer for; so a number that
//! is not above the last one was applied before. The floor belongs to a pair of buckets, not of shards, since each of the
//! two can move to another shard.
//!
//! Touches: a `Received` row and what the message changes; `Outgoing` rows. Keeps: R6 (a message is delivered once, in
//! order), also across shards.

use contract::{RefusalReason, Rejection};
use session::Halt;

use super::deliver::execute;
use super::{MessageState, numbers};
use crate::command::Body;
use crate::context::Applying;
use crate::outbox::command::{Deliver, Delivered, Target};
use crate::transact;

/// Applies a message from another shard, unless it was applied before.
pub(crate) fn receive(applying: &mut Applying<'_>, deliver: &Deliver<'_>) -> Result<Result<(), Rejection>, Halt> {
    let Deliver { source_bucket, number, message } = deliver;
    let refuse = |reason| Ok(Err(Rejection::InvalidDeclaration { what: "a message".to_owned(), reason }));
    let Target::Transact(body) = message.send.target else {
        return refuse(RefusalReason::NoTransaction);
    };
    let Ok(Body::Transact(transact)) = Body::decode(body) else {
        return refuse(RefusalReason::NoTransaction);
    };
    let bucket = match transact::bucket_here(applying.catalogue, &transact) {
        Ok(Some(bucket)) => bucket,
        Ok(None) => return refuse(RefusalReason::NoGroup),
        Err(rejection) => return Ok(Err(rejection)),
    };
    let source = match applying.catalogue.space(message.space) {
        Ok(space) => applying.catalogue.buckets.of_group(space.name.as_bytes(), message.source.as_bytes()),
        Err(rejection) => return Ok(Err(rejection)),
    };
    if source != *source_bucket || *number == 0 {
        return refuse(RefusalReason::ForeignNumber);
    }
    let key = applying.keys.received(bucket, source);
    let row = applying.keys.get_either(&key, |key| applying.state.get(key))?;
    if *number <= row.map_or(Ok(0), |row| numbers::decode(&row))? {
        return Ok(Ok(()));
    }
    execute(applying, message, *number, &transact)?;
    applying.state.put_encoded(key, |writer| numbers::encode(writer, *number));
    Ok(Ok(()))
}

/// Forgets messages that other shards have received.
pub(crate) fn delivered(applying: &mut Applying<'_>, delivered: &Delivered) -> Result<Result<(), Rejection>, Halt> {
    let bucket = delivered.bucket;
    if !applying.catalogue.here.contains(bucket) {
        return Ok(Err(Rejection::NotHere { bucket }));
    }
    for number in &delivered.numbers {
        let key = applying.keys.outgoing(bucket, *number);
        // Said twice, by a node that did not hear the first answer, it counts once.
        if applying.state.get(&key)?.is_some() {
            applying.state.delete(key);
            applying.folded.count_messages(MessageState::Outgoing, -1);
        }
    }
    Ok(Ok(()))
}
