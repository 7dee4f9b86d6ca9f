//! What time does: expiry, the end of pauses and leases, messages; a bounded number of steps at a time.

use contract::Rejection;
use contract::records::sweep_message;
use kernel::outbox::Stored;
use kernel::{Body, Deliver, Guard, Op, Send, Target, Transact};

use super::{ANY_REASON, Floor, Id, Message, Reference, To, Undo};

/// What is due, in the order in which a tick meets it: time, then kind, then which.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Expiry(Id),
    Ready(Id),
    Lease(Id),
    Message(super::MessageKey),
    Session((u64, u64, u16)),
    Run(Id),
    Map(Id),
    Letter(u64, u16),
}

impl Reference {
    pub(super) fn tick(&mut self) {
        let mut steps = self.limits.tick_steps_max.max(1);
        while steps > 0
            && let Some((_, due)) = self.first_by_cluster().filter(|(at, _)| *at <= self.cluster_us)
        {
            let done = self.step(due, steps);
            steps = steps.saturating_sub(done);
        }
        while steps > 0
            && let Some((_, due)) = self.first_by_wall().filter(|(at, _)| *at <= self.wall_us)
        {
            let done = self.step(due, steps);
            steps = steps.saturating_sub(done);
        }
    }

    /// When the next thing is due by each clock, alarms that ring too early included.
    pub(crate) fn next_due(&self) -> kernel::NextDue {
        let wall_us = self.first_by_wall().map(|(at, _)| at);
        kernel::NextDue { wall_us, cluster_us: self.first_by_cluster().map(|(at, _)| at) }
    }

    /// What is due first by each clock, for people.
    pub(crate) fn agenda(&self) -> String {
        format!("by cluster time {:?}, by wall time {:?}", self.first_by_cluster(), self.first_by_wall())
    }

    fn first_by_cluster(&self) -> Option<(u64, Due)> {
        let leases = self.records.iter().filter_map(|(id, kept)| Some((kept.lease_alarm?, id)));
        let lease = leases.min().map(|(at, id)| (at, Due::Lease(id.clone())));
        let ended = self.ended.first().map(|ended| (ended.0, Due::Session(*ended)));
        [lease, ended].into_iter().flatten().min()
    }

    fn first_by_wall(&self) -> Option<(u64, Due)> {
        let expiries = self.records.iter().filter_map(|(id, kept)| Some((kept.expiry_alarm?, id))).min();
        let pauses = self.records.iter().filter_map(|(id, kept)| {
            let live = kept.live.as_ref().filter(|live| live.waiting)?;
            Some((live.ready_us, id))
        });
        let expiry = expiries.map(|(at, id)| (at, Due::Expiry(id.clone())));
        let pause = pauses.min().map(|(at, id)| (at, Due::Ready(id.clone())));
        let message = self.messages.keys().next().map(|key| (key.0, Due::Message(*key)));
        let removals = self.runs.iter().filter_map(|(id, run)| Some((run.life.removing_us?, id))).min();
        let removal = removals.map(|(at, id)| (at, Due::Run(id.clone())));
        let orphaned = self.orphaned.first().map(|(at, id)| (*at, Due::Run(id.clone())));
        let letter = self.first_letter().map(|(at, number, bucket)| (at, Due::Letter(number, bucket)));
        let sweeps = self.maps.iter().filter_map(|(id, map)| Some((map.sweep_us?, id))).min();
        let sweep = sweeps.map(|(at, id)| (at, Due::Map(id.clone())));
        let orphaned_map = self.orphaned_maps.first().map(|(at, id)| (*at, Due::Map(id.clone())));
        let due = [expiry, pause, message, removal, orphaned, sweep, orphaned_map, letter];
        due.into_iter().flatten().min()
    }

