//! The data blocks of a store: which kinds of rows each of them has, and damage to one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kernel::keys::readable::kind_of;

use super::copies::copied;

/// A data block of a table.
pub(super) struct Block {
    pub(super) file: PathBuf,
    pub(super) offset: u64,
}

/// Every data block of a store; `docs/formats/tables.md`.
fn blocks(store: &Path) -> Vec<Block> {
    let mut blocks = Vec::new();
    for entry in std::fs::read_dir(store).expect("a store") {
        let file = entry.expect("an entry").path();
        if file.extension().is_none_or(|end| end != "table") {
            continue;
        }
        let bytes = std::fs::read(&file).expect("read");
        let mut offset = 0;
        while matches!(bytes.get(offset), Some(1..=5)) {
            let length = u32::from_le_bytes(bytes[offset + 4..offset + 8].try_into().expect("four bytes"));
            if bytes[offset] == 1 {
                let file = file.file_name().expect("a name").into();
                blocks.push(Block { file, offset: offset as u64 });
            }
            offset += 16 + length as usize;
        }
    }
    blocks
}

pub(super) fn flip(store: &Path, block: &Block) {
    let path = store.join(&block.file);
    let mut bytes = std::fs::read(&path).expect("read");
    bytes[usize::try_from(block.offset).expect("small") + 9] ^= 4;
    std::fs::write(path, bytes).expect("written");
}

/// The kind of a row; those of sessions are told apart.
fn label(key: &[u8]) -> Option<String> {
    let kind = kind_of(key)?;
    Some(if kind == "sessions" { format!("{kind} {}", key[9]) } else { kind.to_owned() })
}

/// The kinds of the rows that cannot be read without a block.
fn kinds_in(block: &Block, store: &Path, scratch: &Path, keys: &[kv::Key]) -> BTreeSet<String> {
    copied(store, scratch);
    flip(scratch, block);
    let tree = storage::TreeStore::open(scratch, &Default::default()).expect("a store");
    let view = kv::Store::view(&tree).expect("a view");
    let lost = keys.iter().filter(|key| view.get(key).is_err()).filter_map(|key| label(key)).collect();
    drop((view, tree));
    std::fs::remove_dir_all(scratch).expect("removed");
    lost
}

/// For every kind, the block with its rows that has the fewest others.
pub(super) fn blocks_by_kind(store: &Path, scratch: &Path) -> BTreeMap<String, (Block, BTreeSet<String>)> {
    copied(store, scratch);
    let tree = storage::TreeStore::open(scratch, &Default::default()).expect("a store");
    let view = kv::Store::view(&tree).expect("a view");
    let all = kv::KeyRange::prefix(b"");
    let keys: Vec<kv::Key> = view.scan(&all, kv::Order::Ascending).map(|row| row.expect("whole").0).collect();
    drop((view, tree));
    std::fs::remove_dir_all(scratch).expect("removed");
    let mut best = BTreeMap::<String, (usize, BTreeSet<String>)>::new();
    let blocks = blocks(store);
    for (place, block) in blocks.iter().enumerate() {
        let kinds = kinds_in(block, store, &scratch.with_extension(place.to_string()), &keys);
        for kind in &kinds {
            if best.get(kind).is_none_or(|(_, other)| kinds.len() < other.len()) {
                best.insert(kind.clone(), (place, kinds.clone()));
            }
        }
    }
    let block = |place: usize| Block { file: blocks[place].file.clone(), offset: blocks[place].offset };
    best.into_iter().map(|(kind, (place, kinds))| (kind, (block(place), kinds))).collect()
}
