//! The records that are next: shows whether anybody claims.
//!
//! The queues of a branch are looked at in parts, as fine as the permitted number of parts allows: each queue for itself
//! if there are few, else a whole queue with everything below it. The cost is bounded however many queues there are.
//!
//! Touches: nothing; it reads a view. A queue whose type orders by a field returns the record that is next, which may
//! be younger than others. Paused records are not ready.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use kv::{KeyRange, Order, View};
use session::Halt;

use super::counts::count_ready;
use super::lanes::{lanes_of, read_row};
use super::queue::{ALL_QUEUES, child_towards, queue_of};
use super::row::decode_numbers;
use crate::catalogue::Catalogue;
use crate::keys::Keys;
use crate::keys::queues::{QueueId, Ready, ReadyPlace};
use crate::keys::records::read_counts_key;
use crate::keys::things::OwnedId;

/// Rows that are looked at for one part. More are met only where many lanes lead to nothing.
const ROWS_MAX: usize = 2_048;

/// The record that is next in a part of the queues.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestReady {
    /// Its queue.
    pub queue: String,
    /// The record.
    pub record: String,
    /// Its group, or none if it has none.
    pub group: Option<String>,
    /// Its space.
    pub space: String,
    /// Its branch.
    pub branch: String,
    /// Its type.
    pub record_type: String,
    /// Since when it can be claimed, wall time in µs.
    pub ready_us: u64,
}

/// A part of the queues of a branch.
struct Part {
    queue: String,
    /// Without the queues below it, which are parts of their own.
    alone: bool,
}

/// The record that is next in each of at most `parts_max` parts of a branch's queues that have one; and for how many parts
/// it was not found within the permitted number of rows.
pub fn oldest_ready(
    view: &dyn View,
    keys: &Keys,
    catalogue: &Catalogue,
    (space, branch): (u32, u32),
    parts_max: usize,
) -> Result<(Vec<OldestReady>, usize), Halt> {
    let Ok(found) = catalogue.space(space) else {
        return Ok((Vec::new(), 0));
    };
    let branch_name = found.branches().find(|(number, _)| *number == branch).map(|(_, found)| found.name.clone());
    let branch_name = branch_name.unwrap_or_default();
    let reading = Reading { view, keys, catalogue, space, branch };
    let (mut oldest, mut left_out) = (Vec::new(), 0);
    for part in reading.parts(parts_max)? {
        let (ready_us, bucket, id) = match reading.first(&part)? {
            First::Found(ready_us, bucket, id) => (ready_us, bucket, id),
            First::Nothing => continue,
            First::TooFar => {
                left_out += 1;
                continue;
            }
        };
        let row = view.get(&keys.record(&id.in_bucket(bucket)))?;
        let number = row.map(|row| decode_numbers(&row)).transpose()?.map_or(0, |numbers| numbers.record_type);
        let record_type = found.types.get(number).map(|declared| declared.definition.name.clone());
        oldest.push(OldestReady {
            queue: queue_of(&id.name).to_owned(),
            record: id.name,
            group: id.group,
            space: found.name.clone(),
            branch: branch_name.clone(),
            record_type: record_type.unwrap_or_default(),
            ready_us,
        });
    }
    Ok((oldest, left_out))
}

enum First {
    Found(u64, u16, OwnedId),
    Nothing,
    TooFar,
}

/// A branch in a view.
struct Reading<'view> {
    view: &'view dyn View,
    keys: &'view Keys,
    catalogue: &'view Catalogue,
    space: u32,
    branch: u32,
}

