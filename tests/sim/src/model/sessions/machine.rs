//! The machine of the test: named counters that anybody may add to, with long answers, pushes, and its own record of
//! executed requests.

use std::sync::Arc;

use kernel::sessions::brought::Hosted;
use kv::{DecodeError, KvError, Reader, Writer};
use session::user::{USER_KEY_BYTES_MAX, USER_VALUE_BYTES_MAX};
use session::{Command, NewSession, Pushes, UserCall, UserMachine, UserState};

/// No counter's name begins with this byte: behind it the machine keeps its book.
pub(crate) const BOOK: u8 = 0xee;
const EXECUTED: u8 = b'e';
const NEWEST: u8 = b'n';
const ENDED: u8 = b'x';

/// What the machine is asked. It says which request it is, since the machine is not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    /// The session and the request; none without a session.
    pub(crate) ticket: Option<(u64, u64)>,
    pub(crate) deed: Deed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Adds to a counter and sends pushes: each a session, and how many bytes it gets.
    Add { counter: Vec<u8>, by: i64, answer_bytes: u32, pushes: Vec<(u64, u32)> },
    /// Removes a counter.
    Remove { counter: Vec<u8> },
    /// Counts and adds up the counters whose names begin so.
    Sum { prefix: Vec<u8> },
    /// Does all sorts of things and then writes too much, so that nothing of it may stay.
    TooLong { counter: Vec<u8>, what: TooLong, push_to: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooLong {
    Key,
    Value,
}

const ADD: u8 = 1;
const REMOVE: u8 = 2;
const SUM: u8 = 3;
const KEY_TOO_LONG: u8 = 4;
const VALUE_TOO_LONG: u8 = 5;

impl Command for Act {
    type Response = Vec<u8>;

    fn encode(&self, writer: &mut Writer) {
        let (session, request) = self.ticket.unwrap_or_default();
        writer.u64(session).u64(request);
        match &self.deed {
            Deed::Add { counter, by, answer_bytes, pushes } => {
                writer.u8(ADD).bytes(counter).i64(*by).u32(*answer_bytes).varint(pushes.len() as u64);
                for (session, bytes) in pushes {
                    writer.u64(*session).u32(*bytes);
                }
            }
            Deed::Remove { counter } => {
                writer.u8(REMOVE).bytes(counter);
            }
            Deed::Sum { prefix } => {
                writer.u8(SUM).bytes(prefix);
            }
            Deed::TooLong { counter, what, push_to } => {
                let kind = if *what == TooLong::Key { KEY_TOO_LONG } else { VALUE_TOO_LONG };
                writer.u8(kind).bytes(counter).u64(*push_to);
            }
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let (session, request) = (reader.u64()?, reader.u64()?);
        let deed = match reader.u8()? {
            ADD => {
                let (counter, by, answer_bytes) = (reader.bytes()?.to_vec(), reader.i64()?, reader.u32()?);
                let mut pushes = Vec::new();
                for _ in 0..reader.varint()? {
                    pushes.push((reader.u64()?, reader.u32()?));
                }
                Deed::Add { counter, by, answer_bytes, pushes }
            }
            REMOVE => Deed::Remove { counter: reader.bytes()?.to_vec() },
            SUM => Deed::Sum { prefix: reader.bytes()?.to_vec() },
            kind @ (KEY_TOO_LONG | VALUE_TOO_LONG) => Deed::TooLong {
                counter: reader.bytes()?.to_vec(),
                what: if kind == KEY_TOO_LONG { TooLong::Key } else { TooLong::Value },
                push_to: reader.u64()?,
            },
            _ => return Err(DecodeError { what: "a deed of an unknown kind" }),
        };
        let ticket = (session != 0).then_some((session, request));
        reader.end().map(|()| Self { ticket, deed })
    }

    fn encode_response(response: &Vec<u8>, writer: &mut Writer) {
        writer.raw(response);
    }

    fn decode_response(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
        Ok(bytes.to_vec())
    }
}

/// What an addition answers. It names the command, so that a second execution could not answer the same.
pub(crate) fn added(value: i64, commit: u64, answer_bytes: u32) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.i64(value).u64(commit).raw(&filler(commit, answer_bytes));
    writer.finish()
}

/// What a sum answers: how many counters, and how much they are together.
pub(crate) fn summed(counters: u64, sum: i64) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u64(counters).i64(sum);
    writer.finish()
}

/// What is pushed by the command with this number.
pub(crate) fn payload(commit: u64, bytes: u32) -> Vec<u8> {
    filler(commit.wrapping_mul(31), bytes)
}

/// What is pushed to the newest session when another begins or ends.
pub(crate) fn news(of: u64, begins: bool) -> Vec<u8> {
    format!("{} {of}", if begins { "hello" } else { "goodbye" }).into_bytes()
}

fn filler(start: u64, bytes: u32) -> Vec<u8> {
    (0..u64::from(bytes)).map(|place| start.wrapping_add(place).to_le_bytes()[0]).collect()
}

/// A machine of named counters.
pub(crate) struct Counters;

/// The machines that a kernel under test is given.
pub(crate) fn machines() -> Hosted {
    [(Counters::NUMBER, Arc::new(Counters) as _)].into()
}

impl UserMachine for Counters {
    const NUMBER: u16 = 300;
    const VERSION: u16 = 2;

    type Command = Act;

