//! The rows of a checkpoint: blocks with checksums, one after the other; `docs/formats/checkpoint.md`.
//!
//! Keeps: a block counts only if its checksum fits its content, its place and the checkpoint that it was written for. Never: holds
//! more than a block in memory.

use std::io::{self, Read, Write};

use contract::{Error, Rejection};
use kernel::keyed::rows::{ContentRow, ContentRows};
use kv::Writer;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::error::CheckpointError;

const MAGIC: [u8; 8] = *b"SHckrows";
const FORMAT: u32 = 1;

/// A block is written when it has as many bytes.
const BLOCK_BYTES: usize = 256 << 10;

/// The most bytes that a block can have. One is larger than usual if a single row is, as far as the limit of values was raised.
const BLOCK_BYTES_MAX: usize = 64 << 20;

/// What was written, for whoever reads it to compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) blocks: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// Writes rows as blocks.
pub(super) struct RowsWriter<W: Write> {
    out: W,
    seed: u64,
    block: Writer,
    extent: Extent,
}

impl<W: Write> RowsWriter<W> {
    /// `seed` is that of the checkpoint.
    pub(super) fn new(mut out: W, seed: u64) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&FORMAT.to_le_bytes())?;
        let extent = Extent { bytes: (MAGIC.len() + size_of_val(&FORMAT)) as u64, ..Extent::default() };
        Ok(Self { out, seed, block: Writer::with_capacity(BLOCK_BYTES + 4096), extent })
    }

    /// Adds a row. Returns how many bytes were written so far.
    pub(super) fn row(&mut self, row: &ContentRow<'_>) -> Result<u64, CheckpointError> {
        row.encode(&mut self.block);
        self.extent.rows += 1;
        if self.block.len() >= BLOCK_BYTES {
            let within = Rejection::check_limit("checkpoint_block_bytes_max", BLOCK_BYTES_MAX, self.block.len());
            within.map_err(Error::from)?;
            self.write_block()?;
        }
        Ok(self.extent.bytes)
    }

    fn write_block(&mut self) -> io::Result<()> {
        let content = self.block.as_slice();
        let length = u32::try_from(content.len()).expect("blocks are bounded far below that");
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&checksum(self.seed, self.extent.blocks, content).to_le_bytes())?;
        self.out.write_all(content)?;
        self.extent.bytes += 12 + u64::from(length);
        self.extent.blocks += 1;
        self.block.clear();
        Ok(())
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> io::Result<(W, Extent)> {
        if !self.block.is_empty() {
            self.write_block()?;
        }
        Ok((self.out, self.extent))
    }
}

fn checksum(seed: u64, block: u64, content: &[u8]) -> u64 {
    xxh3_64_with_seed(content, seed.wrapping_add(block.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// Reads rows, block by block.
pub(super) struct RowsReader<R: Read> {
    input: R,
    /// Its name, for messages.
    name: String,
    seed: u64,
    meant: Extent,
    found: Extent,
    block: Vec<u8>,
}

impl<R: Read> RowsReader<R> {
    pub(super) fn new(mut input: R, name: String, seed: u64, meant: Extent) -> Result<Self, CheckpointError> {
        let mut head = [0; 12];
        let read = input.read_exact(&mut head);
        read.map_err(|error| CheckpointError::reading(&name, error))?;
        if head[..8] != MAGIC {
            return Err(CheckpointError::damaged(&name, "it does not begin as rows of a checkpoint do"));
        }
        if head[8..] != FORMAT.to_le_bytes() {
            return Err(CheckpointError::damaged(&name, "it is in a format that this release does not read"));
        }
        let found = Extent { bytes: 12, ..Extent::default() };
        Ok(Self { input, name, seed, meant, found, block: Vec::new() })
    }

    /// The next block; none after the last.
    pub(super) fn next_block(&mut self) -> Result<Option<ContentRows<'_>>, CheckpointError> {
        let Self { input, name, seed, meant, found, block } = self;
        let damaged = |what: &str| Err(CheckpointError::damaged(name, what));
        if found.blocks == meant.blocks {
            if found != meant {
                return damaged("it has not as many rows or bytes as it was written with");
            }
            let mut more = [0; 1];
            return match input.read(&mut more) {
                Ok(0) => Ok(None),
                Ok(_) => damaged("something follows its end"),
                Err(error) => Err(CheckpointError::reading(name, error)),
            };
        }
        let mut head = [0; 12];
        input.read_exact(&mut head).map_err(|error| CheckpointError::reading(name, error))?;
        let length = u32::from_le_bytes(head[..4].try_into().expect("four bytes"));
        if length as usize > BLOCK_BYTES_MAX {
            return damaged("the length of a block is damaged");
        }
        block.resize(length as usize, 0);
        input.read_exact(block).map_err(|error| CheckpointError::reading(name, error))?;
        let meant_checksum = u64::from_le_bytes(head[4..].try_into().expect("eight bytes"));
        if checksum(*seed, found.blocks, block) != meant_checksum {
            return damaged("a checksum does not fit");
        }
        let Ok(rows) = ContentRows::read(block) else { return damaged("a row cannot be read") };
        found.blocks += 1;
        found.bytes += 12 + u64::from(length);
        found.rows += rows.iter().count() as u64;
        Ok(Some(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> (Vec<u8>, Extent) {
        let mut writer = RowsWriter::new(Vec::new(), 7).expect("memory");
        writer.row(&ContentRow::Key(b"k", &[0x13, 5, 0, 7])).expect("memory");
        writer.finish().expect("memory")
    }

    fn read(bytes: &[u8], seed: u64, meant: Extent) -> Result<u64, CheckpointError> {
        let mut reader = RowsReader::new(bytes, "rows".into(), seed, meant)?;
        let mut rows = 0;
        while let Some(block) = reader.next_block()? {
            rows += block.iter().count() as u64;
        }
        Ok(rows)
    }

    /// Part of a stored format; `docs/formats/checkpoint.md`.
    #[test]
    fn golden_rows_of_a_checkpoint() {
        let (bytes, extent) = written();
        let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex, "5348636b726f77730100000008000000c9effce7f006f2ae01016b0413050007");
        assert_eq!(extent, Extent { blocks: 1, rows: 1, bytes: 32 });
    }

    #[test]
    fn a_block_that_cannot_be_read_is_not_written() {
        let (row, mut writer) = (vec![7; BLOCK_BYTES_MAX], RowsWriter::new(Vec::new(), 7).expect("memory"));
        let refused = writer.row(&ContentRow::Key(b"k", &row)).expect_err("too large");
        assert!(refused.to_string().contains("checkpoint_block_bytes_max"), "{refused}");
        let mut writer = RowsWriter::new(Vec::new(), 7).expect("memory");
        writer.row(&ContentRow::Gone(b"before")).expect("memory");
        writer.row(&ContentRow::Gone(&row[..BLOCK_BYTES_MAX / 2])).expect("the largest of the raised ones");
    }

    #[test]
    fn whatever_is_changed_is_found() {
        let (bytes, extent) = written();
        assert_eq!(read(&bytes, 7, extent).expect("rows"), 1);
        assert!(read(&bytes, 8, extent).is_err(), "those of another checkpoint");
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut], 7, extent).is_err(), "{cut} bytes of it");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&flipped, 7, extent).is_err(), "bit {bit}");
        }
        assert!(read(&[&bytes[..], b"x"].concat(), 7, extent).is_err(), "one byte more");
        assert!(read(&bytes, 7, Extent { rows: 2, ..extent }).is_err(), "a row less than meant");
    }
}
