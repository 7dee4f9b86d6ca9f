//! What a script can say, and what its transcript says back. Everything that touches the API is here.
//!
//! Statements are separated by `;` and each is one entry with one command. A cell is a `name`, which is its own group,
//! or `group/name`. Statements that say nothing leave nothing in the transcript.
//!
//! ```text
//! set a red         init a red       cas a v1 red, cas a absent red        delete a
//! get a             history a [limit 2] [before v3]                        at a v1, at a 5s
//! list PREFIX [limit 2] [after b], list g/PREFIX                           advance 10s
//! in g [if GUARD, GUARD]: OP, OP    with guards: a absent, a exists, a is v1, a below v2,
//!                                   a unchanged since c3, b..d unchanged since c3, b.. unchanged since c3
//! keep all, keep none, keep 2 versions, keep 10s     limit value_bytes_max 3     walk     commit     rows
//! branch draft      drop draft       on draft      space other      in space other      restart     image
//! ```

mod reads;
mod words;

use std::sync::Arc;

use contract::{Limits, Retention};
use kv::{Key, MemoryStore, Order, Store, View, Writer};
use session::{Envelope, Reply, Stamp};

use crate::answer::{Answer, OpOutcome};
use crate::catalogue::CatalogueChange;
use crate::command::{Body, Op, Transact};
use crate::entry::EntryHeader;
use crate::keys::names::is_name_in_group;
use crate::keys::{CellKey, GENERATION_BYTES, Kind};
use crate::trim::find_due;
use crate::{Buckets, Kernel, Keys, image};
use words::{group_and_name, guard, number, op, parts, seconds, value};

/// A kernel that a script is said to.
pub(super) struct Stage {
    store: MemoryStore,
    kernel: Kernel,
    pub(super) entries: Vec<Vec<u8>>,
    clock_us: u64,
    space: u32,
    branch: u32,
}

impl Stage {
    pub(super) fn new(generation: u32) -> Self {
        let (store, keys) = (MemoryStore::new(), Keys::new(generation, 0));
        let genesis = Kernel::genesis(store.view().unwrap(), keys, Buckets::new(4).unwrap());
        store.commit(genesis).unwrap();
        Self::on(store, keys)
    }

    fn on(store: MemoryStore, keys: Keys) -> Self {
        let kernel = Kernel::load(&*store.view().unwrap(), keys).unwrap().unwrap();
        Self { store, kernel, entries: Vec::new(), clock_us: 0, space: 1, branch: 1 }
    }

