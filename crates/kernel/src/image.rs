//! Images: a shard's whole state at an index, as a stream of checked blocks; `docs/formats/image.md`.
//!
//! Touches: everything of one generation. Keeps: an image of a restored image has the same bytes. Keys are written
//! without their generation, which is local to the node.

use std::io::{self, Read, Write};

use kv::{Batch, DamagedRange, DecodeError, KvError, Order, Reader, Store, View, Writer};
use session::Halt;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::keys::{GENERATION_BYTES, Keys};

const MAGIC: [u8; 8] = *b"SHimage\x03";

/// Where the format is in it.
const FORMAT_OFFSET: usize = 7;

/// A block ends when it holds this many bytes.
const BLOCK_BYTES: usize = 256 << 10;

/// No block is longer: a key and a value are far below this.
const BLOCK_BYTES_MAX: usize = 64 << 20;

/// Why an image could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The stream failed.
    #[error("the image could not be transferred: {0}")]
    Io(#[from] io::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] KvError),
    /// The bytes are not an image, or a damaged one.
    #[error("the image is damaged: {0}")]
    Damaged(&'static str),
    /// The state in it could not be read.
    #[error(transparent)]
    Halt(#[from] Halt),
}

impl From<DecodeError> for ImageError {
    fn from(error: DecodeError) -> Self {
        ImageError::Damaged(error.what)
    }
}

/// Writes everything in a generation of `view`. Returns the number of rows.
pub fn write(view: &dyn View, keys: &Keys, out: &mut dyn Write) -> Result<u64, ImageError> {
    match write_readable(view, keys, out)? {
        (rows, damaged) if damaged.is_empty() => Ok(rows),
        (_, mut damaged) => Err(ImageError::Store(KvError::Damaged(Box::new(damaged.swap_remove(0))))),
    }
}

/// Writes everything that can be read. Returns the number of rows, and the damaged ranges.
pub fn write_readable(
    view: &dyn View,
    keys: &Keys,
    out: &mut dyn Write,
) -> Result<(u64, Vec<DamagedRange>), ImageError> {
    let mut damaged = Vec::new();
    out.write_all(&MAGIC)?;
    let mut total = Xxh3::new();
    let mut rows = 0;
    let mut block = Writer::new();
    for row in view.scan(&keys.all(), Order::Ascending) {
        let (key, value) = match row {
            Err(KvError::Damaged(range)) => {
                damaged.push(*range);
                continue;
            }
            row => row?,
        };
        block.bytes(&key[GENERATION_BYTES..]).bytes(&value);
        rows += 1;
        if block.len() >= BLOCK_BYTES {
            write_block(out, &mut total, &std::mem::take(&mut block).finish())?;
        }
    }
    if !block.is_empty() {
        write_block(out, &mut total, &block.finish())?;
    }
    // The end: an empty block, the number of rows, and a hash over all blocks' hashes.
    let mut end = Writer::new();
    end.u32(0).u64(rows).u64(total.digest());
    out.write_all(end.as_slice())?;
    Ok((rows, damaged))
}

fn write_block(out: &mut dyn Write, total: &mut Xxh3, block: &[u8]) -> Result<(), ImageError> {
    let hash = xxh3_64(block);
    total.update(&hash.to_le_bytes());
    let mut frame = Writer::new();
    frame.bytes(block).u64(hash);
    Ok(out.write_all(frame.as_slice())?)
}

/// Writes an image into an empty generation of a store, and makes it durable. The applied row is written last, so an
/// interrupted restore is not mistaken for a complete state. Returns the number of rows.
pub fn restore(input: &mut dyn Read, store: &dyn Store, keys: &Keys) -> Result<u64, ImageError> {
    let applied_key = keys.applied();
    let mut applied = None;
    let rows = read(input, |block| {
        let mut batch = Batch::new();
        for (key, value) in block {
            let key = keys.in_generation(key);
            if key == applied_key {
                applied = Some(value.to_vec());
            } else {
                batch = batch.put(key, value);
            }
        }
        store.commit(batch)?;
        Ok(())
    })?;
    let applied = applied.ok_or(ImageError::Damaged("it has no applied row"))?;
    store.commit(Batch::new().put(applied_key, applied))?;
    store.persist()?;
    Ok(rows)
}

/// One row of an image: its key without the generation, and its value.
pub type ImageRow<'block> = (&'block [u8], &'block [u8]);

/// Reads an image to its end and checks it. `take` gets the rows of each block. Returns the number of rows.
pub fn read(
    input: &mut dyn Read,
    mut take: impl FnMut(Vec<ImageRow<'_>>) -> Result<(), ImageError>,
) -> Result<u64, ImageError> {
    let mut magic = [0; 8];
    input.read_exact(&mut magic)?;
    if magic != MAGIC {
        let is_image = magic[..FORMAT_OFFSET] == MAGIC[..FORMAT_OFFSET];
        return Err(ImageError::Damaged(match is_image {
            true => "its format is another; restore it with the release that created it, export there, and import here",
            false => "it does not start like an image",
        }));
    }
    let mut total = Xxh3::new();
    let mut rows = 0;
    loop {
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 {
            break;
        }
        if length > BLOCK_BYTES_MAX {
            return Err(ImageError::Damaged("a block is impossibly long"));
        }
        let mut block = vec![0; length];
        input.read_exact(&mut block)?;
        let hash = read_u64(input)?;
        if hash != xxh3_64(&block) {
            return Err(ImageError::Damaged("a block's hash does not match its bytes"));
        }
        total.update(&hash.to_le_bytes());
        let mut found = Vec::new();
        let mut reader = Reader::new(&block);
        while !reader.rest().is_empty() {
            found.push((reader.bytes()?, reader.bytes()?));
        }
        rows += found.len() as u64;
        take(found)?;
    }
    if read_u64(input)? != rows || read_u64(input)? != total.digest() {
        return Err(ImageError::Damaged("blocks are missing or out of order"));
    }
    Ok(rows)
}

fn read_u64(input: &mut dyn Read) -> Result<u64, ImageError> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
