//! A view with ranges of keys that count as damaged, above one that does not know about them.
//!
//! Keeps: the duties of [`View`] about damaged ranges. A row that the view below has in such a range is readable.

use std::collections::VecDeque;

use crate::range::KeyRange;
use crate::store::{Bytes, DamagedRange, KvError, Order, Row, Rows, View};

/// A view in which these ranges are damaged. They are set apart.
///
/// ```
/// use statehouse_kv::{Batch, Gaps, KeyRange, KvError, MemoryStore, Store, View};
/// let store = MemoryStore::new();
/// store.commit(Batch::new().put(b"a".as_slice(), b"1".as_slice()))?;
/// let view = store.view()?;
/// let gaps = Gaps::new(&*view, vec![KeyRange::between(*b"b", *b"d")]);
/// assert!(gaps.get(b"a")?.is_some() && gaps.get(b"d")?.is_none());
/// assert!(matches!(gaps.get(b"c"), Err(KvError::Damaged(_))));
/// # Ok::<(), KvError>(())
/// ```
pub struct Gaps<'view> {
    below: &'view dyn View,
    /// In order.
    ranges: Vec<KeyRange>,
}

impl<'view> Gaps<'view> {
    /// Ranges above `below`.
    pub fn new(below: &'view dyn View, mut ranges: Vec<KeyRange>) -> Self {
        ranges.sort();
        Self { below, ranges }
    }
}

fn damaged(range: &KeyRange, at: &[u8]) -> Box<DamagedRange> {
    let (place, reason) = ("a gap".to_owned(), "the range is missing");
    Box::new(DamagedRange { place, reason, range: range.clone(), at: at.into(), words: None, is_set_apart: true })
}

impl View for Gaps<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        match (self.below.get(key)?, self.ranges.iter().find(|range| range.contains(key))) {
            (None, Some(range)) => Err(KvError::Damaged(damaged(range, key))),
            (found, _) => Ok(found),
        }
    }

    fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
        let met = self.ranges.iter().filter(|gap| gap.overlaps(range));
        let met = met.map(|gap| match order {
            Order::Ascending => damaged(gap, (&gap.start).max(&range.start)),
            Order::Descending => {
                let ends = [gap.end.as_deref(), range.end.as_deref()];
                damaged(gap, ends.into_iter().flatten().min().unwrap_or(&[0xff; 64]))
            }
        });
        let mut gaps: VecDeque<_> = met.collect();
        if order == Order::Descending {
            gaps.make_contiguous().reverse();
        }
        Box::new(GapRows { rows: self.below.scan(range, order).peekable(), gaps, order })
    }
}

struct GapRows<'view> {
    rows: std::iter::Peekable<Rows<'view>>,
    gaps: VecDeque<Box<DamagedRange>>,
    order: Order,
}

impl Iterator for GapRows<'_> {
    type Item = Result<Row, KvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row_first = match (self.rows.peek(), self.gaps.front()) {
            (Some(Ok((key, _))), Some(gap)) => gap.is_after(key, self.order),
            (Some(_), _) => true,
            (None, _) => false,
        };
        match row_first {
            true => self.rows.next(),
            false => self.gaps.pop_front().map(|gap| Err(KvError::Damaged(gap))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, MemoryStore, Overlay, OverlayOptions, Staging, Store};
    use std::sync::Arc;

    /// What a scan yields: keys, and where a damaged range is met.
    fn scanned(rows: Rows<'_>) -> Vec<String> {
        rows.map(|row| match row {
            Ok((key, _)) => String::from_utf8_lossy(&key).into_owned(),
            Err(KvError::Damaged(damaged)) => format!("!{}", String::from_utf8_lossy(&damaged.range.start)),
            Err(other) => panic!("{other}"),
        })
        .collect()
    }

    struct Gapped(MemoryStore);

    struct Owned(Arc<dyn View>);

    impl View for Owned {
        fn get(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
            Gaps::new(&*self.0, vec![KeyRange::between(*b"c", *b"f")]).get(key)
        }

        fn scan(&self, range: &KeyRange, order: Order) -> Rows<'_> {
            let rows: Vec<_> = Gaps::new(&*self.0, vec![KeyRange::between(*b"c", *b"f")]).scan(range, order).collect();
            Box::new(rows.into_iter())
        }
    }

    impl Store for Gapped {
        fn view(&self) -> Result<Arc<dyn View>, KvError> {
            Ok(Arc::new(Owned(self.0.view()?)))
        }

        fn commit(&self, batch: Batch) -> Result<crate::Committed, KvError> {
            self.0.commit(batch)
        }

        fn durable(&self) -> crate::Sequence {
            self.0.durable()
        }

        fn persist(&self) -> Result<crate::Sequence, KvError> {
            self.0.persist()
        }
    }

    /// Where the rows around a damaged range are, below, in memory or staged, makes no difference.
    #[test]
    fn a_scan_meets_a_damaged_range_in_its_place_whatever_holds_the_rows() {
        let keys: [&[u8]; 6] = [b"a", b"b", b"d", b"e", b"f", b"g"];
        for layers in 0..3_usize.pow(6) {
            let below = Arc::new(Gapped(MemoryStore::new()));
            let of = |layer: usize| {
                let mut digits = layers;
                let mut chosen = Vec::new();
                for key in keys {
                    if digits % 3 == layer {
                        chosen.push(key);
                    }
                    digits /= 3;
                }
                chosen
            };
            let batch =
                |keys: Vec<&[u8]>| keys.into_iter().fold(Batch::new(), |batch, key| batch.put(key, b"".as_slice()));
            below.commit(batch(of(0))).expect("committed");
            let overlay = Overlay::new(below, OverlayOptions::default()).expect("an overlay");
            overlay.commit(batch(of(1))).expect("committed");
            let mut staging = Staging::new(overlay.view().expect("a view"));
            of(2).into_iter().for_each(|key| staging.put(key, b"".as_slice()));
            let all = KeyRange::all();
            assert_eq!(scanned(staging.scan(&all, Order::Ascending)), ["a", "b", "!c", "d", "e", "f", "g"]);
            assert_eq!(scanned(staging.scan(&all, Order::Descending)), ["g", "f", "!c", "e", "d", "b", "a"]);
            let inside = KeyRange::between(*b"d", *b"e");
            assert_eq!(scanned(staging.scan(&inside, Order::Ascending)), ["!c", "d"]);
            assert_eq!(scanned(staging.scan(&inside, Order::Descending)), ["!c", "d"]);
        }
    }
}
