//! One run: clients, the line and a store, until nothing is under way any more.

use std::collections::BTreeMap;

use statehouse::Error;
use testkit::random::Random;

use super::client::Client;
use super::findings::Findings;
use super::line::{Answer, Event, Line, Message, Traffic};
use super::store::{Store, Way, read};
use crate::directories::fast_directory;

/// Counters that everybody adds to; the first of them is everybody's favourite.
pub(super) const SHARED_COUNTERS: usize = 301;

/// Sessions that end before their clients have done what they wanted, each with a counter of its own.
const ENDING: usize = 8;

/// Virtual time up to which they end, in µs.
const END_MAX_US: u64 = 12_000_000;

/// What a run is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) clients: usize,
    /// Of all clients together.
    pub(super) increments: u64,
    pub(super) way: Way,
}

/// What a run has done.
pub(super) struct Ran {
    pub(super) traffic: Traffic,
    pub(super) virtual_seconds: u64,
    pub(super) tally: Tally,
    /// What each request was answered when it was executed.
    pub(super) executed: Executed,
    /// What the counters of sessions that ended held then.
    pub(super) at_end: BTreeMap<usize, i64>,
}

/// By client and request.
pub(super) type Executed = BTreeMap<(usize, u64), Execution>;

/// What the store answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) arrived: u64,
    pub(super) repeats: u64,
    pub(super) evicted: u64,
    pub(super) expired: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Execution {
    pub(super) counter: usize,
    pub(super) value: i64,
}

/// Runs a plan in a new directory, and looks at what is left there.
pub(super) fn run(plan: &Plan) -> Result<Findings, String> {
    let directory = fast_directory().map_err(|error| error.to_string())?;
    let mut random = Random::new(plan.seed);
    let mut line = Line::new(Random::new(random.next()));
    let mut clients = Vec::new();
    for number in 0..plan.clients {
        let (number, all) = (number as u64, plan.clients as u64);
        let increments = plan.increments / all + u64::from(number < plan.increments % all);
        clients.push(Client::new(clients.len(), increments, 0..SHARED_COUNTERS));
    }
    if plan.way == Way::InSessions {
        for ending in 0..ENDING {
            let counter = SHARED_COUNTERS + ending;
            let client = clients.len();
            clients.push(Client::new(client, u64::MAX, counter..counter + 1));
            line.add(1 + random.below(END_MAX_US), Event::Ends { client });
        }
    }
    for client in &mut clients {
        client.go_on(0, &mut line, &mut random);
    }
    let text = |error: Error| error.to_string();
    let store = Store::create(directory.path().join("house"), plan.way, clients.len()).map_err(text)?;
    let ran = Ran {
        traffic: Traffic::default(),
        virtual_seconds: 0,
        tally: Tally::default(),
        executed: BTreeMap::new(),
        at_end: BTreeMap::new(),
    };
    let mut running = Running { plan, random, line, clients, ran };
    let store = running.drive(store)?;
    let Running { line, clients, mut ran, .. } = running;
    ran.traffic = line.traffic;
    Findings::look(&store, plan, &clients, ran).map_err(text)
}

struct Running<'plan> {
    plan: &'plan Plan,
    random: Random,
    line: Line,
    clients: Vec<Client>,
    ran: Ran,
}

impl Running<'_> {
    /// Lets everything happen that happens. The store is closed and opened once on the way.
    fn drive(&mut self, mut store: Store) -> Result<Store, String> {
        let mut was_reopened = false;
        loop {
            let moment = self.line.next_moment();
            let Some((now_us, _)) = moment.last() else {
                return Ok(store);
            };
            self.ran.virtual_seconds = now_us / 1_000_000;
            self.happen(&store, moment)?;
            if !was_reopened && self.ran.executed.len() as u64 > self.plan.increments / 2 {
                was_reopened = true;
                store = store.reopen().map_err(|error| format!("the store cannot be opened again: {error}"))?;
            }
        }
    }

    fn happen(&mut self, store: &Store, moment: Vec<(u64, Event)>) -> Result<(), String> {
        // Requests are under way in the store together, and share a sync.
        let mut asked = Vec::new();
        for (now_us, event) in moment {
            match event {
                Event::Arrives(message) => {
                    let has_ended = self.ran.at_end.contains_key(&message.client);
                    asked.push((now_us, message, has_ended, store.increment(&message)));
                }
                Event::Answered(message, answer) => {
                    let client = &mut self.clients[message.client];
                    let heard = client.hear(message.request, answer);
                    // Without sessions nobody promises anything.
                    if self.plan.way == Way::InSessions {
                        heard?;
                    }
                    client.go_on(now_us, &mut self.line, &mut self.random);
                }
                Event::PatienceOver { client, request } => {
                    self.clients[client].lose_patience(now_us, request, &mut self.line);
                }
                Event::Ends { client } => self.end(store, client)?,
            }
        }
        for (now_us, message, has_ended, pending) in asked {
            let answer = match pending {
                Some(pending) => read(pending.wait()).map_err(|error| format!("{message:?}: {error}"))?,
                None => Answer::SessionExpired,
            };
            if has_ended != (answer == Answer::SessionExpired) {
                let whether = if has_ended { "has" } else { "has not" };
                return Err(format!("{message:?}, whose session {whether} ended, was answered {answer:?}"));
            }
            if self.plan.way == Way::InSessions {
                self.note(&message, answer)?;
            }
            self.line.answer(now_us, message, answer);
        }
        Ok(())
    }

    /// What was sent before is executed before: commands are applied in the order they were submitted.
    fn end(&mut self, store: &Store, client: usize) -> Result<(), String> {
        let ended = store.end(client).map_err(|error| error.to_string())?;
        if !ended {
            return Err(format!("the session of client {client} was not there to be ended"));
        }
        let counter = SHARED_COUNTERS + client - self.plan.clients;
        let value = store.value(counter).map_err(|error| error.to_string())?;
        self.ran.at_end.insert(client, value);
        Ok(())
    }

    /// A request that arrives again must be answered as it was when it was executed.
    fn note(&mut self, message: &Message, answer: Answer) -> Result<(), String> {
        let Ran { tally, executed, .. } = &mut self.ran;
        tally.arrived += 1;
        match answer {
            Answer::Counted(value) => {
                let execution = Execution { counter: message.counter, value };
                let Some(before) = executed.insert((message.client, message.request), execution) else {
                    return Ok(());
                };
                tally.repeats += 1;
                if before.value != value {
                    return Err(format!("{message:?} was answered {} and then {value}", before.value));
                }
            }
            Answer::Evicted => tally.evicted += 1,
            Answer::SessionExpired => tally.expired += 1,
        }
        Ok(())
    }
}
