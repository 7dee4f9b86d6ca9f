//! Common parts of backups and exports: errors, progress, and hashing of bytes in transit.

use std::io::{self, Read, Write};
use std::path::Path;

use contract::{Error, Failure, FailureKind};
use kernel::Keys;
use kernel::image::ImageError;
use node::error::{from_halt, from_kv, stopped};
use node::place::ShardPlace;
use session::Halt;
use sha2::{Digest, Sha256};

/// The keys of what is in a directory: it has one shard.
pub(crate) const KEYS: Keys = ShardPlace::ALONE.keys;

/// Why a backup, an export or an import failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] Error),
    /// The file or the stream failed.
    #[error("the file could not be transferred: {0}")]
    Io(#[from] io::Error),
    /// The data is damaged, incomplete, or in a format that this release does not read.
    #[error("{0}")]
    Damaged(String),
}

impl TransferError {
    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        TransferError::Damaged(message.into())
    }

    /// An error of reading: a file that ends early is damaged, everything else is the environment.
    pub(crate) fn reading(what: &str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::damaged(format!("{what} is incomplete: it was cut short")),
            _ => TransferError::Io(error),
        }
    }

    pub(crate) fn from_image(error: ImageError) -> Self {
        match error {
            ImageError::Io(error) => Self::reading("the image", error),
            ImageError::Store(error) => TransferError::Store(from_kv(&error)),
            ImageError::Halt(halt) => TransferError::Store(from_halt(&halt)),
            damaged => Self::damaged(damaged.to_string()),
        }
    }

    /// As the library's error, for callers that need one.
    pub fn into_error(self) -> Error {
        match self {
            TransferError::Store(error) => error,
            TransferError::Io(error) => stopped(error.to_string()),
            TransferError::Damaged(message) => Failure::not_applied(FailureKind::Corrupt, message).into(),
        }
    }
}

impl From<Halt> for TransferError {
    fn from(halt: Halt) -> Self {
        TransferError::Store(from_halt(&halt))
    }
}

/// The progress of a transfer. `total` is none while it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The amount done: bytes, unless the call says otherwise.
    pub done: u64,
    /// The total amount.
    pub total: Option<u64>,
}

/// A receiver of progress.
pub type OnProgress<'caller> = &'caller mut dyn FnMut(Progress);

/// SHA-256 in hexadecimal.
pub fn hex(hash: &[u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes and counts everything written through it.
pub(crate) struct HashingWriter<'out> {
    out: &'out mut dyn Write,
    hash: Sha256,
    pub(crate) bytes: u64,
}

impl<'out> HashingWriter<'out> {
    pub(crate) fn new(out: &'out mut dyn Write) -> Self {
        Self { out, hash: Sha256::new(), bytes: 0 }
    }

    /// The hash over everything so far.
    pub(crate) fn so_far(&self) -> [u8; 32] {
        self.hash.clone().finalize().into()
    }
}

impl Write for HashingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Hashes and counts everything read through it.
pub(crate) struct HashingReader<'input> {
    input: &'input mut dyn Read,
    hash: Sha256,
    pub(crate) bytes: u64,
}

impl<'input> HashingReader<'input> {
    pub(crate) fn new(input: &'input mut dyn Read) -> Self {
        Self { input, hash: Sha256::new(), bytes: 0 }
    }

    /// The hash over everything so far.
    pub(crate) fn so_far(&self) -> [u8; 32] {
        self.hash.clone().finalize().into()
    }
}

impl Read for HashingReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        self.hash.update(&into[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Runs the creation of a directory at `path`; on failure nothing is left behind.
///
/// An existing directory stays, and a complete one is never touched: only what was being created is removed.
pub(crate) fn make_or_leave_nothing<T>(
    path: &Path,
    make: impl FnOnce() -> Result<T, TransferError>,
) -> Result<T, TransferError> {
    node::directory::check_free(path)?;
    let was_there = path.exists();
    let made = make();
    if made.is_err() {
        node::directory::clear_unfinished(path, !was_there)?;
    }
    made
}
