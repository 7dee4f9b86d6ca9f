//! What a disk could hold after power failed at some moment.
//!
//! What a sync covers is kept: the calls on that file (its data) or directory (its names) that had returned before
//! the sync began, if the sync had returned before the moment. Of everything else that had begun, any part may have
//! reached the disk. Data goes by sectors: each has the content of some moment since it was last durable, whatever
//! the others have. A file's length is one it has had, or a sector's end on the way there. Each change of a name has
//! happened or not, whatever the others did; a change from one name to another is one change.
//! Never: takes a sync of a file as one of its name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use testkit::random::Random;

use super::operation::{Inode, Kind, Moment, Operation, ROOT};
use super::sites::Site;

const SECTOR_BYTES: usize = 512;

/// How the survivors are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Any part of what was not synced.
    Torn,
    /// All of it: the process was killed, power did not fail.
    Killed,
    /// None of it.
    Lost,
}

/// Files and directories by their path, parents first.
pub(super) type Image = BTreeMap<String, Node>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(Vec<u8>),
}

/// What of the data or of the names survives.
#[derive(Clone, Copy)]
enum Survival {
    Nothing,
    Everything,
    /// Whatever had ended before this moment.
    Before(Moment),
    /// Whatever ended later: the newest changes reach the disk first.
    After(Moment),
    /// Each thing by itself, in so many of a thousand cases.
    Each(u64),
    /// One of the above for each file or directory.
    Mixed,
}

/// Draws an image. `without` is a sync that is taken for not called.
pub(super) fn draw(
    operations: &[Operation],
    moment: Moment,
    mode: Mode,
    without: Option<Site>,
    random: &mut Random,
) -> Image {
    let (data, names) = match mode {
        Mode::Torn => (Survival::draw(random, moment), Survival::draw(random, moment)),
        Mode::Killed => (Survival::Everything, Survival::Everything),
        Mode::Lost => (Survival::Nothing, Survival::Nothing),
    };
    let mut drawing = Drawing { durable: HashMap::new(), files: HashMap::new(), random };
    let mut directories: HashMap<Inode, BTreeMap<&str, Inode>> = HashMap::new();
    let mut survivals: HashMap<Inode, Survival> = HashMap::new();
    for operation in operations {
        if let Kind::Sync { inode, site } = operation.kind
            && operation.end < moment
            && (site.is_none() || site != without)
        {
            let durable = drawing.durable.entry(inode).or_default();
            *durable = operation.begin.max(*durable);
        }
    }
    for operation in operations.iter().filter(|operation| operation.begin < moment) {
        if let Kind::Enter { inode, is_directory: true, .. } = operation.kind {
            directories.entry(inode).or_default();
        }
        if let Some(inode) = operation.kind.file() {
            drawing.files.entry(inode).or_default().push(operation);
        }
        let Some(directory) = operation.kind.directory() else { continue };
        let survival = *survivals.entry(directory).or_insert_with(|| names.of_one(drawing.random, moment));
        if !drawing.is_durable(directory, operation) && !survival.of(operation, drawing.random) {
            continue;
        }
        let entries = directories.entry(directory).or_default();
        match &operation.kind {
            Kind::Enter { name, inode, .. } => {
                entries.insert(name, *inode);
            }
            Kind::Leave { name, .. } => {
                entries.remove(name.as_str());
            }
            Kind::Rename { from, to, inode, .. } => {
                if entries.get(from.as_str()) == Some(inode) {
                    entries.remove(from.as_str());
                }
                entries.insert(to, *inode);
            }
            _ => unreachable!("only those change a directory"),
        }
    }
    let mut image = Image::new();
    let mut unvisited = vec![(String::new(), ROOT)];
    while let Some((path, directory)) = unvisited.pop() {
        for (name, inode) in directories.get(&directory).into_iter().flatten() {
            let path = if path.is_empty() { (*name).to_owned() } else { format!("{path}/{name}") };
            if directories.contains_key(inode) {
                image.insert(path.clone(), Node::Directory);
                unvisited.push((path, *inode));
            } else {
                let survival = data.of_one(drawing.random, moment);
                image.insert(path, Node::File(drawing.content(*inode, survival)));
            }
        }
    }
    image
}

/// Writes an image to a directory, which is made.
pub(super) fn write(image: &Image, root: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(root)?;
    for (path, node) in image {
        match node {
            Node::Directory => std::fs::create_dir(root.join(path))?,
            Node::File(bytes) => std::fs::write(root.join(path), bytes)?,
        }
    }
    Ok(())
}

