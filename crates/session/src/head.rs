//! The head of a session: the state that changes with its requests, in one row; `docs/formats/sessions.md`.
//!
//! The newest stored answers are in the head itself, so that a request of a client that waits for each answer writes
//! one row. When they grow large they move to a page, a separate row, which stays unchanged until the client waits for
//! none of its requests.
//!
//! Each answer is stored with the digest of its command, so that another command with the same number is detected.
//!
//! Keeps: E4 (the store knows that a request was executed exactly as long as its answer is stored).

use std::collections::BTreeSet;
use std::sync::Arc;

use kv::{DecodeError, Reader, Staging, Writer};

use crate::keys::SessionKeys;
use crate::limits::{Bound, SessionLimits};
use crate::machine::{CommandDigest, Halt, OwnedIn};

/// Format 1 had no digests, format 2 no places of what is owned.
const FORMAT: u8 = 3;
const OWNED: u8 = 1;
const BROKEN: u8 = 2;

/// Bytes of answers in a head above which they move to a page.
const HEAD_ANSWER_BYTES_MAX: usize = 4 << 10;

/// An executed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) request: u64,
    /// Of its command.
    pub(crate) digest: CommandDigest,
    pub(crate) answer: Arc<[u8]>,
}

/// The head of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Requests below are not answered any more.
    pub(crate) floor: u64,
    /// Where commands of the session have left something that ends with it.
    owned: BTreeSet<u16>,
    /// The head stands for one that is lost, so what is owned may be anywhere. Never stored.
    lost: bool,
    /// Whether it did not acknowledge its pushes, and executes nothing any more.
    pub(crate) broken: bool,
    /// The last push that it got.
    pub(crate) last_push: u64,
    /// The last push that it has acknowledged.
    pub(crate) acknowledged: u64,
    /// Bytes of the pushes between the two.
    pub(crate) push_bytes: u64,
    /// Its time in the index of sessions with pushes, by send time; 0 if it is not there. May be too early.
    pub(crate) sent_entry_us: u64,
    /// In the order of requests.
    answers: Vec<Stored>,
    pages: Vec<Page>,
    next_page: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Page {
    number: u64,
    bytes: u64,
    /// In their order; those below the floor are not here any more.
    requests: Vec<u64>,
}

impl Head {
    /// The head of a new session: it answers requests from 1 on.
    pub(crate) fn new() -> Self {
        Self { floor: 1, ..Self::default() }
    }

    /// In place of a head that cannot be read, to end its session.
    pub(crate) fn lost() -> Self {
        let mut head = Self::new();
        head.lost = true;
        head
    }

    /// The session owns something in these places now.
    pub(crate) fn owns(&mut self, places: &[u16]) {
        self.owned.extend(places);
    }

    /// Where it may own something.
    pub(crate) fn owned_in(&self) -> OwnedIn {
        match self.lost {
            true => OwnedIn::Anywhere,
            false => OwnedIn::Places(self.owned.iter().copied().collect()),
        }
    }

    /// Drops what the client no longer waits for.
    pub(crate) fn raise_floor(&mut self, state: &mut Staging, keys: &SessionKeys, session: u64, lowest_pending: u64) {
        if lowest_pending <= self.floor {
            return;
        }
        self.floor = lowest_pending;
        self.answers.retain(|stored| stored.request >= lowest_pending);
        self.pages.retain_mut(|page| {
            page.requests.retain(|request| *request >= lowest_pending);
            let empty = page.requests.is_empty();
            if empty {
                state.delete(keys.page(session, page.number));
            }
            !empty
        });
    }

    /// The stored answer to a request, if it was executed.
    pub(crate) fn answer(
        &self,
        state: &Staging,
        keys: &SessionKeys,
        session: u64,
        request: u64,
    ) -> Result<Option<Stored>, Halt> {
        if let Ok(place) = self.answers.binary_search_by_key(&request, |stored| stored.request) {
            return Ok(Some(self.answers[place].clone()));
        }
        let Some(page) = self.pages.iter().find(|page| page.requests.binary_search(&request).is_ok()) else {
            return Ok(None);
        };
        let row = state.get(&keys.page(session, page.number))?;
        let lost = || Halt::Inconsistent(format!("E4: the answer to request {request} of session {session} is gone"));
        let answers = read_page(&row.ok_or_else(lost)?)?;
        let found = answers.into_iter().find(|stored| stored.request == request);
        found.map(Some).ok_or_else(lost)
    }

    /// The limit that keeps the session from sending another request.
    pub(crate) fn reached(&self, limits: &SessionLimits) -> Option<(Bound, u64)> {
        let count = self.answers.len() + self.pages.iter().map(|page| page.requests.len()).sum::<usize>();
        if count >= limits.session_answers_max as usize {
            return Some((Bound::Answers, limits.session_answers_max.into()));
        }
        let bytes = self.head_bytes() as u64 + self.pages.iter().map(|page| page.bytes).sum::<u64>();
        let max = limits.session_answer_bytes_max.into();
        (bytes >= max).then_some((Bound::AnswerBytes, max))
    }

