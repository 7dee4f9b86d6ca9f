//! A transaction's own writes: its operations, and its cells as they will be.

use std::collections::BTreeMap;
use std::ops::Bound;

use contract::Value;
use kernel::{CellAct, Op, ValueRef};

/// One buffered operation.
pub(super) enum OwnOp {
    Init(Value),
    Set(Value),
    Cas(Option<u64>, Value),
    Delete,
}

/// A cell that the transaction wrote.
pub(super) struct OwnCell {
    /// The value now, or none if it was deleted.
    pub(super) value: Option<Value>,
    /// The number of versions the transaction adds.
    pub(super) writes: u64,
}

#[derive(Default)]
pub(super) struct OwnWrites {
    ops: Vec<(String, OwnOp)>,
    cells: BTreeMap<String, OwnCell>,
}

impl OwnWrites {
    pub(super) fn push(&mut self, cell: &str, op: OwnOp) {
        let value = match &op {
            OwnOp::Init(value) | OwnOp::Set(value) | OwnOp::Cas(_, value) => Some(value.clone()),
            OwnOp::Delete => None,
        };
        let own = self.cells.entry(cell.to_owned()).or_insert(OwnCell { value: None, writes: 0 });
        own.value = value;
        own.writes += 1;
        self.ops.push((cell.to_owned(), op));
    }

    pub(super) fn get(&self, cell: &str) -> Option<&OwnCell> {
        self.cells.get(cell)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The number of operations.
    pub(super) fn len(&self) -> usize {
        self.ops.len()
    }

    /// The number of cells.
    pub(super) fn cells(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.cells.keys().map(String::as_str)
    }

    /// The cells with names from `start` to before `end`; none if `end` is before `start`.
    pub(super) fn between<'own>(
        &'own self,
        start: &str,
        end: Option<&str>,
    ) -> impl Iterator<Item = (&'own str, &'own OwnCell)> {
        // A caller may ask for names after the end of the prefix; a sorted map panics at such a range.
        let start = end.map_or(start, |end| start.min(end));
        let end = end.map_or(Bound::Unbounded, Bound::Excluded);
        let range = self.cells.range::<str, _>((Bound::Included(start), end));
        range.map(|(name, cell)| (name.as_str(), cell))
    }

    pub(super) fn ops(&self) -> Vec<Op<'_>> {
        self.ops
            .iter()
            .map(|(cell, op)| match op {
                OwnOp::Init(value) => Op::Cell(cell, CellAct::Init(ValueRef::from(value))),
                OwnOp::Set(value) => Op::Cell(cell, CellAct::Set(ValueRef::from(value))),
                OwnOp::Cas(expected, value) => Op::Cell(cell, CellAct::Cas(*expected, ValueRef::from(value))),
                OwnOp::Delete => Op::Cell(cell, CellAct::Delete),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_the_wrong_way_round_is_empty() {
        let mut own = OwnWrites::default();
        own.push("b", OwnOp::Delete);
        let names = |start: &str, end| own.between(start, end).map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names("a", Some("c")), ["b"]);
        assert_eq!(names("c", Some("a")), [""; 0]);
        assert_eq!(names("b", Some("b")), [""; 0]);
    }
}
