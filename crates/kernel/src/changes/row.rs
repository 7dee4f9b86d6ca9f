//! A row of the feed: the changes of one entry. Each encodes only what differs from the previous one.

use kv::{DecodeError, Reader, Writer};
use session::Halt;

use super::{Noted, Reason, Subject};

const FORMAT: u8 = 1;

/// In the first byte of a change: the subject, whether space and branch are those of the change before, and the group.
const SUBJECT_BITS: u8 = 0x1f;
const SAME_PLACE: u8 = 0x20;
const GROUP_BITS: u8 = 0xc0;
const GROUP_IS_NAME: u8 = 0x00;
const GROUP_FOLLOWS: u8 = 0x40;
const GROUP_AS_BEFORE: u8 = 0x80;

/// The values that the next change may omit. `Group` is where the group's name is.
#[derive(Clone, Copy, Default)]
struct Before<Group> {
    commit: u64,
    place: Option<(u32, u32)>,
    group: Option<Group>,
}

/// Puts a row together, change by change.
#[derive(Default)]
pub(super) struct RowWriter {
    encoded: Writer,
    first_commit: u64,
    before: Before<(usize, usize)>,
    savepoint: (usize, Before<(usize, usize)>),
}

impl RowWriter {
    pub(super) fn is_empty(&self) -> bool {
        self.encoded.is_empty()
    }

    pub(super) fn savepoint(&mut self) {
        self.savepoint = (self.encoded.len(), self.before);
    }

    pub(super) fn undo(&mut self) {
        self.encoded.truncate(self.savepoint.0);
        self.before = self.savepoint.1;
    }

    pub(super) fn push(&mut self, commit: u64, change: &Noted<'_>) {
        if self.is_empty() {
            self.first_commit = commit;
            self.before = Before { commit, ..Before::default() };
        }
        assert!(commit >= self.before.commit, "F1: changes are noted in commit order");
        let place = Some((change.space, change.branch));
        let same_place = if self.before.place == place { SAME_PLACE } else { 0 };
        let group_form = match (change.group, self.before.group) {
            (None, _) => GROUP_IS_NAME,
            (Some(group), Some((start, end))) if self.encoded.as_slice()[start..end] == *group.as_bytes() => {
                GROUP_AS_BEFORE
            }
            (Some(_), _) => GROUP_FOLLOWS,
        };
        self.encoded.u8(change.subject.code() | same_place | group_form).u8(change.reason.code());
        self.encoded.varint(commit - self.before.commit);
        if same_place == 0 {
            self.encoded.varint(change.space.into()).varint(change.branch.into());
        }
        let mut group_at = self.before.group;
        match change.group {
            None => group_at = None,
            Some(group) if group_form == GROUP_FOLLOWS => {
                self.encoded.varint(group.len() as u64);
                let start = self.encoded.len();
                self.encoded.raw(group.as_bytes());
                group_at = Some((start, self.encoded.len()));
            }
            Some(_) => {}
        }
        self.encoded.varint(change.name.len() as u64).raw(change.name.as_bytes()).varint(change.version);
        self.before = Before { commit, place, group: group_at };
    }

    /// Writes the row of the entry whose last command has this number, and starts over.
    pub(super) fn finish(&mut self, writer: &mut Writer, wall_us: u64, last_commit: u64) {
        writer.u8(FORMAT).u64(wall_us).varint(last_commit - self.first_commit).raw(self.encoded.as_slice());
        self.encoded.clear();
        self.savepoint();
    }
}

/// Reads a row, change by change.
pub(super) struct RowReader<'row> {
    reader: Reader<'row>,
    wall_us: u64,
    before: Before<&'row str>,
}

impl<'row> RowReader<'row> {
    /// The row of the entry whose last command has this number.
    pub(super) fn open(bytes: &'row [u8], last_commit: u64) -> Result<Self, Halt> {
        let open = || {
            let mut reader = Reader::new(bytes);
            reader.format(FORMAT)?;
            let wall_us = reader.u64()?;
            let commit = last_commit.checked_sub(reader.varint()?);
            let commit = commit.ok_or(DecodeError { what: "a first command before all" })?;
            Ok(Self { reader, wall_us, before: Before { commit, ..Before::default() } })
        };
        open().map_err(undecodable)
    }

    /// When the entry was proposed.
    pub(super) fn wall_us(&self) -> u64 {
        self.wall_us
    }