    /// Does what is due. Gives the number of steps.
    fn step(&mut self, due: Due, steps_max: u32) -> u32 {
        match due {
            Due::Session(ended) => return self.give_back_owned(ended, steps_max),
            Due::Message(key) => self.deliver(key),
            Due::Run(id) => self.step_of_run(&id),
            Due::Letter(number, bucket) => self.remove_letter((bucket, number)),
            Due::Map(id) => match self.maps.contains_key(&id) {
                true => return self.sweep(&id),
                false => self.orphaned_maps.retain(|(_, orphan)| *orphan != id),
            },
            Due::Ready(id) | Due::Expiry(id) | Due::Lease(id) if !self.is_live(id.space, id.branch) => {
                self.erase(&id);
            }
            Due::Ready(id) => {
                let mut kept = self.records[&id].clone();
                kept.live_mut().waiting = false;
                self.set_alarms(&mut kept);
                self.set_by_name(&id, &mut kept);
                self.set_record(&id, Some(kept));
            }
            Due::Expiry(id) => {
                let kept = &self.records[&id];
                if kept.expires_us.is_some_and(|at| at > self.wall_us) {
                    self.set_late_alarms(&id);
                } else if kept.live.is_none() {
                    self.forget(&id);
                } else {
                    self.remove(&id);
                }
            }
            Due::Lease(id) => {
                let kept = &self.records[&id];
                let live = kept.live.as_ref().expect("only what exists is held");
                if !kept.is_over(self.wall_us) && live.lease_us.is_some_and(|at| at > self.cluster_us) {
                    self.set_late_alarms(&id);
                } else {
                    self.rescue(&id);
                }
            }
        }
        1
    }

    fn step_of_run(&mut self, id: &Id) {
        if let Some(orphan) = self.orphaned.iter().find(|(_, orphan)| orphan == id).cloned() {
            self.orphaned.remove(&orphan);
        } else if self.is_live(id.space, id.branch) {
            self.remove_rows(id);
        } else {
            // Its rows go with its branch.
            self.runs.get_mut(id).expect("just found").life.removing_us = None;
        }
    }

    /// Ends an attempt from outside.
    pub(super) fn rescue(&mut self, id: &Id) {
        let kept = &self.records[id];
        if kept.is_over(self.wall_us) {
            // It does not exist any more: nobody is told that it was rescued.
            self.remove(id);
            return;
        }
        let live = kept.live.as_ref().expect("only what exists is held");
        let declared = self.declared(id, live).expect("it is held").clone();
        let draft = self.draft(id);
        self.end_attempt(id, draft, &declared, true).expect("a rescue is never refused");
    }

    /// The alarms of a record that ring too early are set to when they should ring.
    fn set_late_alarms(&mut self, id: &Id) {
        let mut kept = self.records[id].clone();
        if kept.lease_alarm.is_some_and(|at| at <= self.cluster_us) {
            kept.lease_alarm = kept.live_mut().lease_us;
        }
        if kept.expiry_alarm.is_some_and(|at| at <= self.wall_us) && kept.expires_us.is_some_and(|at| at > self.wall_us)
        {
            kept.expiry_alarm = kept.expires_us;
        }
        self.set_record(id, Some(kept));
    }

    /// Removes the row of a record that is gone.
    pub(super) fn forget(&mut self, id: &Id) {
        let kept = self.records[id].clone();
        let bucket = self.bucket(id);
        let before = self.floors.get(&bucket).copied();
        let floor = before.unwrap_or_default();
        let raised = Floor {
            version: floor.version.max(kept.version),
            attempt: floor.attempt.max(kept.attempt),
            commit: floor.commit.max(kept.commit),
        };
        self.floors.insert(bucket, raised);
        self.undo.push(Undo::Floor(bucket, before));
        self.set_record(id, None);
    }

