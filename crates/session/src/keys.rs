//! The keys of sessions, below a prefix chosen by the host; `docs/formats/sessions.md`.
//!
//! Keeps: E3 (no key of a machine can equal one of these: the host gives machines other prefixes).

use kv::{Key, KeyRange};

const SESSION: u8 = 0x01;
const HEAD: u8 = 0x02;
const PAGE: u8 = 0x03;
const PUSH: u8 = 0x04;
const SENT: u8 = 0x05;
const COUNT: u8 = 0x06;

/// Builds the keys of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionKeys {
    prefix: Key,
}

impl SessionKeys {
    /// Keys that start with `prefix`.
    pub fn new(prefix: Key) -> Self {
        Self { prefix }
    }

    /// The beginning of all of them.
    pub fn prefix(&self) -> &Key {
        &self.prefix
    }

    fn kind(&self, kind: u8) -> Key {
        let mut key = self.prefix.clone();
        key.push(kind);
        key
    }

    fn numbered(&self, kind: u8, number: u64) -> Key {
        let mut key = self.kind(kind);
        key.extend_from_slice(&number.to_be_bytes());
        key
    }

    fn numbered_twice(&self, kind: u8, first: u64, second: u64) -> Key {
        let mut key = self.numbered(kind, first);
        key.extend_from_slice(&second.to_be_bytes());
        key
    }

    /// The creation parameters of a session.
    pub(crate) fn session(&self, session: u64) -> Key {
        self.numbered(SESSION, session)
    }

    pub(crate) fn sessions(&self) -> KeyRange {
        KeyRange::prefix(&self.kind(SESSION))
    }

    /// The number at the end of a key.
    pub(crate) fn last_number(key: &[u8]) -> Option<u64> {
        Some(u64::from_be_bytes(*key.last_chunk()?))
    }

    /// The head of a session.
    pub(crate) fn head(&self, session: u64) -> Key {
        self.numbered(HEAD, session)
    }

    pub(crate) fn heads(&self) -> KeyRange {
        KeyRange::prefix(&self.kind(HEAD))
    }

    /// Stored answers that did not fit into the head.
    pub(crate) fn page(&self, session: u64, page: u64) -> Key {
        self.numbered_twice(PAGE, session, page)
    }

    /// All such pages of a session.
    pub(crate) fn pages(&self, session: u64) -> KeyRange {
        KeyRange::prefix(&self.numbered(PAGE, session))
    }

    pub(crate) fn push(&self, session: u64, push: u64) -> Key {
        self.numbered_twice(PUSH, session, push)
    }

    /// The pushes of a session after one.
    pub(crate) fn pushes_after(&self, session: u64, push: u64) -> KeyRange {
        KeyRange::prefix(&self.numbered(PUSH, session)).after(&self.push(session, push))
    }

    /// The session, by when one of its pushes was last sent.
    pub(crate) fn sent(&self, sent_us: u64, session: u64) -> Key {
        self.numbered_twice(SENT, sent_us, session)
    }

    /// The sessions some of whose pushes may have been sent last before a time.
    pub(crate) fn sent_before(&self, before_us: u64) -> KeyRange {
        KeyRange::prefix(&self.kind(SENT)).before(&self.numbered(SENT, before_us))
    }

    /// The number of sessions.
    pub(crate) fn count(&self) -> Key {
        self.kind(COUNT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Part of the stored format; `docs/formats/sessions.md`.
    #[test]
    fn golden_keys() {
        let keys = SessionKeys::new(Key::from([0xab]));
        let hex = |key: &[u8]| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&keys.session(258)), "ab010000000000000102");
        assert_eq!(hex(&keys.head(258)), "ab020000000000000102");
        assert_eq!(hex(&keys.page(258, 1)), "ab0300000000000001020000000000000001");
        assert_eq!(hex(&keys.push(258, 1)), "ab0400000000000001020000000000000001");
        assert_eq!(hex(&keys.sent(1, 258)), "ab0500000000000000010000000000000102");
        assert_eq!(hex(&keys.count()), "ab06");
        assert_eq!(SessionKeys::last_number(&keys.sent(1, 258)), Some(258));
        assert!(keys.pushes_after(258, 1).contains(&keys.push(258, 2)));
        assert!(!keys.pushes_after(258, 1).contains(&keys.push(258, 1)));
        assert!(!keys.sent_before(2).contains(&keys.sent(2, 0)) && keys.sent_before(2).contains(&keys.sent(1, 9)));
    }
}
