//! The child: opens the directory, says what it found, and writes from several threads until it is killed.
//!
//! Before a write it says `I TOKEN OPERATION CELL...`, after the answer `A TOKEN VERSION COMMIT`, with 0 for what the
//! answer does not tell, or `C TOKEN` if the write was refused by a conflict.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use contract::{CellRejection, Error, Expected, Rejection, Retention, Swapped};
use statehouse::{DEFAULT_SPACE, Isolation, Statehouse};
use testkit::arguments::Arguments;
use testkit::random::Random;

use super::written::{
    ACCOUNTS, BANK, COUNTERS, FLIPS, REGISTERS, SHORT, SHORT_SPACE, SHORT_VERSIONS, TOTAL, handle, parse, value,
};
use crate::kills::child::{self, complain_of, say};
use crate::kills::sizes::Sizes;

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let (seed, round) = (arguments.number("seed", 1), arguments.number("round", 0));
    let sizes = Sizes::from_arguments(arguments);
    child::run(arguments, |directory, deadline| write(directory, deadline, sizes, seed, round))
}

fn write(directory: &Path, deadline: Instant, sizes: Sizes, seed: u64, round: u64) -> Result<(), Error> {
    let house = sizes.options().open(directory)?;
    let status = house.status()?;
    say(&format!("R {} {} {}", status.applied_index, status.commit, status.effects_hash));
    prepare(&house, round)?;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let random = Random::new(seed.wrapping_add(thread));
            let writer = Writer { house: &house, thread, round, random, written: 0 };
            scope.spawn(move || complain_of(&format!("thread {thread}"), writer.run(deadline)));
        }
    });
    Ok(())
}

/// Spaces, retention and the first amounts.
fn prepare(house: &Statehouse, round: u64) -> Result<(), Error> {
    let main = house.space(DEFAULT_SPACE);
    if main.retention()? != Retention::ALL {
        main.set_retention(Retention::ALL)?;
    }
    if !house.spaces()?.iter().any(|space| space == SHORT_SPACE) {
        house.create_space(SHORT_SPACE)?;
    }
    let short = Retention::versions(SHORT_VERSIONS);
    if house.space(SHORT_SPACE).retention()? != short {
        house.space(SHORT_SPACE).set_retention(short)?;
    }
    let mut funding = house.group(BANK).begin()?;
    if funding.get(ACCOUNTS[0])?.is_none() {
        let token = format!("{round}.fund");
        say(&format!("I {token} move {}", ACCOUNTS.join(" ")));
        for (index, account) in ACCOUNTS.iter().enumerate() {
            let amount = if index == 0 { TOTAL } else { 0 };
            funding.set(account, value(amount, &token))?;
        }
        say(&format!("A {token} 0 {}", funding.commit()?.commit));
    }
    Ok(())
}

struct Writer<'house> {
    house: &'house Statehouse,
    thread: u64,
    round: u64,
    random: Random,
    written: u64,
}

impl Writer<'_> {
    fn run(mut self, deadline: Instant) -> Result<(), Error> {
        while Instant::now() < deadline {
            match self.thread {
                0 => self.set(REGISTERS[0])?,
                1 => self.set(REGISTERS[1])?,
                2..=3 => self.count()?,
                4 => {
                    let cell = FLIPS[self.random.index(FLIPS.len())];
                    self.flip(cell)?;
                }
                5..=6 => self.transfer()?,
                _ => self.set(SHORT)?,
            }
        }
        Ok(())
    }

    /// Says what is about to be written, under a new token.
    fn intend(&mut self, operation: &str, cells: &[&str]) -> String {
        self.written += 1;
        let token = format!("{}.{}.{}", self.round, self.thread, self.written);
        say(&format!("I {token} {operation} {}", cells.join(" ")));
        token
    }

    fn set(&mut self, cell: &str) -> Result<(), Error> {
        let token = self.intend("set", &[cell]);
        // Several at once now and then, so that one entry holds more than one of a thread.
        if self.random.one_in(4) {
            let second = self.intend("set", &[cell]);
            let cells = handle(self.house, cell);
            let (first_set, second_set) =
                (cells.set_later(cell, value(0, &token)), cells.set_later(cell, value(0, &second)));
            let (first_set, second_set) = (first_set.wait()?, second_set.wait()?);
            say(&format!("A {token} {} {}", first_set.version, first_set.commit));
            say(&format!("A {second} {} {}", second_set.version, second_set.commit));
            return Ok(());
        }
        let written = handle(self.house, cell).set(cell, value(0, &token))?;
        say(&format!("A {token} {} {}", written.version, written.commit));
        Ok(())
    }

    fn count(&mut self) -> Result<(), Error> {
        let cell = COUNTERS[self.random.index(COUNTERS.len())];
        let cells = handle(self.house, cell);
        let (expected, count) = match cells.get_versioned(cell)? {
            None => (Expected::Absent, 0),
            Some(there) => (Expected::Version(there.version), number(&there.value)),
        };
        let token = self.intend("cas", &[cell]);
        match cells.cas(cell, expected, value(count + 1, &token))? {
            Swapped::Written(written) => say(&format!("A {token} {} {}", written.version, written.commit)),
            Swapped::Conflict { .. } => say(&format!("C {token}")),
        }
        Ok(())
    }

    fn flip(&mut self, cell: &str) -> Result<(), Error> {
        let cells = handle(self.house, cell);
        if cells.get(cell)?.is_some() {
            let token = self.intend("delete", &[cell]);
            let deleted = cells.delete(cell)?;
            say(&format!("A {token} {} 0", deleted.version.unwrap_or(0)));
        } else {
            let token = self.intend("init", &[cell]);
            let initialised = cells.init(cell, value(0, &token))?;
            say(&format!("A {token} {} 0", initialised.version));
        }
        Ok(())
    }

    /// Moves an amount between two accounts; what all hold together stays.
    fn transfer(&mut self) -> Result<(), Error> {
        let from = self.random.index(ACCOUNTS.len());
        let to = (from + 1 + self.random.index(ACCOUNTS.len() - 1)) % ACCOUNTS.len();
        let (from, to) = (ACCOUNTS[from], ACCOUNTS[to]);
        let mut transaction = self.house.group(BANK).begin_with(Isolation::Serialisable)?;
        let mut amount = |cell| Ok::<_, Error>(transaction.get(cell)?.map_or(0, |there| number(&there)));
        let (have, there) = (amount(from)?, amount(to)?);
        let moved = i64::try_from(self.random.below(50)).expect("small").min(have);
        let token = self.intend("move", &[from, to]);
        transaction.set(from, value(have - moved, &token))?;
        transaction.set(to, value(there + moved, &token))?;
        match transaction.commit() {
            Ok(committed) => say(&format!("A {token} 0 {}", committed.commit)),
            Err(Error::Rejected(Rejection::Cell(CellRejection::Conflict { .. }))) => say(&format!("C {token}")),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn number(found: &statehouse::Value) -> i64 {
    match parse(found) {
        Ok((number, _)) => number,
        Err(error) => {
            say(&format!("E {error}"));
            std::process::exit(1);
        }
    }
}
