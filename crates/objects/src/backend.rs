//! What a folder and a bucket have in common: [`Backend`], and an object that is being written, [`Upload`].
//!
//! Touches: nothing. Keeps: names are checked before they arrive here. Never: chooses between the two.

use std::io::{Read, Write};

use crate::error::ObjectsError;

/// A store of objects.
///
/// # Duties
/// - An object appears under its name whole and durable, or not at all.
/// - A write to a name that exists is [`ObjectsError::Exists`] and changes nothing, also if both run at once.
pub(crate) trait Backend: Send + Sync {
    /// Writes an object.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectsError>;

    /// An object that is written in pieces; a bucket sends them in parts, the first of so many bytes.
    fn upload(&self, name: &str, part_bytes: usize) -> Result<Box<dyn Upload>, ObjectsError>;

    /// The object's bytes in order, and how many they are.
    fn reader(&self, name: &str) -> Result<(Box<dyn Read + Send>, u64), ObjectsError>;

    /// The object's size, if it exists.
    fn size(&self, name: &str) -> Result<Option<u64>, ObjectsError>;

    /// All objects behind a prefix, which may be empty, in any order.
    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, ObjectsError>;

    /// The next parts of the names behind a prefix, as far as other parts follow them, in any order.
    fn folders(&self, prefix: &str) -> Result<Vec<String>, ObjectsError>;

    /// Removes an object, if it exists.
    fn delete(&self, name: &str) -> Result<(), ObjectsError>;
}

/// An object that is being written. Dropped before it is finished, it leaves nothing.
pub(crate) trait Upload: Write + Send {
    /// Makes it appear under its name.
    fn finish(self: Box<Self>) -> Result<(), ObjectsError>;
}
