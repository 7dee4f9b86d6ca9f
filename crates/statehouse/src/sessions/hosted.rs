//! Machines that users bring: sending them commands, reading their state.

use std::marker::PhantomData;
use std::sync::Arc;

use ::session::user::{USER_KEY_BYTES_MAX, USER_VALUE_BYTES_MAX, machine_id};
use ::session::{Command, Refused, UserAnswer, UserMachine, UserView};
use contract::{Error, Rejection, SessionRejection, names};
use kernel::sessions::brought::hosted_id;
use kernel::{Answer, HostedCommand, OpOutcome};
use kv::{View, Writer};
use node::error::{from_halt, unexpected_answer};
use node::pending::{Decode, Pending};

use super::portable::PortableSessions;
use crate::admission::Scope;
use crate::group::Group;
use crate::house::{Space, Statehouse};

/// A machine supplied by [`Options::machine`](crate::Options::machine).
pub struct MachineHandle<M> {
    scope: Scope,
    machine: PhantomData<fn() -> M>,
}

impl Statehouse {
    /// A machine supplied when the directory was opened, in the space `default`, without a session.
    pub fn machine<M: UserMachine>(&self) -> MachineHandle<M> {
        self.default_space().machine()
    }
}

impl Space {
    /// A machine supplied when the directory was opened, in this space. Machines have no branches.
    pub fn machine<M: UserMachine>(&self) -> MachineHandle<M> {
        MachineHandle { scope: self.scope.clone(), machine: PhantomData }
    }
}

impl Group {
    /// The state of a machine in this group. Machines have no branches: the owner of a group on `main` owns it too.
    pub fn machine<M: UserMachine>(&self) -> MachineGroup<M> {
        MachineGroup { scope: self.scope.clone(), group: self.name.to_string(), machine: PhantomData }
    }
}

impl<M: UserMachine> MachineHandle<M> {
    /// The machine's state in a group: it is stored, ordered and committed together.
    pub fn group(&self, name: impl Into<String>) -> MachineGroup<M> {
        MachineGroup { scope: self.scope.clone(), group: name.into(), machine: PhantomData }
    }
}

/// A machine's state in one group.
pub struct MachineGroup<M> {
    scope: Scope,
    group: String,
    machine: PhantomData<fn() -> M>,
}

impl<M: UserMachine> MachineGroup<M> {
    /// Sends a command and waits for the response.
    pub fn send(&self, command: &M::Command) -> Result<<M::Command as Command>::Response, Error> {
        self.send_later(command).wait()
    }

    /// [`send`](Self::send), answered later.
    pub fn send_later(&self, command: &M::Command) -> Pending<<M::Command as Command>::Response> {
        let mut body = Writer::new();
        command.encode(&mut body);
        submit(&self.scope, (M::NUMBER, M::VERSION), &self.group, body.as_slice(), response::<M>)
    }

    /// This machine behind the contract of sessions, which every implementation shares: bytes for commands and answers.
    pub fn portable(&self) -> PortableSessions<M> {
        PortableSessions::new(self.scope.clone(), self.group.clone())
    }

    /// The machine's current state in this group.
    pub fn view(&self) -> Result<UserView<Arc<dyn View>>, Error> {
        let (view, catalogue, ids) = self.scope.view()?;
        let id = hosted_id(&catalogue, ids.space, M::NUMBER, &self.group)?;
        Ok(UserView::new(view, self.scope.shard.keys().hosted(&id)))
    }
}

/// Sends a command, in its machine's own encoding.
pub(super) fn submit<T>(
    scope: &Scope,
    (number, version): (u16, u16),
    group: &str,
    body: &[u8],
    decode: fn(Answer) -> Result<T, Error>,
) -> Pending<T> {
    let propose = || {
        names::check_group(group)?;
        let (catalogue, ids) = scope.current()?;
        let max = catalogue.limits.transaction_bytes_max as usize;
        Rejection::check_limit("transaction_bytes_max", max, body.len())?;
        // The effect of a machine's command is unknown here, so it counts as making the store larger.
        scope.shard.access.check_space(body.len())?;
        scope.authority.check(scope)?;
        let machine = machine_id(number, version);
        let (envelope, request) = scope.begin(machine, catalogue.revision);
        let mut writer = Writer::with_capacity(ENVELOPE_BYTES + group.len() + body.len());
        envelope.encode(&mut writer);
        let (branch, fences, force) =
            (ids.branch, scope.authority.fences(Some(group)).collect(), scope.authority.force);
        HostedCommand { branch, fences, force, ..HostedCommand::new(ids.space, group, body) }.encode(&mut writer);
        let pending = scope.shard.access.submit(writer.finish(), Decode::Contracts(decode));
        Ok::<_, Error>(pending.of_request(request))
    };
    propose().unwrap_or_else(Pending::refused)
}

/// The approximate size of what surrounds a command.
const ENVELOPE_BYTES: usize = 64;

/// The response of a machine in an answer.
fn response<M: UserMachine>(answer: Answer) -> Result<<M::Command as Command>::Response, Error> {
    let bytes = response_bytes(answer, M::NUMBER)?;
    M::Command::decode_response(&bytes).map_err(undecodable)
}

fn undecodable(error: kv::DecodeError) -> Error {
    from_halt(&::session::Halt::Undecodable { what: "a response", error })
}

/// The same, in the machine's own encoding.
pub(super) fn response_bytes(answer: Answer, machine: u16) -> Result<Vec<u8>, Error> {
    let bytes = match answer {
        Answer::Rejected(rejection) => return Err(rejection.into()),
        Answer::Done { mut outcomes, .. } => match outcomes.pop() {
            Some(OpOutcome::Hosted(bytes)) => bytes,
            other => return Err(unexpected_answer("a command for a machine", &other)),
        },
    };
    let too_large = |limit, max: usize, got| Err(Rejection::LimitExceeded { limit, max: max as u64, got }.into());
    match UserAnswer::decode(&bytes).map_err(undecodable)? {
        UserAnswer::Response(response) => Ok(response.to_vec()),
        UserAnswer::Refused(Refused::Undecodable) => {
            Err(Rejection::Session(SessionRejection::UnreadableCommand { machine }).into())
        }
        UserAnswer::Refused(Refused::KeyTooLong { got }) => too_large("user_key_bytes_max", USER_KEY_BYTES_MAX, got),
        UserAnswer::Refused(Refused::ValueTooLong { got }) => {
            too_large("user_value_bytes_max", USER_VALUE_BYTES_MAX, got)
        }
    }
}
