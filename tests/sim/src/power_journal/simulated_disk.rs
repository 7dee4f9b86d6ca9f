//! A disk that knows what is durable: what is left of it after power loss is drawn at random.
//!
//! Keeps the rules strict. A sync of a file makes its bytes and its length durable and nothing
//! else; its name is durable when its directory was synced. Everything since survives or not, each
//! change by itself, writes sector by sector.

use std::collections::BTreeMap;
use std::path::Path;

use testkit::random::Random;

use super::operation::{FileId, Operation, Site};

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

#[derive(Clone, Default)]
pub(crate) struct SimulatedDisk {
    files: BTreeMap<FileId, File>,
    directories: BTreeMap<String, Directory>,
    file_next: FileId,
}

#[derive(Clone, Default)]
struct File {
    durable: Vec<u8>,
    /// As a process sees it.
    seen: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: std::sync::Arc<[u8]> },
    Allocate { end: usize },
}

#[derive(Clone, Default)]
struct Directory {
    durable: BTreeMap<String, Node>,
    /// As a process sees it.
    seen: BTreeMap<String, Node>,
    pending: Vec<Link>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Node {
    File(FileId),
    Directory,
}

#[derive(Clone)]
enum Link {
    Add { name: String, node: Node },
    Remove { name: String },
    Rename { from: String, to: String },
}

/// How likely it is that something that was not synced survives, in percent.
#[derive(Clone, Copy)]
pub(crate) struct Mercy(u64);

impl Mercy {
    /// Most images lose some; some lose all or nothing.
    pub(crate) fn draw(random: &mut Random) -> Self {
        Self(*random.choose(&[0, 0, 10, 50, 50, 50, 90, 100]))
    }

    fn spares(self, random: &mut Random) -> bool {
        random.below(100) < self.0
    }
}

impl SimulatedDisk {
    /// Does what was recorded. A sync from the site `without` is as if it had not been called.
    pub(crate) fn apply(&mut self, operation: &Operation, without: Option<Site>) {
        match operation {
            Operation::Create { path, file } => {
                self.files.insert(*file, File::default());
                self.file_next = self.file_next.max(*file + 1);
                let (directory, name) = split(path);
                self.link(directory, Link::Add { name, node: Node::File(*file) });
            }
            Operation::CreateDirectory { path } => {
                if self.directory("").seen.contains_key(path) {
                    return;
                }
                // What a directory of that name held before is gone with it.
                self.directories.insert(path.clone(), Directory::default());
                self.link("", Link::Add { name: path.clone(), node: Node::Directory });
            }
            Operation::Delete { path } => {
                let (directory, name) = split(path);
                self.link(directory, Link::Remove { name });
            }
            Operation::Rename { from, to } => {
                let (directory, from) = split(from);
                self.link(directory, Link::Rename { from, to: split(to).1 });
            }
            Operation::Write { file, offset, bytes } => {
                self.change(*file, Change::Write { offset: *offset, bytes: bytes.clone() });
            }
            Operation::Allocate { file, end } => self.change(*file, Change::Allocate { end: *end }),
            Operation::Sync { site, .. } | Operation::SyncDirectory { site, .. } if Some(*site) == without => {}
            Operation::Sync { file, .. } => self.file(*file).sync(),
            Operation::SyncDirectory { path, .. } => {
                let directory = self.directory(path);
                directory.durable.clone_from(&directory.seen);
                directory.pending.clear();
            }
            Operation::Note(_) => {}
        }
    }

    fn file(&mut self, file: FileId) -> &mut File {
        self.files.get_mut(&file).expect("a file that was created")
    }

    fn directory(&mut self, path: &str) -> &mut Directory {
        self.directories.entry(path.to_owned()).or_default()
    }

    fn change(&mut self, file: FileId, change: Change) {
        let file = self.file(file);
        change.apply(&mut file.seen, &mut || true);
        file.pending.push(change);
    }

    fn link(&mut self, directory: &str, link: Link) {
        let directory = self.directory(directory);
        link.apply(&mut directory.seen);
        directory.pending.push(link);
    }

    /// The files that a process sees, by path.
    pub(crate) fn names(&self) -> BTreeMap<String, FileId> {
        let Some(root) = self.directories.get("") else {
            return BTreeMap::new();
        };
        let mut found = BTreeMap::new();
        for (name, node) in &root.seen {
            match node {
                Node::File(file) => {
                    found.insert(name.clone(), *file);
                }
                Node::Directory => {
                    for (below, node) in &self.directories[name].seen {
                        if let Node::File(file) = node {
                            found.insert(format!("{name}/{below}"), *file);
                        }
                    }
                }
            }
        }
        found
    }

