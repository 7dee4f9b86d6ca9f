//! The names and types that the model test of records uses: few, so that commands meet.
//!
//! Queues are prefixes of each other, some records have the names of groups, and both clocks run in the thousands of
//! microseconds that leases, pauses and TTLs of the types here are made of.

use std::sync::OnceLock;
use std::time::Duration;

use contract::records::types::{IndexKind, ReadyOrder, RecordType, State, StateKind};
use kernel::records::queue::{above, queue_of};
use testkit::random::Random;

use crate::model::places::{GROUPS, PLACES};
use crate::model::reference::Reference;

/// Where a stretch does most of what it does, so that things meet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Focus {
    place: (u32, u32),
    group: Option<&'static str>,
    /// Further names, each in a queue of its own or in one with few others.
    pub(crate) crowd: &'static [String],
}

impl Focus {
    pub(crate) fn draw(random: &mut Random, crowd: &'static [String]) -> Self {
        Self { place: random.pick(&PLACES), group: any_group(random), crowd }
    }

    /// The name of a record.
    pub(crate) fn name(&self, random: &mut Random) -> &'static str {
        match self.crowd {
            [] => random.pick(&NAMES),
            _ if random.one_in(4) => random.pick(&NAMES),
            crowd => random.choose(crowd).as_str(),
        }
    }

    /// The queue of a claim.
    pub(crate) fn queue(&self, random: &mut Random) -> &'static str {
        if self.crowd.is_empty() || random.one_in(2) {
            return random.pick(&QUEUES);
        }
        let mut queue = queue_of(random.choose(self.crowd).as_str());
        while random.one_in(3) {
            queue = above(queue).unwrap_or(queue);
        }
        queue
    }

    /// Space, branch and group: those of the focus, or any.
    pub(crate) fn place(&self, random: &mut Random, reference: &Reference) -> (u32, u32, Option<&'static str>) {
        let focused = random.one_in(2);
        let (space, branch) = if focused { self.place } else { *random.choose(&reference.live_places()) };
        (space, branch, if focused { self.group } else { any_group(random) })
    }
}

fn any_group(random: &mut Random) -> Option<&'static str> {
    if random.one_in(2) { Some(random.pick(&GROUPS)) } else { None }
}

/// Names in `queues` queues, below each other at different depths, some deeper than queues go. Made once, for the whole
/// process.
pub(crate) fn crowd(queues: u64) -> &'static [String] {
    let name = |number: u64| {
        let branch = number % 97;
        match number % 10 {
            0 => format!("mail.x.{branch}/{number}:1"),
            1 => format!("jobs.{branch}.a.b.c.d.e.f.{number}.1"),
            2..=4 => format!("jobs.{branch}.{number}/1"),
            _ => format!("jobs.{number}:1"),
        }
    };
    static CROWD: OnceLock<Vec<String>> = OnceLock::new();
    CROWD.get_or_init(|| (0..queues).map(name).collect())
}

/// Names of records, and of cells.
pub(crate) const NAMES: [&str; 36] = [
    "g",
    "h",
    "gbe.state.tasks.1",
    "gbe.state.tasks.2",
    "jobs.1",
    "jobs.2",
    "jobs.3",
    "jobs.4",
    "jobs.mail/1",
    "jobs.mail/2",
    "jobs.own",
    "jobs.z:1",
    "mail.1",
    "mail.2",
    "mail.3",
    "mail.4",
    "mail.x.1",
    "mail.x.2",
    "jobs.2.3.4.5.6.7.8.9.10",
    "jobs.2.3.4.5.6.7.8.9:11",
    "plain",
    "plain.1",
    "plain.2",
    "plain.\u{0}é",
    // So many that a queue is longer than what is read of it at a time.
    "jobs.11",
    "jobs.12",
    "jobs.13",
    "jobs.14",
    "jobs.15",
    "jobs.16",
    "jobs.17",
    "jobs.18",
    "jobs.19",
    "jobs.20",
    "jobs.21",
    "jobs.22",
];

/// Where marked messages leave their numbers, in every group.
pub(crate) const INBOX: &str = "inbox";

/// Prefixes of queues for claims.
pub(crate) const QUEUES: [&str; 10] = [
    "",
    "jobs.",
    "jobs.mail/",
    "jobs.2.3.4.5.",
    "jobs.2.3.4.5.6.7.8.",
    "mail.",
    "mail.x.",
    "gbe.state.tasks.",
    "plain.",
    "no.",
];

/// Prefixes of names for scans.
pub(crate) const PREFIXES: [&str; 7] = ["", "jobs.", "jobs.m", "mail.", "mail.x", "plain", "nothing"];

/// Fields: ordinary ones, indexed ones, and those that the store keeps.
pub(crate) const FIELDS: [&str; 16] = [
    "a",
    "b",
    "n",
    "count",
    "size",
    "size",
    "to",
    "count",
    "blob",
    "priority",
    "state",
    "status",
    "timeout_at",
    "created_at",
    "worker",
    "updated_at",
];

/// Names of states of all types, and one of none.
pub(crate) const STATES: [&str; 12] = [
    "pending",
    "claimed",
    "running",
    "completed",
    "failed",
    "cancelled",
    "new",
    "again",
    "held",
    "busy",
    "sent",
    "odd",
];

/// The types that are declared, with their prefixes.
pub(crate) fn types() -> [(&'static str, RecordType); 2] {
    let mut job = RecordType::task()
        .named("job")
        .lease(Duration::from_micros(20_000))
        .attempts_max(3)
        .backoff(Duration::from_micros(2_000), Duration::from_micros(3_000))
        .index("n", IndexKind::Signed)
        .sweep_to("rescued", "dead");
    job.terminal_ttl = Some(Duration::from_micros(30_000));
    let state = |name: &str, kind| State { name: name.to_owned(), kind };
    let mut mail = RecordType::task().named("mail").lease(Duration::from_micros(5_000)).attempts_max(2);
    mail.state_field = "status".to_owned();
    mail.states = vec![
        state("new", StateKind::Ready),
        state("held", StateKind::Held),
        state("again", StateKind::Ready),
        state("busy", StateKind::Held),
        state("sent", StateKind::Terminal),
        state("odd", StateKind::Terminal),
    ];
    mail.completed = "sent".to_owned();
    mail.failed = "odd".to_owned();
    mail.default_ttl = Some(Duration::from_micros(60_000));
    mail.ready_order = ReadyOrder::Field("priority".to_owned());
    mail.backoff.first = Duration::ZERO;
    let indexes = [
        ("size", IndexKind::Signed),
        ("to", IndexKind::Text),
        ("count", IndexKind::Unsigned),
        ("updated_at", IndexKind::Time),
        ("status", IndexKind::Text),
        ("blob", IndexKind::Bytes),
    ];
    mail.indexes = indexes.map(|(field, kind)| (field.to_owned(), kind)).to_vec();
    [("jobs.", job), ("mail.", mail)]
}
