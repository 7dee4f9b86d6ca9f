//! Named blobs in a local folder or in an S3 bucket, for ordinary threads: [`Objects`].
//!
//! - [`Objects::create`], [`Objects::writer`]: an object appears whole and durable under its name, or not at all, and never
//!   replaces another.
//! - [`Objects::reader`], [`Objects::read`], [`Objects::size`], [`Objects::list`], [`Objects::folders`]: what is there.
//! - [`ObjectsError`]: names the object, where it was looked for, and a safe next step.
//! - `folder`: a local folder, with files that are synced and then linked to their names. `bucket`: S3, on `object_store`.
//!   `probe`: the check, on opening, that the store refuses to replace an object.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! use statehouse_objects::{Objects, ObjectsError};
//!
//! # let scratch = tempfile::tempdir()?;
//! # let folder = scratch.path().join("objects");
//! let objects = Objects::open(folder.to_str().unwrap())?;
//! objects.create("checkpoints/7/about", b"of shard 3")?;
//! assert!(matches!(objects.create("checkpoints/7/about", b""), Err(ObjectsError::Exists { .. })));
//!
//! let mut writer = objects.writer("checkpoints/7/rows")?;
//! writer.write_all(b"many rows")?;
//! assert_eq!(writer.finish()?, 9);
//!
//! let mut rows = String::new();
//! objects.reader("checkpoints/7/rows")?.read_to_string(&mut rows)?;
//! assert_eq!(rows, "many rows");
//! assert_eq!(objects.folders("checkpoints")?, ["7"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Touches: the folder or the bucket, and a few threads of its own for the network. Keeps: an acknowledged object survives a
//! power failure; a name never changes what it stands for until it is deleted. Never: knows what the bytes mean.

mod backend;
mod bucket;
mod error;
mod folder;
mod names;
mod objects;
mod probe;
#[cfg(test)]
mod suite;
mod target;

pub use error::ObjectsError;
pub use objects::{ObjectReader, ObjectWriter, Objects};
