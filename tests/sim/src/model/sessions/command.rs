//! A command as it is drawn, its bytes, and what it must be answered.

use std::sync::Arc;

use kv::Writer;
use session::user::machine_id;
use session::{Bound, Envelope, Reply, SESSIONS, SessionAnswer, SessionCommand, UserMachine};

use super::machine::Counters;

/// A command.
#[derive(Clone, Debug)]
pub(super) enum Drawn {
    /// A request of a session, as it came over the line.
    Request(Request),
    /// A command for the machine that no session sends.
    Plain { body: Arc<[u8]> },
    /// A command of sessions themselves.
    Sessions(SessionCommand),
}

/// A request of a session.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) session: u64,
    pub(super) request: u64,
    pub(super) lowest_pending: u64,
    pub(super) body: Arc<[u8]>,
}

impl Drawn {
    /// The bytes of its envelope.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        let machine = machine_id(Counters::NUMBER, Counters::VERSION);
        match self {
            Drawn::Request(Request { session, request, lowest_pending, body }) => {
                let plain = Envelope::without_session(machine, 0, body);
                let (session, request, lowest_pending) = (Some(*session), *request, *lowest_pending);
                Envelope { session, request, lowest_pending, ..plain }.encode(&mut writer);
            }
            Drawn::Plain { body } => Envelope::without_session(machine, 0, body).encode(&mut writer),
            Drawn::Sessions(command) => {
                Envelope::without_session(SESSIONS, 0, b"").encode(&mut writer);
                command.encode(&mut writer);
            }
        }
        writer.finish()
    }
}

/// What a command must be answered.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Expected {
    Answer(Vec<u8>),
    Stored(Vec<u8>),
    Sessions(SessionAnswer),
    SessionExpired,
    Evicted { floor: u64 },
    Busy { bound: Bound, max: u64 },
}

impl Expected {
    /// Compares a reply with this. The numbers are those of the checks.
    pub(super) fn compare(&self, drawn: &Drawn, bytes: &[u8]) -> Result<(), String> {
        let reply = Reply::decode(bytes).map_err(|error| format!("a reply cannot be read: {error}"))?;
        let is_same = match (self, reply) {
            (Expected::Answer(expected), Reply::Answer(answer)) => answer == expected,
            (Expected::Stored(expected), Reply::Stored(answer)) => answer == expected,
            (Expected::Sessions(expected), Reply::Answer(answer)) => {
                SessionAnswer::decode(answer).as_ref() == Ok(expected)
            }
            (Expected::SessionExpired, Reply::SessionExpired) => true,
            (Expected::Evicted { floor: expected }, Reply::Evicted { floor }) => floor == *expected,
            (Expected::Busy { bound: expected, max: most }, Reply::Busy { bound, max }) => {
                (bound, max) == (*expected, *most)
            }
            _ => false,
        };
        if is_same {
            return Ok(());
        }
        let check = match (self, reply, drawn) {
            (Expected::Stored(_), Reply::Answer(_), _) => "(1) a request was executed again",
            (Expected::Evicted { .. } | Expected::SessionExpired, Reply::Answer(_), Drawn::Request(_)) => {
                "(1) a request was executed that nobody answers for any more"
            }
            (_, _, Drawn::Request(_)) => "(2) a request was answered otherwise than it must be",
            (_, _, Drawn::Sessions(SessionCommand::Acknowledge { .. })) => "(3) an acknowledgement",
            (_, _, Drawn::Sessions(SessionCommand::RequestsForRetry { .. })) => "(4) pushes to be sent again",
            _ => "a command was answered otherwise than it must be",
        };
        let (found, expected) = (short(&format!("{reply:?}")), short(&self.describe()));
        Err(format!("{check}: {}\n  answered {found}\n  expected {expected}", short(&format!("{drawn:?}"))))
    }

    fn describe(&self) -> String {
        match self {
            Expected::Answer(answer) => format!("Answer({answer:?})"),
            Expected::Stored(answer) => format!("Stored({answer:?})"),
            Expected::Sessions(answer) => format!("{answer:?}"),
            Expected::SessionExpired => "SessionExpired".into(),
            Expected::Evicted { floor } => format!("Evicted {{ floor: {floor} }}"),
            Expected::Busy { bound, max } => format!("Busy {{ bound: {bound:?}, max: {max} }}"),
        }
    }
}

/// The beginning of a text: answers are long.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
