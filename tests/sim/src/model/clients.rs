//! Clients on a bad line: requests that are pipelined, lost, doubled, overtaken and very late, answers that are lost, a
//! `lowest_pending` that says no more than the client knows, and numbers that are used for two commands.

use std::collections::{BTreeMap, BTreeSet};

use session::{SecretDigest, SessionAnswer, SessionCommand};
use testkit::random::Random;

use super::drawn::{Drawn, Sender};
use super::reference::{Expected, Reference};

/// Requests that are kept to come once more, long after.
const LATE_MAX: usize = 300;

/// Requests of a client whose numbers it may use once more.
const SENT_MAX: usize = 20;

/// All clients of a stretch, and the line between them and the kernel.
pub(crate) struct Clients {
    clients: Vec<Client>,
    /// What is under way, in no order.
    line: Vec<Drawn>,
    /// Some of what arrived before.
    late: Vec<Drawn>,
    /// The client that has asked for a session.
    asked: Option<usize>,
}

#[derive(Default)]
struct Client {
    session: Option<u64>,
    next_request: u64,
    /// What it waits for.
    waiting: BTreeMap<u64, Drawn>,
    /// The last requests that it has sent.
    sent: BTreeSet<u64>,
    /// How many it waits for at most.
    window: usize,
    /// A request whose answers do not come through for some time, so that the floor stays where it is.
    deaf_to: Option<u64>,
}

/// Draws a command: with the session and the request that it will be, if a session sends it.
pub(crate) type Draw<'draw> = dyn FnMut(Option<(u64, u64)>, &mut Random) -> Drawn + 'draw;

impl Clients {
    pub(crate) fn new(count: u64, random: &mut Random) -> Self {
        let clients = (0..count).map(|_| Client { window: random.pick(&[1, 1, 3, 8, 30]), ..Client::default() });
        Self { clients: clients.collect(), line: Vec::new(), late: Vec::new(), asked: None }
    }

    pub(crate) fn count(&self) -> u64 {
        self.clients.len() as u64
    }

    /// The next command that arrives.
    pub(crate) fn next(&mut self, draw: &mut Draw<'_>, reference: &Reference, random: &mut Random) -> Drawn {
        loop {
            let arrived = match random.below(1_000) {
                0..=399 => self.arrive(random),
                400..=429 if !self.late.is_empty() => Some(random.choose(&self.late).clone()),
                430..=484 => Some(Drawn::sessions(acknowledgement(reference, random))),
                485..=490 => Some(Drawn::sessions(retry(reference, random))),
                491..=499 => Some(Drawn::sessions(self.expiry(reference, random))),
                500..=501 => Some(Drawn::sessions(creation(random))),
                // Clients do not talk for ever when nothing comes through.
                _ if self.line.len() > 2 * self.clients.len() => self.arrive(random),
                _ => self.act(draw, random),
            };
            if let Some(arrived) = arrived {
                return arrived;
            }
        }
    }

    /// Something that is under way arrives; sometimes it will once more.
    fn arrive(&mut self, random: &mut Random) -> Option<Drawn> {
        if self.line.is_empty() {
            return None;
        }
        let place = random.index(self.line.len());
        let drawn = if random.one_in(8) { self.line[place].clone() } else { self.line.swap_remove(place) };
        if random.one_in(5) {
            let late = drawn.clone();
            if self.late.len() < LATE_MAX {
                self.late.push(late);
            } else {
                self.late[random.index(LATE_MAX)] = late;
            }
        }
        Some(drawn)
    }

    /// A client does something. What it sends is under way then, or lost.
    fn act(&mut self, draw: &mut Draw<'_>, random: &mut Random) -> Option<Drawn> {
        let by = random.index(self.clients.len());
        let client = &mut self.clients[by];
        let Some(session) = client.session else {
            self.asked = Some(by);
            return Some(Drawn::sessions(creation(random)));
        };
        let sent = client.send(session, draw, random)?;
        if !random.one_in(10) {
            self.line.push(sent);
        }
        None
    }

    /// A client hears what a command is answered; or the answer is lost.
    pub(crate) fn hear(&mut self, drawn: &Drawn, expected: &Expected, random: &mut Random) -> Result<(), String> {
        let asked = self.asked.take();
        if random.one_in(5) {
            return Ok(());
        }
        if let (Some(by), Expected::Sessions(SessionAnswer::Created(session))) = (asked, expected) {
            let next_request = random.pick(&[1, 1, 1, 1, 1_000, u64::MAX - 40]);
            let window = self.clients[by].window;
            self.clients[by] = Client { session: Some(*session), next_request, window, ..Client::default() };
        }
        let Some(sender) = drawn.sender else {
            return Ok(());
        };
        let mut clients = self.clients.iter_mut();
        let client = clients.find(|client| client.session == Some(sender.session));
        client.map_or(Ok(()), |client| client.hear(sender.request, expected, random))
    }

