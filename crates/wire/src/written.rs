//! The results of writes and deletions, for every contract.

use crate::schema::object;

object! {
    /// The result of a write.
    answer Written {
        /// The name of the thing written.
        name: String,
        /// Its version.
        version: u64,
        /// The commit.
        commit: u64,
    }

    /// The result of a deletion.
    answer Deleted {
        /// The name of the deleted thing.
        name: String,
        /// The version of the deletion.
        version: u64,
    }
}