    /// A number that no file has yet.
    pub(crate) fn file_next(&self) -> FileId {
        self.file_next
    }

    /// Writes what a process sees below `directory`.
    pub(crate) fn write_to(&self, directory: &Path) {
        for (path, file) in self.names() {
            write(&directory.join(path), &self.files[&file].seen);
        }
        if self.directories.get("").is_some_and(|root| root.seen.contains_key(super::recorder::SEGMENTS)) {
            make_directory(&directory.join(super::recorder::SEGMENTS));
        }
    }

    /// What is left after power was lost: a disk with nothing pending.
    pub(crate) fn after_power_loss(&self, random: &mut Random, mercy: Mercy) -> Self {
        let mut left = Self { file_next: self.file_next, ..Self::default() };
        for (path, directory) in &self.directories {
            let mut names = directory.durable.clone();
            for link in &directory.pending {
                if mercy.spares(random) {
                    link.apply(&mut names);
                }
            }
            left.directories
                .insert(path.clone(), Directory { durable: names.clone(), seen: names, pending: Vec::new() });
        }
        for (name, directory) in left.directories.clone() {
            let root = left.directories.get("");
            let is_there = name.is_empty() || root.is_some_and(|root| root.seen.contains_key(&name));
            if !is_there {
                left.directories.remove(&name);
                continue;
            }
            for node in directory.seen.values() {
                if let Node::File(file) = node {
                    let bytes = self.files[file].survivor(random, mercy);
                    let file_left = File { durable: bytes.clone(), seen: bytes, pending: Vec::new() };
                    left.files.insert(*file, file_left);
                }
            }
        }
        left
    }
}

fn split(path: &str) -> (&str, String) {
    path.rsplit_once('/').map_or(("", path.to_owned()), |(directory, name)| (directory, name.to_owned()))
}

fn make_directory(path: &Path) {
    std::fs::create_dir_all(path).expect("make a directory of an image");
}

fn write(path: &Path, bytes: &[u8]) {
    make_directory(path.parent().expect("a file in a directory"));
    std::fs::write(path, bytes).expect("write a file of an image");
}

impl File {
    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable, &mut || true);
        }
    }

    fn survivor(&self, random: &mut Random, mercy: Mercy) -> Vec<u8> {
        if self.pending.is_empty() {
            return self.durable.clone();
        }
        // Files of one image do not all fare alike.
        let mercy = if random.one_in(3) { Mercy::draw(random) } else { mercy };
        let mut bytes = self.durable.clone();
        for change in &self.pending {
            change.apply(&mut bytes, &mut || mercy.spares(random));
        }
        // A length is written down apart from the bytes: it may be the old one, or the new one.
        match random.below(4) {
            0 if bytes.len() > self.durable.len() => bytes.truncate(self.durable.len()),
            1 if bytes.len() < self.seen.len() => bytes.resize(self.seen.len(), 0),
            _ => {}
        }
        bytes
    }
}

impl Change {
    /// Applies each part of the change that `spares` lets through.
    fn apply(&self, bytes: &mut Vec<u8>, spares: &mut dyn FnMut() -> bool) {
        match self {
            Self::Write { offset, bytes: written } => {
                let mut start = *offset;
                let end = offset + written.len();
                while start < end {
                    let sector_end = (start / SECTOR_BYTES + 1) * SECTOR_BYTES;
                    let part_end = sector_end.min(end);
                    if spares() {
                        if bytes.len() < part_end {
                            bytes.resize(part_end, 0);
                        }
                        bytes[start..part_end].copy_from_slice(&written[start - offset..part_end - offset]);
                    }
                    start = part_end;
                }
            }
            Self::Allocate { end } if spares() => bytes.resize(bytes.len().max(*end), 0),
            Self::Allocate { .. } => {}
        }
    }
}

impl Link {
    fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            Self::Add { name, node } => {
                names.insert(name.clone(), *node);
            }
            Self::Remove { name } => {
                names.remove(name);
            }
            Self::Rename { from, to } => {
                if let Some(node) = names.remove(from) {
                    names.insert(to.clone(), node);
                }
            }
        }
    }
}
