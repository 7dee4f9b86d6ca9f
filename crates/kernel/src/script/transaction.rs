//! Transactions: one operation by itself, or several with guards and a fence.

use contract::guards::OWNER_RECORD;

use super::words::{group_and_name, number, parts};
use super::{cells, keyed, messages, records, runs};
use crate::command::{Body, Fence, Guard, Op, Transact};

use super::Stage;

/// The space and the branch of a transaction, and of those that it sends.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    pub(super) space: u32,
    pub(super) branch: u32,
}

/// How the parts of a transaction are separated.
pub(super) struct Separators {
    pub(super) head_and_ops: &'static str,
    pub(super) list: char,
}

const OUTER: Separators = Separators { head_and_ops: ":", list: ',' };

impl Stage {
    fn scope(&self) -> Scope {
        Scope { space: self.space, branch: self.branch }
    }

    /// One operation by itself; the answer names its thing. None if it is no operation.
    pub(super) fn single(&mut self, words: &[&str]) -> Option<String> {
        // `delete record a` has its name at the third place.
        let place = if matches!(words, ["delete", "record" | "run" | "map", _]) { 2 } else { 1 };
        let (group, name) = group_and_name(words.get(place)?);
        let mut words = words.to_vec();
        words[place] = name;
        let scope = self.scope();
        let (fence, op) = match words.as_slice() {
            ["step", record, attempt, fields @ ..] => {
                let fence = Fence { record, attempt: number(attempt) };
                (Some(fence), records::update(record, fields))
            }
            words => (None, op(scope, words, "")?),
        };
        let Scope { space, branch } = scope;
        Some(self.propose(&Body::Transact(Transact {
            fences: fence.into_iter().collect(),
            ..Transact::new(space, branch, group, vec![op])
        })))
    }

    pub(super) fn transact(&mut self, statement: &str) -> String {
        let transact = transaction(self.scope(), statement, &OUTER);
        self.propose(&Body::Transact(transact))
    }
}

/// Reads `in g [fence a #1, owned #1, force] [if GUARDS]: OPS`.
pub(super) fn transaction<'text>(scope: Scope, text: &'text str, separators: &Separators) -> Transact<'text> {
    let Separators { head_and_ops, list } = *separators;
    // A name may contain a colon, so the one that counts is followed by a space.
    let end = text.strip_suffix(head_and_ops).map(|head| (head, ""));
    let (head, ops) = end.or_else(|| text.split_once(&*format!("{head_and_ops} "))).unwrap();
    let (head, guards) = head.split_once(" if ").unwrap_or((head, ""));
    let words: Vec<&str> = head.split_whitespace().collect();
    let (group, fence) = match words.as_slice() {
        ["in", "no", "group", fence @ ..] => (None, fence),
        ["in", group, fence @ ..] => (Some(*group), fence),
        other => panic!("where is {other:?}?"),
    };
    let (fence, force) = match fence {
        [] => (None, false),
        ["force"] => (None, true),
        ["fence", record, attempt] => (Some(Fence { record, attempt: number(attempt) }), false),
        ["owned", attempt] => (Some(Fence { record: OWNER_RECORD, attempt: number(attempt) }), false),
        other => panic!("no such fence: {other:?}"),
    };
    let read_op = |part: &'text str| {
        let words: Vec<&str> = part.split_whitespace().collect();
        op(scope, &words, part).unwrap_or_else(|| panic!("no such operation: {part:?}"))
    };
    let guards = parts(guards, list).map(guard).collect();
    let ops = parts(ops, list).map(read_op).collect();
    let Scope { space, branch } = scope;
    Transact { fences: fence.into_iter().collect(), force, guards, ..Transact::new(space, branch, group, ops) }
}

/// An operation; `text` is the whole of it, for a transaction that it sends.
fn op<'text>(scope: Scope, words: &[&'text str], text: &'text str) -> Option<Op<'text>> {
    cells::op(words)
        .or_else(|| keyed::op(words))
        .or_else(|| records::op(words))
        .or_else(|| runs::op(words))
        .or_else(|| messages::op(scope, words, text))
}

fn guard(text: &str) -> Guard<'_> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let guard = keyed::guard(&words).or_else(|| records::guard(&words)).or_else(|| runs::guard(&words));
    let guard = guard.or_else(|| cells::guard(&words));
    guard.unwrap_or_else(|| panic!("no such guard: {text:?}"))
}
