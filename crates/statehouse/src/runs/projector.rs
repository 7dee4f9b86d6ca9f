//! A projector: maintains read models of runs asynchronously, with a custom reducer and a durable position.
//!
//! It learns from the change feed which runs have new events, fetches the events after its position, and writes state
//! and position of a run in one commit, as a record. Wherever it is killed, it resumes where it was, and no event
//! counts twice. The chain of events is checked: an event that does not follow the last makes the run `STALE`, until the
//! stored state and the events after it are one chain again, or all events from the first one are.

use std::collections::BTreeSet;
use std::time::Duration;

use contract::records::Put;
use contract::records::filter::{Filter, Test};
use contract::runs::{RunStateStore, StoredEvent};
use contract::{Error, Followed, Rejection, RunRejection, Subject, Value};

use super::{FETCH_LIMIT, Runs};
use crate::house::Statehouse;
use crate::records::ScanOptions;

/// Above this, somebody should look.
pub const LAG_HIGH: Duration = Duration::from_secs(5);

/// Above this, a run's projection is not trusted until it has caught up.
pub const LAG_STALE: Duration = Duration::from_secs(10);

/// Changes examined together.
const CHANGES_AT_ONCE: usize = 256;

/// How far the stored cursor may lag when there was nothing to project.
const CURSOR_LAG_MAX: u64 = 1_000;

const STATE: &str = "state";
const POSITION: &str = "position";
const STATUS: &str = "status";
pub(super) const CURSOR: &str = "cursor";

/// The records of the positions of projectors in the feed start with this.
pub(super) const CURSORS: &str = "projectors.";

/// A reducer of events.
pub trait Reduce {
    /// The state of a run after these events; a previous state of none is a new run. The same state and events must
    /// give the same result.
    fn reduce(&self, run: &str, state: Option<Vec<u8>>, events: &[StoredEvent]) -> Vec<u8>;
}

impl<F: Fn(&str, Option<Vec<u8>>, &[StoredEvent]) -> Vec<u8>> Reduce for F {
    fn reduce(&self, run: &str, state: Option<Vec<u8>>, events: &[StoredEvent]) -> Vec<u8> {
        self(run, state, events)
    }
}

/// Something that somebody should hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProjectorAlert {
    /// The oldest event that is not projected is older than [`LAG_HIGH`].
    LagHigh {
        /// Of this run.
        run: String,
        /// Its age.
        lag: Duration,
    },
    /// Events do not follow on each other.
    NonContiguousFetch {
        /// Of this run.
        run: String,
        /// After this sequence,
        after: u64,
        /// The sequence that the event claims to follow.
        prev_seq: u64,
    },
    /// A run has caught up, and is trusted again.
    Resynced {
        /// Which.
        run: String,
        /// Up to here.
        upto: u64,
    },
}

impl ProjectorAlert {
    /// As the contract spells it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::LagHigh { .. } => "PROJECTOR_LAG_HIGH",
            Self::NonContiguousFetch { .. } => "PROJECTOR_NON_CONTIGUOUS_FETCH_DETECTED",
            Self::Resynced { .. } => "PROJECTOR_RESYNCED",
        }
    }
}

/// Whether a run's projection can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectionStatus {
    /// It reflects its events up to its position.
    Live,
    /// It was found to be behind or broken, and is not rebuilt yet.
    Stale,
}

/// The projection of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    /// Whether it can be trusted.
    pub status: ProjectionStatus,
    /// The last event in it.
    pub position: u64,
    /// The reducer's state.
    pub state: Vec<u8>,
}

/// Maintains read models of the runs without a group; their events come from `S`, which is the store's own [`Runs`]
/// unless a test supplies another.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// # use statehouse::{Json, runs::NewEvent};
/// use statehouse::runs::{Projector, StoredEvent};
/// let count = |_: &str, state: Option<Vec<u8>>, events: &[StoredEvent]| {
///     let before = state.map_or(0, |state| state[0]);
///     vec![before + u8::try_from(events.len()).unwrap()]
/// };
/// let mut projector = Projector::new(&house, "counts", count);
/// # let event = NewEvent::new("RunStarted", "k", "2026-02-11T10:00:00Z", Json::new("{}")?);
/// house.runs().append("run-1", &event)?;
/// projector.catch_up()?;
/// assert_eq!(projector.projection("run-1")?.unwrap().state, [1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Projector<R, S = Runs> {
    house: Statehouse,
    name: String,
    reducer: R,
    source: S,
    alert: Box<dyn FnMut(&ProjectorAlert) + Send>,
    /// Stale runs, once they were searched for; they are retried at every step.
    stale: Option<BTreeSet<String>>,
}

