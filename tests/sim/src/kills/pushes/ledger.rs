//! The reports of a directory's children, and whether they are consistent.

use std::collections::{BTreeMap, BTreeSet};

/// Figures of a whole run.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) reconnects: u64,
    /// Pushes whose commits were answered, one for each receiver.
    pub(super) answered: u64,
    pub(super) delivered: u64,
    /// Deliveries of what was delivered before and not acknowledged.
    pub(super) delivered_again: u64,
    /// Pushes that nobody was told of and that arrived nevertheless.
    pub(super) in_doubt_arrived: u64,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    pub(super) wrong: u64,
}

impl Sums {
    pub(super) fn is_sound(&self) -> bool {
        (self.lost, self.doubled, self.wrong) == (0, 0, 0)
    }
}

impl std::fmt::Display for Sums {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { reconnects, answered, delivered, delivered_again, in_doubt_arrived, .. } = self;
        write!(formatter, "{reconnects} connections, {answered} pushes answered, {delivered} deliveries, ")?;
        write!(formatter, "{delivered_again} of them again, {in_doubt_arrived} not answered that arrived, ")?;
        write!(formatter, "{} lost, {} doubled, {} wrong", self.lost, self.doubled, self.wrong)
    }
}

/// The reports of a directory's children.
#[derive(Default)]
pub(super) struct Ledger {
    /// Receivers of what was to be pushed, by token.
    intended: BTreeMap<String, Vec<u64>>,
    answered: BTreeSet<String>,
    received: BTreeMap<u64, Received>,
}

/// What one session got.
#[derive(Default)]
struct Received {
    /// Tokens by number.
    pushes: BTreeMap<u64, String>,
    /// The last of this connection; none if it has got nothing yet.
    newest: Option<u64>,
    /// What it has acknowledged, as far as that was answered.
    acknowledged: u64,
    /// What it was about to acknowledge.
    acknowledging: u64,
}

impl Ledger {
    /// Takes what a child said.
    pub(super) fn read(&mut self, said: &[String], sums: &mut Sums) -> Result<(), String> {
        for line in said {
            self.read_line(line, sums).map_err(|what| format!("{what}, said by {line:?}"))?;
        }
        Ok(())
    }

    fn read_line(&mut self, line: &str, sums: &mut Sums) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |place: usize| -> Result<u64, String> {
            words.get(place).and_then(|word| word.parse().ok()).ok_or_else(|| "no number".to_owned())
        };
        match words[0] {
            "I" => {
                let receivers = (2..words.len()).map(number).collect::<Result<_, _>>()?;
                self.intended.insert(words[1].to_owned(), receivers);
            }
            "A" => {
                let receivers = self.intended.get(words[1]).ok_or("nothing like it was said before")?;
                sums.answered += receivers.len() as u64;
                self.answered.insert(words[1].to_owned());
            }
            "C" => {
                sums.reconnects += 1;
                self.received.entry(number(1)?).or_default().newest = None;
            }
            "D" => {
                let outcome = self.deliver(number(1)?, number(2)?, words[3], sums);
                sums.wrong += u64::from(outcome.is_err());
                outcome?;
            }
            "B" => {
                let received = self.received.entry(number(1)?).or_default();
                received.acknowledging = received.acknowledging.max(number(2)?);
            }
            "K" => {
                let received = self.received.entry(number(1)?).or_default();
                received.acknowledged = received.acknowledged.max(number(2)?);
            }
            _ => return Err("an unknown line".into()),
        }
        Ok(())
    }

    fn deliver(&mut self, session: u64, number: u64, token: &str, sums: &mut Sums) -> Result<(), String> {
        if !self.intended.get(token).is_some_and(|receivers| receivers.contains(&session)) {
            return Err("it was never pushed to this session".into());
        }
        let received = self.received.entry(session).or_default();
        if number <= received.acknowledged {
            sums.doubled += 1;
            return Err(format!(
                "push {number} of session {session} came again after its acknowledgement was answered"
            ));
        }
        // It goes on, or begins with the first that is not acknowledged; whether the last acknowledgement before a kill
        // was done, nobody knows.
        let first = received.acknowledged + 1..=received.acknowledging.max(received.acknowledged) + 1;
        let goes_on = received.newest.is_some_and(|newest| number == newest + 1);
        if !goes_on && !first.contains(&number) {
            return Err(format!("after {:?}, with {first:?} not acknowledged, comes {number}", received.newest));
        }
        received.newest = Some(number);
        sums.delivered += 1;
        match received.pushes.insert(number, token.to_owned()) {
            None => {}
            Some(before) if before == token => sums.delivered_again += 1,
            Some(before) => return Err(format!("push {number} of session {session} was {before} before")),
        }
        Ok(())
    }

    /// Everything was delivered now: nothing may be missing, be there twice, or be out of order.
    pub(super) fn settle(&self, sums: &mut Sums) -> Result<(), String> {
        let mut faults = Vec::new();
        for (session, received) in &self.received {
            let tokens: BTreeSet<&String> = received.pushes.values().collect();
            if tokens.len() != received.pushes.len() {
                sums.doubled += (received.pushes.len() - tokens.len()) as u64;
                faults.push(format!("session {session} got a push under two numbers"));
            }
            let numbers = received.pushes.keys().copied();
            if !numbers.eq(1..=received.pushes.len() as u64) {
                sums.wrong += 1;
                faults.push(format!("the numbers of session {session} have a gap"));
            }
            sums.in_doubt_arrived += tokens.iter().filter(|token| !self.answered.contains(**token)).count() as u64;
            let mut newest_of: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            for (number, token) in &received.pushes {
                let [round, thread, count] = parts(token)?;
                if newest_of.insert((round, thread), count).is_some_and(|before| before >= count) {
                    sums.wrong += 1;
                    faults.push(format!("push {number} of session {session}, {token}, is out of order"));
                }
            }
        }
        for token in &self.answered {
            for session in &self.intended[token] {
                let arrived = self.received.get(session).is_some_and(|received| received.has(token));
                if !arrived {
                    sums.lost += 1;
                    faults.push(format!("{token} did not arrive at session {session}"));
                }
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(faults.into_iter().take(5).collect::<Vec<_>>().join("\n  ")) }
    }
}

impl Received {
    fn has(&self, token: &str) -> bool {
        self.pushes.values().any(|pushed| pushed == token)
    }
}

/// Round, thread and count of a token.
fn parts(token: &str) -> Result<[u64; 3], String> {
    let parts: Vec<u64> = token.split('.').filter_map(|part| part.parse().ok()).collect();
    parts.try_into().map_err(|_| format!("{token} is no token"))
}
