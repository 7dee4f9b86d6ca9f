//! Lists of runs: a page at a time, of all groups or of one, by name or by how long they have been quiet.
//!
//! A list of every status and kind is ordered by (name, group), which never changes: paging sees every run that exists
//! throughout, once. Any other list uses the index of status, kind and last event: by kind, then the longest idle
//! first, to within the minute that an entry may lag. An entry only moves towards the end of its kind, so paging misses
//! no run that matches throughout; a run that gets events meanwhile may appear again.
//!
//! A page ends when it is full or when enough runs were examined; its cursor says where to continue.
//!
//! Touches: nothing. Keeps: K8 and L4 while it reads.

use std::collections::BTreeMap;

use contract::Rejection;
use contract::runs::RunStatus;
use kv::{KeyRange, View};
use session::Halt;

use super::read::head;
use super::row::RunHead;
use crate::catalogue::Catalogue;
use crate::keys::names::read_position;
use crate::keys::runs::{behind_kind, read_run_index};
use crate::keys::things::OwnedId;
use crate::keys::{Keys, Kind};
use crate::merge::{MergedRows, Source};
use crate::names::{InGroup, Listing, Things};
use crate::readable::Readable;

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRun {
    /// Its name.
    pub name: String,
    /// Its group, or none if it has none.
    pub group: Option<String>,
    /// Its kind.
    pub run_type: String,
    /// Its status.
    pub status: RunStatus,
    /// The last event.
    pub last_seq: u64,
    /// When that was committed, wall time in µs.
    pub last_event_us: u64,
}

/// Which runs are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFilter<'filter> {
    /// Of which space.
    pub space: u32,
    /// And branch.
    pub branch: u32,
    /// Of which groups.
    pub groups: InGroup<'filter>,
    /// The prefix of names.
    pub prefix: &'filter str,
    /// With one of these statuses.
    pub statuses: &'filter [RunStatus],
    /// Of this kind, or of any.
    pub run_type: Option<&'filter str>,
    /// That have got no event since then, wall time in µs.
    pub quiet_since_us: u64,
}

/// The size and start of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPage<'cursor> {
    /// Runs in the page at most.
    pub limit: usize,
    /// Maximum number of runs to examine.
    pub rows_max: usize,
    /// Where the page before ended.
    pub cursor: Option<&'cursor [u8]>,
}

/// A page of runs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ListedRuns {
    /// The runs.
    pub runs: Vec<ListedRun>,
    /// Where to continue, if the list stopped at a limit. There may be nothing more.
    pub cursor: Option<Vec<u8>>,
    /// The number of runs, or possible positions of runs, examined.
    pub looked_at: usize,
}

const BY_NAME: u8 = 0;
const BY_INDEX: u8 = 1;

/// The number of runs of a kind in a status.
pub type RunCounts = BTreeMap<(String, RunStatus), u64>;

/// Where runs are listed.
#[derive(Clone, Copy)]
pub struct ViewRuns<'view> {
    /// Committed state.
    pub view: &'view dyn View,
    /// Whose keys.
    pub keys: Keys,
    /// The catalogue at the view, or a newer one.
    pub catalogue: &'view Catalogue,
}

