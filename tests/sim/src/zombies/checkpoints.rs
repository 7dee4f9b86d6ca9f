//! Checkpoints that an owner takes and restores after it was replaced.

use statehouse::Error;
use statehouse::keyed::{CheckpointChoice, CheckpointError, CheckpointOptions, OwnedPartition, StartedCheckpoint};

use super::in_library::{OPERATOR, Scene};

/// Something that a restore can find, and that a part of several partitions follows.
pub(super) fn take_first(scene: &Scene, owner: &OwnedPartition) -> Result<(), CheckpointError> {
    owner.checkpoint(&scene.checkpoints, &CheckpointOptions::default())?;
    let joint = scene.house.keyed(OPERATOR).begin_checkpoint(&scene.checkpoints, &[owner.number()])?;
    owner.join_checkpoint(&scene.checkpoints, joint.number(), &CheckpointOptions::default())?;
    joint.commit(std::time::Duration::from_secs(60), &CheckpointOptions::default()).map(drop)
}

pub(super) fn begin(scene: &Scene, owner: &OwnedPartition) -> Result<StartedCheckpoint, Error> {
    owner.start_checkpoint(&scene.checkpoints).map_err(of_store)
}

pub(super) fn end(started: StartedCheckpoint) -> Result<(), Error> {
    started.finish(&CheckpointOptions::default()).map(drop).map_err(of_store)
}

pub(super) fn take(scene: &Scene, owner: &OwnedPartition) -> Result<(), Error> {
    owner.checkpoint(&scene.checkpoints, &CheckpointOptions::default()).map(drop).map_err(of_store)
}

/// A part of one that several partitions take together. Before it is begun, the end of the one before is told to the store.
pub(super) fn join(scene: &Scene, owner: &OwnedPartition) -> Result<(), Error> {
    let joint =
        scene.house.keyed(OPERATOR).begin_checkpoint(&scene.checkpoints, &[owner.number()]).map_err(of_store)?;
    let joined = owner.join_checkpoint(&scene.checkpoints, joint.number(), &CheckpointOptions::default());
    joint.abort().map_err(of_store)?;
    joined.map_err(of_store)
}

pub(super) fn restore(scene: &Scene, owner: &mut OwnedPartition) -> Result<(), Error> {
    let found = owner.find_checkpoint(&scene.checkpoints, &CheckpointChoice::latest()).map_err(of_store)?;
    owner.restore_to(found).map_err(of_store)
}

/// The folder of the checkpoints is there.
fn of_store(error: CheckpointError) -> Error {
    match error {
        CheckpointError::Store(error) => error,
        other => panic!("{other}"),
    }
}
