//! A store with something of everything, enough of each kind that its rows have blocks of their own.

use std::path::Path;
use std::time::Duration;

use statehouse::Options;
use statehouse::access::{Grant, Principal};
use statehouse::records::{ClaimOptions, Put};
use statehouse::sessions::{
    Command, DecodeError, KvError, Pushes, SessionOptions, UserCall, UserMachine, UserState, Writer,
};

use super::copies::copied_at_rest;
use super::furnished::{Sayings, event, furnish};
use super::keyed;

/// Of each kind of thing, so that kinds have blocks of their own.
pub(super) const THINGS: u32 = 120;

/// A machine that answers by a push.
pub(super) struct Echo;

/// Its command.
pub(super) struct Sound;

impl Command for Sound {
    type Response = ();

    fn encode(&self, _: &mut Writer) {}

    fn decode(_: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self)
    }

    fn encode_response(_: &(), _: &mut Writer) {}

    fn decode_response(_: &[u8]) -> Result<(), DecodeError> {
        Ok(())
    }
}

impl UserMachine for Echo {
    const NUMBER: u16 = 302;
    const VERSION: u16 = 1;
    type Command = Sound;

    fn apply(&self, state: &mut UserState, call: &UserCall, _: Sound, pushes: &mut Pushes) -> Result<(), KvError> {
        if let Some(session) = call.session {
            state.put(&session.to_be_bytes(), &[7; 30]);
            pushes.push(session, [1; 30]);
        }
        Ok(())
    }

    fn on_session_expired(
        &self,
        state: &mut UserState,
        _: &UserCall,
        session: u64,
        _: &mut Pushes,
    ) -> Result<(), KvError> {
        state.delete(&session.to_be_bytes());
        Ok(())
    }
}

pub(super) fn options() -> Options {
    // No background scrub: what needs the rows finds the damage. One bucket, so that kinds have blocks of their own.
    Options::default().machine(Sayings).machine(Echo).buckets(1).scrub_bytes_per_second(0)
}

pub(super) fn name(number: u32) -> String {
    format!("thing/{number:04}")
}

/// Everything in tables, and a few entries that a replay applies. Returns the open sessions.
pub(super) fn filled(path: &Path, to: &Path) -> Vec<u64> {
    let house = options().open(path).expect("opened");
    let held = furnish(&house);
    for number in 0..THINGS {
        for version in 0..3 {
            house.cells().set(&name(number), format!("{version} of {number}")).expect("set");
        }
        house.group("g").cells().set(&name(number), number.to_string()).expect("set");
        let queue = format!("queue.{}.{number:04}", number % 40);
        let fields = [("to", format!("to {number}")), ("body", " ".repeat(if number % 10 == 0 { 2_000 } else { 20 }))];
        house.records().put(&queue, fields.clone(), Put::typed("task")).expect("put");
        house.space("shop").records().put(&format!("mail.of.{number:04}"), fields, Put::default()).expect("put");
        for key in ["RunStarted", "StepStarted"] {
            house.runs().append(&name(number), &event(key, &format!("{key}-{number}"), Some("s"))).expect("appended");
        }
        house.group("topics").commit().publish("topic", vec![1; 40]).run().expect("sent");
    }
    for number in 0..THINGS {
        let principal = Principal::new(format!("somebody-{number:04}")).granted(Grant::everything());
        house.principals().set(&principal).expect("set");
    }
    keyed::fill(&house, &to.with_extension("checkpoints"));
    let sessions = (0..THINGS / 2).map(|number| {
        let long = SessionOptions::default().timeout(Duration::from_secs(3_600));
        let session = house.sessions().open_with(long).expect("a session");
        for _ in 0..4 {
            session.machine::<Echo>().group("echo").send(&Sound).expect("sent");
        }
        let claim = ClaimOptions::worker("w").lease(Duration::from_secs(3_600));
        session.records().claim_next("queue.", 1, &claim).expect("claimed");
        if number == 0 {
            // More answers than fit into a head.
            for request in 100..350 {
                session.request(request, 1).cells().set("asked", 1).expect("set");
            }
        }
        let id = session.id();
        std::mem::forget(session); // It goes on, as if its client was elsewhere.
        id
    });
    let sessions: Vec<u64> = sessions.collect();
    for number in 0..THINGS {
        let soon = Put::expiring(Duration::from_secs(4));
        house.records().put(&format!("soon.{number:04}"), [("a", 1)], soon).expect("put");
    }
    house.flush().expect("flushed");
    house.settle().expect("merged");
    house.cells().set("tail", "to be replayed").expect("set");
    copied_at_rest(&house, path, to);
    house.close().expect("closed");
    drop(held);
    sessions
}