    /// Puts a message on its way.
    pub(super) fn send(&mut self, source: &Id, send: &Send<'_>) {
        let to = match send.target {
            Target::Transact(body) => To::Group(body.to_vec()),
            Target::Topic { topic, payload } => To::Topic(topic.to_owned(), payload.to_vec()),
        };
        let (space, branch) = (source.space, source.branch);
        let message = Message { space, branch, source: source.home().to_owned(), to };
        let at_us = self.wall_us + send.after_us.unwrap_or(0);
        let bucket = self.bucket(source);
        if at_us == self.wall_us && matches!(message.to, To::Topic(..)) {
            self.publish(bucket, message);
            return;
        }
        let key = (at_us, self.next_number(bucket), bucket);
        let before = self.messages.insert(key, message);
        self.undo.push(Undo::Message(key, before));
    }

    fn publish(&mut self, bucket: u16, message: Message) {
        let key = (bucket, self.next_number(bucket));
        let before = self.to_publish.insert(key, message);
        self.undo.push(Undo::Publish(key, before));
    }

    pub(super) fn next_number(&mut self, bucket: u16) -> u64 {
        let before = self.numbers.get(&bucket).copied();
        self.undo.push(Undo::Number(bucket, before));
        let next = before.unwrap_or(0) + 1;
        self.numbers.insert(bucket, next);
        next
    }

    /// Tells whoever the type says what became of a record.
    pub(super) fn tell(&mut self, id: &Id, topic: Option<&str>, attempt: u64, reason: &str) {
        if let Some(topic) = topic {
            let payload = sweep_message(id.group.as_deref(), &id.name, attempt, reason);
            self.send(id, &Send { target: Target::Topic { topic, payload: payload.as_bytes() }, after_us: None });
        }
    }

    fn deliver(&mut self, key: super::MessageKey) {
        let message = self.messages.remove(&key).expect("it was just found");
        self.undo.push(Undo::Message(key, Some(message.clone())));
        match &message.to {
            To::Topic(..) => self.publish(key.2, message),
            To::Group(body) => {
                let Ok(Body::Transact(transact)) = Body::decode(body) else {
                    panic!("a message that is no transaction was let through");
                };
                self.apply_message(&message, key.1, &transact);
            }
        }
    }

    /// Applies a message that the shard of its source hands over, unless it did before.
    pub(super) fn receive(&mut self, deliver: &Deliver<'_>) -> Result<(), Rejection> {
        let invalid = || Rejection::InvalidDeclaration { what: "a message".to_owned(), reason: ANY_REASON };
        let Target::Transact(body) = deliver.message.send.target else { return Err(invalid()) };
        let Ok(Body::Transact(transact)) = Body::decode(body) else { return Err(invalid()) };
        let bucket_of = |space: u32, group: &str| match self.spaces.get(&space) {
            Some(found) => Ok(self.buckets.of_group(found.name.as_bytes(), group.as_bytes())),
            None => Err(Rejection::NoSuchSpace { space: format!("#{space}") }),
        };
        bucket_of(transact.space, "")?;
        let home = group_of(&transact).ok_or_else(invalid)?;
        let buckets = (bucket_of(transact.space, home)?, bucket_of(deliver.message.space, deliver.message.source)?);
        if buckets.1 != deliver.source_bucket || deliver.number == 0 {
            return Err(invalid());
        }
        let last = self.received.get(&buckets).copied();
        if last.is_none_or(|last| deliver.number > last) {
            let Stored { space, branch, source, .. } = deliver.message;
            let message = Message { space, branch, source: source.to_owned(), to: To::Group(body.to_vec()) };
            self.apply_message(&message, deliver.number, &transact);
            self.received.insert(buckets, deliver.number);
            self.undo.push(Undo::Received(buckets, last));
        }
        Ok(())
    }
}

/// The group that a transaction is for, whether it may be or not.
pub(super) fn group_of<'name>(transact: &Transact<'name>) -> Option<&'name str> {
    let fence = transact.fences.first().map(|fence| fence.record);
    let named = transact.group.or(fence).or_else(|| transact.ops.iter().find_map(Op::name));
    named.or_else(|| transact.guards.iter().find_map(Guard::name))
}
