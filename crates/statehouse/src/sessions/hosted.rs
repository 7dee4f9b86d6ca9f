//! Machines that users bring: registering them, sending them commands, reading their state.

use std::marker::PhantomData;
use std::sync::Arc;

use ::session::user::machine_id;
use ::session::{Command, Envelope, Refused, UserAnswer, UserMachine, UserView};
use contract::{Error, Rejection, names};
use kernel::sessions::hosted::hosted_id;
use kernel::{Answer, Body, CatalogueChange, HostedCommand, OpOutcome};
use kv::{View, Writer};

use crate::admission::Scope;
use crate::error::from_halt;
use crate::house::{Space, Statehouse};
use crate::options::Options;
use crate::pending::{Decode, Pending};
use crate::shard::{Access, keys};

/// Registers the machines that were brought, where they are new or newer.
pub(crate) fn register_machines(access: &Access, options: &Options) -> Result<(), Error> {
    for (machine, brought) in options.hosted() {
        let catalogue = access.catalogue();
        let version = brought.version();
        if catalogue.machine(machine) == Some(version) {
            continue;
        }
        let change = CatalogueChange::RegisterMachine { machine, version };
        let registered = access.propose(&catalogue, &Body::Catalogue(change), |answer| match answer {
            Answer::Done { .. } => Ok(()),
            Answer::Rejected(rejection) => Err(rejection.into()),
        });
        registered.wait()?;
    }
    Ok(())
}

/// A machine that was brought by [`Options::machine`](crate::Options::machine).
pub struct MachineHandle<M> {
    scope: Scope,
    machine: PhantomData<fn() -> M>,
}

impl Statehouse {
    /// A machine that was brought when the directory was opened, in the space `default`, without a session.
    pub fn machine<M: UserMachine>(&self) -> MachineHandle<M> {
        self.default_space().machine()
    }
}

impl Space {
    /// A machine that was brought when the directory was opened, in this space. Machines have no branches.
    pub fn machine<M: UserMachine>(&self) -> MachineHandle<M> {
        MachineHandle { scope: self.scope.clone(), machine: PhantomData }
    }
}

impl<M: UserMachine> MachineHandle<M> {
    /// The machine's state in a group: what is stored, ordered and committed together.
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
        let propose = || {
            names::check_group(&self.group)?;
            let (catalogue, ids) = self.scope.current()?;
            let mut body = Writer::new();
            command.encode(&mut body);
            let max = catalogue.limits.transaction_bytes_max as usize;
            Rejection::check_limit("transaction_bytes_max", max, body.len())?;
            let machine = machine_id(M::NUMBER, M::VERSION);
            let request = self.scope.session.as_ref().map(|session| session.begin(&self.scope.shard));
            let envelope = match &request {
                Some(request) => request.envelope(machine, catalogue.revision),
                None => Envelope::without_session(machine, catalogue.revision, b""),
            };
            let mut writer = Writer::new();
            envelope.encode(&mut writer);
            HostedCommand { space: ids.space, group: &self.group, body: body.as_slice() }.encode(&mut writer);
            let pending = self.scope.shard.access.submit(writer.finish(), Decode::Contracts(response::<M>));
            Ok::<_, Error>(match request {
                Some(request) => pending.of_request(request),
                None => pending,
            })
        };
        propose().unwrap_or_else(Pending::refused)
    }

    /// The machine's state in this group, as it is now.
    pub fn view(&self) -> Result<UserView<Arc<dyn View>>, Error> {
        let (view, catalogue, ids) = self.scope.view()?;
        let id = hosted_id(&catalogue, ids.space, M::NUMBER, &self.group)?;
        Ok(UserView::new(view, keys().hosted(&id)))
    }
}

/// The response of a machine in an answer.
fn response<M: UserMachine>(answer: Answer) -> Result<<M::Command as Command>::Response, Error> {
    let bytes = match answer {
        Answer::Rejected(rejection) => return Err(rejection.into()),
        Answer::Done { mut outcomes, .. } => match outcomes.pop() {
            Some(OpOutcome::Hosted(bytes)) => bytes,
            other => unreachable!("a machine does not answer {other:?}"),
        },
    };
    let undecodable = |error| from_halt(&::session::Halt::Undecodable { what: "a response", error });
    match UserAnswer::decode(&bytes).map_err(undecodable)? {
        UserAnswer::Response(response) => M::Command::decode_response(response).map_err(undecodable),
        UserAnswer::Refused(Refused::Undecodable) => Err(Rejection::UnreadableCommand { machine: M::NUMBER }.into()),
        UserAnswer::Refused(Refused::KeyTooLong { got }) => {
            let max = ::session::user::USER_KEY_BYTES_MAX as u64;
            Err(Rejection::LimitExceeded { limit: "user_key_bytes_max", max, got }.into())
        }
        UserAnswer::Refused(Refused::ValueTooLong { got }) => {
            let max = ::session::user::USER_VALUE_BYTES_MAX as u64;
            Err(Rejection::LimitExceeded { limit: "user_value_bytes_max", max, got }.into())
        }
    }
}