struct Drawing<'operations, 'random> {
    /// Per inode: what had ended before this is durable.
    durable: HashMap<Inode, Moment>,
    files: HashMap<Inode, Vec<&'operations Operation>>,
    random: &'random mut Random,
}

impl Drawing<'_, '_> {
    fn is_durable(&self, inode: Inode, operation: &Operation) -> bool {
        self.durable.get(&inode).is_some_and(|durable| operation.end < *durable)
    }

    fn content(&mut self, inode: Inode, survival: Survival) -> Vec<u8> {
        let operations = self.files.remove(&inode).unwrap_or_default();
        let mut durable: Vec<&Operation> = operations.clone();
        durable.retain(|operation| self.is_durable(inode, operation));
        let mut pending: Vec<&Operation> = operations.clone();
        pending.retain(|operation| !self.is_durable(inode, operation));
        let mut content = Vec::new();
        for operation in durable {
            apply(&operation.kind, &mut content, |_| true);
        }
        if !matches!(survival, Survival::Each(_) | Survival::After(_)) {
            for operation in pending {
                if survival.of(operation, self.random) {
                    apply(&operation.kind, &mut content, |_| true);
                }
            }
            self.files.insert(inode, operations);
            return content;
        }
        let mut length = content.len();
        let mut lengths = vec![length];
        // A sector that has missed a write also misses those after it: the disk holds one of its pasts.
        let mut missed = HashSet::new();
        for operation in pending {
            let random = &mut *self.random;
            apply(&operation.kind, &mut content, |sector| {
                if !survival.of(operation, random) {
                    missed.insert(sector);
                }
                !missed.contains(&sector)
            });
            length = length_after(&operation.kind, length);
            lengths.push(length);
        }
        content.resize(draw_length(&lengths, self.random), 0);
        self.files.insert(inode, operations);
        content
    }
}

/// One of the lengths that a file has had, or the end of a sector between two of them.
fn draw_length(lengths: &[usize], random: &mut Random) -> usize {
    let newest = *lengths.last().expect("the length at first");
    match random.below(4) {
        0 | 1 => newest,
        2 => *random.choose(lengths),
        _ => {
            let (from, to) = (*random.choose(lengths), *random.choose(lengths));
            let (from, to) = (from.min(to), from.max(to));
            let sectors = to.div_ceil(SECTOR_BYTES) - from / SECTOR_BYTES;
            let sector = from / SECTOR_BYTES + random.index(sectors + 1);
            (sector * SECTOR_BYTES).clamp(from, to)
        }
    }
}

fn length_after(kind: &Kind, length: usize) -> usize {
    match kind {
        Kind::Write { offset, bytes, .. } => length.max(offset + bytes.len()),
        Kind::Truncate { length, .. } => *length,
        Kind::Allocate { length: allocated, .. } => length.max(*allocated),
        _ => unreachable!("only those change a file"),
    }
}

/// Makes a change in those sectors that are asked for. If it is not made in all of them, the content may be
/// longer than the file.
fn apply(kind: &Kind, content: &mut Vec<u8>, mut in_sector: impl FnMut(usize) -> bool) {
    match kind {
        Kind::Write { offset, bytes, .. } => {
            let end = offset + bytes.len();
            if content.len() < end {
                content.resize(end, 0);
            }
            let mut position = *offset;
            while position < end {
                let sector = position / SECTOR_BYTES;
                let sector_end = ((sector + 1) * SECTOR_BYTES).min(end);
                if in_sector(sector) {
                    content[position..sector_end].copy_from_slice(&bytes[position - offset..sector_end - offset]);
                }
                position = sector_end;
            }
        }
        Kind::Truncate { length, .. } if *length < content.len() => {
            let mut position = *length;
            let mut kept = *length;
            while position < content.len() {
                let sector = position / SECTOR_BYTES;
                let sector_end = ((sector + 1) * SECTOR_BYTES).min(content.len());
                if in_sector(sector) {
                    content[position..sector_end].fill(0);
                } else {
                    kept = sector_end;
                }
                position = sector_end;
            }
            content.truncate(kept);
        }
        Kind::Truncate { length, .. } | Kind::Allocate { length, .. } => {
            if content.len() < *length {
                content.resize(*length, 0);
            }
        }
        _ => unreachable!("only those change a file"),
    }
}