    fn head_bytes(&self) -> usize {
        self.answers.iter().map(|stored| stored.answer.len()).sum()
    }

    /// Stores the answer of a request that was executed now.
    pub(crate) fn store(&mut self, request: u64, digest: CommandDigest, answer: &[u8]) {
        let place = self.answers.partition_point(|stored| stored.request < request);
        self.answers.insert(place, Stored { request, digest, answer: answer.into() });
    }

    /// The requests whose answers are stored.
    pub(crate) fn requests(&self) -> impl Iterator<Item = u64> {
        let paged = self.pages.iter().flat_map(|page| page.requests.iter().copied());
        self.answers.iter().map(|stored| stored.request).chain(paged)
    }

    /// Writes the head, and a page if the answers have become many bytes.
    pub(crate) fn write(&mut self, state: &mut Staging, keys: &SessionKeys, session: u64) {
        if self.head_bytes() > HEAD_ANSWER_BYTES_MAX {
            let number = self.next_page;
            self.next_page += 1;
            state.put_encoded(keys.page(session, number), |writer| {
                writer.u8(FORMAT);
                write_answers(writer, &self.answers);
            });
            let bytes = self.head_bytes() as u64;
            let requests = self.answers.drain(..).map(|stored| stored.request).collect();
            self.pages.push(Page { number, bytes, requests });
        }
        state.put_encoded(keys.head(session), |writer| self.encode(writer));
    }

    /// Removes the head and its pages.
    pub(crate) fn remove(&self, state: &mut Staging, keys: &SessionKeys, session: u64) {
        for page in &self.pages {
            state.delete(keys.page(session, page.number));
        }
        state.delete(keys.head(session));
    }

    pub(crate) fn encode(&self, writer: &mut Writer) {
        let flags = if self.owned.is_empty() { 0 } else { OWNED } | if self.broken { BROKEN } else { 0 };
        writer.u8(FORMAT).u8(flags).varint(self.floor);
        writer.varint(self.last_push).varint(self.acknowledged).varint(self.push_bytes).varint(self.sent_entry_us);
        write_places(writer, &self.owned);
        writer.varint(self.next_page).varint(self.pages.len() as u64);
        for page in &self.pages {
            writer.varint(page.number).varint(page.bytes).varint(page.requests.len() as u64);
            let mut before = 0;
            for request in &page.requests {
                writer.varint(request - before);
                before = *request;
            }
        }
        write_answers(writer, &self.answers);
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Halt> {
        let read = || {
            let mut reader = Reader::new(bytes);
            reader.format(FORMAT)?;
            let flags = reader.u8()?;
            if flags & !(OWNED | BROKEN) != 0 {
                return Err(DecodeError { what: "an unknown flag" });
            }
            let mut head = Self {
                floor: reader.varint()?,
                broken: flags & BROKEN != 0,
                last_push: reader.varint()?,
                acknowledged: reader.varint()?,
                push_bytes: reader.varint()?,
                sent_entry_us: reader.varint()?,
                owned: if flags & OWNED != 0 { read_places(&mut reader)? } else { BTreeSet::new() },
                next_page: reader.varint()?,
                ..Self::default()
            };
            for _ in 0..reader.varint()? {
                let (number, bytes) = (reader.varint()?, reader.varint()?);
                let mut requests = Vec::new();
                let mut before: u64 = 0;
                for _ in 0..reader.varint()? {
                    before = next_request(before, reader.varint()?)?;
                    requests.push(before);
                }
                head.pages.push(Page { number, bytes, requests });
            }
            head.answers = read_answers(&mut reader)?;
            reader.end().map(|()| head)
        };
        read().map_err(|error| Halt::Undecodable { what: "the head of a session", error })
    }

    /// The head without its answers: a known bug that a test can bring into an image.
    #[cfg(feature = "canary")]
    pub(crate) fn forget_answers(&mut self) {
        self.answers.clear();
        self.pages.clear();
    }
}

/// The places where a session owns something, if there are any: how many, then each as how much it is above the one before.
fn write_places(writer: &mut Writer, places: &BTreeSet<u16>) {
    if places.is_empty() {
        return;
    }
    writer.varint(places.len() as u64);
    let mut before = 0;
    for place in places {
        writer.varint(u64::from(place - before));
        before = *place;
    }
}

fn read_places(reader: &mut Reader<'_>) -> Result<BTreeSet<u16>, DecodeError> {
    let mut places = BTreeSet::new();
    let mut before = 0;
    for _ in 0..reader.varint()? {
        let place = next_request(before, reader.varint()?)?;
        places.insert(u16::try_from(place).map_err(|_| DecodeError { what: "a place beyond all places" })?);
        before = place;
    }
    Ok(places)
}

fn next_request(before: u64, by: u64) -> Result<u64, DecodeError> {
    before.checked_add(by).ok_or(DecodeError { what: "a request number beyond all numbers" })
}

fn write_answers(writer: &mut Writer, answers: &[Stored]) {
    writer.varint(answers.len() as u64);
    let mut before = 0;
    for Stored { request, digest, answer } in answers {
        writer.varint(request - before).raw(digest).varint(answer.len() as u64).raw(answer);
        before = *request;
    }
}

fn read_answers(reader: &mut Reader<'_>) -> Result<Vec<Stored>, DecodeError> {
    let mut answers = Vec::new();
    let mut before = 0;
    for _ in 0..reader.varint()? {
        before = next_request(before, reader.varint()?)?;
        let digest = reader.raw(size_of::<CommandDigest>())?;
        let digest = digest.try_into().map_err(|_| DecodeError { what: "a digest of another length" })?;
        let length = usize::try_from(reader.varint()?).map_err(|_| DecodeError { what: "a length beyond memory" })?;
        answers.push(Stored { request: before, digest, answer: reader.raw(length)?.into() });
    }
    Ok(answers)
}

fn read_page(bytes: &[u8]) -> Result<Vec<Stored>, Halt> {
    let read = || {
        let mut reader = Reader::new(bytes);
        reader.format(FORMAT)?;
        let answers = read_answers(&mut reader)?;
        reader.end().map(|()| answers)
    };
    read().map_err(|error| Halt::Undecodable { what: "stored answers of a session", error })
}

#[cfg(test)]
mod tests {
    use kv::{Key, MemoryStore, Store};

