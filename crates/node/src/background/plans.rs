//! When work in the background is done, as options have it.

use std::path::PathBuf;
use std::time::Duration;

use session::ImagePolicy;

/// Where and when images are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePlan {
    /// The folder; created if it does not exist.
    pub folder: PathBuf,
    /// When one is due.
    pub policy: ImagePolicy,
    /// The number of images to keep; at least one.
    pub kept: usize,
}

/// Bounds of the scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScrubPlan {
    pub(crate) bytes_per_second: u64,
    /// From the start of one pass to the start of the next, at least.
    pub(crate) every: Duration,
}
