//! The ledger: compares what the children of one directory reported with the content of the directory.

use std::collections::BTreeMap;
use std::fmt;

use statehouse::PastVersion;

use super::found::Found;
use super::written::{self, ACCOUNTS, COUNTERS, SHORT, SHORT_VERSIONS, TOTAL};

/// What all directories of a run showed.
#[derive(Default)]
pub(super) struct Sums {
    pub(super) answered: u64,
    pub(super) refused: u64,
    /// Writes under way at a kill that are there.
    pub(super) unanswered_there: u64,
    /// And those that are not.
    pub(super) unanswered_not_there: u64,
    /// Kills after which the store held flushed tables.
    pub(super) kills_with_tables: u64,
    /// Entries that the copies applied, to see that there was something to recover.
    pub(super) entries: u64,
    pub(super) lost: u64,
    pub(super) doubled: u64,
    /// Anything else that must not be.
    pub(super) wrong: u64,
}

impl Sums {
    pub(super) fn is_sound(&self) -> bool {
        (self.lost, self.doubled, self.wrong) == (0, 0, 0)
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} kills with flushed tables, {} entries; \
             {} writes answered, {} refused, {} unanswered and there, {} unanswered and not there; \
             {} lost, {} doubled, {} wrong",
            self.kills_with_tables,
            self.entries,
            self.answered,
            self.refused,
            self.unanswered_there,
            self.unanswered_not_there,
            self.lost,
            self.doubled,
            self.wrong
        )
    }
}

/// One write that a child has announced.
struct Intent {
    operation: String,
    cells: Vec<String>,
    answer: Option<Answer>,
}

enum Answer {
    /// Version and commit number; 0 where the answer did not tell.
    Done {
        version: u64,
        commit: u64,
    },
    Conflict,
}

/// The reports of a directory's children.
#[derive(Default)]
pub(super) struct Ledger {
    /// How many versions of each cell were looked at, and the last of them.
    known: BTreeMap<&'static str, PastVersion>,
    /// The newest version of the cell that keeps few.
    short: u64,
    /// What was applied when the directory was last looked at.
    pub(super) applied: Option<[u64; 3]>,
    /// Every amount, as last seen.
    amounts: BTreeMap<&'static str, i64>,
}

impl Ledger {
    /// How many versions of each cell are known.
    pub(super) fn known(&self) -> BTreeMap<&'static str, u64> {
        self.known.iter().map(|(cell, last)| (*cell, last.version)).collect()
    }

    /// Takes in what a child said before it was killed and what a copy of the directory holds.
    pub(super) fn settle(&mut self, said: &[String], found: &Found, sums: &mut Sums) -> Result<(), String> {
        let mut round = Round { intents: BTreeMap::new(), places: BTreeMap::new() };
        for line in said {
            round.hear(line, self.applied)?;
        }
        if round.intents.is_empty() && self.applied.is_some_and(|applied| applied[0] > found.applied[0]) {
            sums.lost += 1;
            return Err(format!("{:?} was applied, now {:?}", self.applied, found.applied));
        }
        for (cell, versions) in &found.versions {
            self.take_versions(cell, versions, &mut round, sums)?;
        }
        self.check_intents(&round, found, sums)?;
        self.check_accounts(sums)?;
        self.applied = Some(found.applied);
        Ok(())
    }

    /// New versions must follow the known ones, and each must be a write that was announced.
    fn take_versions(
        &mut self,
        cell: &'static str,
        versions: &[PastVersion],
        round: &mut Round,
        sums: &mut Sums,
    ) -> Result<(), String> {
        let known = self.known.get(cell);
        let (new, mut last) = match known {
            None => (versions, None),
            Some(known) if versions.first() == Some(known) => (&versions[1..], Some(known.clone())),
            Some(known) => {
                sums.lost += 1;
                return Err(format!("{cell} had {known:?}, now {:?}", versions.first()));
            }
        };
        let mut deletions = round.announced("delete", cell);
        for past in new {
            let follows = last.as_ref().map_or((0, 0), |last| (last.version, last.commit));
            if past.version != follows.0 + 1 || past.commit <= follows.1 {
                sums.wrong += 1;
                return Err(format!("{cell} has {past:?} after {last:?}"));
            }
            match &past.value {
                None if deletions == 0 => {
                    sums.doubled += 1;
                    return Err(format!("{cell} has a deletion that was not asked for: {past:?}"));
                }
                None => deletions -= 1,
                Some(value) => {
                    let (number, token) = written::parse(value)?;
                    round.place(cell, &token, past, sums)?;
                    if COUNTERS.contains(&cell) && u64::try_from(number) != Ok(past.version) {
                        sums.doubled += 1;
                        return Err(format!("{cell} counts {number} at its version {}", past.version));
                    }
                    if ACCOUNTS.contains(&cell) {
                        self.amounts.insert(cell, number);
                    }
                }
            }
            last = Some(past.clone());
        }
        if let Some(last) = last {
            self.known.insert(cell, last);
        }
        Ok(())
    }

    /// What was answered is there as answered, what was refused is not, and a transaction is there whole.
    fn check_intents(&mut self, round: &Round, found: &Found, sums: &mut Sums) -> Result<(), String> {
        let mut short_answered = 0;
        let mut short_announced = 0;
        for (token, intent) in &round.intents {
            if intent.cells[0] == SHORT {
                short_announced += 1;
                if let Some(Answer::Done { version, .. }) = intent.answer {
                    short_answered = short_answered.max(version);
                    sums.answered += 1;
                }
                continue;
            }
            let places = intent.cells.iter().map(|cell| round.places.get(&(cell.clone(), token.clone())));
            let places: Vec<_> = places.collect();
            let there = places.iter().flatten().count();
            match &intent.answer {
                None if intent.operation == "delete" => {}
                None if there == 0 => sums.unanswered_not_there += 1,
                None => sums.unanswered_there += 1,
                Some(Answer::Conflict) => {
                    sums.refused += 1;
                    if there > 0 {
                        sums.doubled += 1;
                        return Err(format!("write {token} was refused, and is there: {places:?}"));
                    }
                }
                Some(Answer::Done { version, commit }) => {
                    sums.answered += 1;
                    self.check_answer(token, intent, &places, (*version, *commit), found, sums)?;
                }
            }
            let whole = there == 0 || there == intent.cells.len();
            let mut commits = places.iter().flatten().map(|past| past.commit);
            let first = commits.next();
            if !whole || commits.any(|commit| Some(commit) != first) {
                sums.wrong += 1;
                return Err(format!("transaction {token} is there in part: {places:?}"));
            }
        }
        self.check_short(found, short_answered, short_announced, sums)
    }

    fn check_answer(
        &self,
        token: &str,
        intent: &Intent,
        places: &[Option<&PastVersion>],
        (version, commit): (u64, u64),
        found: &Found,
        sums: &mut Sums,
    ) -> Result<(), String> {
        let matches =
            |past: &&PastVersion| (version == 0 || past.version == version) && (commit == 0 || past.commit == commit);
        let is_there = if intent.operation == "delete" {
            let versions = &found.versions[written::kept().find(|cell| intent.cells[0] == *cell).expect("known")];
            versions.iter().any(|past| past.version == version && past.value.is_none())
        } else {
            places.iter().all(|past| past.as_ref().is_some_and(matches))
        };
        if is_there {
            return Ok(());
        }
        sums.lost += 1;
        let (operation, cells) = (&intent.operation, &intent.cells);
        Err(format!(
            "{operation} {cells:?} {token} was answered with version {version}, commit {commit}; there is {places:?}"
        ))
    }

    /// Of the cell that keeps few versions, the newest must be there, and not many more.
    fn check_short(&mut self, found: &Found, answered: u64, announced: u64, sums: &mut Sums) -> Result<(), String> {
        let newest = found.short.last().map_or(0, |past| past.version);
        let contiguous = found.short.windows(2).all(|pair| pair[0].version + 1 == pair[1].version);
        if newest < answered.max(self.short) {
            sums.lost += 1;
            return Err(format!("{SHORT} was answered version {answered}, it has {newest}"));
        }
        if newest > self.short + announced {
            sums.doubled += 1;
            return Err(format!("{SHORT} has version {newest} after {} and {announced} writes", self.short));
        }
        if !contiguous || found.short.len() as u64 != newest.min(SHORT_VERSIONS) {
            sums.wrong += 1;
            return Err(format!("{SHORT} keeps {:?}", found.short));
        }
        self.short = newest;
        Ok(())
    }

    fn check_accounts(&self, sums: &mut Sums) -> Result<(), String> {
        let total: i64 = self.amounts.values().sum();
        if self.amounts.is_empty() || total == TOTAL {
            return Ok(());
        }
        sums.wrong += 1;
        Err(format!("the accounts hold {total} together, not {TOTAL}: {:?}", self.amounts))
    }
}

