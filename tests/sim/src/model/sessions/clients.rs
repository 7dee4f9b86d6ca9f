//! Clients on a bad line: requests that are pipelined, lost, doubled, overtaken and very late, answers that are lost, and
//! a `lowest_pending` that says no more than the client knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use session::{Reply, SessionAnswer, SessionCommand};
use testkit::random::Random;

use super::command::{Drawn, Request};
use super::deeds::Deeds;
use super::reference::Reference;

/// Requests that are kept to come once more, long after.
const LATE_MAX: usize = 2_000;

/// All clients, and the line between them and the machine.
pub(super) struct Clients {
    clients: Vec<Client>,
    /// What is under way, in no order.
    line: Vec<(usize, Request)>,
    /// Some of what arrived before.
    late: Vec<(usize, Request)>,
    deeds: Deeds,
}

#[derive(Default)]
struct Client {
    session: Option<u64>,
    next_request: u64,
    /// What it waits for.
    waiting: BTreeMap<u64, Arc<[u8]>>,
    /// How many it waits for at most.
    window: usize,
    /// A request whose answers do not come through for some time, so that the floor stays where it is.
    deaf_to: Option<u64>,
}

/// A command, and the client that would hear the reply.
pub(super) struct Sent {
    pub(super) drawn: Drawn,
    pub(super) by: Option<usize>,
}

impl Clients {
    pub(super) fn new(count: u64, deeds: Deeds, random: &mut Random) -> Self {
        let clients = (0..count).map(|_| Client { window: random.pick(&[1, 1, 3, 8, 30]), ..Client::default() });
        Self { clients: clients.collect(), line: Vec::new(), late: Vec::new(), deeds }
    }

    pub(super) fn count(&self) -> u64 {
        self.clients.len() as u64
    }

    /// The next command that arrives.
    pub(super) fn draw(&mut self, reference: &Reference, random: &mut Random) -> Sent {
        loop {
            let sent = match random.below(1_000) {
                0..=399 => self.arrive(random),
                400..=429 => self.arrive_late(random),
                430..=484 => Some(nobody(Drawn::Sessions(acknowledgement(reference, random)))),
                485..=490 => Some(nobody(Drawn::Sessions(retry(reference, random)))),
                491..=499 => Some(nobody(Drawn::Sessions(self.expiry(reference, random)))),
                500..=509 => Some(nobody(Drawn::Plain { body: self.deeds.body(None, reference, random) })),
                510..=511 => Some(nobody(Drawn::Sessions(creation(random)))),
                // Clients do not talk for ever when nothing comes through.
                _ if self.line.len() > 2 * self.clients.len() => self.arrive(random),
                _ => {
                    let by = random.index(self.clients.len());
                    self.act(by, reference, random)
                }
            };
            if let Some(sent) = sent {
                return sent;
            }
        }
    }

    /// Something that is under way arrives; sometimes it will once more.
    fn arrive(&mut self, random: &mut Random) -> Option<Sent> {
        if self.line.is_empty() {
            return None;
        }
        let place = random.index(self.line.len());
        let (by, request) = if random.one_in(8) { self.line[place].clone() } else { self.line.swap_remove(place) };
        if random.one_in(5) {
            let late = (by, request.clone());
            if self.late.len() < LATE_MAX {
                self.late.push(late);
            } else {
                self.late[random.index(LATE_MAX)] = late;
            }
        }
        Some(Sent { drawn: Drawn::Request(request), by: Some(by) })
    }

    fn arrive_late(&mut self, random: &mut Random) -> Option<Sent> {
        if self.late.is_empty() {
            return None;
        }
        let (by, request) = random.choose(&self.late).clone();
        Some(Sent { drawn: Drawn::Request(request), by: Some(by) })
    }

