//! Where images of a shard are kept: in a folder, or wherever somebody else can fetch them.
//!
//! - [`ImageStore`]: the interface. [`FolderImages`]: a folder.
//!
//! What an image contains is in [`image`](crate::image).

mod folder;

use std::io::{self, Read, Write};

pub use folder::FolderImages;

/// An image that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageRef {
    /// The last entry that it covers.
    pub index: u64,
}

/// Keeps the images of one shard.
///
/// # Duties
/// - An image that [`newest`](Self::newest) names is whole, and survives whatever the store is made for.
/// - Of an image whose writing failed nothing remains that could be taken for one.
pub trait ImageStore: Send + Sync {
    /// Keeps what `write` writes as the image up to an entry.
    fn put(&self, image: ImageRef, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()>;

    /// The image that covers most; none if there is none.
    fn newest(&self) -> io::Result<Option<ImageRef>>;

    /// Reads an image.
    fn open(&self, image: ImageRef) -> io::Result<Box<dyn Read + Send>>;

    /// Forgets all but the newest `kept`, of which there is at least one.
    fn forget(&self, kept: usize) -> io::Result<()>;
}