impl<R: Reduce> Projector<R> {
    /// A projector with this name. Its projections are stored under the name, across restarts.
    pub fn new(house: &Statehouse, name: impl Into<String>, reducer: R) -> Self {
        Self::reading(house, name, reducer, house.runs())
    }
}

impl<R: Reduce, S: RunStateStore> Projector<R, S> {
    /// The same, with events from another source.
    pub fn reading(house: &Statehouse, name: impl Into<String>, reducer: R, source: S) -> Self {
        Self { house: house.clone(), name: name.into(), reducer, source, alert: Box::new(|_| {}), stale: None }
    }

    /// Sets the receiver of alerts.
    pub fn on_alert(mut self, alert: impl FnMut(&ProjectorAlert) + Send + 'static) -> Self {
        self.alert = Box::new(alert);
        self
    }

    fn record(&self, run: &str) -> String {
        format!("projections.{}.runs.{run}", self.name)
    }

    fn cursor_record(&self) -> String {
        format!("{CURSORS}{}", self.name)
    }

    /// The projection of a run; none if it has seen no event of it.
    pub fn projection(&self, run: &str) -> Result<Option<Projection>, Error> {
        let Some(record) = self.house.records().get(&self.record(run))? else {
            return Ok(None);
        };
        let state = match record.value(STATE) {
            Some(Value::Bytes(bytes)) => bytes.clone(),
            _ => Vec::new(),
        };
        let position = record.value(POSITION).and_then(Value::as_integer).map_or(0, i64::cast_unsigned);
        let stale = record.value(STATUS).and_then(Value::as_text) == Some("STALE");
        let status = if stale { ProjectionStatus::Stale } else { ProjectionStatus::Live };
        Ok(Some(Projection { status, position, state }))
    }

    /// Projects everything there is now, and returns.
    pub fn catch_up(&mut self) -> Result<(), Error> {
        while self.step(Duration::ZERO)? {}
        Ok(())
    }

    /// Projects the next events, waiting for them up to a limit. Returns whether there were any.
    pub fn step(&mut self, timeout: Duration) -> Result<bool, Error> {
        self.retry_stale()?;
        let records = self.house.records();
        let cursor = records.get_field(&self.cursor_record(), CURSOR)?;
        let cursor = cursor.and_then(|value| value.as_integer()).map_or(0, i64::cast_unsigned);
        let changes = self.house.changes().of(Subject::Run);
        let (runs, next, more) = match changes.follow(cursor, CHANGES_AT_ONCE, timeout)? {
            Followed::Page(page) => {
                let own = page.changes.into_iter().filter(|change| change.group.is_none());
                let mut runs: Vec<String> = own.map(|change| change.name).collect();
                runs.sort();
                runs.dedup();
                (runs, page.next, page.more)
            }
            // The feed does not reach back that far: every run is checked, and then it continues from now.
            Followed::Gap { newest, .. } => (self.house.runs().all_names()?, newest, false),
        };
        for run in &runs {
            self.project(run)?;
        }
        // Its own writes move the feed too: while nothing else happens, nothing is written.
        if runs.is_empty() && !more && next.saturating_sub(cursor) < CURSOR_LAG_MAX {
            return Ok(false);
        }
        records.put(&self.cursor_record(), [(CURSOR, next.cast_signed())], Put::default())?;
        // A page can hold nothing for it although there is more.
        Ok(more || !runs.is_empty())
    }

    /// Retries stale runs: their source may be fixed by now.
    fn retry_stale(&mut self) -> Result<(), Error> {
        let stale = match self.stale.take() {
            Some(stale) => stale,
            None => self.find_stale()?,
        };
        self.stale = Some(BTreeSet::new());
        for run in &stale {
            self.project(run)?;
        }
        Ok(())
    }

