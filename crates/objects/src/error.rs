//! What can go wrong: each error names the object, where it was looked for, and a safe next step.
//!
//! Touches: nothing. Keeps: no secret is in a message. Never: carries a type of another library.

use std::io;

/// Why a call was not answered.
///
/// Reading and writing through [`std::io`] wraps it: [`ObjectsError::from_io`] finds it again.
///
/// ```
/// # use statehouse_objects::{Objects, ObjectsError};
/// let refused = Objects::open("relative/folder").err().unwrap();
/// assert!(matches!(refused, ObjectsError::Target { .. }));
/// assert!(refused.to_string().starts_with("`relative/folder` is no place for objects: "));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectsError {
    /// The target cannot be one.
    #[error("`{target}` is no place for objects: {reason}; {next}")]
    Target {
        /// As it was given, without secrets.
        target: String,
        /// What is wrong with it, or with the settings beside it.
        reason: String,
        /// What to do.
        next: &'static str,
    },
    /// The name cannot be one.
    #[error(
        "`{name}` is no name of an object in {target}: {reason}; use parts of A-Z a-z 0-9 . _ = - with / between them"
    )]
    Name {
        /// As it was given.
        name: String,
        /// Where the object would be.
        target: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is an object of this name, and it was not changed.
    #[error("`{name}` exists in {target} and was not changed; write under another name, or delete it first")]
    Exists {
        /// The object.
        name: String,
        /// Where it is.
        target: String,
    },
    /// There is no object of this name.
    #[error("`{name}` does not exist in {target}; list the objects to see what is there")]
    Missing {
        /// The object.
        name: String,
        /// Where it was looked for.
        target: String,
    },
    /// The object has more bytes than the caller or the store takes.
    #[error("`{name}` in {target} has {bytes} bytes, {max} is the most here; {next}")]
    TooLarge {
        /// The object.
        name: String,
        /// Where it is, or would be.
        target: String,
        /// Its size, as far as it is known.
        bytes: u64,
        /// The most that was allowed.
        max: u64,
        /// What to do.
        next: &'static str,
    },
    /// The store replaces objects although it is asked to refuse that.
    #[error(
        "{target} replaces an object although it is asked not to ({way}): a second writer would destroy the data of the first; \
         use a store that honours `If-None-Match: *`, such as Amazon S3, SeaweedFS or a local folder"
    )]
    Replaces {
        /// The store.
        target: String,
        /// Which of the two ways to write replaced it.
        way: &'static str,
    },
    /// The answer to a write was lost: the object may exist, now or in a while.
    #[error("whether `{name}` was written to {target} is unknown: {reason}; ask for its size before writing it again")]
    Unknown {
        /// The object.
        name: String,
        /// Where it may be.
        target: String,
        /// What the store or the network said.
        reason: String,
    },
    /// The store or the disk failed; nothing was written.
    #[error("cannot {doing} `{name}` in {target}: {reason}; {next}")]
    Failed {
        /// What was tried.
        doing: &'static str,
        /// The object.
        name: String,
        /// Where it was tried.
        target: String,
        /// What the store or the operating system said.
        reason: String,
        /// What to do.
        next: &'static str,
    },
}

impl ObjectsError {
    /// The error inside one that came through [`std::io::Read`] or [`std::io::Write`].
    ///
    /// ```
    /// # use statehouse_objects::{Objects, ObjectsError};
    /// let refused = Objects::open("").err().unwrap();
    /// let through_io = std::io::Error::from(refused.clone());
    /// assert_eq!(ObjectsError::from_io(&through_io), Some(&refused));
    /// ```
    pub fn from_io(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<ObjectsError> for io::Error {
    fn from(error: ObjectsError) -> Self {
        let kind = match error {
            ObjectsError::Target { .. } | ObjectsError::Name { .. } => io::ErrorKind::InvalidInput,
            ObjectsError::Exists { .. } => io::ErrorKind::AlreadyExists,
            ObjectsError::Missing { .. } => io::ErrorKind::NotFound,
            ObjectsError::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            ObjectsError::Replaces { .. } => io::ErrorKind::Unsupported,
            ObjectsError::Unknown { .. } | ObjectsError::Failed { .. } => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
