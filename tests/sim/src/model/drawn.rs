//! A command as it is drawn.

use kernel::Body;
use kernel::machine::MACHINE;
use kv::Writer;
use session::{Envelope, SESSIONS, SessionCommand};

use super::records::post::Marked;

/// A command.
#[derive(Clone)]
pub(crate) struct Drawn {
    /// The session that sends it, if one does.
    pub(crate) sender: Option<Sender>,
    pub(crate) what: What,
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
}

impl Drawn {
    /// One that no session sends, without a marked message.
    pub(crate) fn plain(body: &Body<'_>) -> Self {
        Self { sender: None, what: What::Body(encode(body)), marked: Vec::new() }
    }

    pub(crate) fn sessions(command: SessionCommand) -> Self {
        Self { sender: None, what: What::Sessions(command), marked: Vec::new() }
    }

    /// The command, if it is one of the contracts.
    pub(crate) fn body(&self) -> Option<Body<'_>> {
        match &self.what {
            What::Body(body) => Some(Body::decode(body).expect("the generator makes bodies")),
            What::Sessions(_) => None,
        }
    }

    /// The bytes of a command of the contracts.
    pub(crate) fn bytes(self) -> Vec<u8> {
        match self.what {
            What::Body(body) => body,
            What::Sessions(_) => unreachable!("it is none of the contracts"),
        }
    }

    /// The bytes of its envelope.
    pub(crate) fn envelope(&self, catalogue_revision: u64) -> Vec<u8> {
        let mut writer = Writer::new();
        match &self.what {
            What::Sessions(command) => {
                Envelope::without_session(SESSIONS, 0, b"").encode(&mut writer);
                command.encode(&mut writer);
            }
            What::Body(body) => {
                let plain = Envelope::without_session(MACHINE, catalogue_revision, body);
                let envelope = Envelope { identity: b"someone", ..plain };
                let envelope = match self.sender {
                    None => envelope,
                    Some(Sender { session, request, lowest_pending }) => {
                        Envelope { session: Some(session), request, lowest_pending, ..envelope }
                    }
                };
                envelope.encode(&mut writer);
            }
        }
        writer.finish()
    }
}

/// The bytes of a command of the contracts.
pub(crate) fn encode(body: &Body<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    body.encode(&mut writer);
    writer.finish()
}
