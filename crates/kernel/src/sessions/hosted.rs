//! Users' machines, beside the contracts on the same journal.
//!
//! A command names the machine, in its envelope, and the group of the state. The state of a machine in a group is in
//! that group's bucket. The first command of a session in a group makes the machine aware of the session; after the
//! session has ended, the machine is notified in every group that has seen it.
//!
//! Touches: `Hosted` rows through the machine, and `Owned` rows. Keeps: E3 (a machine's keys are its own).

use kv::Writer;
use session::row::staged_session;
use session::{Halt, NewSession, UserCall};

use super::brought::hosted_id;
use crate::answer::{Answer, OpOutcome};
use crate::command::MACHINE;
use crate::command::hosted::HostedCommand;
use crate::context::Applying;
use crate::keys::sessions::HostedId;
use crate::transact::check_scope;
use crate::transact::guarded::check_machine;
use crate::transact::scope::Scope;

/// Applies a command to a user's machine.
pub(crate) fn apply(applying: &mut Applying<'_>) -> Result<Answer, Halt> {
    let call = applying.call;
    let number = (call.machine >> 16) as u16;
    let registered = applying.catalogue.machine(number);
    let (Some(machine), Some(version)) = (applying.hosted.get(&number).cloned(), registered) else {
        return Err(Halt::Newer { what: "machine", found: call.machine, known: MACHINE });
    };
    let user_call = UserCall::of(call);
    if user_call.version > version {
        return Err(Halt::Newer {
            what: "machine",
            found: call.machine,
            known: u32::from(number) << 16 | u32::from(version),
        });
    }
    let command = HostedCommand::decode(call.body)?;
    let id = match hosted_id(applying.catalogue, command.space, number, command.group) {
        Ok(id) => id,
        Err(rejection) => return Ok(Answer::Rejected(rejection)),
    };
    let checked = match Scope::of_machine(applying.catalogue, applying.keys, &command) {
        Ok(scope) => match check_scope(applying, &scope)? {
            Ok(()) => check_machine(applying, &scope, command.group)?,
            refused => refused,
        },
        Err(rejection) => Err(rejection),
    };
    if let Err(rejection) = checked {
        return Ok(Answer::Rejected(rejection));
    }
    let prefix = applying.keys.hosted(&id);
    if let Some(session) = call.session {
        let member = applying.keys.member(session, &id);
        if applying.state.get(&member)?.is_none() {
            applying.state.put(member, b"".as_slice());
            applying.owned.push(id.bucket);
            let row = staged_session(applying.state, &applying.keys.sessions(), session)?;
            let row = row.ok_or_else(|| Halt::Inconsistent(format!("E1: session {session} has no row")))?;
            let new = NewSession { number: session, capabilities: &row.capabilities };
            machine.created(applying.state, &prefix, &user_call, &new, applying.pushes)?;
            // The machine has seen the session, whatever the outcome of the command.
            applying.state.savepoint();
        }
    }
    let mut answer = Writer::new();
    machine.apply_bytes(applying.state, &prefix, &user_call, command.body, applying.pushes, &mut answer)?;
    Ok(Answer::Done { commit: call.commit, outcomes: vec![OpOutcome::Hosted(answer.finish())] })
}

/// Notifies a machine of the end of a session it has seen in a group.
pub(crate) fn expired(
    applying: &mut Applying<'_>,
    bucket: u16,
    session: u64,
    (space, number, group): (u32, u16, &str),
) -> Result<(), Halt> {
    let id = HostedId { bucket, space, machine: number, group };
    let key = applying.keys.member(session, &id);
    applying.state.delete(key);
    let machine = applying.hosted.get(&number).cloned();
    let version = applying.catalogue.machine(number);
    let (Some(machine), Some(version)) = (machine, version) else {
        return Err(Halt::Inconsistent(format!("E6: session {session} was met by machine {number}, not registered")));
    };
    let (wall_us, commit) = (applying.call.stamp.wall_us, applying.call.commit);
    let call = UserCall { session: Some(session), wall_us, commit, version };
    let prefix = applying.keys.hosted(&id);
    machine.expired(applying.state, &prefix, &call, applying.pushes)
}
