//! Clients that send commands in sessions: once, again, late, and under a number that they have used for something else.

use std::collections::BTreeMap;

use session::{SessionAnswer, SessionCommand};
use testkit::random::Random;

use crate::model::drawn::{Drawn, Sender};
use crate::model::reference::{Expected, Reference};

/// Requests of a client that may still come once more.
const SENT_MAX: usize = 20;

/// All clients of a stretch.
#[derive(Default)]
pub(crate) struct Clients {
    clients: Vec<Client>,
    /// The client that has asked for a session.
    asked: Option<usize>,
}

#[derive(Default)]
struct Client {
    session: Option<u64>,
    next_request: u64,
    /// What it waits for.
    waiting: BTreeMap<u64, Drawn>,
    /// Some of what it has sent before.
    sent: BTreeMap<u64, Drawn>,
}

impl Clients {
    pub(crate) fn new(count: u64) -> Self {
        Self { clients: (0..count).map(|_| Client::default()).collect(), asked: None }
    }

    /// Sends a command, or something else in its place.
    pub(crate) fn send(&mut self, drawn: Drawn, reference: &Reference, random: &mut Random) -> Drawn {
        match random.below(20) {
            0 => Drawn::sessions(self.session_command(reference, random)),
            1..=9 => {
                let by = random.index(self.clients.len());
                if self.clients[by].session.is_none() {
                    self.asked = Some(by);
                    let capabilities = Vec::new();
                    return Drawn::sessions(SessionCommand::Create { timeout_us: 1_000_000, capabilities });
                }
                self.clients[by].send(drawn, random)
            }
            _ => drawn,
        }
    }

    fn session_command(&self, reference: &Reference, random: &mut Random) -> SessionCommand {
        let session = some_session(reference, random);
        match random.below(4) {
            0 => {
                let mut sessions = vec![session];
                while random.one_in(3) {
                    sessions.push(some_session(reference, random));
                }
                SessionCommand::Expire { sessions }
            }
            _ => {
                let last = reference.sessions.get(&session).map_or(3, |session| session.last_push);
                SessionCommand::Acknowledge { session, upto: random.below(last + 2) }
            }
        }
    }

    /// A client hears what a command is answered; or the answer is lost.
    pub(crate) fn hear(&mut self, drawn: &Drawn, expected: &Expected, random: &mut Random) {
        if let (Some(by), Expected::Sessions(SessionAnswer::Created(session))) = (self.asked.take(), expected) {
            self.clients[by] = Client { session: Some(*session), next_request: 1, ..Client::default() };
        }
        let Some(sender) = drawn.sender else {
            return;
        };
        let mut clients = self.clients.iter_mut();
        let Some(client) = clients.find(|client| client.session == Some(sender.session)) else {
            return;
        };
        match expected {
            Expected::SessionExpired => *client = Client::default(),
            // It waits for nothing any more, or it could send nothing either.
            Expected::Busy { .. } => client.waiting.clear(),
            _ if random.one_in(3) => {}
            _ => drop(client.waiting.remove(&sender.request)),
        }
    }
}

impl Client {
    fn send(&mut self, drawn: Drawn, random: &mut Random) -> Drawn {
        let session = self.session.expect("the caller has looked");
        let known = if random.one_in(2) { &self.waiting } else { &self.sent };
        let (request, drawn) = match random.below(10) {
            0..=1 if !known.is_empty() => {
                let (request, again) = known.iter().nth(random.index(known.len())).expect("just counted");
                (*request, again.clone())
            }
            // Another command under a number that was used.
            2 if !known.is_empty() => (*known.keys().nth(random.index(known.len())).expect("just counted"), drawn),
            _ => {
                let request = self.next_request + if random.one_in(20) { random.below(4) } else { 0 };
                self.next_request = request + 1;
                self.waiting.insert(request, drawn.clone());
                self.sent.insert(request, drawn.clone());
                if self.sent.len() > SENT_MAX {
                    self.sent.pop_first();
                }
                (request, drawn)
            }
        };
        let lowest = self.waiting.keys().next().copied().unwrap_or(self.next_request);
        // The lowest that it waits for, or something that it has said before.
        let lowest_pending = if random.one_in(4) { random.below(lowest + 1) } else { lowest };
        Drawn { sender: Some(Sender { session, request, lowest_pending }), ..drawn }
    }
}

/// A session that exists, mostly; or one that has ended or never was.
pub(crate) fn some_session(reference: &Reference, random: &mut Random) -> u64 {
    let place = random.below(reference.commit + 2);
    if random.one_in(10) {
        return place;
    }
    let mut from_there = reference.sessions.range(place..).chain(&reference.sessions);
    from_there.next().map_or(place, |(session, _)| *session)
}
