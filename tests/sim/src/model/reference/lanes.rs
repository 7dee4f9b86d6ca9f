//! Claims from a queue and those below it: which record is first is found by comparing all of them. The lanes that lead to
//! it decide only how much one command may do, so they are followed here with plain maps, too.

use std::collections::{BTreeMap, BTreeSet};

use kernel::records::claims::CORRECTIONS_MIN;
use kernel::{ClaimNext, OpOutcome};

use super::{Id, Lane, LaneKey, Outcome, Place, Reference, Undo};

/// The deepest that queues are nested.
const DEPTH_MAX: usize = 8;

/// Where the queue that holds all stands.
const FIRST: Place = (i64::MIN, 0);

/// Lanes that one step of the walk looks at.
const LANES_PER_STEP: usize = 64;

/// What a row of a queue stands for. Records come before queues at the same place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Record(Option<String>, String),
    Queue(String),
}

/// The rows of each queue of a branch in each bucket.
#[derive(Default)]
struct Rows(BTreeMap<(u16, String), BTreeSet<(Place, Row)>>);

impl Rows {
    fn of(&mut self, bucket: u16, queue: &str) -> &mut BTreeSet<(Place, Row)> {
        self.0.entry((bucket, queue.to_owned())).or_default()
    }

    fn first(&self, bucket: u16, queue: &str) -> Option<&(Place, Row)> {
        self.0.get(&(bucket, queue.to_owned())).and_then(BTreeSet::first)
    }
}

fn above(queue: &str) -> Option<&str> {
    let name = queue.strip_suffix(['.', ':', '/'])?;
    Some(name.rfind(['.', ':', '/']).map_or("", |at| &queue[..=at]))
}

impl Reference {
    fn set_lane(&mut self, key: &LaneKey, lane: Option<Lane>) {
        let before = match lane {
            Some(lane) => self.lanes.insert(key.clone(), lane),
            None => self.lanes.remove(key),
        };
        self.undo.push(Undo::Lane(key.clone(), before));
    }

    /// A record has become ready.
    pub(super) fn lead_to(&mut self, id: &Id, place: Place) {
        let bucket = self.bucket(id);
        let mut queue = Some(id.queue());
        while let Some(name) = queue {
            let key = (id.space, id.branch, bucket, name.to_owned());
            let before = self.lanes.get(&key).copied();
            let begins = before.and_then(|lane| lane.begins).map_or(place, |begins| begins.min(place));
            let stands = if name.is_empty() { FIRST } else { before.map_or(place, |lane| lane.stands.min(place)) };
            self.set_lane(&key, Some(Lane { stands, begins: Some(begins) }));
            if before.is_some_and(|lane| lane.stands == stands) {
                return;
            }
            queue = above(name);
        }
    }

    fn rows(&self, space: u32, branch: u32) -> Rows {
        let mut rows = Rows::default();
        for id in self.records.keys().filter(|id| (id.space, id.branch) == (space, branch)) {
            if let Some(place) = self.ready_place(id) {
                let record = Row::Record(id.group.clone(), id.name.clone());
                rows.of(self.bucket(id), id.queue()).insert((place, record));
            }
        }
        for ((_, _, bucket, queue), lane) in self.lanes.iter().filter(|((s, b, ..), _)| (*s, *b) == (space, branch)) {
            if let Some(higher) = above(queue) {
                rows.of(*bucket, higher).insert((lane.stands, Row::Queue(queue[higher.len()..].to_owned())));
            }
        }
        rows
    }

