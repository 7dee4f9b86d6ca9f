//! When the next image is due: by entries, by bytes or by time, whichever comes first.

use std::time::Duration;

/// The policy of images. A limit of none does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImagePolicy {
    /// Entries since the last image.
    pub entries: Option<u64>,
    /// Bytes of entries since the last image.
    pub bytes: Option<u64>,
    /// Time since the last image, if there was an entry at all.
    pub age: Option<Duration>,
}

impl Default for ImagePolicy {
    fn default() -> Self {
        Self { entries: Some(1_000), bytes: None, age: None }
    }
}

/// Progress since the last image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinceImage {
    /// Entries.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time.
    pub age: Duration,
}

impl ImagePolicy {
    /// Whether an image is due.
    ///
    /// ```
    /// use statehouse_session::{ImagePolicy, SinceImage};
    /// let policy = ImagePolicy::default();
    /// assert!(!policy.is_due(&SinceImage { entries: 999, ..SinceImage::default() }));
    /// assert!(policy.is_due(&SinceImage { entries: 1_000, ..SinceImage::default() }));
    /// ```
    pub fn is_due(&self, since: &SinceImage) -> bool {
        let reached = |bound: Option<u64>, got: u64| bound.is_some_and(|bound| got >= bound);
        let old = self.age.is_some_and(|age| since.age >= age);
        since.entries > 0 && (reached(self.entries, since.entries) || reached(self.bytes, since.bytes) || old)
    }
}