    /// A client does something. What it sends is under way then, or lost.
    fn act(&mut self, by: usize, reference: &Reference, random: &mut Random) -> Option<Sent> {
        let client = &mut self.clients[by];
        let Some(session) = client.session else {
            return Some(Sent { drawn: Drawn::Sessions(creation(random)), by: Some(by) });
        };
        let has_numbers = client.next_request < u64::MAX;
        let is_new = has_numbers && client.waiting.len() < client.window && !random.one_in(4);
        let request = if is_new {
            // Numbers rise, and some are left out.
            let left_out = if random.one_in(20) { random.below(9) } else { 0 };
            let number = client.next_request.saturating_add(left_out).min(u64::MAX - 1);
            client.next_request = number + 1;
            let body = self.deeds.body(Some((session, number)), reference, random);
            client.waiting.insert(number, body);
            if random.one_in(40) {
                client.deaf_to = Some(number);
            }
            number
        } else {
            let place = random.index(client.waiting.len().max(1));
            *client.waiting.keys().nth(place)?
        };
        let lowest = *client.waiting.keys().next().expect("it waits for what it sends");
        // The lowest that it waits for, or something that it has said before.
        let lowest_pending = if random.one_in(6) { random.below(lowest.saturating_add(1)) } else { lowest };
        let body = client.waiting[&request].clone();
        if !random.one_in(10) {
            self.line.push((by, Request { session, request, lowest_pending, body }));
        }
        None
    }

    /// The reply to what a client has sent comes back, or is lost.
    pub(super) fn hear(&mut self, sent: &Sent, reply: &[u8], random: &mut Random) -> Result<(), String> {
        let Some(by) = sent.by else {
            return Ok(());
        };
        if random.one_in(5) {
            return Ok(());
        }
        let client = &mut self.clients[by];
        let reply = Reply::decode(reply).map_err(|error| error.to_string())?;
        match &sent.drawn {
            Drawn::Sessions(_) => {
                if let (None, Reply::Answer(answer)) = (client.session, reply)
                    && let Ok(SessionAnswer::Created(session)) = SessionAnswer::decode(answer)
                {
                    let next_request = random.pick(&[1, 1, 1, 1, 1_000, u64::MAX - 40]);
                    let window = client.window;
                    *client = Client { session: Some(session), next_request, window, ..Client::default() };
                }
                Ok(())
            }
            Drawn::Request(request) if client.session == Some(request.session) => client.hear(request, reply, random),
            _ => Ok(()),
        }
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
    fn hear(&mut self, sent: &Request, reply: Reply<'_>, random: &mut Random) -> Result<(), String> {
        match reply {
            Reply::Answer(_) | Reply::Stored(_) if self.deaf_to != Some(sent.request) || random.one_in(8) => {
                self.waiting.remove(&sent.request);
            }
            Reply::Evicted { floor } if self.waiting.contains_key(&sent.request) => {
                return Err(format!("(2) {} is below the floor {floor}, and its client waits for it", sent.request));
            }
            Reply::SessionExpired if random.one_in(2) => {
                *self = Client { window: self.window, ..Client::default() };
            }
            _ => {}
        }
        // It is out of numbers, and begins anew.
        if self.next_request == u64::MAX && self.waiting.is_empty() {
            *self = Client { window: self.window, ..Client::default() };
        }
        Ok(())
    }
}

fn nobody(drawn: Drawn) -> Sent {
    Sent { drawn, by: None }
}

fn creation(random: &mut Random) -> SessionCommand {
    let capabilities = match random.below(4) {
        0 => vec![("name".to_owned(), random.bytes(9)), (String::new(), Vec::new())],
        _ => Vec::new(),
    };
    SessionCommand::Create { timeout_us: random.below(1 << 40), capabilities }
}

/// A session that exists, mostly; or one that has ended or never was.
fn some_session(reference: &Reference, random: &mut Random) -> u64 {
    if random.one_in(10) {
        return random.below(reference.commit + 2);
    }
    let place = random.below(reference.commit + 1);
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