    fn apply(
        &self,
        state: &mut UserState<'_>,
        call: &UserCall,
        act: Act,
        pushes: &mut Pushes,
    ) -> Result<Vec<u8>, KvError> {
        if let Some((session, request)) = act.ticket {
            let times = number(state, &executed_key(session, request))?;
            state.put(&executed_key(session, request), &(times + 1).to_le_bytes());
        }
        match act.deed {
            Deed::Add { counter, by, answer_bytes, pushes: sent } => {
                let value = counter_value(state.get(&counter)?.as_deref()).wrapping_add(by);
                state.put(&counter, &value.to_le_bytes());
                for (session, bytes) in sent {
                    pushes.push(session, payload(call.commit, bytes));
                }
                Ok(added(value, call.commit, answer_bytes))
            }
            Deed::Remove { counter } => {
                let value = counter_value(state.get(&counter)?.as_deref());
                state.delete(&counter);
                Ok(added(value, call.commit, 0))
            }
            Deed::Sum { prefix } => {
                let (mut counters, mut sum) = (0, 0_i64);
                for row in state.scan(&prefix) {
                    let (key, value) = row?;
                    if key.first() != Some(&BOOK) {
                        counters += 1;
                        sum = sum.wrapping_add(counter_value(Some(&value)));
                    }
                }
                Ok(summed(counters, sum))
            }
            Deed::TooLong { counter, what, push_to } => {
                state.put(&counter, &i64::MAX.to_le_bytes());
                pushes.push(push_to, b"never".as_slice());
                match what {
                    TooLong::Key => state.put(&[BOOK; USER_KEY_BYTES_MAX + 1], b"never"),
                    TooLong::Value => state.put(&[BOOK], &[0; USER_VALUE_BYTES_MAX + 1]),
                }
                state.delete(&counter);
                Ok(b"never".to_vec())
            }
        }
    }

    fn on_session_created(
        &self,
        state: &mut UserState<'_>,
        _: &UserCall,
        session: &NewSession<'_>,
        pushes: &mut Pushes,
    ) -> Result<(), KvError> {
        let newest = number(state, &[BOOK, NEWEST])?;
        pushes.push(newest, news(session.number, true));
        state.put(&[BOOK, NEWEST], &session.number.to_le_bytes());
        Ok(())
    }

    /// The session's part of the book is closed: only how many requests were executed is kept, and how many of them more
    /// than once.
    fn on_session_expired(
        &self,
        state: &mut UserState<'_>,
        _: &UserCall,
        session: u64,
        pushes: &mut Pushes,
    ) -> Result<(), KvError> {
        let Ended { mut requests, mut repeated } = ended(state.get(&[BOOK, ENDED])?.as_deref());
        let mut after = None;
        loop {
            let page = state.page(&executed_prefix(session), after.as_deref())?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for (key, times) in page {
                requests += 1;
                repeated += u64::from(read_number(&times) != 1);
                state.delete(&key);
            }
        }
        state.put(&[BOOK, ENDED], &[requests.to_le_bytes(), repeated.to_le_bytes()].concat());
        pushes.push(session, b"never".as_slice());
        pushes.push(number(state, &[BOOK, NEWEST])?, news(session, false));
        Ok(())
    }
}

/// What the machine's book says of sessions that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) requests: u64,
    pub(crate) repeated: u64,
}

fn ended(row: Option<&[u8]>) -> Ended {
    let row = row.map_or([0; 16], |row| row.try_into().expect("two numbers"));
    let (requests, repeated) = row.split_at(8);
    Ended { requests: read_number(requests), repeated: read_number(repeated) }
}

fn number(state: &UserState<'_>, key: &[u8]) -> Result<u64, KvError> {
    Ok(state.get(key)?.map_or(0, |row| read_number(&row)))
}

fn read_number(row: &[u8]) -> u64 {
    u64::from_le_bytes(row.try_into().expect("a number"))
}

/// A row that is no counter would be one of somebody else's.
fn counter_value(row: Option<&[u8]>) -> i64 {
    row.map_or(0, |row| i64::from_le_bytes(row.try_into().expect("(6) the machine sees a row that it did not write")))
}

fn executed_prefix(session: u64) -> Vec<u8> {
    [[BOOK, EXECUTED].as_slice(), &session.to_be_bytes()].concat()
}

fn executed_key(session: u64, request: u64) -> Vec<u8> {
    [executed_prefix(session), request.to_be_bytes().to_vec()].concat()
}

/// A row of the machine's, read from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OwnRow {
    Counter { name: Vec<u8>, value: i64 },
    Executed { session: u64, request: u64, times: u64 },
    Newest(u64),
    Ended(Ended),
}

impl OwnRow {
    /// Reads a row by its key in the machine's own place; none if the machine never wrote such a one.
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        let numbers = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
        let written = |value: &[u8]| Some(u64::from_le_bytes(value.try_into().ok()?));
        match key {
            [BOOK, EXECUTED, rest @ ..] if rest.len() == 16 => Some(OwnRow::Executed {
                session: numbers(&rest[..8])?,
                request: numbers(&rest[8..])?,
                times: written(value)?,
            }),
            [BOOK, NEWEST] => Some(OwnRow::Newest(written(value)?)),
            [BOOK, ENDED] if value.len() == 16 => Some(OwnRow::Ended(ended(Some(value)))),
            [BOOK, ..] => None,
            name => Some(OwnRow::Counter { name: name.to_vec(), value: i64::from_le_bytes(value.try_into().ok()?) }),
        }
    }
}
