//! What a log must have of a shard.

use std::collections::VecDeque;

use journal::{Append, ENTRY_OVERHEAD_BYTES_MAX, Ends, Entry, EntryKind, EntryLog, JournalError, Position, ShardId};

/// So many entries that the log has lost are remembered.
const LOST_MAX: usize = 64;

/// What an appender says of an entry, beside its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) kind: EntryKind,
    pub(super) term: u64,
    pub(super) node: u64,
    pub(super) payload: Vec<u8>,
}

impl Content {
    /// One that is never appended.
    pub(super) fn never() -> Self {
        Self { kind: EntryKind::COMMANDS, term: 1, node: 1, payload: b"never".to_vec() }
    }

    pub(super) fn of(entry: &Entry) -> Self {
        let Entry { kind, term, node, ref payload, .. } = *entry;
        Self { kind, term, node, payload: payload.clone() }
    }
}

/// Where an appender wants its entry: behind what, and in which history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) after: Position,
    pub(super) history: u64,
}

/// An entry that was appended.
struct Appended {
    /// What it is behind.
    previous: Position,
    position: Position,
    content: Content,
}

/// A shard as it must be.
pub(super) struct Shard {
    id: ShardId,
    history: u64,
    /// What the first entry is behind.
    start: Position,
    /// From the first kept entry on.
    entries: VecDeque<Appended>,
    /// The newest of those that were acknowledged, and that the log has lost.
    lost: VecDeque<Appended>,
}

impl Shard {
    pub(super) fn new(id: ShardId, start: Position) -> Self {
        Self { id, history: id << 32, start, entries: VecDeque::new(), lost: VecDeque::new() }
    }

    pub(super) fn id(&self) -> ShardId {
        self.id
    }

    pub(super) fn history(&self) -> u64 {
        self.history
    }

    /// Behind the last entry, as an owner appends.
    pub(super) fn behind_last(&self) -> Wanted {
        Wanted { after: self.last(), history: self.history }
    }

    /// Whether the log knows the history of the shard.
    pub(super) fn has_begun(&self) -> bool {
        self.start != Position::START || !self.entries.is_empty()
    }

