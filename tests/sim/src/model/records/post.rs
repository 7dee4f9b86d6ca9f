//! The post: follows marked messages, which nothing can refuse, from the answer to their destination.
//!
//! Check (8): every message that was sent is delivered exactly once, in order per source. It is judged by what arrived,
//! in cells and in what a broker would see, not by the reference.

use std::collections::{BTreeMap, BTreeSet};

use contract::{HistoryPage, Value};
use kernel::cells::{ViewCells, history};
use kernel::outbox::Stored;
use kernel::{Body, CellAct, Op, Target, ValueRef};
use kv::{KeyRange, Order, View};

use super::names::INBOX;
use crate::model::instance::{Instance, halted, text};
use crate::model::places::{GROUPS, PLACES};
use crate::model::reference::PublishKey;

/// The group that sent it.
pub(crate) type Source = (u32, u32, String);

/// A message on its way.
#[derive(Clone, Debug)]
pub(crate) struct Marked {
    pub(crate) number: u64,
    pub(crate) source: Source,
    pub(crate) to: Address,
    pub(crate) after_us: Option<u64>,
    /// Its place among the messages of its command.
    pub(crate) place: usize,
}

/// Where it goes: space, branch and group, or none for a broker.
pub(crate) type Address = Option<Source>;

impl Marked {
    /// What marked messages to a broker are sent to.
    pub(crate) const TOPIC: &'static str = "marked";

    /// The number in a message to a group, if it is marked, and where it goes.
    pub(crate) fn in_letter(body: &[u8]) -> Option<(u64, Address)> {
        let Ok(Body::Transact(transact)) = Body::decode(body) else {
            return None;
        };
        match transact.ops.as_slice() {
            [Op::Cell(INBOX, CellAct::Set(ValueRef::Integer(number)))] => {
                let to = (transact.space, transact.branch, transact.group?.to_owned());
                Some((u64::try_from(*number).ok()?, Some(to)))
            }
            _ => None,
        }
    }

    /// The number in a message to a broker, if it is marked.
    pub(crate) fn in_topic(topic: &str, payload: &str) -> Option<(u64, Address)> {
        (topic == Self::TOPIC).then(|| (payload.parse().expect("a number"), None))
    }
}

/// When it is due, the command, the place in it.
type Turn = (u64, u64, usize);

struct Sent {
    source: Source,
    to: Address,
    turn: Turn,
    /// Whether it was to wait.
    later: bool,
}

/// The marked messages under way.
#[derive(Default)]
pub(crate) struct Post {
    numbers: u64,
    sent: BTreeMap<u64, Sent>,
    /// What a broker was given: everything that ever waited to be published.
    published: BTreeMap<PublishKey, u64>,
    seen: BTreeSet<PublishKey>,
}

impl Post {
    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// How many marked messages were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.len() as u64
    }

    /// Whether the broker has it, so that it may be forgotten.
    pub(crate) fn has_published(&self, key: PublishKey) -> bool {
        self.seen.contains(&key)
    }

    /// A command that sends messages was done.
    pub(crate) fn done(&mut self, marked: &[Marked], wall_us: u64, commit: u64) {
        for Marked { number, source, to, after_us, place } in marked {
            let due_us = wall_us + after_us.unwrap_or(0);
            let (source, to, later) = (source.clone(), to.clone(), due_us > wall_us);
            self.sent.insert(*number, Sent { source, to, turn: (due_us, commit, *place), later });
        }
    }

    /// Takes what waits to be published, as a broker would.
    pub(crate) fn collect(&mut self, instance: &Instance, view: &dyn View, buckets: u16) -> Result<(), String> {
        for bucket in 0..buckets {
            for row in view.scan(&KeyRange::prefix(&instance.keys.publish_prefix(bucket)), Order::Ascending) {
                let (key, row) = row.map_err(text)?;
                let key = kernel::keys::messages::read_publish_key(&key).ok_or("a foreign key among messages")?;
                self.seen.insert(key);
                let stored = Stored::decode(&row).map_err(halted)?;
                if let Target::Topic { topic: Marked::TOPIC, payload } = stored.send.target {
                    let number = std::str::from_utf8(payload).map_err(text)?.parse().map_err(text)?;
                    self.published.insert(key, number);
                }
            }
        }
        Ok(())
    }

    /// Judges what has arrived. `drained` says that nothing is on its way any more.
    pub(crate) fn check(&self, instance: &Instance, view: &dyn View, drained: bool) -> Result<(), String> {
        let broken =
            |what: String| Err(format!("(8) every send is delivered exactly once, in order per source: {what}"));
        let mut arrived = BTreeSet::new();
        let mut turns: BTreeMap<(&Source, &Address, bool), Turn> = BTreeMap::new();
        let mut take = |number: u64, to: &Address| {
            let Some(sent) = self.sent.get(&number) else {
                return broken(format!("number {number} arrived, nobody sent it"));
            };
            if !arrived.insert(number) {
                return broken(format!("number {number} from {:?} arrived twice", sent.source));
            }
            if sent.to != *to {
                return broken(format!("number {number} to {:?} arrived at {to:?}", sent.to));
            }
            // One to a broker that is sent now does not wait for those that are due and not yet done.
            let lane = (&sent.source, &sent.to, to.is_none() && sent.later);
            match turns.insert(lane, sent.turn) {
                Some(before) if before > sent.turn => {
                    broken(format!("number {number} from {:?} at {:?} came behind {before:?}", sent.source, sent.turn))
                }
                _ => Ok(()),
            }
        };
        for (space, branch) in PLACES {
            for group in GROUPS {
                for number in inbox(instance, view, space, branch, group)? {
                    take(number, &Some((space, branch, group.to_owned())))?;
                }
            }
        }
        for number in self.published.values() {
            take(*number, &None)?;
        }
        match self.sent.iter().find(|(number, _)| drained && !arrived.contains(number)) {
            Some((number, sent)) => broken(format!("number {number} from {:?} was lost", sent.source)),
            None => Ok(()),
        }
    }
}

/// What has arrived in a group, oldest first.
fn inbox(instance: &Instance, view: &dyn View, space: u32, branch: u32, group: &str) -> Result<Vec<u64>, String> {
    let cells = ViewCells { view, keys: instance.keys };
    let cell = instance.kernel.catalogue().thing(space, branch, Some(group), INBOX).map_err(text)?;
    let page = HistoryPage { before: None, limit: usize::MAX };
    let mut numbers = Vec::new();
    for version in history::history(&cells, &cell, page).map_err(halted)?.versions {
        match version.value {
            Some(Value::Integer(number)) => numbers.push(u64::try_from(number).map_err(text)?),
            other => return Err(format!("an inbox holds {other:?}")),
        }
    }
    numbers.reverse();
    Ok(numbers)
}
