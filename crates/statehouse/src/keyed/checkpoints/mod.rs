//! Checkpoints: the keyed state of an operator with its input positions, in a folder or a bucket; `docs/formats/checkpoint.md`.
//!
//! - [`Checkpoints`]: where they lie. `take`: a partition writes what it holds, or what has changed. `restore`: a partition becomes
//!   what it was. `together`: several partitions at once, with a marker that is written last. `series`: what is there.
//!   `ending`: what is committed, what is given up, and what may go. `compact`: one that needs others becomes one that needs none.
//! - `rows`, `manifest`, `names`: the bytes. `merge`: the rows of a checkpoint and of those that it builds on.
//!
//! Touches: objects, and what the kernel notes between two checkpoints. Keeps: D5 (a checkpoint counts when its marker is there,
//! which is written last; what is damaged is refused by name), and that the running state stays as it is. Never: holds a partition in
//! memory, or stops its commits.

mod compact;
mod ending;
mod error;
mod manifest;
mod merge;
mod names;
mod restore;
mod rows;
mod series;
mod take;
mod together;

pub(super) use restore::Restoring;

pub use error::CheckpointError;
pub use restore::FoundCheckpoint;
pub use series::{CheckpointInfo, ListedCheckpoints};
pub use take::{CheckpointOptions, StartedCheckpoint};
pub use together::JointCheckpoint;

use objects::{Objects, ObjectsError};

/// A place for checkpoints: a local folder or an S3 bucket.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use statehouse::keyed::{CheckpointChoice, CheckpointOptions, Checkpoints, Merge};
/// use statehouse::records::ClaimOptions;
/// let checkpoints = Checkpoints::open(directory.path().join("checkpoints").to_str().unwrap())?;
/// let counts = house.keyed("wordcount");
/// let mut partition = counts.partition(3).acquire(&ClaimOptions::worker("w1"))?;
/// partition.commit().merge(b"hello", Merge::Add, 2).advance("topic-a", 3).run()?;
/// let first = partition.checkpoint(&checkpoints, &CheckpointOptions::default())?;
/// partition.commit().merge(b"hello", Merge::Add, 5).advance("topic-a", 8).run()?;
/// // Something is wrong with what was counted since: back to the checkpoint, and whoever owned the partition is refused.
/// let restored = counts.partition(3).restore(&checkpoints, &CheckpointChoice::latest(), &ClaimOptions::worker("w2"))?;
/// assert_eq!(restored.get(b"hello")?.map(|found| found.value), Some(2.into()));
/// assert_eq!(restored.input_position("topic-a")?.map(|at| at.position), Some(3));
/// assert_eq!(partition.commit().merge(b"hello", Merge::Add, 1).run().unwrap_err().code(), "SH-4002");
/// # assert_eq!(first.number, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Checkpoints {
    objects: Objects,
}

impl Checkpoints {
    /// Opens an absolute path, a `file://` URL, or `s3://bucket/prefix` with the usual `AWS_` variables of the environment. A store
    /// that does not honour conditional puts is refused by name.
    pub fn open(target: &str) -> Result<Self, ObjectsError> {
        Objects::open(target).map(|objects| Self { objects })
    }

    /// Where they lie, for messages.
    pub fn target(&self) -> &str {
        self.objects.target()
    }
}

/// Which checkpoint to restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckpointChoice {
    number: Option<u64>,
    together: bool,
}

impl CheckpointChoice {
    /// The last one that the partition has taken alone.
    pub fn latest() -> Self {
        Self::default()
    }

    /// The one with this number.
    pub fn number(number: u64) -> Self {
        Self { number: Some(number), together: false }
    }

    /// One of those that several partitions have taken together.
    ///
    /// ```
    /// use statehouse::keyed::CheckpointChoice;
    /// let last = CheckpointChoice::latest().together();
    /// assert_ne!(last, CheckpointChoice::latest());
    /// ```
    pub fn together(self) -> Self {
        Self { together: true, ..self }
    }
}
