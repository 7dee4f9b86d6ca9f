//! A kernel that a script is said to.

use std::collections::BTreeSet;
use std::sync::Arc;

use kv::{Batch, KeyRange, MemoryStore, Order, Store, View, Writer};
use session::{Envelope, Reply, Sender, Stamp};

use super::words::{group_and_name, number, show_time, time_us};
use crate::answer::Answer;
use crate::command::Body;
use crate::entry::{EntryHeader, EntryPlace};
use crate::keys::ThingId;
use crate::keys::due::DueClock;
use crate::outbox::command::DeadLetterAct;
use crate::records::trim::RecordTrim;
use crate::trim::find_due;
use crate::{Buckets, Kernel, Keys, NextDue, image};

pub(crate) struct Stage {
    store: MemoryStore,
    pub(crate) kernel: Kernel,
    pub(crate) entries: Vec<Vec<u8>>,
    wall_us: u64,
    cluster_us: u64,
    pub(super) space: u32,
    pub(super) branch: u32,
    /// Who sends what is said.
    sender: Option<String>,
    /// Where the last page ended.
    pub(super) cursor: Option<Vec<u8>>,
    /// What was said, with the answers.
    pub(super) said: Vec<(String, String)>,
    /// Each word that was applied, with each of its answers.
    pub(super) met: BTreeSet<(&'static str, &'static str)>,
}

impl Stage {
    pub(crate) fn new(generation: u32) -> Self {
        let (store, keys) = (MemoryStore::new(), Keys::new(generation, crate::BucketRange::ALL));
        let genesis = Kernel::genesis(store.view().unwrap(), keys, Buckets::new(4).unwrap());
        store.commit(genesis).unwrap();
        Self::on(store, keys)
    }

    fn on(store: MemoryStore, keys: Keys) -> Self {
        let kernel = Kernel::load(&*store.view().unwrap(), keys).unwrap().unwrap();
        Self {
            store,
            kernel,
            entries: Vec::new(),
            wall_us: 0,
            cluster_us: 0,
            space: 1,
            branch: 1,
            sender: None,
            cursor: None,
            said: Vec::new(),
            met: BTreeSet::new(),
        }
    }

