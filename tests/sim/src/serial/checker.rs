//! The checker: builds the graph of who must come before whom, and looks for a cycle.
//!
//! A transaction comes after the one whose version it read or overwrote, and before the one that overwrote what it
//! read. A register that was read as absent counts as a read too, so a range is read with the cells that it lacks.
//! Beside that the order of commit numbers and of time must be such an order.

use std::collections::BTreeMap;
use std::fmt;

use super::cycles::{self, Graph};
use super::record::{Committed, REGISTERS, Ran, Read, Write};

/// Violations that are described at most.
const DESCRIBED_MAX: usize = 3;

/// What a run showed.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) commits: u64,
    pub(super) reads: u64,
    pub(super) conflicts: u64,
    pub(super) skew_conflicts: u64,
    pub(super) edges: u64,
    pub(super) cycles: u64,
    /// Edges against the order of commit numbers.
    pub(super) out_of_order: u64,
    /// Transactions that did not see what was answered before they began.
    pub(super) stale: u64,
    pub(super) errors: Vec<String>,
    pub(super) described: Vec<String>,
}

impl Findings {
    pub(super) fn is_sound(&self) -> bool {
        (self.cycles, self.out_of_order, self.stale) == (0, 0, 0) && self.errors.is_empty()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{} commits, {} reads, {} conflicts ({} of them by something that was only read), {} edges; \
             {} cycles, {} out of order, {} stale, {} errors",
            self.commits,
            self.reads,
            self.conflicts,
            self.skew_conflicts,
            self.edges,
            self.cycles,
            self.out_of_order,
            self.stale,
            self.errors.len()
        )?;
        let errors = self.errors.iter().take(DESCRIBED_MAX);
        errors.chain(&self.described).try_for_each(|line| write!(out, "\n  {line}"))
    }
}

/// Checks a run.
pub(super) fn check(ran: &Ran) -> Findings {
    let mut findings = Findings {
        commits: ran.committed.len() as u64,
        reads: ran.committed.iter().map(|transaction| transaction.reads.len() as u64).sum(),
        conflicts: ran.conflicts,
        skew_conflicts: ran.skew_conflicts,
        errors: ran.errors.clone(),
        ..Findings::default()
    };
    let by_commit: BTreeMap<u64, usize> = ran
        .committed
        .iter()
        .enumerate()
        .filter(|(_, transaction)| !transaction.writes.is_empty())
        .map(|(index, transaction)| (transaction.commit, index))
        .collect();
    let checker = Checker { ran, by_commit };
    if let Err(error) = checker.versions_have_writers() {
        findings.errors.push(error);
        return findings;
    }
    checker.check_writes(&mut findings);
    let graph = checker.graph(&mut findings);
    findings.edges = graph.iter().map(|edges| edges.len() as u64).sum();
    checker.check_order(&graph, &mut findings);
    checker.check_time(&mut findings);
    let components = cycles::find(&graph);
    findings.cycles = components.len() as u64;
    let smallest = components.iter().min_by_key(|component| component.len());
    if let Some(component) = smallest {
        findings.described.push("a cycle:".into());
        let cycle = cycles::shortest(&graph, component);
        findings.described.extend(cycle.iter().map(|node| checker.describe(*node)));
    }
    findings
}

struct Checker<'ran> {
    ran: &'ran Ran,
    /// Transactions that wrote, by commit number.
    by_commit: BTreeMap<u64, usize>,
}

