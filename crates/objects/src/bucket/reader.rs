//! An object of a bucket, read in pieces.
//!
//! Touches: the bucket. Keeps: at most one piece in memory, and all pieces are of the same object. Never: reads ahead.

use std::io::{self, Read};
use std::sync::Arc;

use object_store::{Error, GetOptions, GetRange, ObjectMeta, ObjectStoreExt};

use super::Access;
use crate::error::ObjectsError;

const PIECE_BYTES: u64 = 4 << 20;

/// An object that is being read.
pub(super) struct PieceReader {
    access: Arc<Access>,
    name: String,
    meta: ObjectMeta,
    /// From the store, up to `fetched`; `taken` bytes of it are read.
    piece: Vec<u8>,
    taken: usize,
    fetched: u64,
}

impl PieceReader {
    pub(super) fn open(access: Arc<Access>, name: &str) -> Result<Self, ObjectsError> {
        let (store, path) = access.to(name);
        let meta = access.driver.run(async move { store.head(&path).await }).map_err(|error| match error {
            Error::NotFound { .. } => ObjectsError::Missing { name: name.to_owned(), target: access.target.clone() },
            error => access.failed("read", name, &error),
        })?;
        Ok(Self { access, name: name.to_owned(), meta, piece: Vec::new(), taken: 0, fetched: 0 })
    }

    pub(super) fn size(&self) -> u64 {
        self.meta.size
    }

    fn fetch(&mut self) -> Result<(), ObjectsError> {
        let end = self.meta.size.min(self.fetched + PIECE_BYTES);
        let range = self.fetched..end;
        let (store, path) = self.access.to(&self.name);
        let mut options = GetOptions::new().with_range(Some(GetRange::Bounded(range.clone())));
        // A name that was deleted and written again is another object.
        options.if_match = self.meta.e_tag.clone();
        let piece = self.access.driver.run(async move { store.get_opts(&path, options).await?.bytes().await });
        let piece = piece.map_err(|error| self.access.failed("read", &self.name, &error))?;
        if piece.len() as u64 != range.end - range.start {
            let said = format!("{} bytes came for the range {range:?}", piece.len());
            let error = Error::Generic { store: "objects", source: said.into() };
            return Err(self.access.failed("read", &self.name, &error));
        }
        (self.piece, self.taken, self.fetched) = (piece.into(), 0, end);
        Ok(())
    }
}

impl Read for PieceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() && self.fetched < self.meta.size {
            self.fetch()?;
        }
        let read = (&self.piece[self.taken..]).read(into)?;
        self.taken += read;
        Ok(read)
    }
}