    /// Takes what is first of all queues with a prefix.
    pub(super) fn claim_next(&mut self, claim: &ClaimNext<'_>) -> Vec<Outcome> {
        let (space, branch) = (claim.space, claim.branch);
        let mut rows = self.rows(space, branch);
        let mut outcomes = Vec::new();
        let mut corrections = self.corrections_left.max(CORRECTIONS_MIN);
        let max = claim.records_max.min(self.limits.claim_records_max) as usize;
        while outcomes.len() < max {
            let firsts = (0..self.buckets.count()).filter_map(|bucket| {
                let (place, row) = rows.first(bucket, claim.prefix)?;
                Some((*place, row.clone(), bucket))
            });
            let Some((place, mut row, bucket)) = firsts.min() else {
                self.expect_nothing(claim);
                break;
            };
            let mut queue = claim.prefix.to_owned();
            let id = loop {
                match row {
                    Row::Record(group, name) => break Some(Id { space, branch, group, name }),
                    Row::Queue(rest) => queue.push_str(&rest),
                }
                match rows.first(bucket, &queue) {
                    Some((first, found)) if *first == place => row = found.clone(),
                    _ if corrections == 0 => {
                        if outcomes.is_empty() {
                            outcomes.push(Outcome::Is(OpOutcome::Unfinished));
                        }
                        self.corrections_left = corrections;
                        return outcomes;
                    }
                    first => {
                        corrections -= 1;
                        let first = first.map(|(first, _)| *first);
                        let higher = above(&queue).expect("it stands in one").to_owned();
                        let rest = Row::Queue(queue[higher.len()..].to_owned());
                        rows.of(bucket, &higher).remove(&(place, rest.clone()));
                        if let Some(first) = first {
                            rows.of(bucket, &higher).insert((first, rest));
                        }
                        let lane = first.map(|first| Lane { stands: first, begins: Some(first) });
                        self.set_lane(&(space, branch, bucket, queue), lane);
                        break None;
                    }
                }
            };
            let Some(id) = id else {
                continue;
            };
            self.expect_first(claim, place);
            rows.of(bucket, id.queue()).remove(&(place, Row::Record(id.group.clone(), id.name.clone())));
            if self.guard_of(id.space, id.home()).is_some() {
                // Only its group's owner claims it, by name.
                if corrections == 0 {
                    if outcomes.is_empty() {
                        outcomes.push(Outcome::Is(OpOutcome::Unfinished));
                    }
                    break;
                }
                corrections -= 1;
                self.expire(&id);
                self.pass_over(&id);
            } else {
                self.expire(&id);
                if self.exists(&id) {
                    outcomes.push(self.claim(&id, claim.worker, claim.lease_us, false).expect("it is ready"));
                    corrections += DEPTH_MAX;
                }
            }
            if id.queue() == claim.prefix {
                let begins = rows.first(bucket, claim.prefix).map(|(place, _)| *place);
                let key = (space, branch, bucket, claim.prefix.to_owned());
                let lane = Lane { begins, ..self.lanes[&key] };
                self.set_lane(&key, Some(lane));
            }
        }
        self.corrections_left = corrections;
        outcomes
    }

    fn places<'claim>(&'claim self, claim: &'claim ClaimNext<'_>) -> impl Iterator<Item = Place> + 'claim {
        let of_branch = self.records.keys().filter(|id| (id.space, id.branch) == (claim.space, claim.branch));
        of_branch.filter(|id| id.queue().starts_with(claim.prefix)).filter_map(|id| self.ready_place(id))
    }

    /// The order of claims, without lanes: nothing ready has an earlier place.
    fn expect_first(&self, claim: &ClaimNext<'_>, place: Place) {
        assert_eq!(self.places(claim).min(), Some(place), "lanes hide what is first in {:?}", claim.prefix);
    }

    fn expect_nothing(&self, claim: &ClaimNext<'_>) {
        assert_eq!(self.places(claim).min(), None, "lanes hide what is ready in {:?}", claim.prefix);
    }

    /// Removes lanes that lead to nothing.
    pub(super) fn trim_lanes(&mut self, space: u32, branch: u32, queue: &str, from: u16) {
        let rows = self.rows(space, branch);
        let of_queue = |bucket| (space, branch, bucket, queue.to_owned());
        let lanes = (from..self.buckets.count()).map(of_queue).filter(|key| self.lanes.contains_key(key));
        for key in lanes.take(LANES_PER_STEP).collect::<Vec<_>>() {
            if rows.first(key.2, queue).is_none() {
                self.set_lane(&key, None);
            }
        }
    }
}
