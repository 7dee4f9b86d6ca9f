//! A command as it is drawn.

use kernel::Body;
use kernel::command::hosted::HostedCommand;
use kernel::command::{Fence, MACHINE};
use kv::Writer;
use session::user::machine_id;
use session::{Command, Envelope, SESSIONS, SessionCommand, UserMachine};

use super::records::post::Marked;
use super::sessions::machine::{Act, Counters};

/// A command.
#[derive(Clone)]
pub(crate) struct Drawn {
    /// The session that sends it, if one does.
    pub(crate) sender: Option<Sender>,
    pub(crate) what: What,
    /// The catalogue's revision that it was checked against.
    pub(crate) revision: u64,
    /// The marked messages that it sends if it is done.
    pub(crate) marked: Vec<Marked>,
}

/// Which request of which session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) session: u64,
    pub(crate) request: u64,
    pub(crate) lowest_pending: u64,
}

/// What a command asks for.
#[derive(Clone)]
pub(crate) enum What {
    /// Something of the contracts, as bytes.
    Body(Vec<u8>),
    Sessions(SessionCommand),
    /// Something for a user's machine, about its state in a group.
    Machine {
        space: u32,
        group: String,
        fence: Option<MachineFence>,
        body: Vec<u8>,
    },
}

/// The attempt that a command for a user's machine belongs to.
#[derive(Clone, Debug)]
pub(crate) struct MachineFence {
    pub(crate) branch: u32,
    pub(crate) record: String,
    pub(crate) attempt: u64,
}

/// The command for a user's machine, as its sender sends it.
pub(crate) fn hosted<'what>(
    space: u32,
    group: &'what str,
    fence: Option<&'what MachineFence>,
    body: &'what [u8],
) -> HostedCommand<'what> {
    let plain = HostedCommand::new(space, group, body);
    match fence {
        None => plain,
        Some(MachineFence { branch, record, attempt }) => {
            HostedCommand { branch: *branch, fences: vec![Fence { record, attempt: *attempt }], ..plain }
        }
    }
}

impl Drawn {
    /// One that no session sends, without a marked message.
    pub(crate) fn plain(body: &Body<'_>) -> Self {
        Self::of(What::Body(encode(body)))
    }

    pub(crate) fn sessions(command: SessionCommand) -> Self {
        Self::of(What::Sessions(command))
    }

    /// One for a user's machine.
    pub(crate) fn machine(space: u32, group: String, fence: Option<MachineFence>, body: Vec<u8>) -> Self {
        Self::of(What::Machine { space, group, fence, body })
    }

    fn of(what: What) -> Self {
        Self { sender: None, what, revision: 1, marked: Vec::new() }
    }

    /// The command, if it is one of the contracts.
    pub(crate) fn body(&self) -> Option<Body<'_>> {
        match &self.what {
            What::Body(body) => Some(Body::decode(body).expect("the generator makes bodies")),
            What::Sessions(_) | What::Machine { .. } => None,
        }
    }

    /// What it asks for, for a message.
    pub(crate) fn describe(&self) -> String {
        match &self.what {
            What::Body(_) => format!("{:?}", self.body().expect("just seen")),
            What::Sessions(command) => format!("{command:?}"),
            What::Machine { space, group, fence, body } => {
                format!("{:?} in {space} {group:?}, fenced by {fence:?}", Act::decode(body))
            }
        }
    }

    /// The bytes of a command of the contracts.
    pub(crate) fn bytes(self) -> Vec<u8> {
        match self.what {
            What::Body(body) => body,
            What::Sessions(_) | What::Machine { .. } => unreachable!("it is none of the contracts"),
        }
    }

    /// The bytes of its envelope.
    pub(crate) fn envelope(&self) -> Vec<u8> {
        let catalogue_revision = self.revision;
        let mut writer = Writer::new();
        match &self.what {
            What::Sessions(command) => {
                Envelope::without_session(SESSIONS, 0, b"").encode(&mut writer);
                command.encode(&mut writer);
            }
            What::Body(body) => {
                self.sent(Envelope::without_session(MACHINE, catalogue_revision, body)).encode(&mut writer)
            }
            What::Machine { space, group, fence, body } => {
                let machine = machine_id(Counters::NUMBER, Counters::VERSION);
                self.sent(Envelope::without_session(machine, catalogue_revision, b"")).encode(&mut writer);
                hosted(*space, group, fence.as_ref(), body).encode(&mut writer);
            }
        }
        writer.finish()
    }

    /// The same envelope, as its sender sends it.
    fn sent<'body>(&self, plain: Envelope<'body>) -> Envelope<'body> {
        let envelope = Envelope { sender: Some(session::Sender { principal: "someone", policy_revision: 1 }), ..plain };
        match self.sender {
            None => envelope,
            Some(Sender { session, request, lowest_pending }) => {
                Envelope { session: Some(session), request, lowest_pending, ..envelope }
            }
        }
    }
}

/// The bytes of a command of the contracts.
pub(crate) fn encode(body: &Body<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    body.encode(&mut writer);
    writer.finish()
}