    /// The next change, with the number of its command.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Noted<'row>)>, Halt> {
        if self.reader.rest().is_empty() {
            return Ok(None);
        }
        self.change().map(Some).map_err(undecodable)
    }

    fn change(&mut self) -> Result<(u64, Noted<'row>), DecodeError> {
        let first = self.reader.u8()?;
        let subject = Subject::from_code(first & SUBJECT_BITS);
        let subject = subject.ok_or(DecodeError { what: "a change of an unknown thing" })?;
        let reason = Reason::from_code(self.reader.u8()?);
        let reason = reason.ok_or(DecodeError { what: "a change for an unknown reason" })?;
        let commit = self.before.commit.checked_add(self.reader.varint()?);
        let commit = commit.ok_or(DecodeError { what: "a command behind all" })?;
        let place = if first & SAME_PLACE == 0 { Some((self.number()?, self.number()?)) } else { self.before.place };
        let (space, branch) = place.ok_or(DecodeError { what: "a change without a place" })?;
        let group = match first & GROUP_BITS {
            GROUP_IS_NAME => None,
            GROUP_FOLLOWS => Some(self.text()?),
            GROUP_AS_BEFORE if self.before.group.is_some() => self.before.group,
            _ => return Err(DecodeError { what: "a change in an unknown group" }),
        };
        let name = self.text()?;
        let version = self.reader.varint()?;
        self.before = Before { commit, place, group };
        Ok((commit, Noted { subject, reason, space, branch, group, name, version }))
    }

    fn number(&mut self) -> Result<u32, DecodeError> {
        self.reader.varint()?.try_into().map_err(|_| DecodeError { what: "a number of more than 32 bits" })
    }

    fn text(&mut self) -> Result<&'row str, DecodeError> {
        let length = self.reader.varint()?;
        let length = usize::try_from(length).map_err(|_| DecodeError { what: "a length that cannot be" })?;
        std::str::from_utf8(self.reader.raw(length)?).map_err(|_| DecodeError { what: "text that is not UTF-8" })
    }
}

fn undecodable(error: DecodeError) -> Halt {
    Halt::Undecodable { what: "a row of changes", error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(branch: u32, group: Option<&'static str>, name: &'static str) -> Noted<'static> {
        Noted { subject: Subject::Cell, reason: Reason::Written, space: 1, branch, group, name, version: 300 }
    }

    fn changes(bytes: &[u8], last_commit: u64) -> Result<Vec<(u64, Noted<'_>)>, Halt> {
        let mut row = RowReader::open(bytes, last_commit)?;
        let mut found = Vec::new();
        while let Some(change) = row.next()? {
            found.push(change);
        }
        Ok(found)
    }

    #[test]
    fn golden_row_of_every_form() {
        let written = [
            (7, noted(2, None, "hi")),
            (7, noted(2, Some("g"), "a")),
            (9, noted(2, Some("g"), "b")),
            (9, Noted { reason: Reason::Deleted, ..noted(3, Some("g"), "") }),
            (10, Noted { subject: Subject::Record, reason: Reason::Exhausted, ..noted(3, None, "r") }),
            (10, noted(3, Some("g"), "c")),
        ];
        let mut row = RowWriter::default();
        for (commit, change) in &written {
            row.push(*commit, change);
        }
        let mut bytes = Writer::new();
        row.finish(&mut bytes, 0x0102, 12);
        let hex: String = bytes.as_slice().iter().map(|byte| format!("{byte:02x}")).collect();
        let golden = [
            "01020100000000000005",
            "0101000102026869ac02",
            "61010001670161ac02",
            "a101020162ac02",
            "810200010300ac02",
            "2208010172ac02",
            "61010001670163ac02",
        ];
        assert_eq!(hex, golden.concat());
        assert_eq!(changes(bytes.as_slice(), 12).expect("readable"), written);
        assert!(row.is_empty(), "the next entry begins with nothing");
    }

    #[test]
    fn what_is_undone_leaves_no_trace_in_what_follows() {
        let (mut once, mut undone) = (RowWriter::default(), RowWriter::default());
        undone.savepoint();
        undone.push(3, &noted(9, Some("other"), "x"));
        undone.undo();
        assert!(undone.is_empty());
        for row in [&mut once, &mut undone] {
            row.push(4, &noted(2, Some("g"), "a"));
        }
        undone.savepoint();
        undone.push(5, &noted(9, Some("other"), "x"));
        undone.push(5, &noted(9, None, "y"));
        undone.undo();
        for row in [&mut once, &mut undone] {
            row.push(6, &noted(2, Some("g"), "b"));
        }
        let (mut one, mut other) = (Writer::new(), Writer::new());
        once.finish(&mut one, 1, 6);
        undone.finish(&mut other, 1, 6);
        assert_eq!(one.as_slice(), other.as_slice());
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        let mut row = RowWriter::default();
        row.push(7, &noted(2, Some("g"), "a"));
        let mut bytes = Writer::new();
        row.finish(&mut bytes, 5, 7);
        let bytes = bytes.finish();
        for length in (0..bytes.len()).filter(|length| *length != 10) {
            assert!(changes(&bytes[..length], 7).is_err(), "cut at {length}");
        }
        for (place, byte) in [(0, 2), (10, 0x7f), (10, 0x81), (10, 0x21), (11, 0), (16, 0xff)] {
            let mut damaged = bytes.clone();
            damaged[place] = byte;
            assert!(changes(&damaged, 7).is_err(), "byte {place} as {byte:#x}");
        }
    }
}