    pub(super) fn append<'content>(&self, wanted: Wanted, content: &'content Content) -> Append<'content> {
        let Content { kind, term, node, ref payload } = *content;
        Append { shard: self.id, after: wanted.after, kind, term, node, history: wanted.history, payload }
    }

    pub(super) fn last(&self) -> Position {
        self.entries.back().map_or(self.start, |entry| entry.position)
    }

    pub(super) fn first_kept(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.position.index)
    }

    pub(super) fn kept(&self) -> usize {
        self.entries.len()
    }

    /// The bytes of all kept payloads.
    pub(super) fn payload_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.content.payload.len() as u64).sum()
    }

    /// The place of a kept entry before the last; none if there is only one.
    pub(super) fn before_last(&self, chosen: usize) -> Option<Position> {
        let earlier = self.entries.len().checked_sub(1).filter(|earlier| *earlier > 0)?;
        Some(self.entries[chosen % earlier].position)
    }

    /// An append said that it succeeded.
    pub(super) fn appended(&mut self, position: Position, content: Content) {
        assert_eq!(position.index, self.last().index + 1, "J6: an entry of shard {} is behind the last", self.id);
        let previous = self.last();
        for lost in self.lost.iter().filter(|lost| lost.position == position) {
            let is_same = (lost.previous, &lost.content) == (previous, &content);
            assert!(
                is_same,
                "J6: two entries of shard {} are {position}, behind {} and {previous}",
                self.id, lost.previous
            );
        }
        self.entries.push_back(Appended { previous, position, content });
    }

    pub(super) fn cut(&mut self, first_kept: u64) {
        while self.entries.len() > 1 && self.first_kept().is_some_and(|first| first < first_kept) {
            self.entries.pop_front();
        }
    }

    pub(super) fn forget(&mut self, entries: usize) {
        let left = self.entries.len().saturating_sub(entries);
        assert!(left > 0, "an entry stays, as a place to go on from");
        self.lost.extend(self.entries.drain(left..));
        self.lost.drain(..self.lost.len().saturating_sub(LOST_MAX));
    }

    /// Whether the log has lost this entry and has another one in its place, or had one there that was given up since.
    pub(super) fn has_replaced(&self, position: Position) -> bool {
        let is_lost = self.lost.iter().any(|lost| lost.position == position);
        is_lost && position.index <= self.last().index && !self.entries.iter().any(|kept| kept.position == position)
    }

    /// The place of an entry that the log has lost. One that its last entry has replaced comes first: an owner that does not
    /// know of the loss appends there.
    pub(super) fn lost(&self, chosen: usize) -> Option<Position> {
        let places = || self.lost.iter().map(|lost| lost.position).filter(|position| *position != self.last());
        let replaced = places().find(|position| position.index == self.last().index);
        replaced.or_else(|| places().nth(chosen % places().count().max(1)))
    }

    pub(super) fn check_ends(&self, log: &dyn EntryLog) {
        let history = self.has_begun().then_some(self.history);
        let expected = Ends { first_kept: self.first_kept(), last: self.last(), history };
        assert_eq!(log.ends(self.id).expect("the ends of a shard"), expected, "J2: the ends of shard {}", self.id);
    }

    /// After the log was opened again, what was given up may be there again; nothing else may differ (J3).
    pub(super) fn check_reopened(&self, log: &dyn EntryLog) {
        let found = log.ends(self.id).expect("the ends of a shard");
        assert_eq!(found.last, self.last(), "J3: the last entry of shard {} after opening again", self.id);
        assert!(found.first_kept <= self.first_kept(), "J3: the first entry of shard {} after opening again", self.id);
        if let Some(first_kept) = self.first_kept() {
            log.cut(self.id, first_kept).expect("a cut");
        }
    }

    /// Reads everything that is kept, and compares.
    pub(super) fn check_whole(&self, log: &dyn EntryLog) {
        self.check_read(log, self.first_kept().unwrap_or(1), usize::MAX);
    }

    /// Reads from an entry on, and compares.
    pub(super) fn check_read(&self, log: &dyn EntryLog, first: u64, bytes_max: usize) {
        let at = format!("J2: entries of shard {} from {first} on, {bytes_max} bytes", self.id);
        let read = log.read(self.id, first, bytes_max);
        let Some(first_kept) = self.first_kept().filter(|_| first <= self.last().index) else {
            assert_eq!(read, Ok(Vec::new()), "{at}");
            return;
        };
        let Some(skipped) = first.checked_sub(first_kept) else {
            assert!(
                matches!(read, Err(JournalError::Damaged { .. })),
                "{at}: what was given up is not nothing: {read:?}"
            );
            return;
        };
        let read = read.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert!(!read.is_empty(), "{at}: at least one");
        let expected = self.entries.range(usize::try_from(skipped).expect("few")..);
        assert!(read.len() <= expected.len(), "{at}: {} entries, {} are there", read.len(), expected.len());
        for (kept, (entry, position)) in expected.clone().zip(&read) {
            assert_eq!((*position, entry.index), (kept.position, kept.position.index), "{at}");
            assert_eq!((entry.shard, entry.history), (self.id, self.history), "{at}");
            assert_eq!(Content::of(entry), kept.content, "{at}");
            assert_eq!(entry.hash(), position.hash, "{at}: every log has the same hash for an entry");
            assert_eq!(entry.previous_hash, kept.previous.hash, "{at}: entry {position} is behind {}", kept.previous);
        }
        let bytes: usize = read.iter().map(|(entry, _)| entry.payload.len()).sum();
        assert!(read.len() == 1 || bytes <= bytes_max, "{at}: {bytes} bytes");
        if expected.len() > read.len() {
            let with_next =
                expected.take(read.len() + 1).map(|kept| kept.content.payload.len() + ENTRY_OVERHEAD_BYTES_MAX);
            let with_next: usize = with_next.sum();
            assert!(with_next > bytes_max, "{at}: {} entries, and one more fits: {with_next} bytes", read.len());
        }
    }
}
