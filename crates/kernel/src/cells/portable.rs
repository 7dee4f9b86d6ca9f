//! Cells in exports and imports.
//!
//! Keeps: K3: a version missing from a cell's history is an error on both ways. Of a damaged history, what is older than the
//! damage is left out.

use kv::{KeyRange, KvError, Order};
use session::Halt;

use super::contract::Cells;
use super::floor::Floor;
use super::item::CellItem;
use super::row::{Head, Old};
use crate::catalogue::{BranchId, SpaceId};
use crate::keys::Kind;
use crate::keys::things::OwnedId;
use crate::names;
use crate::portable::Item;
use crate::portable::new_shard::{BuildError, NewShard};
use crate::portable::part::Portable;
use crate::portable::walking::{Walking, id_of, last_number};

/// The cell whose versions are being put.
pub(crate) struct Versions {
    cell: OwnedId,
    oldest: u64,
    next: u64,
    /// When the oldest version was displaced, once the one after it is known.
    displaced_us: Option<u64>,
}

impl Portable for Cells {
    type Item<'row> = CellItem<'row>;
    type Begun = Option<Versions>;

    fn walk<E: From<Halt>>(walk: &mut Walking<'_, E>, bucket: u16, space: SpaceId, branch: BranchId) -> Result<(), E> {
        cell_floor(walk, bucket, space, branch)?;
        walk.things(Kind::CellHead, bucket, space, branch, |walk, key, row| {
            let cell = id_of(key, space, branch)?;
            let head = Head::decode(row)?;
            older_versions(walk, bucket, &cell, &head)?;
            (walk.take)(&Item::Cell(CellItem::Newest { cell: &cell, version: head.version, write: head.write }))
        })
    }

    fn put(shard: &mut NewShard<'_>, begun: &mut Self::Begun, item: &CellItem<'_>) -> Result<(), BuildError> {
        match item {
            CellItem::Floor { bucket, space, branch, version, commit, updated_at } => {
                Self::end(begun)?;
                shard.check_bucket(*bucket)?;
                let key = shard.keys.cell_floor(*bucket, *space, *branch);
                let (commit, updated_at) = (shard.changed_by(*commit), *updated_at);
                let floor = Floor { version: *version, commit, updated_at };
                shard.state.put_encoded(key, |writer| floor.encode(writer));
                Ok(())
            }
            CellItem::Version { cell, version, write } => older(shard, begun, cell, *version, write),
            CellItem::Newest { cell, version, write } => newest(shard, begun, cell, *version, write),
        }
    }

    fn end(begun: &mut Self::Begun) -> Result<(), BuildError> {
        match begun.take() {
            None => Ok(()),
            Some(versions) => {
                let name = versions.cell.name;
                Err(BuildError::Refused(format!("K3: cell {name:?} has older versions but no newest one")))
            }
        }
    }
}

fn cell_floor<E: From<Halt>>(
    walk: &mut Walking<'_, E>,
    bucket: u16,
    space: SpaceId,
    branch: BranchId,
) -> Result<(), E> {
    let row = walk.floor(&walk.keys.cell_floor(bucket, space, branch))?;
    match Floor::decode(row.as_deref())? {
        Floor { version: 0, .. } => Ok(()),
        Floor { version, commit, updated_at } => {
            (walk.take)(&Item::Cell(CellItem::Floor { bucket, space, branch, version, commit, updated_at }))
        }
    }
}

fn older_versions<E: From<Halt>>(
    walk: &mut Walking<'_, E>,
    bucket: u16,
    cell: &OwnedId,
    head: &Head<'_>,
) -> Result<(), E> {
    if head.oldest == head.version {
        return Ok(());
    }
    let id = cell.in_bucket(bucket);
    let (start, end) = (walk.keys.cell_old(&id, head.oldest), walk.keys.cell_old(&id, head.version));
    let range = KeyRange { start: start.to_vec(), end: Some(end.to_vec()) };
    let mut version = oldest_whole(walk, &range, head)?;
    let range = KeyRange { start: walk.keys.cell_old(&id, version).to_vec(), ..range };
    walk.rows(&range, |walk, key, row| {
        if last_number(key) != Some(version) {
            return Ok(()); // The count below finds it.
        }
        (walk.take)(&Item::Cell(CellItem::Version { cell, version, write: Old::decode(row)? }))?;
        version += 1;
        Ok(())
    })?;
    if version != head.version {
        let message = format!("K3: version {version} of cell {:?} is missing from its history", cell.name);
        return Err(Halt::Inconsistent(message).into());
    }
    Ok(())
}

/// The version from which on the history of a cell is whole.
fn oldest_whole<E: From<Halt>>(walk: &mut Walking<'_, E>, range: &KeyRange, head: &Head<'_>) -> Result<u64, E> {
    let mut oldest = Some(head.oldest);
    for row in walk.view.scan(range, Order::Ascending) {
        match row {
            Ok((key, _)) => oldest = oldest.or_else(|| last_number(&key)),
            Err(KvError::Damaged(damaged)) => {
                walk.damaged.insert(damaged.range);
                oldest = None;
            }
            Err(other) => return Err(Halt::from(other).into()),
        }
    }
    Ok(oldest.unwrap_or(head.version))
}

fn older(
    shard: &mut NewShard<'_>,
    begun: &mut Option<Versions>,
    cell: &OwnedId,
    version: u64,
    write: &Old<'_>,
) -> Result<(), BuildError> {
    let id = shard.place(cell)?;
    next_version(begun, cell, version, write)?;
    shard.staged_bytes += write.value.map_or(0, |value| value.len());
    let key = shard.keys.cell_old(&id, version);
    shard.held().put(key, None, false, |writer| write.encode(writer));
    Ok(())
}

fn newest(
    shard: &mut NewShard<'_>,
    begun: &mut Option<Versions>,
    cell: &OwnedId,
    version: u64,
    write: &Old<'_>,
) -> Result<(), BuildError> {
    let id = shard.place(cell)?;
    let key = shard.keys.cell_head(&id);
    shard.absent(&key, "cell", &cell.name)?;
    next_version(begun, cell, version, write)?;
    let (oldest, displaced) = begun.take().map_or((version, None), |before| (before.oldest, before.displaced_us));
    let head = Head { version, oldest, oldest_displaced_us: displaced.unwrap_or(0), write: *write };
    shard.staged_bytes += write.value.map_or(0, |value| value.len());
    shard.held().put(key, None, head.exists(), |writer| head.encode(writer));
    if head.exists() {
        names::set_listed(&mut shard.state, &shard.keys, Kind::CellHead, &id, true);
    }
    Ok(())
}

/// Notes the next version of the cell whose versions are being put, or the first of another one.
fn next_version(begun: &mut Option<Versions>, cell: &OwnedId, version: u64, write: &Old<'_>) -> Result<(), BuildError> {
    match begun {
        Some(versions) if versions.cell == *cell => {
            if version != versions.next {
                let message = format!("K3: version {} of cell {:?} is missing", versions.next, cell.name);
                return Err(BuildError::Refused(message));
            }
            versions.displaced_us.get_or_insert(write.updated_at);
            versions.next = version + 1;
        }
        _ => {
            Cells::end(begun)?;
            let next = version.checked_add(1).ok_or_else(|| BuildError::Refused("a version is too high".into()))?;
            *begun = Some(Versions { cell: cell.clone(), oldest: version, next, displaced_us: None });
        }
    }
    Ok(())
}
