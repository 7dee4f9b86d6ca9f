//! Where the number of an attempt means that attempt.

/// Where the number of an attempt means that attempt. In another history of the store, and in another branch, the same number
/// is another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptPlace {
    /// The history of the store.
    pub history: u64,
    /// The number of the branch, which no other branch of this history ever has.
    pub branch: u32,
}
