//! The child: producers that push, and clients that read, acknowledge and come back, until it is killed.
//!
//! It says `I TOKEN SESSION...` before a commit and `A TOKEN` when it was
//! answered; `C SESSION` when a client connects, `D SESSION NUMBER TOKEN` for what is delivered to it; `B SESSION UPTO`
//! before it acknowledges and `K SESSION UPTO` when that was answered.
//! It complains with `E` if what is delivered is not what was pushed, or if a push does not wake its client.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use statehouse::sessions::{Deliveries, Delivery, SessionCredentials, SessionOptions};
use statehouse::{Error, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;

use super::{LAST_ROUND, secrets};
use crate::kills::child::{self, complain_of, say};
use crate::kills::sizes::Sizes;

const SESSIONS: usize = 3;
const PRODUCERS: u64 = 3;

/// No session's time is over meanwhile.
const SESSION_TIME: Duration = Duration::from_secs(24 * 3_600);

/// Pushes that may wait in a session before producers wait for its client. More than the store allows would end it.
const UNACKNOWLEDGED_MAX: u64 = 200;

/// How long a client waits for the next push.
const WAIT: Duration = Duration::from_millis(300);

/// How long a client waits that must be woken by a push, and what it must be woken before.
const LONG_WAIT: Duration = Duration::from_secs(10);

/// By now a client that was just told to wait does so.
const WAITS_BY_NOW: Duration = Duration::from_millis(50);

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let (seed, round) = (arguments.number("seed", 1), arguments.number("round", 0));
    let sizes = Sizes::from_arguments(arguments);
    child::run(arguments, |directory, deadline| work(directory, deadline, sizes, seed, round))
}

fn work(directory: &Path, deadline: Instant, sizes: Sizes, seed: u64, round: u64) -> Result<(), Error> {
    let house = sizes.options().open(directory)?;
    let mut known = secrets::read(directory);
    for session in house.sessions().list(0, 100)? {
        // The child that created it was killed before it had written down the secret.
        if known.iter().all(|known| known.session != session) {
            house.sessions().expire(session)?;
        }
    }
    while known.len() < SESSIONS {
        let session = house.sessions().create(SessionOptions::default().timeout(SESSION_TIME))?;
        secrets::add(directory, &session);
        known.push(session);
    }
    let sessions: Vec<u64> = known.iter().map(|known| known.session).collect();
    let last = round == LAST_ROUND;
    std::thread::scope(|scope| {
        let (house, sessions) = (&house, sessions.as_slice());
        for (number, known) in (100..).zip(&known) {
            let client =
                Client { house, session: known.session, known, random: Random::new(seed.wrapping_add(number)) };
            scope.spawn(move || complain_of("a client", client.run(deadline, last)));
        }
        for thread in 0..if last { 0 } else { PRODUCERS } {
            let random = Random::new(seed.wrapping_add(thread));
            let producer = Producer { house, sessions, thread, round, random };
            scope.spawn(move || complain_of("a producer", producer.run(deadline)));
        }
    });
    house.close()
}

/// What is pushed under a token: more bytes than it takes to tell which, in sizes that differ.
fn payload(token: &str) -> Vec<u8> {
    let length = token.bytes().map(usize::from).sum::<usize>() % 400;
    let filler = token.bytes().cycle().take(length);
    token.bytes().chain([b' ']).chain(filler).collect()
}

struct Producer<'house> {
    house: &'house Statehouse,
    sessions: &'house [u64],
    thread: u64,
    round: u64,
    random: Random,
}

