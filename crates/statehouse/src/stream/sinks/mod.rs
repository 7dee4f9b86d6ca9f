//! Sinks: where the results of a stream go, such that a replay of a batch leaves them as they are.
//!
//! - [`Sink`]: takes a batch under its id; [`OverwriteSink`] is one over anything that overwrites by id.
//! - [`FileSink`]: a file for each batch.
//! - [`TableSink`]: rows, stored together with the id of their batch; [`GroupTable`] keeps them in a map.
//!
//! Keeps: a batch counts once, however often it is written, whatever was killed in between. Never: decides what a batch is; it is
//! deterministic and its id is part of the commit that it follows from, or the same id would name two batches.

mod files;
mod tables;

pub use files::FileSink;
pub use tables::{GroupTable, Table, TableSink};

/// Where batches of results go.
///
/// # Duties
/// - A batch that `write` has answered is durable.
/// - Written again under the same id, a batch changes nothing.
/// - A reader sees all of a batch or nothing of it.
pub trait Sink {
    /// Why a batch could not be written.
    type Error;

    /// Writes a batch under its id. After an error it may have been written: it is written again.
    fn write(&mut self, id: &str, batch: &[u8]) -> Result<(), Self::Error>;
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    type Error = S::Error;

    fn write(&mut self, id: &str, batch: &[u8]) -> Result<(), S::Error> {
        (**self).write(id, batch)
    }
}

/// A sink over anything that overwrites by id: an object store, a table with a primary key, an index of documents.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::convert::Infallible;
/// use statehouse::stream::sinks::{OverwriteSink, Sink};
/// let mut objects = BTreeMap::new();
/// let mut sink = OverwriteSink::new(|id: &str, batch: &[u8]| {
///     objects.insert(id.to_owned(), batch.to_vec());
///     Ok::<(), Infallible>(())
/// });
/// sink.write("minute-7", b"hello 3")?;
/// sink.write("minute-7", b"hello 3")?; // a replay
/// assert_eq!(objects.len(), 1);
/// # Ok::<(), Infallible>(())
/// ```
pub struct OverwriteSink<Overwrite> {
    overwrite: Overwrite,
}

impl<E, Overwrite: FnMut(&str, &[u8]) -> Result<(), E>> OverwriteSink<Overwrite> {
    /// A sink that overwrites by this function. What it has written is durable when it returns.
    pub fn new(overwrite: Overwrite) -> Self {
        Self { overwrite }
    }
}

impl<E, Overwrite: FnMut(&str, &[u8]) -> Result<(), E>> Sink for OverwriteSink<Overwrite> {
    type Error = E;

    fn write(&mut self, id: &str, batch: &[u8]) -> Result<(), E> {
        (self.overwrite)(id, batch)
    }
}