impl ViewRuns<'_> {
    /// A page of the runs that match.
    pub fn list(&self, filter: &RunFilter<'_>, page: &RunPage<'_>) -> Result<Result<ListedRuns, Rejection>, Halt> {
        let every_status = RunStatus::ALL.iter().all(|status| filter.statuses.contains(status));
        let by = if every_status && filter.run_type.is_none() { BY_NAME } else { BY_INDEX };
        let after = match page.cursor.map(|cursor| cursor.split_first()) {
            None => None,
            Some(Some((of, after))) if *of == by && (by == BY_INDEX || read_position(after).is_some()) => Some(after),
            Some(_) => {
                return Ok(Err(Rejection::InvalidName { what: "a cursor", reason: "it belongs to another list" }));
            }
        };
        match by {
            BY_NAME => self.by_name(filter, page, after).map(Ok),
            _ => self.by_index(filter, page, after).map(Ok),
        }
    }

    fn by_name(&self, filter: &RunFilter<'_>, page: &RunPage<'_>, after: Option<&[u8]>) -> Result<ListedRuns, Halt> {
        let RunFilter { space, branch, groups, prefix, .. } = *filter;
        let listing = Listing { kind: Kind::Run, space, branch, groups, prefix, after };
        let mut things = Things::new(self.view, self.keys, self.catalogue, &listing)?;
        let mut listed = ListedRuns::default();
        while let Some(thing) = things.next()? {
            listed.looked_at += 1;
            if let Some(row) = &thing.row {
                let head = RunHead::decode(row)?;
                if head.deleted && thing.indexed {
                    return Err(thing.nothing_there());
                }
                if !head.deleted && head.last_event_us <= filter.quiet_since_us {
                    listed.runs.push(ListedRun::new(thing.id.clone(), &head));
                }
            }
            if listed.is_full(page) {
                listed.cursor = Some([&[BY_NAME], &*thing.position()].concat());
                break;
            }
        }
        Ok(listed)
    }

    fn by_index(&self, filter: &RunFilter<'_>, page: &RunPage<'_>, after: Option<&[u8]>) -> Result<ListedRuns, Halt> {
        let mut listed = ListedRuns::default();
        let mut after = after.map(<[u8]>::to_vec);
        // Once more for each kind whose other runs are not idle: what follows them is sought directly.
        loop {
            let sources = self.sources(filter, after.as_deref());
            let places = sources.len();
            let mut merged = MergedRows::new(self.view, sources)?;
            let mut behind = None;
            while let Some(found) = merged.next()? {
                let read = read_run_index(found.suffix(), filter.space, filter.branch);
                let (run_type, at_us, id) = read.ok_or_else(|| Halt::Inconsistent("L4: a foreign entry".into()))?;
                let mut position = found.suffix().to_vec();
                if at_us > filter.quiet_since_us {
                    position = behind_kind(&run_type).to_vec();
                    listed.looked_at += places;
                    behind = Some(position.clone());
                } else {
                    listed.looked_at += 1;
                    listed.runs.extend(self.matching(filter, found.bucket, id)?);
                }
                if listed.is_full(page) {
                    listed.cursor = Some([&[BY_INDEX], &*position].concat());
                    return Ok(listed);
                }
                if behind.is_some() {
                    break;
                }
            }
            after = match behind {
                Some(behind) if filter.run_type.is_none() => Some(behind),
                _ => return Ok(listed),
            };
        }
    }

    /// The ranges of the index that hold the runs of a list.
    fn sources(&self, filter: &RunFilter<'_>, after: Option<&[u8]>) -> Vec<Source> {
        let RunFilter { space, branch, .. } = *filter;
        let buckets = match filter.groups {
            InGroup::Named(group) => {
                let thing = self.catalogue.thing(space, branch, None, group);
                thing.map_or(0..0, |thing| thing.bucket..thing.bucket + 1)
            }
            InGroup::Any | InGroup::Own => self.catalogue.buckets_here(),
        };
        let mut sources = Vec::new();
        for bucket in buckets {
            for status in RunStatus::ALL.into_iter().filter(|status| filter.statuses.contains(status)) {
                let prefix = self.keys.run_status_prefix(bucket, space, branch, status as u8);
                let range = match filter.run_type {
                    None => KeyRange::prefix(&prefix),
                    Some(kind) => {
                        KeyRange::prefix(&self.keys.run_index_prefix(bucket, space, branch, status as u8, kind))
                    }
                };
                let range = match after {
                    None => range,
                    Some(after) => range.after(&[&*prefix, after].concat()),
                };
                sources.push(Source { bucket, range, cut: prefix.len() });
            }
        }
        sources
    }

    /// The run of an entry, if it matches.
    fn matching(&self, filter: &RunFilter<'_>, bucket: u16, id: OwnedId) -> Result<Option<ListedRun>, Halt> {
        if !filter.groups.has(id.group.as_deref(), &id.name) || !id.name.starts_with(filter.prefix) {
            return Ok(None);
        }
        let head = self.listed_head(bucket, &id)?;
        Ok((head.last_event_us <= filter.quiet_since_us).then(|| ListedRun::new(id, &head)))
    }

    fn listed_head(&self, bucket: u16, id: &OwnedId) -> Result<RunHead, Halt> {
        let head = head(self.view, &self.keys, &id.in_bucket(bucket))?;
        head.map_err(|_| Halt::Inconsistent(format!("L4: run {:?} is listed and does not exist", id.name)))
    }

    /// The running run of a kind that has been idle longest, to within the minute that its index entry may lag.
    pub fn quietest(&self, (space, branch): (u32, u32), run_type: &str) -> Result<Option<ListedRun>, Halt> {
        let status = RunStatus::Running;
        let mut quietest: Option<ListedRun> = None;
        for bucket in self.catalogue.buckets_here() {
            let prefix = self.keys.run_status_prefix(bucket, space, branch, status as u8);
            let range = KeyRange::prefix(&self.keys.run_index_prefix(bucket, space, branch, status as u8, run_type));
            let Some(row) = self.view.rows(&range).next() else {
                continue;
            };
            let (key, _) = row?;
            let read = read_run_index(&key[prefix.len()..], space, branch);
            let (_, _, id) = read.ok_or_else(|| Halt::Inconsistent("L4: a foreign entry".into()))?;
            let head = self.listed_head(bucket, &id)?;
            if quietest.as_ref().is_none_or(|best| head.last_event_us < best.last_event_us) {
                quietest = Some(ListedRun::new(id, &head));
            }
        }
        Ok(quietest)
    }

    /// The number of runs of a group in each status, by kind. They are counted one by one, so a group of more than
    /// `rows_max` is refused.
    pub fn counts_of_group(
        &self,
        (space, branch): (u32, u32),
        group: &str,
        rows_max: usize,
    ) -> Result<Result<RunCounts, Rejection>, Halt> {
        let groups = InGroup::Named(group);
        let listing = Listing { kind: Kind::Run, space, branch, groups, prefix: "", after: None };
        let mut things = Things::new(self.view, self.keys, self.catalogue, &listing)?;
        let (mut counts, mut looked_at) = (RunCounts::new(), 0);
        while let Some(thing) = things.next()? {
            looked_at += 1;
            if let Err(rejection) = Rejection::check_limit("scan_rows_max", rows_max, looked_at) {
                return Ok(Err(rejection));
            }
            if let Some(row) = &thing.row {
                let head = RunHead::decode(row)?;
                if !head.deleted {
                    *counts.entry((head.run_type, head.status)).or_default() += 1;
                }
            }
        }
        Ok(Ok(counts))
    }
}

impl ListedRun {
    fn new(id: OwnedId, head: &RunHead) -> Self {
        Self {
            name: id.name,
            group: id.group,
            run_type: head.run_type.clone(),
            status: head.status,
            last_seq: head.last_seq,
            last_event_us: head.last_event_us,
        }
    }
}

impl ListedRuns {
    fn is_full(&self, page: &RunPage<'_>) -> bool {
        self.runs.len() >= page.limit || self.looked_at >= page.rows_max
    }
}