impl Checker<'_> {
    fn describe(&self, node: usize) -> String {
        let Committed { thread, commit, floor, reads, writes } = &self.ran.committed[node];
        let version = |read: &Read| read.version.map_or("absent".into(), |version| format!("v{version}"));
        let reads = reads.iter().map(|read| format!("{} {}", REGISTERS[read.register], version(read)));
        let reads = reads.collect::<Vec<_>>().join(", ");
        let value = |write: &Write| write.value.clone().unwrap_or_else(|| "deleted".into());
        let writes = writes.iter().map(|write| format!("{} = {}", REGISTERS[write.register], value(write)));
        let writes = writes.collect::<Vec<_>>().join(", ");
        format!("commit {commit} of thread {thread}, begun at {floor} or later: read {reads}; wrote {writes}")
    }

    /// Every version has the commit number of a transaction that was answered as committed.
    fn versions_have_writers(&self) -> Result<(), String> {
        for (register, history) in REGISTERS.iter().zip(&self.ran.histories) {
            let nobody = |commit: &u64| !self.by_commit.contains_key(commit);
            let mut commits = history.iter().map(|version| version.commit);
            if let Some(commit) = commits.find(nobody) {
                return Err(format!("a version of {register} has the commit {commit} of nobody"));
            }
        }
        Ok(())
    }

    /// Every write of a committed transaction is a version, in its order, and there are no others.
    fn check_writes(&self, findings: &mut Findings) {
        let mut found: BTreeMap<(u64, usize), Vec<&Option<String>>> = BTreeMap::new();
        for (register, history) in self.ran.histories.iter().enumerate() {
            for version in history {
                found.entry((version.commit, register)).or_default().push(&version.value);
            }
        }
        for (node, transaction) in self.ran.committed.iter().enumerate() {
            for (register, name) in REGISTERS.iter().enumerate() {
                let writes = transaction.writes.iter().filter(|write| write.register == register);
                let written: Vec<_> = writes.map(|write| &write.value).collect();
                let found = found.get(&(transaction.commit, register)).map_or(&[][..], Vec::as_slice);
                if !transaction.writes.is_empty() && written != found {
                    let writer = self.describe(node);
                    findings.errors.push(format!("{name} holds {found:?} of {writer}"));
                }
            }
        }
    }

    fn writer(&self, register: usize, version: usize) -> usize {
        self.by_commit[&self.ran.histories[register][version - 1].commit]
    }

    /// The version that a read saw, 0 for none yet. Where it saw nothing, that is the last deletion before the reader's
    /// place: an earlier one would have looked the same.
    fn version_read(&self, reader: &Committed, read: &Read) -> usize {
        if let Some(version) = read.version {
            return usize::try_from(version).expect("it fits");
        }
        let history = &self.ran.histories[read.register];
        let place = position(reader);
        let before = history.partition_point(|version| 2 * version.commit < place);
        (1..=before).rev().find(|version| history[version - 1].value.is_none()).unwrap_or(0)
    }

    /// The first version after one that another transaction wrote.
    fn next_by_other(&self, node: usize, register: usize, version: usize) -> Option<usize> {
        let after = version + 1..=self.ran.histories[register].len();
        after.into_iter().map(|version| self.writer(register, version)).find(|writer| *writer != node)
    }

    fn graph(&self, findings: &mut Findings) -> Graph {
        let mut graph: Graph = vec![Vec::new(); self.ran.committed.len()];
        for (register, history) in self.ran.histories.iter().enumerate() {
            for version in 1..history.len() {
                let (before, after) = (self.writer(register, version), self.writer(register, version + 1));
                if before != after {
                    graph[before].push(after);
                }
            }
        }
        for (node, transaction) in self.ran.committed.iter().enumerate() {
            for read in &transaction.reads {
                let version = self.version_read(transaction, read);
                let history = &self.ran.histories[read.register];
                if version > history.len() {
                    findings.errors.push(format!("a version that is not there: {}", self.describe(node)));
                    continue;
                }
                if version > 0 {
                    let writer = self.writer(read.register, version);
                    let is_last = history.get(version).is_none_or(|next| next.commit != history[version - 1].commit);
                    if writer == node || !is_last {
                        findings.errors.push(format!("a version within a commit: {}", self.describe(node)));
                    }
                    graph[writer].push(node);
                }
                graph[node].extend(self.next_by_other(node, read.register, version));
            }
        }
        for edges in &mut graph {
            edges.sort_unstable();
            edges.dedup();
        }
        graph
    }

    /// Commit numbers must be an order that the graph allows.
    fn check_order(&self, graph: &Graph, findings: &mut Findings) {
        for (node, edges) in graph.iter().enumerate() {
            for next in edges {
                let (before, after) = (&self.ran.committed[node], &self.ran.committed[*next]);
                if position(before) >= position(after) {
                    findings.out_of_order += 1;
                    if findings.out_of_order == 1 {
                        let (before, after) = (self.describe(node), self.describe(*next));
                        findings.described.push(format!("out of order: {before}\n    before {after}"));
                    }
                }
            }
        }
    }

    /// Whoever begins after an answer sees what was answered.
    fn check_time(&self, findings: &mut Findings) {
        for (node, transaction) in self.ran.committed.iter().enumerate() {
            let is_stale = |read: &Read| {
                let version = self.version_read(transaction, read);
                let next = self.ran.histories[read.register].get(version);
                next.is_some_and(|next| next.commit <= transaction.floor)
            };
            if transaction.commit < transaction.floor || transaction.reads.iter().any(is_stale) {
                findings.stale += 1;
                if findings.stale == 1 {
                    findings.described.push(format!("stale: {}", self.describe(node)));
                }
            }
        }
    }
}

/// Where a transaction stands among all: at its commit, or just after the commit of the view it only read.
fn position(transaction: &Committed) -> u64 {
    2 * transaction.commit + u64::from(transaction.writes.is_empty())
}
