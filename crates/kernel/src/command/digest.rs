//! The digest of a command of the contracts, in its frozen form; `docs/formats/sessions.md` is the specification.
//!
//! It covers what a command asks for and where: operations, space, branch, group, names, values and conditions. It does
//! not cover who sent it, through which node, against which catalogue, or how long it was willing to wait: those may
//! differ when a client repeats a command. A member at its default adds nothing.
//!
//! What an operation or a guard adds stands with its contract. Every structure is destructured without `..`, here and there,
//! so that a new member does not compile until it is handled.

use kv::DecodeError;
use session::{CommandDigest, Digester};

use super::act::unless_empty;
use super::{Body, ClaimNext, Fence, Transact};
use crate::command::hosted::HostedCommand;

/// The digest of a command, given as the bytes of its body.
pub(crate) fn digest(body: &[u8]) -> Result<CommandDigest, DecodeError> {
    let digester = match Body::decode(body)? {
        Body::Transact(transact) => {
            let mut digester = Digester::new("transact");
            transactions(&mut digester, transact, None)?;
            digester
        }
        Body::ClaimNext(claim) => claim_next(&claim),
        // Of these, clients send only what is to be done with a dead letter. Their own encoding covers each of their members.
        Body::Catalogue(_)
        | Body::Trim(_)
        | Body::Level(_)
        | Body::Tick
        | Body::Published(_)
        | Body::Deliver(_)
        | Body::Delivered(_)
        | Body::DeadLetter(_)
        | Body::Audit(_) => {
            let mut digester = Digester::new("shard");
            digester.member("body", body);
            digester
        }
    };
    Ok(digester.finish())
}

/// The digest of a command for a user's machine. The version is not part of it: a client that was updated in between
/// sends the same bytes for the same command.
pub(crate) fn digest_hosted(number: u16, command: &HostedCommand<'_>) -> CommandDigest {
    let HostedCommand { space, group, branch, fences, force, body } = command;
    let mut digester = Digester::new("machine");
    digester.number("machine", number.into()).number("space", (*space).into());
    digester.text("group", group);
    if !fences.is_empty() {
        digester.number("branch", (*branch).into());
    }
    authority(&mut digester, fences, *force);
    digester.member("body", body).finish()
}

fn claim_next(claim: &ClaimNext<'_>) -> Digester {
    // Whether it waits is part of how it was sent, not of what it asks for.
    let ClaimNext { space, branch, prefix, records_max, worker, lease_us, waits: _ } = claim;
    let mut digester = Digester::new("claim-next");
    digester.number("space", (*space).into()).number("branch", (*branch).into());
    digester.text("prefix", prefix).number("records", (*records_max).into());
    digester.optional_text("worker", unless_empty(worker)).optional_number("lease", *lease_us);
    digester
}

/// A transaction and those that it sends, one after the other: they lie in each other as deep as a client likes, and
/// nothing here may be as deep as that. The numbers of `home`, a space and its branch, are left out.
fn transactions(digester: &mut Digester, outermost: Transact<'_>, home: Option<(u32, u32)>) -> Result<(), DecodeError> {
    let mut sent = std::collections::VecDeque::new();
    let mut next = Some(outermost);
    while let Some(one) = next {
        transact(digester, &one, home, &mut |body| sent.push_back(body));
        next = match sent.pop_front() {
            None => None,
            Some(body) => {
                digester.text("sent", "");
                match Body::decode(body) {
                    Ok(Body::Transact(one)) => Some(one),
                    // It will be refused; until then its bytes represent it.
                    _ => {
                        digester.member("body", body);
                        None
                    }
                }
            }
        };
    }
    Ok(())
}

/// The digest of what a transaction contains: its group, conditions and operations, whoever sends it. It is kept with a map, whose
/// space and branch have other numbers in another store, so neither they are in it nor those of messages that stay there.
pub(crate) fn digest_content(transact: &Transact<'_>) -> Result<CommandDigest, DecodeError> {
    let mut digester = Digester::new("transact");
    let home = Some((transact.space, transact.branch));
    transactions(&mut digester, Transact { fences: Vec::new(), force: false, ..transact.clone() }, home)?;
    Ok(digester.finish())
}

fn authority(digester: &mut Digester, fences: &[Fence<'_>], force: bool) {
    for Fence { record, attempt } in fences {
        digester.text("fence", record).number("attempt", *attempt);
    }
    if force {
        digester.text("force", "");
    }
}

fn transact<'bytes>(
    digester: &mut Digester,
    transact: &Transact<'bytes>,
    home: Option<(u32, u32)>,
    send: &mut impl FnMut(&'bytes [u8]),
) {
    let Transact { space, branch, group, fences, force, guards, ops } = transact;
    if home != Some((*space, *branch)) {
        digester.number("space", (*space).into()).number("branch", (*branch).into());
    }
    digester.optional_text("group", *group);
    authority(digester, fences, *force);
    for guard in guards {
        guard.digest(digester);
    }
    for op in ops {
        op.digest(digester, send);
    }
}

#[cfg(test)]
mod tests;