/// What one child said, and where it was found.
struct Round {
    intents: BTreeMap<String, Intent>,
    /// By cell and token.
    places: BTreeMap<(String, String), PastVersion>,
}

impl Round {
    fn hear(&mut self, line: &str, applied: Option<[u64; 3]>) -> Result<(), String> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: &str| word.parse::<u64>().map_err(|_| format!("the child said {line:?}"));
        match words.as_slice() {
            ["R", index, commit, hash] => {
                let recovered = [number(index)?, number(commit)?, number(hash)?];
                if applied.is_some_and(|applied| applied != recovered) {
                    return Err(format!("the child recovered {recovered:?}, its copy {applied:?}"));
                }
            }
            ["I", token, operation, cells @ ..] => {
                let cells = cells.iter().map(|cell| (*cell).to_owned()).collect();
                let intent = Intent { operation: (*operation).to_owned(), cells, answer: None };
                self.intents.insert((*token).to_owned(), intent);
            }
            ["A", token, version, commit] => {
                let answer = Answer::Done { version: number(version)?, commit: number(commit)? };
                self.intent(token)?.answer = Some(answer);
            }
            ["C", token] => self.intent(token)?.answer = Some(Answer::Conflict),
            _ => return Err(format!("the child said {line:?}")),
        }
        Ok(())
    }

    fn intent(&mut self, token: &str) -> Result<&mut Intent, String> {
        self.intents.get_mut(token).ok_or_else(|| format!("write {token} was answered before it was announced"))
    }

    /// How many writes of a kind were announced for a cell.
    fn announced(&self, operation: &str, cell: &str) -> usize {
        let such = |intent: &&Intent| intent.operation == operation && intent.cells[0] == cell;
        self.intents.values().filter(such).count()
    }

    /// Notes where a write was found: it must have been announced for that cell by this child, and be there once.
    fn place(&mut self, cell: &str, token: &str, past: &PastVersion, sums: &mut Sums) -> Result<(), String> {
        let announced = self.intents.get(token);
        if !announced.is_some_and(|intent| intent.cells.iter().any(|announced| announced == cell)) {
            sums.wrong += 1;
            return Err(format!("{cell} has {past:?}, which was not announced"));
        }
        let key = (cell.to_owned(), token.to_owned());
        if let Some(first) = self.places.insert(key, past.clone()) {
            sums.doubled += 1;
            return Err(format!("{cell} has {first:?} and {past:?}"));
        }
        Ok(())
    }
}
