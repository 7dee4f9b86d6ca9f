//! The machine that the suite of the session contract needs, hosted by a server.

use statehouse::sessions::{Command, DecodeError, KvError, Pushes, UserCall, UserMachine, UserState, Writer};
use testkit::session_store::Tally;

/// A machine that adds up numbers by key.
pub(crate) struct TallyMachine;

/// One of its commands.
pub(crate) struct TallyCommand(pub(crate) Tally);

/// A key that the machine panics at.
pub(crate) const PLANTED_KEY: &str = "planted";

const WATCHER: &[u8] = b"watcher";

impl Command for TallyCommand {
    type Response = String;

    fn encode(&self, writer: &mut Writer) {
        writer.raw(&self.0.encode());
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Tally::decode(bytes).map(Self).ok_or(DecodeError { what: "no command of the suite" })
    }

    fn encode_response(response: &String, writer: &mut Writer) {
        writer.raw(response.as_bytes());
    }

    fn decode_response(bytes: &[u8]) -> Result<String, DecodeError> {
        String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError { what: "text" })
    }
}

impl UserMachine for TallyMachine {
    const NUMBER: u16 = 256;
    const VERSION: u16 = 1;
    type Command = TallyCommand;

    fn apply(
        &self,
        state: &mut UserState<'_>,
        call: &UserCall,
        TallyCommand(command): TallyCommand,
        pushes: &mut Pushes,
    ) -> Result<String, KvError> {
        Ok(match command {
            Tally::Add(key) => {
                assert_ne!(key, PLANTED_KEY, "a planted panic");
                let before = state.get(key.as_bytes())?.map_or(0, |bytes| u64_in(&bytes));
                state.put(key.as_bytes(), &(before + 1).to_be_bytes());
                (before + 1).to_string()
            }
            Tally::Push(session, text) => {
                pushes.push(session, text);
                "sent".to_owned()
            }
            Tally::Watch => {
                state.put(WATCHER, &call.session.expect("in a session").to_be_bytes());
                "watching".to_owned()
            }
        })
    }

    fn on_session_expired(
        &self,
        state: &mut UserState<'_>,
        _: &UserCall,
        session: u64,
        pushes: &mut Pushes,
    ) -> Result<(), KvError> {
        if let Some(watcher) = state.get(WATCHER)? {
            for target in [session, u64_in(&watcher)] {
                pushes.push(target, format!("gone {session}"));
            }
        }
        Ok(())
    }
}

fn u64_in(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(*bytes.first_chunk().expect("eight bytes"))
}