    /// Mostly a session that has taken too few of its pushes, or one without a client.
    fn expiry(&self, reference: &Reference, random: &mut Random) -> SessionCommand {
        let used: BTreeSet<u64> = self.clients.iter().filter_map(|client| client.session).collect();
        let useless = reference.sessions.iter().filter(|(session, known)| known.row.broken || !used.contains(session));
        let mut sessions: Vec<u64> = useless.map(|(session, _)| *session).take(random.index(4)).collect();
        if sessions.is_empty() || random.one_in(4) {
            sessions.push(some_session(reference, random));
        }
        SessionCommand::Expire { sessions }
    }
}

impl Client {
    fn send(&mut self, session: u64, draw: &mut Draw<'_>, random: &mut Random) -> Option<Drawn> {
        let has_numbers = self.next_request < u64::MAX;
        let is_new = has_numbers && self.waiting.len() < self.window && !random.one_in(4);
        let (request, drawn) = if is_new {
            // Numbers rise, and some are left out.
            let left_out = if random.one_in(20) { random.below(9) } else { 0 };
            let request = self.next_request.saturating_add(left_out).min(u64::MAX - 1);
            self.next_request = request + 1;
            let drawn = draw(Some((session, request)), random);
            self.waiting.insert(request, drawn.clone());
            self.sent.insert(request);
            if self.sent.len() > SENT_MAX {
                self.sent.pop_first();
            }
            if random.one_in(40) {
                self.deaf_to = Some(request);
            }
            (request, drawn)
        } else if random.one_in(6) && !self.sent.is_empty() {
            // Another command under a number that was used.
            let request = *self.sent.iter().nth(random.index(self.sent.len())).expect("just counted");
            (request, draw(Some((session, request)), random))
        } else {
            let place = random.index(self.waiting.len().max(1));
            self.waiting.iter().nth(place).map(|(request, drawn)| (*request, drawn.clone()))?
        };
        let lowest = self.waiting.keys().next().copied().unwrap_or(self.next_request);
        // The lowest that it waits for, or something that it has said before.
        let lowest_pending = if random.one_in(6) { random.below(lowest.saturating_add(1)) } else { lowest };
        Some(Drawn { sender: Some(Sender { session, request, lowest_pending }), ..drawn })
    }

    fn hear(&mut self, request: u64, expected: &Expected, random: &mut Random) -> Result<(), String> {
        match expected {
            Expected::Done(_)
            | Expected::DoneBefore(..)
            | Expected::Rejected(_)
            | Expected::Stored
            | Expected::Reused
                if self.deaf_to != Some(request) || random.one_in(8) =>
            {
                self.waiting.remove(&request);
            }
            Expected::Evicted { floor } if self.waiting.contains_key(&request) => {
                return Err(format!(
                    "drawn wrongly: {request} is below the floor {floor}, and its client waits for it"
                ));
            }
            Expected::SessionExpired if random.one_in(2) => *self = self.anew(),
            _ => {}
        }
        // It is out of numbers.
        if self.next_request == u64::MAX && self.waiting.is_empty() {
            *self = self.anew();
        }
        Ok(())
    }

    /// It begins anew, without a session.
    fn anew(&self) -> Self {
        Self { window: self.window, ..Self::default() }
    }
}

fn creation(random: &mut Random) -> SessionCommand {
    let capabilities = match random.below(4) {
        0 => vec![("name".to_owned(), random.bytes(9)), (String::new(), Vec::new())],
        _ => Vec::new(),
    };
    let secret = SecretDigest::new(*random.bytes(32).first_chunk().expect("as many bytes"));
    SessionCommand::Create { timeout_us: random.below(1 << 40), secret, capabilities, owner: None }
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

/// Mostly what the client has dealt with; also what it has said before, and more than it has got.
fn acknowledgement(reference: &Reference, random: &mut Random) -> SessionCommand {
    let session = some_session(reference, random);
    let (acknowledged, last) =
        reference.sessions.get(&session).map_or((0, 3), |known| (known.acknowledged, known.last_push));
    let upto = match random.below(10) {
        0 => random.below(acknowledged + 1),
        1 => last + 1 + random.below(5),
        2 => u64::MAX,
        3..=4 => last,
        _ => acknowledged + random.below(last - acknowledged + 1),
    };
    SessionCommand::Acknowledge { session, upto }
}

fn retry(reference: &Reference, random: &mut Random) -> SessionCommand {
    let now_us = reference.wall_us;
    let sent_before_us = match random.below(6) {
        0 => u64::MAX,
        1 => now_us,
        2 => now_us + 1,
        _ => now_us.saturating_sub(random.below(100_000)),
    };
    SessionCommand::RequestsForRetry { sent_before_us, limit: random.pick(&[0, 1, 2, 10, 100, u32::MAX]) }
}
