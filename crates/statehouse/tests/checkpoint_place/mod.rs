//! A store with the partitions of an operator, and a place for their checkpoints.

use statehouse::Statehouse;
use statehouse::keyed::{Checkpoints, OwnedPartition, Partition};
use statehouse::records::ClaimOptions;
use tempfile::TempDir;

/// The store and the place, each in a folder of its own.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
    pub(crate) house: Statehouse,
    pub(crate) to: Checkpoints,
}

impl Place {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let house = Statehouse::open(directory.path().join("house")).unwrap();
        let to = Checkpoints::open(directory.path().join("checkpoints").to_str().unwrap()).unwrap();
        Self { directory, house, to }
    }

    pub(crate) fn partition(&self, number: u32) -> Partition {
        self.house.keyed("words").partition(number)
    }

    pub(crate) fn own(&self, number: u32) -> OwnedPartition {
        self.partition(number).acquire_by_force(&ClaimOptions::worker("w")).unwrap()
    }
}