    /// Says a script and gives its transcript.
    pub(crate) fn say(&mut self, script: &str) -> String {
        for statement in script.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            let answer = self.statement(statement);
            self.said.push((statement.to_owned(), answer));
        }
        let answers = self.said.iter().map(|(_, answer)| answer.as_str());
        answers.filter(|answer| !answer.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// What the last statement was answered with.
    pub(crate) fn last_answer(&self) -> &str {
        self.said.last().map_or("", |(_, answer)| answer)
    }

    /// Each statement with its answer, for a person who looks for the difference.
    pub(super) fn protocol(&self) -> String {
        self.said.iter().map(|(statement, answer)| format!("{statement}\n    -> {answer}\n")).collect()
    }

    /// Everything as bytes, without the generation.
    pub(crate) fn image(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        image::write(&*self.view(), &self.kernel.keys(), &mut bytes).unwrap();
        bytes
    }

    pub(crate) fn hash(&self) -> u64 {
        self.kernel.applied().hash
    }

    /// Applies an entry, and gives the answers to its commands.
    pub(crate) fn apply(&mut self, entry: Vec<u8>) -> Vec<Answer> {
        let index = self.kernel.applied().index + 1;
        let effects = self.kernel.apply(self.view(), &EntryPlace::without_log(index), &entry).unwrap();
        self.store.commit(effects.batch).unwrap();
        self.entries.push(entry);
        let answer = |reply: &Vec<u8>| match Reply::decode(reply).unwrap() {
            Reply::Answer(answer) => Answer::decode(answer).unwrap(),
            other => panic!("no sessions here: {other:?}"),
        };
        effects.replies.iter().map(answer).collect()
    }

    pub(crate) fn store(&self) -> &MemoryStore {
        &self.store
    }

    pub(super) fn view(&self) -> Arc<dyn View> {
        self.store.view().unwrap()
    }

    /// The thing with this name, in the space and branch that the script is in.
    pub(super) fn thing<'name>(&self, thing: &'name str) -> ThingId<'name> {
        let (group, name) = group_and_name(thing);
        self.kernel.catalogue().thing(self.space, self.branch, group, name).unwrap()
    }

    fn statement(&mut self, statement: &str) -> String {
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words.as_slice() {
            ["advance", time] => {
                self.wall_us += time_us(time);
                self.cluster_us += time_us(time);
                String::new()
            }
            ["closed", time] => {
                self.wall_us += time_us(time);
                String::new()
            }
            ["repeat", count, ..] => {
                let (_, repeated) = statement.split_once(count).unwrap();
                let answers =
                    (1..=number(count)).map(|number| self.statement(&repeated.replace('%', &number.to_string())));
                answers.last().unwrap_or_default()
            }
            ["commit"] => format!("c{}", self.kernel.applied().commit),
            ["due"] => self.next_due(),
            ["rows"] => self.rows(),
            ["rows", "of", "records"] => self.rows_of_records(),
            ["rows", "of", "runs"] => self.rows_of_runs(),
            ["rows", "of", "maps"] => self.rows_of_maps(),
            ["walk"] => self.walk(false),
            ["forget"] => self.walk(true),
            ["fill", name] => self.fill(name),
            ["restart"] => {
                self.restart();
                String::new()
            }
            ["drop", "due"] => self.drop_due(),
            ["image"] => self.change_over(),
            ["on", name] => {
                let space = self.kernel.catalogue().space(self.space).unwrap();
                self.branch = space.branch_named(name).unwrap();
                String::new()
            }
            ["in", "space", name] => {
                let catalogue = self.kernel.catalogue();
                self.space = catalogue.space_named(name).unwrap();
                self.branch = catalogue.space(self.space).unwrap().branch_named("main").unwrap();
                String::new()
            }
            ["as", name] => {
                self.sender = Some((*name).to_owned()).filter(|name| name != "nobody");
                String::new()
            }
            ["note", act] => self.note_act(act),
            ["audit"] => self.audit(),
            ["tick"] => self.propose(&Body::Tick),
            ["next", prefix, options @ ..] => self.next(prefix, options),
            ["messages"] => self.messages(),
            ["published"] => self.published(),
            ["dead"] => self.dead_letters(),
            ["retry", "letter", group, given, options @ ..] => {
                self.dead_letter(DeadLetterAct::Retry, group, given, options)
            }
            ["drop", "letter", group, given, options @ ..] => {
                self.dead_letter(DeadLetterAct::Drop, group, given, options)
            }
            ["numbers"] => self.message_numbers(),
            ["changes", "since", commit] => self.changes_since(commit),
            ["in", ..] => self.transact(statement),
            _ => {
                let read = self.read_cells(&words).or_else(|| self.read_records(&words));
                let read = read.or_else(|| self.read_runs(&words)).or_else(|| self.read_keyed(&words));
                read.or_else(|| self.single(&words)).unwrap_or_else(|| self.change(&words))
            }
        }
    }

    /// Proposes one command in an entry of its own, and says how it was answered.
    pub(super) fn propose(&mut self, body: &Body<'_>) -> String {
        let (mut encoded, mut command) = (Writer::new(), Writer::new());
        body.encode(&mut encoded);
        let revision = self.kernel.catalogue().revision;
        let sender = self.sender.as_deref().map(|principal| Sender { principal, policy_revision: revision });
        let envelope = Envelope::without_session(crate::command::MACHINE, revision, encoded.as_slice());
        Envelope { sender, ..envelope }.encode(&mut command);
        let header = EntryHeader::new(Stamp { wall_us: self.wall_us, cluster_us: self.cluster_us });
        let entry = header.encode([command.as_slice()].into_iter());
        let answer = self.apply(entry).remove(0);
        // Entries that share a time differ by a µs, and the next `advance` counts from the last of them.
        self.wall_us = self.wall_us.max(self.kernel.applied().stamp.wall_us);
        self.note(body, &answer);
        self.show_answer(body, &answer)
    }

    /// Proposes what is due until nothing is, or what is deleted too.
    fn walk(&mut self, forgets: bool) -> String {
        let mut rounds = 0;
        loop {
            let now_us = self.wall_us.max(self.kernel.applied().stamp.wall_us);
            let (view, keys) = (self.view(), self.kernel.keys());
            let due = find_due(&*view, self.kernel.catalogue(), &keys, now_us, None, 1_000, forgets).unwrap();
            if due.0.is_empty() {
                return format!("{rounds} rounds");
            }
            self.propose(&Body::Trim(due.0));
            rounds += 1;
        }
    }

    /// Proposes one step that fills the indexes of a type; how many of them are filled then.
    fn fill(&mut self, name: &str) -> String {
        let space = self.space;
        let declared = |stage: &Self| stage.kernel.catalogue().space(space).unwrap().types.named(name).unwrap().clone();
        let record_type = declared(self).id;
        self.propose(&Body::Trim(vec![RecordTrim::FillIndexes { space, record_type }.into()]));
        let declared = declared(self);
        format!("{} of {}", declared.filled, declared.definition.indexes.len())
    }

    /// When a tick is needed next, by each clock.
    fn next_due(&mut self) -> String {
        let NextDue { wall_us, cluster_us } = self.kernel.next_due(self.store.view().unwrap()).unwrap();
        let shown = |us: Option<u64>| us.map_or("never".into(), show_time);
        format!("wall {}, cluster {}", shown(wall_us), shown(cluster_us))
    }

    /// Goes on with a kernel that has nothing in memory.
    pub(super) fn restart(&mut self) {
        self.kernel = Kernel::load(&*self.view(), self.kernel.keys()).unwrap().unwrap();
    }

    /// Removes what is due by wall time, as ticks do that meet a damaged row.
    fn drop_due(&mut self) -> String {
        let keys = self.kernel.keys();
        for bucket in 0..4 {
            let range = KeyRange::prefix(&keys.due_prefix(DueClock::Wall, bucket));
            for row in self.view().scan(&range, Order::Ascending) {
                self.store.commit(Batch::new().delete(row.unwrap().0)).unwrap();
            }
        }
        self.restart();
        String::new()
    }

    /// Goes on with a restored image, in another generation.
    fn change_over(&mut self) -> String {
        let (bytes, keys) = (self.image(), Keys::new(77, crate::BucketRange::ALL));
        let store = MemoryStore::new();
        image::restore(&mut bytes.as_slice(), &store, &keys).unwrap();
        let restored = Self::on(store, keys);
        let verdict = if restored.image() == bytes { "same bytes" } else { "other bytes" };
        (self.store, self.kernel) = (restored.store, restored.kernel);
        verdict.into()
    }
}