impl Survival {
    fn draw(random: &mut Random, moment: Moment) -> Self {
        match random.below(10) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            2 => Survival::Before(moment.saturating_sub(random.below(200))),
            3 | 4 => Survival::After(moment.saturating_sub(random.below(30))),
            5 => Survival::Each(100),
            6 => Survival::Each(500),
            7 => Survival::Each(900),
            _ => Survival::Mixed,
        }
    }

    /// For one file or directory.
    fn of_one(self, random: &mut Random, moment: Moment) -> Self {
        let mut survival = self;
        while let Survival::Mixed = survival {
            survival = Survival::draw(random, moment);
        }
        survival
    }

    /// Whether a change has happened that is not durable.
    fn of(self, operation: &Operation, random: &mut Random) -> bool {
        match self {
            Survival::Nothing => false,
            Survival::Everything => true,
            Survival::Before(moment) => operation.end < moment,
            Survival::After(moment) => operation.end >= moment,
            Survival::Each(per_mille) => random.below(1000) < per_mille,
            Survival::Mixed => unreachable!("one was drawn for this file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(moment: Moment, kind: Kind) -> Operation {
        Operation { begin: moment, end: moment + 1, kind }
    }

    fn enter(name: &str, inode: Inode) -> Kind {
        Kind::Enter { directory: ROOT, name: name.into(), inode, is_directory: false }
    }

    fn write(inode: Inode, offset: usize, bytes: &[u8]) -> Kind {
        Kind::Write { inode, offset, bytes: bytes.into() }
    }

    fn sync(inode: Inode) -> Kind {
        Kind::Sync { inode, site: Some(Site::Identity) }
    }

    fn all(operations: &[Operation], moment: Moment, without: Option<Site>) -> HashSet<String> {
        let draws = (0..500).map(|seed| {
            let image = draw(operations, moment, Mode::Torn, without, &mut Random::new(seed));
            let shown = image.iter().map(|(path, node)| match node {
                Node::Directory => format!("{path}/"),
                Node::File(bytes) => format!("{path}={}", String::from_utf8_lossy(bytes)),
            });
            shown.collect::<Vec<_>>().join(" ")
        });
        draws.collect()
    }

    fn set(images: &[&str]) -> HashSet<String> {
        images.iter().map(|image| (*image).to_owned()).collect()
    }

    #[test]
    fn names_and_data_are_durable_by_their_own_syncs_only() {
        let operations = [at(0, enter("a", 1)), at(2, write(1, 0, b"x")), at(4, sync(1)), at(6, sync(ROOT))];
        assert_eq!(all(&operations, 4, None), set(&["", "a=", "a=x", "a=\0"]));
        assert_eq!(all(&operations, 5, None), set(&["", "a=", "a=x", "a=\0"]), "a sync that has not returned");
        assert_eq!(all(&operations, 6, None), set(&["", "a=x"]));
        assert_eq!(all(&operations, 8, None), set(&["a=x"]));
        assert_eq!(all(&operations, 8, Some(Site::Identity)), set(&["", "a=", "a=x", "a=\0"]));
    }

    #[test]
    fn a_sync_does_not_cover_a_write_that_overlaps_it() {
        let mut operations = [at(0, enter("a", 1)), at(2, sync(ROOT)), at(4, write(1, 0, b"x")), at(6, sync(1))];
        operations[2].end = 7;
        assert_eq!(all(&operations, 10, None), set(&["a=", "a=x", "a=\0"]));
    }

    #[test]
    fn a_rename_is_one_change() {
        let rename = Kind::Rename { directory: ROOT, from: "b".into(), to: "a".into(), inode: 2 };
        let operations = [at(0, enter("a", 1)), at(2, enter("b", 2)), at(4, sync(ROOT)), at(6, rename)];
        assert_eq!(all(&operations, 8, None), set(&["a= b=", "a="]));
    }

    #[test]
    fn a_sector_that_missed_a_write_misses_the_next() {
        let operations = [
            at(0, enter("a", 1)),
            at(2, write(1, 0, b"1")),
            at(4, sync(1)),
            at(6, sync(ROOT)),
            at(8, write(1, 0, b"2")),
            at(10, write(1, 0, b"3")),
        ];
        assert_eq!(all(&operations, 12, None), set(&["a=1", "a=2", "a=3"]));
    }

    #[test]
    fn sectors_survive_one_by_one() {
        let long = [b'x'; 2 * SECTOR_BYTES];
        let operations = [
            at(0, enter("a", 1)),
            at(2, Kind::Allocate { inode: 1, length: long.len() }),
            at(4, sync(1)),
            at(6, sync(ROOT)),
            at(8, write(1, 0, &long)),
        ];
        let images = all(&operations, 10, None);
        assert_eq!(images.len(), 4, "none, either, both");
        assert!(images.iter().all(|image| image.len() == "a=".len() + long.len()));
    }
}
