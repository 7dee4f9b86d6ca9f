//! Half-open ranges of keys.

/// The keys from `start` (included) to `end` (excluded; none means to the last key).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyRange {
    /// The smallest key in the range.
    pub start: Vec<u8>,
    /// The smallest key past the range, if it has an end.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        Self { start: Vec::new(), end: None }
    }

    /// From `start` to before `end`.
    pub fn between(start: impl Into<Vec<u8>>, end: impl Into<Vec<u8>>) -> Self {
        Self { start: start.into(), end: Some(end.into()) }
    }

    /// Every key that starts with `prefix`.
    ///
    /// ```
    /// use statehouse_kv::KeyRange;
    /// let range = KeyRange::prefix(&[7, 0xff]);
    /// assert!(range.contains(&[7, 0xff, 0xff]) && !range.contains(&[8]));
    /// ```
    pub fn prefix(prefix: &[u8]) -> Self {
        Self { start: prefix.to_vec(), end: next_after_prefix(prefix) }
    }

    /// The same range without its keys up to and including `key`.
    pub fn after(mut self, key: &[u8]) -> Self {
        let mut start = key.to_vec();
        start.push(0);
        if start > self.start {
            self.start = start;
        }
        self
    }

    /// The same range without its keys from `key` on.
    pub fn before(mut self, key: &[u8]) -> Self {
        if self.end.as_deref().is_none_or(|end| key < end) {
            self.end = Some(key.to_vec());
        }
        self
    }

    /// Whether `key` is inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.start.as_slice() && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Whether some key can be inside of both.
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        let before = |end: &Option<Vec<u8>>, start: &[u8]| end.as_deref().is_some_and(|end| end <= start);
        !self.is_empty() && !other.is_empty() && !before(&self.end, &other.start) && !before(&other.end, &self.start)
    }

    /// Whether every key of `other` is inside.
    pub fn covers(&self, other: &KeyRange) -> bool {
        let ends_later = match (&self.end, &other.end) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => own >= other,
        };
        self.start <= other.start && ends_later
    }

    /// Whether no key can be inside.
    pub fn is_empty(&self) -> bool {
        self.end.as_deref().is_some_and(|end| end <= self.start.as_slice())
    }
}

/// The smallest key greater than every key with this prefix.
fn next_after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_only_ff_has_no_end() {
        assert_eq!(KeyRange::prefix(&[0xff, 0xff]).end, None);
        assert_eq!(KeyRange::prefix(&[]), KeyRange::all());
    }

    #[test]
    fn ranges_overlap_where_they_share_a_key() {
        let range = |start: &[u8], end: Option<&[u8]>| KeyRange { start: start.to_vec(), end: end.map(<[u8]>::to_vec) };
        let middle = range(b"c", Some(b"f"));
        for (other, overlaps, covered) in [
            (range(b"a", Some(b"c")), false, false),
            (range(b"a", Some(b"c\0")), true, false),
            (range(b"c", Some(b"f")), true, true),
            (range(b"d", Some(b"e")), true, true),
            (range(b"e", None), true, false),
            (range(b"f", None), false, false),
        ] {
            assert_eq!((middle.overlaps(&other), other.overlaps(&middle)), (overlaps, overlaps), "{other:?}");
            assert_eq!(middle.covers(&other), covered, "{other:?}");
        }
        assert!(KeyRange::all().covers(&middle) && !middle.covers(&KeyRange::all()));
    }

    #[test]
    fn narrowing_never_widens() {
        let range = KeyRange::between(*b"b", *b"d");
        assert_eq!(range.clone().after(b"a"), range);
        assert_eq!(range.clone().before(b"e"), range);
        assert!(!range.clone().after(b"b").contains(b"b"));
        assert!(range.clone().after(b"d").is_empty());
        assert!(range.before(b"b").is_empty());
    }
}