impl Producer<'_> {
    fn run(mut self, deadline: Instant) -> Result<(), Error> {
        let group = self.house.group(format!("room-{}", self.thread));
        for number in 1.. {
            if Instant::now() > deadline {
                break;
            }
            let first = self.random.pick(self.sessions);
            let second = Some(self.random.pick(self.sessions)).filter(|second| *second != first);
            let receivers: Vec<u64> =
                [Some(first), second.filter(|_| self.random.one_in(3))].into_iter().flatten().collect();
            self.wait_for_room(&receivers)?;
            let token = format!("{}.{}.{number}", self.round, self.thread);
            let named: Vec<String> = receivers.iter().map(u64::to_string).collect();
            say(&format!("I {token} {}", named.join(" ")));
            let mut commit = group.commit().set_cell("last", token.as_str());
            for receiver in &receivers {
                commit = commit.push(*receiver, payload(&token));
            }
            commit.run()?;
            say(&format!("A {token}"));
        }
        Ok(())
    }

    /// Waits until none of the receivers is far behind.
    fn wait_for_room(&self, receivers: &[u64]) -> Result<(), Error> {
        for receiver in receivers {
            loop {
                let status = self.house.sessions().status(*receiver)?;
                let waiting = status.map_or(0, |status| status.last_push - status.acknowledged);
                if waiting < UNACKNOWLEDGED_MAX {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }
}

struct Client<'house> {
    house: &'house Statehouse,
    session: u64,
    known: &'house SessionCredentials,
    random: Random,
}

impl Client<'_> {
    fn run(mut self, deadline: Instant, last: bool) -> Result<(), Error> {
        let Self { house, session, known, .. } = self;
        while Instant::now() < deadline {
            say(&format!("C {session}"));
            let connection = house.sessions().resume(known, 1)?;
            let mut deliveries = connection.deliveries();
            if self.random.one_in(4) {
                deliveries = deliveries.resend_after(Duration::from_millis(self.random.below(20)));
            }
            let most = 1 + self.random.below(40);
            let is_empty = self.receive(&mut deliveries, most)?;
            if is_empty && last {
                let status = house.sessions().status(session)?.expect("it is there");
                if status.acknowledged == status.last_push {
                    return self.wake_up(&mut deliveries);
                }
            }
        }
        Ok(())
    }

    /// Takes some deliveries of one connection; true if it ended because there were no more.
    fn receive(&mut self, deliveries: &mut Deliveries, most: u64) -> Result<bool, Error> {
        let mut newest = 0;
        for _ in 0..most {
            let Some(delivery) = deliveries.next(WAIT)? else {
                if newest > 0 {
                    self.acknowledge(deliveries, newest)?;
                }
                return Ok(true);
            };
            newest = newest.max(self.take(delivery));
            if self.random.one_in(5) {
                let upto = newest - self.random.below(3).min(newest);
                self.acknowledge(deliveries, upto)?;
            }
        }
        // Half of the connections are dropped before what came last is acknowledged.
        if self.random.one_in(2) {
            self.acknowledge(deliveries, newest)?;
        }
        Ok(false)
    }

    /// Says what was delivered, and gives its number.
    fn take(&self, delivery: Delivery) -> u64 {
        let session = self.session;
        let Delivery::Push { number, payload: delivered } = delivery else {
            say(&format!("E session {session} got {delivery:?}"));
            return 0;
        };
        let text = String::from_utf8_lossy(&delivered);
        let token = text.split(' ').next().unwrap_or("none");
        if delivered != payload(token) {
            say(&format!("E push {number} of session {session} has other bytes than {token}"));
        }
        say(&format!("D {session} {number} {token}"));
        number
    }

    /// A push must wake the client that waits for it; looking again when the time of waiting is over is not enough.
    fn wake_up(&self, deliveries: &mut Deliveries) -> Result<(), Error> {
        let Self { house, session, .. } = self;
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let before = Instant::now();
                deliveries.next(LONG_WAIT).map(|delivery| (delivery, before.elapsed()))
            });
            std::thread::sleep(WAITS_BY_NOW);
            let token = format!("{LAST_ROUND}.{session}.1");
            say(&format!("I {token} {session}"));
            house.group("bell").commit().push(*session, payload(&token)).run()?;
            say(&format!("A {token}"));
            match waiting.join().expect("no panic")? {
                (Some(delivery), waited) if waited < LONG_WAIT => {
                    self.take(delivery);
                }
                (delivery, waited) => {
                    let woken = if delivery.is_some() { "saw its push" } else { "saw no push" };
                    say(&format!("E session {session} {woken} only after {waited:?}"));
                }
            }
            Ok(())
        })
    }

    fn acknowledge(&self, deliveries: &mut Deliveries, upto: u64) -> Result<(), Error> {
        let session = self.session;
        say(&format!("B {session} {upto}"));
        deliveries.acknowledge(upto)?;
        say(&format!("K {session} {upto}"));
        Ok(())
    }
}
