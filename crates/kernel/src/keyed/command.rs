//! Operations on maps of keyed state, and conditions on them, as encoded in a command; `docs/formats/entry.md`.

use contract::keyed::{LogicalTime, Policy};
use kv::{DecodeError, Reader, Writer};
use session::Digester;

use super::entry::{decode_version, encode_version};
use super::restore::{RestoredCounts, RestoredMap};
use super::rows::ContentRows;
use super::updates::Updates;
use crate::command::act::{Act, Condition, Open};

/// An operation on a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyedAct<'bytes> {
    /// Updates keys.
    Update(Updates<'bytes>),
    /// Updates keys and advances inputs, in a commit with a number.
    Commit(Commit<'bytes>),
    /// Raises the seal.
    Seal(LogicalTime),
    /// Creates the map with a policy.
    Create(Policy),
    /// Deletes the map, with all that it holds.
    Delete,
    /// Begins to put aside what the map will hold.
    BeginRestore(RestoredMap),
    /// Puts rows aside, under the number that the begin has answered.
    RestoreRows(u32, ContentRows<'bytes>),
    /// Lets what was put aside take the place of what the map holds.
    EndRestore(u32, RestoredCounts),
    /// Gives up what was put aside.
    AbandonRestore(u32),
    /// Begins a checkpoint: keys whose rows go are noted from now on.
    BeginCheckpoint,
    /// Ends the checkpoint that was begun by this commit.
    EndCheckpoint(u64),
}

/// A numbered commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit<'bytes> {
    /// Its number: one more than that of the commit before.
    pub number: u64,
    /// How far each input is read with it.
    pub positions: Vec<(&'bytes str, u64)>,
    /// The seal after it, if it raises it.
    pub seal: Option<LogicalTime>,
    /// The updates.
    pub updates: Updates<'bytes>,
}

const KEYED: u8 = 9;

const UPDATE: u8 = 1;
const COMMIT: u8 = 2;
const SEAL: u8 = 3;
const DELETE: u8 = 4;
const CREATE: u8 = 5;
const BEGIN_RESTORE: u8 = 6;
const RESTORE_ROWS: u8 = 7;
const END_RESTORE: u8 = 8;
const ABANDON_RESTORE: u8 = 9;
const BEGIN_CHECKPOINT: u8 = 10;
const END_CHECKPOINT: u8 = 11;

impl<'bytes> Act<'bytes> for KeyedAct<'bytes> {
    const CODES: &'static [u8] = &[KEYED];

    fn encode(&self, name: &str, writer: &mut Writer) {
        let mut begin = |code: u8| {
            writer.u8(KEYED).bytes(name.as_bytes()).u8(code);
        };
        match self {
            KeyedAct::Update(updates) => {
                begin(UPDATE);
                writer.bytes(updates.as_bytes());
            }
            KeyedAct::Commit(commit) => {
                begin(COMMIT);
                commit.encode(writer);
            }
            KeyedAct::Seal(version) => {
                begin(SEAL);
                encode_version(writer, *version);
            }
            KeyedAct::Create(policy) => {
                begin(CREATE);
                writer.bool(*policy == Policy::Ordered);
            }
            KeyedAct::Delete => begin(DELETE),
            KeyedAct::BeginRestore(RestoredMap { policy, last_number, seal }) => {
                begin(BEGIN_RESTORE);
                writer.bool(*policy == Policy::Ordered).u64(*last_number).bool(seal.is_some());
                if let Some(seal) = seal {
                    encode_version(writer, *seal);
                }
            }
            KeyedAct::RestoreRows(number, rows) => {
                begin(RESTORE_ROWS);
                writer.u32(*number).bytes(rows.as_bytes());
            }
            KeyedAct::EndRestore(number, RestoredCounts { keys, deleted, waiting }) => {
                begin(END_RESTORE);
                writer.u32(*number).u64(*keys).u64(*deleted).u64(*waiting);
            }
            KeyedAct::AbandonRestore(number) => {
                begin(ABANDON_RESTORE);
                writer.u32(*number);
            }
            KeyedAct::BeginCheckpoint => begin(BEGIN_CHECKPOINT),
            KeyedAct::EndCheckpoint(begun) => {
                begin(END_CHECKPOINT);
                writer.u64(*begun);
            }
        }
    }

    fn decode(_: u8, reader: &mut Reader<'bytes>) -> Result<(&'bytes str, Self), DecodeError> {
        let name = reader.text()?;
        let act = match reader.u8()? {
            UPDATE => KeyedAct::Update(Updates::read(reader.bytes()?)?),
            COMMIT => KeyedAct::Commit(Commit::decode(reader)?),
            SEAL => KeyedAct::Seal(decode_version(reader)?),
            CREATE => KeyedAct::Create(if reader.bool()? { Policy::Ordered } else { Policy::Monotonic }),
            DELETE => KeyedAct::Delete,
            BEGIN_RESTORE => {
                let policy = if reader.bool()? { Policy::Ordered } else { Policy::Monotonic };
                let (last_number, sealed) = (reader.u64()?, reader.bool()?);
                let seal = if sealed { Some(decode_version(reader)?) } else { None };
                KeyedAct::BeginRestore(RestoredMap { policy, last_number, seal })
            }
            RESTORE_ROWS => KeyedAct::RestoreRows(reader.u32()?, ContentRows::read(reader.bytes()?)?),
            END_RESTORE => {
                let number = reader.u32()?;
                let (keys, deleted, waiting) = (reader.u64()?, reader.u64()?, reader.u64()?);
                KeyedAct::EndRestore(number, RestoredCounts { keys, deleted, waiting })
            }
            ABANDON_RESTORE => KeyedAct::AbandonRestore(reader.u32()?),
            BEGIN_CHECKPOINT => KeyedAct::BeginCheckpoint,
            END_CHECKPOINT => KeyedAct::EndCheckpoint(reader.u64()?),
            _ => return Err(DecodeError { what: "an operation on keyed state of an unknown kind" }),
        };
        Ok((name, act))
    }

    fn grows(&self) -> bool {
        match self {
            KeyedAct::Update(updates) => updates.grows(),
            KeyedAct::Commit(commit) => commit.updates.grows() || !commit.positions.is_empty(),
            KeyedAct::Create(_) | KeyedAct::BeginRestore(_) | KeyedAct::RestoreRows(..) => true,
            // What a full disk must not stop: restores that end, and checkpoints.
            KeyedAct::Seal(_)
            | KeyedAct::Delete
            | KeyedAct::EndRestore(..)
            | KeyedAct::AbandonRestore(_)
            | KeyedAct::BeginCheckpoint
            | KeyedAct::EndCheckpoint(_) => false,
        }
    }

    fn open(&self, _: &str) -> Open {
        Open::Never
    }

    fn value_bytes(&self) -> usize {
        match self {
            KeyedAct::Update(updates) => updates.value_bytes_max(),
            KeyedAct::Commit(commit) => commit.updates.value_bytes_max(),
            KeyedAct::RestoreRows(_, rows) => rows.value_bytes_max(),
            _ => 0,
        }
    }

    fn digest(&self, name: &str, digester: &mut Digester) {
        match self {
            KeyedAct::Update(updates) => {
                digester.text("do", "keyed-update").text("name", name).member("updates", updates.as_bytes());
            }
            KeyedAct::Commit(Commit { number, positions, seal, updates }) => {
                digester.text("do", "keyed-commit").text("name", name).number("number", *number);
                for (input, position) in positions {
                    digester.text("input", input).number("position", *position);
                }
                if let Some(seal) = seal {
                    digest_version("seal", *seal, digester);
                }
                digester.member("updates", updates.as_bytes());
            }
            KeyedAct::Seal(version) => {
                digest_version("seal", *version, digester.text("do", "keyed-seal").text("name", name));
            }
            KeyedAct::Create(policy) => {
                digester.text("do", "keyed-create").text("name", name).text("policy", policy.word());
            }
            KeyedAct::Delete => {
                digester.text("do", "keyed-delete").text("name", name);
            }
            KeyedAct::BeginRestore(RestoredMap { policy, last_number, seal }) => {
                digester.text("do", "keyed-begin-restore").text("name", name).text("policy", policy.word());
                digester.number("last-number", *last_number);
                if let Some(seal) = seal {
                    digest_version("seal", *seal, digester);
                }
            }
            KeyedAct::RestoreRows(number, rows) => {
                digester.text("do", "keyed-restore-rows").text("name", name).number("number", u64::from(*number));
                digester.member("rows", rows.as_bytes());
            }
            KeyedAct::EndRestore(number, RestoredCounts { keys, deleted, waiting }) => {
                digester.text("do", "keyed-end-restore").text("name", name).number("number", u64::from(*number));
                digester.number("keys", *keys).number("deleted", *deleted).number("waiting", *waiting);
            }
            KeyedAct::AbandonRestore(number) => {
                digester.text("do", "keyed-abandon-restore").text("name", name).number("number", u64::from(*number));
            }
            KeyedAct::BeginCheckpoint => {
                digester.text("do", "keyed-begin-checkpoint").text("name", name);
            }
            KeyedAct::EndCheckpoint(begun) => {
                digester.text("do", "keyed-end-checkpoint").text("name", name).number("begun", *begun);
            }
        }
    }
}

impl<'bytes> Commit<'bytes> {
    fn encode(&self, writer: &mut Writer) {
        let Self { number, positions, seal, updates } = self;
        writer.u64(*number).u32(u32::try_from(positions.len()).expect("lists are bounded far below that"));
        for (input, position) in positions {
            writer.bytes(input.as_bytes()).u64(*position);
        }
        writer.bool(seal.is_some());
        if let Some(seal) = seal {
            encode_version(writer, *seal);
        }
        writer.bytes(updates.as_bytes());
    }

    fn decode(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        let number = reader.u64()?;
        let positions =
            (0..reader.u32()?).map(|_| Ok((reader.text()?, reader.u64()?))).collect::<Result<_, DecodeError>>()?;
        let seal = if reader.bool()? { Some(decode_version(reader)?) } else { None };
        Ok(Self { number, positions, seal, updates: Updates::read(reader.bytes()?)? })
    }
}

fn digest_version(member: &str, version: LogicalTime, digester: &mut Digester) {
    digester.number(member, version.round);
    if version.epoch != 0 {
        digester.number("epoch", version.epoch);
    }
}

/// A condition on a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyedGuard<'bytes> {
    /// A key has no value.
    Absent(&'bytes str, &'bytes [u8]),
    /// A key has a value.
    Exists(&'bytes str, &'bytes [u8]),
    /// A key has a value that was put with this version.
    VersionIs(&'bytes str, &'bytes [u8], LogicalTime),
    /// A key has a value that was put with a lower version, or none.
    VersionBelow(&'bytes str, &'bytes [u8], LogicalTime),
    /// A key was not changed by a commit after this one.
    UnchangedSince(&'bytes str, &'bytes [u8], u64),
    /// No key from the first to before the second was changed by a commit after this one.
    RangeUnchangedSince(&'bytes str, &'bytes [u8], Option<&'bytes [u8]>, u64),
    /// An input is at this position, or has none.
    PositionIs(&'bytes str, &'bytes str, Option<u64>),
}

const GUARD: u8 = 15;

const ABSENT: u8 = 1;
const EXISTS: u8 = 2;
const VERSION_IS: u8 = 3;
const VERSION_BELOW: u8 = 4;
const UNCHANGED_SINCE: u8 = 5;
const RANGE_UNCHANGED_SINCE: u8 = 6;
const POSITION_IS: u8 = 7;

impl<'bytes> Condition<'bytes> for KeyedGuard<'bytes> {
    const CODES: &'static [u8] = &[GUARD];

    fn name(&self) -> Option<&'bytes str> {
        match self {
            KeyedGuard::Absent(map, _)
            | KeyedGuard::Exists(map, _)
            | KeyedGuard::VersionIs(map, ..)
            | KeyedGuard::VersionBelow(map, ..)
            | KeyedGuard::UnchangedSince(map, ..)
            | KeyedGuard::RangeUnchangedSince(map, ..)
            | KeyedGuard::PositionIs(map, ..) => Some(map),
        }
    }

    fn encode(&self, writer: &mut Writer) {
        let mut begin = |code: u8, map: &str, key: &[u8]| {
            writer.u8(GUARD).bytes(map.as_bytes()).u8(code).bytes(key);
        };
        match self {
            KeyedGuard::Absent(map, key) => begin(ABSENT, map, key),
            KeyedGuard::Exists(map, key) => begin(EXISTS, map, key),
            KeyedGuard::VersionIs(map, key, version) => {
                begin(VERSION_IS, map, key);
                encode_version(writer, *version);
            }
            KeyedGuard::VersionBelow(map, key, version) => {
                begin(VERSION_BELOW, map, key);
                encode_version(writer, *version);
            }
            KeyedGuard::UnchangedSince(map, key, commit) => {
                begin(UNCHANGED_SINCE, map, key);
                writer.u64(*commit);
            }
            KeyedGuard::RangeUnchangedSince(map, from, to, commit) => {
                begin(RANGE_UNCHANGED_SINCE, map, from);
                writer.bool(to.is_some());
                if let Some(to) = to {
                    writer.bytes(to);
                }
                writer.u64(*commit);
            }
            KeyedGuard::PositionIs(map, input, position) => {
                begin(POSITION_IS, map, input.as_bytes());
                writer.optional_u64(*position);
            }
        }
    }

    fn decode(_: u8, reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        let map = reader.text()?;
        Ok(match reader.u8()? {
            ABSENT => KeyedGuard::Absent(map, reader.bytes()?),
            EXISTS => KeyedGuard::Exists(map, reader.bytes()?),
            VERSION_IS => KeyedGuard::VersionIs(map, reader.bytes()?, decode_version(reader)?),
            VERSION_BELOW => KeyedGuard::VersionBelow(map, reader.bytes()?, decode_version(reader)?),
            UNCHANGED_SINCE => KeyedGuard::UnchangedSince(map, reader.bytes()?, reader.u64()?),
            RANGE_UNCHANGED_SINCE => {
                let from = reader.bytes()?;
                let to = if reader.bool()? { Some(reader.bytes()?) } else { None };
                KeyedGuard::RangeUnchangedSince(map, from, to, reader.u64()?)
            }
            POSITION_IS => KeyedGuard::PositionIs(map, reader.text()?, reader.optional_u64()?),
            _ => return Err(DecodeError { what: "a condition on keyed state of an unknown kind" }),
        })
    }

    fn digest(&self, digester: &mut Digester) {
        let mut begin = |kind: &str, map: &str, key: &[u8]| {
            digester.text("if", kind).text("name", map).member("key", key);
        };
        match self {
            KeyedGuard::Absent(map, key) => begin("key-absent", map, key),
            KeyedGuard::Exists(map, key) => begin("key-exists", map, key),
            KeyedGuard::VersionIs(map, key, version) => {
                begin("key-version-is", map, key);
                digest_version("version", *version, digester);
            }
            KeyedGuard::VersionBelow(map, key, version) => {
                begin("key-version-below", map, key);
                digest_version("version", *version, digester);
            }
            KeyedGuard::UnchangedSince(map, key, commit) => {
                begin("key-unchanged", map, key);
                digester.number("commit", *commit);
            }
            KeyedGuard::RangeUnchangedSince(map, from, to, commit) => {
                begin("keys-unchanged", map, from);
                if let Some(to) = to {
                    digester.member("to", to);
                }
                digester.number("commit", *commit);
            }
            KeyedGuard::PositionIs(map, input, position) => {
                begin("position-is", map, input.as_bytes());
                digester.optional_number("position", *position);
            }
        }
    }
}