    fn find_stale(&self) -> Result<BTreeSet<String>, Error> {
        let prefix = self.record("");
        let filter = Filter::all().and(STATUS, Test::Eq("STALE".into()));
        let mut options = ScanOptions::default();
        let mut found = BTreeSet::new();
        loop {
            let scanned = self.house.records().scan_exact(&prefix, &filter, &options)?;
            found.extend(scanned.records.iter().map(|(thing, _)| thing.name[prefix.len()..].to_owned()));
            options = match scanned.cursor {
                Some(cursor) => options.after(Some(cursor)),
                None => return Ok(found),
            };
        }
    }

    /// Brings one run up to its last event.
    fn project(&mut self, run: &str) -> Result<(), Error> {
        let stored = self.projection(run)?;
        let mut resyncing = stored.as_ref().is_some_and(|stored| stored.status == ProjectionStatus::Stale);
        let stored = stored.filter(|stored| stored.position > 0);
        let (mut position, mut state) = stored.map_or((0, None), |stored| (stored.position, Some(stored.state)));
        let mut way = Way::Onwards;
        loop {
            let events = match self.source.fetch_events(run, position, FETCH_LIMIT) {
                // It was deleted since; its projection stays.
                Err(Error::Rejected(
                    Rejection::Run(RunRejection::Archived { .. }) | Rejection::Run(RunRejection::NoSuchRun { .. }),
                )) => return Ok(()),
                events => events?,
            };
            let Some(last) = events.last().map(|event| event.run_seq) else {
                break;
            };
            if let Some((after, prev_seq)) = broken_link(position, &events) {
                way = match way {
                    Way::Onwards => {
                        (self.alert)(&ProjectorAlert::NonContiguousFetch { run: run.to_owned(), after, prev_seq });
                        // Not trusted from here on, even if it is killed now.
                        self.write(run, "STALE", position, state.clone())?;
                        resyncing = true;
                        Way::Again
                    }
                    Way::Again if position > 0 => {
                        (position, state) = (0, None);
                        Way::FromTheFirst
                    }
                    // Whichever way, the chain is broken. It stays stale until the source is well.
                    Way::Again | Way::FromTheFirst => {
                        self.stale.get_or_insert_default().insert(run.to_owned());
                        return Ok(());
                    }
                };
                continue;
            }
            resyncing = resyncing || self.watch_lag(run, &events[0]);
            state = Some(self.reducer.reduce(run, state, &events));
            position = last;
            self.write(run, if resyncing { "STALE" } else { "LIVE" }, position, state.clone())?;
        }
        if resyncing {
            self.write(run, "LIVE", position, state)?;
            (self.alert)(&ProjectorAlert::Resynced { run: run.to_owned(), upto: position });
        }
        Ok(())
    }

    /// Whether the oldest unprojected event is so old that the run is not trusted.
    fn watch_lag(&mut self, run: &str, oldest: &StoredEvent) -> bool {
        let now_us = self.house.shard.now().wall_us;
        let lag = Duration::from_micros(now_us.saturating_sub(oldest.persisted_at));
        if lag > LAG_HIGH {
            (self.alert)(&ProjectorAlert::LagHigh { run: run.to_owned(), lag });
        }
        lag > LAG_STALE && oldest.run_seq > 1
    }

    /// State and position, in one commit.
    fn write(&self, run: &str, status: &str, position: u64, state: Option<Vec<u8>>) -> Result<(), Error> {
        let fields = [
            (STATUS, Value::from(status)),
            (POSITION, Value::from(position.cast_signed())),
            (STATE, Value::from(state.unwrap_or_default())),
        ];
        self.house.records().put(&self.record(run), fields, Put::default()).map(|_| ())
    }
}

/// How a run is brought up to its last event.
enum Way {
    /// From what is stored and what follows it.
    Onwards,
    /// The same once more, because events did not follow: perhaps they were read wrong.
    Again,
    /// From its first event, because what is stored is no beginning of what is there.
    FromTheFirst,
}

/// Where the chain of events breaks: after which event, and what the next claims to follow.
fn broken_link(position: u64, events: &[StoredEvent]) -> Option<(u64, u64)> {
    let mut after = position;
    for event in events {
        if event.prev_seq != after || event.run_seq <= after {
            return Some((after, event.prev_seq));
        }
        after = event.run_seq;
    }
    None
}
