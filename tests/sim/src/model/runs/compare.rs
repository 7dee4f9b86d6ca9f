//! Compares what a store holds with the reference, by every read of runs there is.

use std::collections::{BTreeMap, BTreeSet};

use contract::runs::{RunStatus, StoredEvent};
use contract::{Rejection, RunRejection};
use kernel::keys::ThingId;
use kernel::names::InGroup;
use kernel::runs::list::{ListedRun, RunFilter, RunPage, ViewRuns};
use kernel::runs::read;
use kernel::runs::row::RunHead;
use kv::View;
use testkit::random::Random;

use super::book::Book;
use super::generator::RUN_TYPES;
use crate::model::compare::same;
use crate::model::instance::{Instance, halted, text};
use crate::model::places::GROUPS;
use crate::model::reference::{Id, Reference, Run};

/// Runs that a list looks at, as the library has it.
const LOOKED_AT_MAX: usize = 10_000;

/// Pages of a list after which it must have ended.
const PAGES_MAX: usize = 100_000;

/// A store and the reference beside it.
pub(crate) struct Both<'both> {
    pub(crate) instance: &'both Instance,
    pub(crate) view: &'both dyn View,
    pub(crate) reference: &'both Reference,
}

impl Both<'_> {
    pub(crate) fn thing<'id>(&self, id: &'id Id) -> ThingId<'id> {
        let (space, branch, group, name) = (id.space, id.branch, id.group.as_deref(), id.name.as_str());
        ThingId { bucket: self.reference.bucket(id), space, branch, group, name }
    }

    fn head(&self, id: &Id) -> Result<Result<RunHead, Rejection>, String> {
        read::head(self.view, &self.instance.keys, &self.thing(id)).map_err(halted)
    }

    fn fetch(&self, id: &Id, head: &RunHead, after: u64, limit: usize) -> Result<(Vec<StoredEvent>, u64), String> {
        let fetched = read::fetch(self.view, &self.instance.keys, &self.thing(id), head, after, limit);
        fetched.map(|fetched| (fetched.events, fetched.stable_seq)).map_err(halted)
    }

    /// One run: its end, its projection and a page of its events.
    pub(crate) fn run(&self, id: &Id, random: &mut Random) -> Result<(), String> {
        let found = self.head(id)?;
        let run = match self.reference.runs.get(id) {
            Some(run) if !run.life.deleted => run,
            other => {
                let run = id.name.clone();
                let expected = match other {
                    None => Rejection::Run(RunRejection::NoSuchRun { run }),
                    Some(gone) => Rejection::Run(RunRejection::Archived { run, last: gone.last }),
                };
                return same(|| format!("(6) a run that does not exist, {id:?}"), &found.err(), &Some(expected));
            }
        };
        let head = found.map_err(|rejection| format!("{id:?} exists, and is answered {rejection}"))?;
        let expected = (run.last, run.life.closed, &run.run_type, run.last_event_us);
        let found = (head.last_seq, head.closed, &head.run_type, head.last_event_us);
        same(|| format!("the head of {id:?}"), &found, &expected)?;
        let snapshot = read::snapshot(self.view, &self.instance.keys, &self.thing(id), &head).map_err(halted)?;
        same(|| format!("(4) the projection of {id:?} is not what a replay gives"), &snapshot, &run.snapshot)?;
        let (after, limit) = (random.below(run.last + 2), 1 + random.index(30));
        let (events, stable) = self.fetch(id, &head, after, limit)?;
        same(|| format!("{limit} events after {after} of {id:?}"), &events, &expected_page(run, after, limit))?;
        same(|| format!("the stable position of {id:?}"), &stable, &run.last)?;
        let wall_us = run.event(1 + random.below(run.last)).persisted_at + random.below(2);
        let found = read::seq_before(self.view, &self.instance.keys, &self.thing(id), &head, wall_us);
        let expected = run.events.iter().filter(|event| event.persisted_at < wall_us).count() as u64;
        same(|| format!("the last event of {id:?} before {wall_us}"), &found.map_err(halted)?, &expected)
    }

    /// All events of a run, by pages; checks (1) to (3).
    fn whole(&self, id: &Id, run: &Run, book: &mut Book, random: &mut Random) -> Result<(), String> {
        let head = self.head(id)?.map_err(|rejection| format!("(6) {id:?} exists, and is answered {rejection}"))?;
        let limit = random.pick(&[3, 17, 1_000]);
        let mut events: Vec<StoredEvent> = Vec::new();
        loop {
            let after = events.last().map_or(0, |event| event.run_seq);
            let (page, _) = self.fetch(id, &head, after, limit)?;
            if page.is_empty() {
                break;
            }
            events.extend(page);
        }
        book.read(id, &events)?;
        let expected: Vec<_> = run.events.iter().map(|event| (**event).clone()).collect();
        same(|| format!("all events of {id:?}"), &events, &expected)
    }

    /// Every run, and some lists. Gives how many reads that were.
    pub(crate) fn everything(&self, book: &mut Book, random: &mut Random) -> Result<u64, String> {
        let mut reads = 0;
        let live = self.reference.runs.iter().filter(|(id, _)| self.reference.is_live(id.space, id.branch));
        for (id, run) in live {
            self.run(id, random)?;
            reads += 1;
            if !run.life.deleted {
                self.whole(id, run, book, random)?;
                reads += 1;
            }
        }
        for place in self.reference.live_places() {
            self.counts(place)?;
            self.counts_of_group(place, random.pick(&GROUPS))?;
            self.all(place, 1 + random.index(20))?;
            reads += 2;
        }
        for _ in 0..5 {
            self.list(random)?;
            reads += 1;
        }
        Ok(reads)
    }

    fn counts(&self, place: (u32, u32)) -> Result<(), String> {
        let found = read::counts(self.view, &self.instance.keys, place.0, place.1).map_err(halted)?;
        let found: BTreeMap<_, _> = found.into_iter().map(|(kind, status, count)| ((kind, status), count)).collect();
        same(|| format!("(5) the counts of {place:?}"), &found, &self.reference.run_counts(place))
    }

    /// The names of all runs, by pages.
    fn all(&self, place: (u32, u32), limit: usize) -> Result<(), String> {
        let (mut found, mut after) = (BTreeSet::new(), None);
        loop {
            let catalogue = self.instance.kernel.catalogue();
            let page = read::all(self.view, &self.instance.keys, catalogue, place, after.as_deref(), limit);
            let (runs, next) = page.map_err(halted)?;
            for run in runs {
                let id = Id::new(place.0, place.1, run.group.as_deref(), &run.name);
                if !found.insert(id.clone()) {
                    return Err(format!("(5) {id:?} is listed twice"));
                }
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
        let expected = self.reference.live_runs(place).map(|(id, _)| id.clone()).collect();
        same(|| format!("(5) all runs of {place:?}"), &found, &expected)
    }

    /// A list by name, or by status, kind and how long runs have been quiet, page by page to its end.
    pub(crate) fn list(&self, random: &mut Random) -> Result<(), String> {
        let place = *random.choose(&self.reference.live_places());
        let every = random.one_in(3);
        let statuses: Vec<_> = RunStatus::ALL.into_iter().filter(|_| every || !random.one_in(3)).collect();
        let run_type = (!every && !random.one_in(3)).then(|| random.pick(&RUN_TYPES));
        let times: Vec<_> = self.reference.live_runs(place).map(|(_, run)| run.last_event_us).collect();
        let quiet_since_us = match times.is_empty() || random.one_in(3) {
            true => self.reference.wall_us,
            false => random.choose(&times) + random.below(3) - 1,
        };
        let groups = match random.below(4) {
            0 => InGroup::Own,
            1 => InGroup::Named(random.pick(&GROUPS)),
            _ => InGroup::Any,
        };
        let names: Vec<_> = self.reference.live_runs(place).map(|(id, _)| id.name.as_str()).collect();
        let prefix = match names.is_empty() || random.one_in(2) {
            true => "",
            false => random.choose(&names).get(..2).unwrap_or(""),
        };
        let (space, branch) = place;
        let filter = RunFilter { space, branch, groups, prefix, statuses: &statuses, run_type, quiet_since_us };
        let found = self.pages(&filter, random)?;
        let live = self.reference.live_runs(place).filter(|(id, run)| {
            let of_groups = match groups {
                InGroup::Any => true,
                InGroup::Own => id.group.is_none(),
                InGroup::Named(group) => id.home() == group,
            };
            statuses.contains(&run.snapshot.status)
                && run_type.is_none_or(|kind| kind == run.run_type)
                && run.last_event_us <= quiet_since_us
                && of_groups
                && id.name.starts_with(prefix)
        });
        let mut expected = Vec::new();
        for (id, run) in live {
            let listed = ListedRun {
                name: id.name.clone(),
                group: id.group.clone(),
                run_type: run.run_type.clone(),
                status: run.snapshot.status,
                last_seq: run.last,
                last_event_us: run.last_event_us,
            };
            // Where it stands in the index is its head's affair, which is checked with the rows.
            let head = self.head(id)?.map_err(|rejection| format!("{id:?} exists, and is answered {rejection}"))?;
            expected.push((head.index_us, listed));
        }
        let by_name = run_type.is_none() && statuses.len() == RunStatus::ALL.len();
        expected.sort_by(|(one_us, one), (other_us, other)| match by_name {
            true => (&one.name, &one.group).cmp(&(&other.name, &other.group)),
            false => {
                let place =
                    |at_us: &u64, run: &ListedRun| (run.run_type.clone(), *at_us, run.group.clone(), run.name.clone());
                place(one_us, one).cmp(&place(other_us, other))
            }
        });
        let expected: Vec<_> = expected.into_iter().map(|(_, run)| run).collect();
        same(|| format!("(5) the runs of {filter:?}"), &found, &expected)
    }

    fn pages(&self, filter: &RunFilter<'_>, random: &mut Random) -> Result<Vec<ListedRun>, String> {
        let limit = if random.one_in(2) { 1_000 } else { 1 + random.index(6) };
        let rows_max = random.pick(&[1, 4, 50, 10_000]);
        let catalogue = self.instance.kernel.catalogue();
        let runs = ViewRuns { view: self.view, keys: self.instance.keys, catalogue };
        let (mut found, mut cursor) = (Vec::new(), None::<Vec<u8>>);
        for _ in 0..PAGES_MAX {
            let page = RunPage { limit, rows_max, cursor: cursor.as_deref() };
            let listed = runs.list(filter, &page).map_err(halted)?.map_err(text)?;
            if listed.runs.len() > limit || listed.runs.len() > rows_max {
                return Err(format!("(5) a page of {filter:?} is too long"));
            }
            found.extend(listed.runs);
            cursor = listed.cursor;
            if cursor.is_none() {
                return Ok(found);
            }
        }
        Err(format!("(5) the list of {filter:?} does not end"))
    }

    /// How many runs of a group are in each status.
    fn counts_of_group(&self, place: (u32, u32), group: &str) -> Result<(), String> {
        let catalogue = self.instance.kernel.catalogue();
        let runs = ViewRuns { view: self.view, keys: self.instance.keys, catalogue };
        let found = runs.counts_of_group(place, group, LOOKED_AT_MAX).map_err(halted)?.map_err(text)?;
        let mut expected = BTreeMap::new();
        for (_, run) in self.reference.live_runs(place).filter(|(id, _)| id.home() == group) {
            *expected.entry((run.run_type.clone(), run.snapshot.status)).or_insert(0) += 1;
        }
        same(|| format!("(5) the counts of {place:?} {group:?}"), &found, &expected)
    }
}

fn expected_page(run: &Run, after: u64, limit: usize) -> Vec<StoredEvent> {
    run.events.iter().filter(|event| event.run_seq > after).take(limit).map(|event| (**event).clone()).collect()
}