impl Reading<'_> {
    fn queue<'name>(&self, name: &'name str) -> QueueId<'name> {
        QueueId { space: self.space, branch: self.branch, name }
    }

    /// The parts that have something ready, as fine as possible.
    fn parts(&self, parts_max: usize) -> Result<Vec<Part>, Halt> {
        let mut parts = Vec::new();
        let mut open = VecDeque::new();
        if parts_max > 0 && count_ready(self.view, self.keys, self.catalogue, self.queue(ALL_QUEUES))? > 0 {
            open.push_back(ALL_QUEUES.to_owned());
        }
        while let Some(queue) = open.pop_front() {
            // One for the records of the queue itself, which takes its place.
            let room = parts_max.saturating_sub(parts.len() + open.len() + 1);
            match self.below(&queue, room)? {
                Some(below) if below.is_empty() => parts.push(Part { queue, alone: true }),
                Some(below) => {
                    let total = count_ready(self.view, self.keys, self.catalogue, self.queue(&queue))?;
                    if total > below.iter().map(|(_, ready)| ready).sum() {
                        parts.push(Part { queue, alone: true });
                    }
                    open.extend(below.into_iter().map(|(queue, _)| queue));
                }
                None => parts.push(Part { queue, alone: false }),
            }
        }
        Ok(parts)
    }

    /// The queues directly below a queue that have something ready, with how much; none if there are more than `max`
    /// queues, ready or not.
    fn below(&self, queue: &str, max: usize) -> Result<Option<Vec<(String, u64)>>, Halt> {
        let mut below = Vec::new();
        let mut range = self.keys.counts_from_queue(self.space, self.branch, queue);
        // First the rows of the queue itself.
        range.start = self.keys.counts_of_queue(self.space, self.branch, queue).end.unwrap_or(range.start);
        let mut looked_at = 0;
        while let Some((key, _)) = self.view.scan(&range, Order::Ascending).next().transpose()? {
            let (name, _) =
                read_counts_key(&key).ok_or_else(|| Halt::Inconsistent("a foreign key among counts".into()))?;
            let child = child_towards(queue, &name)
                .ok_or_else(|| Halt::Inconsistent(format!("{name:?} is counted below {queue:?}")))?;
            looked_at += 1;
            if looked_at > max {
                return Ok(None);
            }
            let ready = count_ready(self.view, self.keys, self.catalogue, self.queue(child))?;
            if ready > 0 {
                below.push((child.to_owned(), ready));
            }
            match self.keys.counts_from_queue(self.space, self.branch, child).end {
                Some(end) => range.start = end,
                None => break,
            }
        }
        Ok(Some(below))
    }

    /// The record that is next in a part: the rows of all buckets are followed in the order of their places.
    fn first(&self, part: &Part) -> Result<First, Halt> {
        let mut followed = BinaryHeap::new();
        for (bucket, lane) in lanes_of(self.view, self.keys, self.queue(&part.queue))?.iter() {
            if let Some(begins) = lane.begins {
                let (range, _) = self.keys.ready_from(bucket, self.queue(&part.queue), begins);
                self.follow(&mut followed, bucket, &part.queue, range)?;
            }
        }
        let mut looked_at = 0;
        while let Some(Reverse(row)) = followed.pop() {
            looked_at += 1;
            if looked_at > ROWS_MAX {
                return Ok(First::TooFar);
            }
            let (_, ready) = read_row(&row.suffix, self.queue(&row.queue))?;
            let child = match ready {
                Ready::Thing(id) => return Ok(First::Found(row.place.ready_us, row.bucket, id)),
                Ready::Queue(rest) => row.queue.clone() + &rest,
            };
            if !part.alone {
                let (range, _) = self.keys.ready_from(row.bucket, self.queue(&child), row.place);
                self.follow(&mut followed, row.bucket, &child, range)?;
            }
            let whole = self.keys.ready_prefix(row.bucket, self.queue(&row.queue));
            let key = [&*whole, &*row.suffix].concat();
            self.follow(&mut followed, row.bucket, &row.queue, KeyRange::prefix(&whole).after(&key))?;
        }
        Ok(First::Nothing)
    }

    fn follow(
        &self,
        followed: &mut BinaryHeap<Reverse<Followed>>,
        bucket: u16,
        queue: &str,
        range: KeyRange,
    ) -> Result<(), Halt> {
        if let Some((key, _)) = self.view.scan(&range, Order::Ascending).next().transpose()? {
            let prefix_bytes = self.keys.ready_prefix(bucket, self.queue(queue)).len();
            let suffix = key[prefix_bytes..].to_vec();
            let (place, _) = read_row(&suffix, self.queue(queue))?;
            followed.push(Reverse(Followed { place, bucket, queue: queue.to_owned(), suffix }));
        }
        Ok(())
    }
}

/// The next row of a queue in a bucket.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Followed {
    place: ReadyPlace,
    bucket: u16,
    queue: String,
    suffix: Vec<u8>,
}
