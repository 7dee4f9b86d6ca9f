//! The rows of a checkpoint and of those that it builds on, as one: of each key, the newest.
//!
//! Touches: nothing. Keeps: each block is checked before a row of it is used. Never: holds more than a block of each in memory.

use std::io::Read;
use std::ops::Range;

use kernel::keyed::rows::ContentRow;
use kv::Writer;

use super::error::CheckpointError;
use super::rows::RowsReader;

/// Where a row comes in the order of rows: keys, then what every checkpoint has as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Key(Vec<u8>),
    Behind,
}

/// A row, encoded.
struct Next {
    place: Place,
    row: Range<usize>,
    is_gone: bool,
}

/// The rows of one checkpoint, in order.
struct Source<R: Read> {
    reader: RowsReader<R>,
    /// The rows of the block that is being read, the next one last.
    block: Vec<Next>,
    bytes: Vec<u8>,
    last: Option<Place>,
    name: String,
}

impl<R: Read> Source<R> {
    fn fill(&mut self) -> Result<(), CheckpointError> {
        while self.block.is_empty() {
            let Some(rows) = self.reader.next_block()? else { return Ok(()) };
            let mut writer = Writer::new();
            for row in rows.iter() {
                let from = writer.len();
                row.encode(&mut writer);
                let (place, is_gone) = match row {
                    ContentRow::Key(key, _) => (Place::Key(key.to_vec()), false),
                    ContentRow::Gone(key) => (Place::Key(key.to_vec()), true),
                    _ => (Place::Behind, false),
                };
                // The same key twice, or a key behind other rows, would make the merge wrong.
                let follows = match (&self.last, &place) {
                    (None, _) | (Some(_), Place::Behind) => true,
                    (Some(last), place) => last < place,
                };
                if !follows {
                    return Err(CheckpointError::damaged(&self.name, "its keys are not in order"));
                }
                self.last = Some(place.clone());
                self.block.push(Next { place, row: from..writer.len(), is_gone });
            }
            self.bytes = writer.finish();
            self.block.reverse();
        }
        Ok(())
    }
}

/// Merges checkpoints, the newest first.
pub(super) struct Merged<R: Read> {
    sources: Vec<Source<R>>,
}

impl<R: Read> Merged<R> {
    /// The newest first, each with its name for messages.
    pub(super) fn new(readers: Vec<(String, RowsReader<R>)>) -> Self {
        let source = |(name, reader)| Source { reader, block: Vec::new(), bytes: Vec::new(), last: None, name };
        Self { sources: readers.into_iter().map(source).collect() }
    }

    /// Gives each row, encoded.
    pub(super) fn each(
        mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        loop {
            let mut smallest: Option<(usize, &Place)> = None;
            for source in &mut self.sources {
                source.fill()?;
            }
            for (place, source) in self.sources.iter().enumerate() {
                let Some(next) = source.block.last() else { continue };
                if smallest.is_none_or(|(_, found)| next.place < *found) {
                    smallest = Some((place, &next.place));
                }
            }
            let Some((newest, place)) = smallest else { return Ok(()) };
            let is_key = matches!(place, Place::Key(_));
            let place = place.clone();
            let next = self.sources[newest].block.pop().expect("it was found there");
            // What is behind the keys is whole in the newest; those of the others are older.
            if !next.is_gone && (is_key || newest == 0) {
                take(&self.sources[newest].bytes[next.row])?;
            }
            if is_key {
                for older in &mut self.sources[newest + 1..] {
                    if older.block.last().is_some_and(|row| row.place == place) {
                        older.block.pop();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{Extent, RowsWriter};
    use super::*;

    fn written(rows: &[ContentRow<'_>]) -> (Vec<u8>, Extent) {
        let mut writer = RowsWriter::new(Vec::new(), 7).expect("memory");
        for row in rows {
            writer.row(row).expect("memory");
        }
        writer.finish().expect("memory")
    }

    fn merged(sources: &[(Vec<u8>, Extent)]) -> Result<String, CheckpointError> {
        let readers = sources.iter().map(|(bytes, extent)| {
            let reader = RowsReader::new(bytes.as_slice(), "rows".into(), 7, *extent)?;
            Ok(("rows".to_owned(), reader))
        });
        let mut text = String::new();
        Merged::new(readers.collect::<Result<_, CheckpointError>>()?).each(|row| {
            let rows = kernel::keyed::rows::ContentRows::read(row).expect("a row");
            for row in rows.iter() {
                text += &match row {
                    ContentRow::Key(key, entry) => format!("{}{} ", String::from_utf8_lossy(key), entry[3]),
                    ContentRow::Position(input, _) => format!("{input}: "),
                    _ => "? ".into(),
                };
            }
            Ok(())
        })?;
        Ok(text)
    }

    fn key(key: &'static [u8], entry: &'static [u8; 4]) -> ContentRow<'static> {
        ContentRow::Key(key, entry)
    }

    #[test]
    fn of_each_key_there_is_the_newest() {
        let (one, two, three) = (b"\x13\x05\x00\x01", b"\x13\x05\x00\x02", b"\x13\x05\x00\x03");
        let position = [&[1_u8][..], &[0; 24]].concat();
        let base = written(&[
            key(b"a", one),
            key(b"b", one),
            key(b"c", one),
            key(b"d", one),
            ContentRow::Position("old", &position),
        ]);
        let then = written(&[key(b"b", two), ContentRow::Gone(b"c"), key(b"e", two)]);
        let last = written(&[
            ContentRow::Gone(b"a"),
            key(b"c", three),
            ContentRow::Gone(b"e"),
            ContentRow::Gone(b"f"),
            ContentRow::Position("in", &position),
        ]);
        assert_eq!(merged(&[last, then.clone(), base.clone()]).expect("rows"), "b2 c3 d1 in: ");
        assert_eq!(merged(&[then, base.clone()]).expect("rows"), "a1 b2 d1 e2 ");
        assert_eq!(merged(&[base]).expect("rows"), "a1 b1 c1 d1 old: ");
        assert_eq!(merged(&[]).expect("rows"), "");
    }

    #[test]
    fn keys_that_are_not_in_order_are_refused() {
        let one = b"\x13\x05\x00\x01";
        for rows in [[key(b"b", one), key(b"a", one)], [key(b"a", one), key(b"a", one)]] {
            assert!(merged(&[written(&rows)]).is_err());
        }
    }
}