    use super::*;

    fn encoded(head: &Head) -> Vec<u8> {
        let mut writer = Writer::new();
        head.encode(&mut writer);
        writer.finish()
    }

    /// The bytes of `docs/formats/sessions.md`. A change here is a change of the format.
    #[test]
    fn golden_head() {
        let mut head = Head {
            floor: 3,
            owned: BTreeSet::from([5, 300]),
            last_push: 9,
            acknowledged: 8,
            push_bytes: 1,
            ..Head::new()
        };
        head.pages.push(Page { number: 0, bytes: 5_000, requests: vec![3, 5] });
        head.next_page = 1;
        head.store(300, [2; 16], b"b");
        head.store(6, [1; 16], b"a");
        let hex = encoded(&head).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (first, second) = ("01".repeat(16), "02".repeat(16));
        let answers = format!("0206{first}0161a602{second}0162");
        assert_eq!(hex, "03010309080100".to_owned() + "0205a702" + "0101008827020302" + &answers);
        assert_eq!(Head::decode(&encoded(&head)), Ok(head));
    }

    #[test]
    fn answers_move_to_pages_and_are_found_until_nobody_waits() {
        let keys = SessionKeys::new(Key::default());
        let mut state = Staging::new(MemoryStore::new().view().expect("a view"));
        let mut head = Head::new();
        let answer = |request: u64| vec![u8::try_from(request % 251).expect("small"); 1_000];
        let digest = |request: u64| [u8::try_from(request).expect("small"); 16];
        for request in 1..=20 {
            head.store(request, digest(request), &answer(request));
            head.write(&mut state, &keys, 7);
            head = Head::decode(&state.get(&keys.head(7)).expect("no fault").expect("a head")).expect("well formed");
        }
        assert_eq!(head.pages.len(), 4, "five answers of 1,000 bytes in each");
        for request in 1..=20 {
            let stored = head.answer(&state, &keys, 7, request).expect("no fault");
            let expected = Stored { request, digest: digest(request), answer: answer(request).into() };
            assert_eq!(stored, Some(expected));
        }
        assert_eq!(head.answer(&state, &keys, 7, 21), Ok(None));
        head.raise_floor(&mut state, &keys, 7, 12);
        assert_eq!(head.requests().min(), Some(12));
        assert_eq!(state.get(&keys.page(7, 1)), Ok(None), "its requests were 6 to 10");
        assert_eq!(head.answer(&state, &keys, 7, 11), Ok(None));
        assert!(head.answer(&state, &keys, 7, 12).expect("no fault").is_some());
        head.raise_floor(&mut state, &keys, 7, 5);
        assert_eq!(head.floor, 12, "it never falls");
    }

    #[test]
    fn bounds_count_heads_and_pages() {
        let mut head = Head::new();
        let limits = SessionLimits { session_answers_max: 3, session_answer_bytes_max: 10, ..SessionLimits::default() };
        head.store(1, [0; 16], b"12345");
        head.pages.push(Page { number: 0, bytes: 4, requests: vec![2] });
        assert_eq!(head.reached(&limits), None);
        head.store(3, [0; 16], b"");
        assert_eq!(head.reached(&limits), Some((Bound::Answers, 3)));
        let limits = SessionLimits { session_answers_max: 9, ..limits };
        head.pages[0].bytes = 5;
        assert_eq!(head.reached(&limits), Some((Bound::AnswerBytes, 10)));
    }
}