    /// Says a script and gives its transcript.
    pub(super) fn say(&mut self, script: &str) -> String {
        let statements = script.split(';').map(str::trim).filter(|statement| !statement.is_empty());
        let answers: Vec<_> = statements.map(|statement| self.statement(statement)).collect();
        answers.into_iter().filter(|answer| !answer.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// Everything as bytes, without the generation.
    pub(super) fn image(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        image::write(&*self.view(), &self.kernel.keys(), &mut bytes).unwrap();
        bytes
    }

    pub(super) fn hash(&self) -> u64 {
        self.kernel.applied().hash
    }

    /// Applies an entry, and gives the answers to its commands.
    pub(super) fn apply(&mut self, entry: Vec<u8>) -> Vec<Answer> {
        let index = self.kernel.applied().index + 1;
        let effects = self.kernel.apply(self.view(), index, &entry).unwrap();
        self.store.commit(effects.batch).unwrap();
        self.entries.push(entry);
        let answer = |reply: &Vec<u8>| match Reply::decode(reply).unwrap() {
            Reply::Answer(answer) => Answer::decode(answer).unwrap(),
            other => panic!("no sessions here: {other:?}"),
        };
        effects.replies.iter().map(answer).collect()
    }

    fn view(&self) -> Arc<dyn View> {
        self.store.view().unwrap()
    }

    fn statement(&mut self, statement: &str) -> String {
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words.as_slice() {
            ["advance", time] => {
                self.clock_us += seconds(time);
                String::new()
            }
            ["commit"] => format!("c{}", self.kernel.applied().commit),
            ["rows"] => self.rows(),
            ["walk"] => self.walk(false),
            ["forget"] => self.walk(true),
            ["restart"] => {
                self.kernel = Kernel::load(&*self.view(), self.kernel.keys()).unwrap().unwrap();
                String::new()
            }
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
            ["get", cell] => self.get(cell),
            ["at", cell, moment] => self.at(cell, moment),
            ["history", cell, options @ ..] => self.history(cell, options),
            ["list", options @ ..] => self.list(options),
            ["in", ..] => self.transact(statement),
            ["set" | "init" | "cas" | "delete", ..] => self.single(&words),
            _ => self.change(&words),
        }
    }

    /// One operation by itself; the answer names its cell.
    fn single(&mut self, words: &[&str]) -> String {
        let (group, name) = group_and_name(words[1]);
        let mut words = words.to_vec();
        words[1] = name;
        let value = value(words.last().unwrap());
        let ops = vec![op(&words, &value)];
        let (space, branch) = (self.space, self.branch);
        self.propose(&Body::Transact(Transact { space, branch, group, fence: None, guards: Vec::new(), ops }))
    }

    fn transact(&mut self, statement: &str) -> String {
        let (head, ops) = statement.split_once(':').unwrap();
        let (group, guards) = head.split_once(" if ").unwrap_or((head, ""));
        let group = group.trim_start_matches("in ").trim();
        let guards = parts(guards).map(guard).collect();
        let ops: Vec<Vec<&str>> = parts(ops).map(|op| op.split_whitespace().collect()).collect();
        let values: Vec<_> = ops.iter().map(|words| value(words.last().unwrap())).collect();
        let ops = ops.iter().zip(&values).map(|(words, value)| op(words, value)).collect();
        let (space, branch) = (self.space, self.branch);
        self.propose(&Body::Transact(Transact { space, branch, group: Some(group), fence: None, guards, ops }))
    }

    fn change(&mut self, words: &[&str]) -> String {
        let space = self.space;
        let change = match words {
            ["space", name] => CatalogueChange::CreateSpace { name: (*name).to_owned() },
            ["branch", name] => CatalogueChange::CreateBranch { space, name: (*name).to_owned() },
            ["drop", name] => {
                let branch = self.kernel.catalogue().space(space).unwrap().branch_named(name);
                CatalogueChange::DeleteBranch { space, branch: branch.unwrap() }
            }
            ["keep", much @ ..] => {
                let retention = match much {
                    ["all"] => Retention::ALL,
                    ["none"] => Retention::NONE,
                    [versions, "versions"] => Retention::versions(number(versions)),
                    [age] => Retention { age_us_max: seconds(age), ..Retention::ALL },
                    other => panic!("keep what? {other:?}"),
                };
                CatalogueChange::SetRetention { space, retention }
            }
            ["limit", name, max] => {
                let max = number(max).try_into().unwrap();
                let mut limits: Limits = self.kernel.catalogue().limits;
                match *name {
                    "value_bytes_max" => limits.value_bytes_max = max,
                    "transaction_ops_max" => limits.transaction_ops_max = max,
                    "transaction_bytes_max" => limits.transaction_bytes_max = max,
                    "write_trim_rows_max" => limits.write_trim_rows_max = max,
                    "spaces_max" => limits.spaces_max = max,
                    "branches_per_space_max" => limits.branches_per_space_max = max,
                    other => panic!("there is no limit {other}"),
                }
                CatalogueChange::SetLimits(limits)
            }
            other => panic!("what does {other:?} mean?"),
        };
        self.propose(&Body::Catalogue(change))
    }

    /// Proposes one command in an entry of its own, and says how it was answered.
    fn propose(&mut self, body: &Body<'_>) -> String {
        let (mut encoded, mut command) = (Writer::new(), Writer::new());
        body.encode(&mut encoded);
        let revision = self.kernel.catalogue().revision;
        Envelope::without_session(crate::machine::MACHINE, revision, encoded.as_slice()).encode(&mut command);
        let header = EntryHeader::new(Stamp { wall_us: self.clock_us, cluster_us: 0 });
        let entry = header.encode([command.as_slice()].into_iter());
        let names = match body {
            Body::Transact(transact) => transact.ops.iter().filter_map(Op::name).collect(),
            _ => Vec::new(),
        };
        match self.apply(entry).remove(0) {
            Answer::Rejected(rejection) => rejection.to_string(),
            Answer::Done { outcomes, .. } => {
                let named = names.iter().map(Some).chain(std::iter::repeat(None));
                let said = outcomes.iter().zip(named).map(|(outcome, name)| match (outcome, name) {
                    (OpOutcome::Written(version), Some(name)) => {
                        format!("{name} v{version}")
                    }
                    (OpOutcome::Existing(version), Some(name)) => {
                        format!("{name} is v{version}")
                    }
                    (OpOutcome::Nothing, Some(name)) => format!("no {name}"),
                    (OpOutcome::Assigned(number), None) => format!("#{number}"),
                    other => panic!("an outcome without its operation: {other:?}"),
                });
                said.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Proposes what is due until nothing is, or what is deleted too.
    fn walk(&mut self, forgets: bool) -> String {
        let mut rounds = 0;
        loop {
            let now_us = self.clock_us.max(self.kernel.applied().stamp.wall_us);
            let (view, keys) = (self.view(), self.kernel.keys());
            let due = find_due(&*view, self.kernel.catalogue(), &keys, now_us, None, 1_000, forgets).unwrap();
            if due.0.is_empty() {
                return format!("{rounds} rounds");
            }
            self.propose(&Body::Trim(due.0));
            rounds += 1;
        }
    }

    /// How many rows cells have: newest versions and older ones.
    fn rows(&self) -> String {
        let view = self.view();
        let keys: Vec<_> = view.scan(&self.kernel.keys().all(), Order::Ascending).map(|row| row.unwrap().0).collect();
        let heads = keys.iter().filter(|key| CellKey::decode(key).is_some()).count();
        let buckets = 0..self.kernel.catalogue().buckets.count();
        let all = |kind| {
            let branches = self.kernel.catalogue().spaces().flat_map(|(space, found)| {
                found.branches().map(move |(branch, _)| (space, branch)).collect::<Vec<_>>()
            });
            let ranges = branches.flat_map(|(space, branch)| {
                buckets.clone().map(move |bucket| self.kernel.keys().rows_of_branch(kind, bucket, space, branch))
            });
            ranges.map(|range| keys.iter().filter(|key| range.contains(key)).count()).sum::<usize>()
        };
        let of_cells = |key: &&Key| key[GENERATION_BYTES + 2] == Kind::CellHead as u8;
        let names = keys.iter().filter(of_cells).filter(|key| is_name_in_group(key)).count();
        assert_eq!(heads + names, all(Kind::CellHead), "a cell stands in a branch that is known");
        let names = if names > 0 { format!(", {names} names") } else { String::new() };
        format!("{heads} cells, {} old versions{names}", all(Kind::CellOld))
    }

    /// Goes on with a restored image, in another generation.
    fn change_over(&mut self) -> String {
        let (bytes, keys) = (self.image(), Keys::new(77, 0));
        let store = MemoryStore::new();
        image::restore(&mut bytes.as_slice(), &store, &keys).unwrap();
        let restored = Self::on(store, keys);
        let verdict = if restored.image() == bytes { "same bytes" } else { "other bytes" };
        (self.store, self.kernel) = (restored.store, restored.kernel);
        verdict.into()
    }
}
