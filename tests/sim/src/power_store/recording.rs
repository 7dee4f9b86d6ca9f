//! Traces of processes, and the moments of them that images are drawn of.
//!
//! A recording is the life of one process, or of two: the first was killed at some moment, or power failed, and the
//! second began with what it left. That matters because the second finds things that no sync has covered and takes
//! them for true, or overwrites what was torn; and then power fails, again.
//! Traces are kept in a scratch directory, from which the same recordings can be made again.

use std::collections::BTreeMap;
use std::path::Path;

use testkit::random::Random;

use super::check;
use super::image::{self, Image, Mode, Node};
use super::operation::{Inode, Kind, Moment, Operation, ROOT, last_end};
use super::records::Record;
use super::reference::{Reference, States};
use super::sites::{HOUSE, PARENT, Site};
use super::traced_process::{Life, MOMENTS_BETWEEN, record};

/// About how many operations it takes to open what another process left.
const OPENING_OPERATIONS: usize = 80;

/// How the first of two processes came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Killed,
    PowerLost,
}

/// The trace of one process, or of two in sequence.
pub(super) struct Recording {
    pub(super) name: String,
    pub(super) operations: Vec<Operation>,
    pub(super) states: BTreeMap<u64, States>,
    /// What the directory was made from, if it was from an image.
    image: Option<Vec<u8>>,
    /// Where the second process began, if there are two.
    second: Option<usize>,
    /// No image can be drawn of a moment before.
    moment_min: Moment,
    /// Operations by their kind, so that rare ones are looked at as often as frequent ones.
    kinds: BTreeMap<String, Vec<usize>>,
}

impl Recording {
    /// A process that starts with nothing.
    pub(super) fn of_one(scratch: &Path, name: &str, life: Life) -> Result<Self, String> {
        let (operations, image) = record(scratch, name, 0, life, Vec::new())?;
        let mut reference = Reference::default();
        reference.follow(&operations, image.as_deref())?;
        Self::new(name, operations, reference, image)
    }

    /// A process that starts with what another has left.
    pub(super) fn of_two(
        scratch: &Path,
        name: &str,
        first: &Self,
        ending: Ending,
        moment: Moment,
        life: Life,
        random: &mut Random,
    ) -> Result<Self, String> {
        let before = match ending {
            Ending::Killed => first.until_killed(moment, random),
            Ending::PowerLost => first.until_power_lost(moment, random),
        };
        let second = before.len();
        let moment_second = last_end(&before) + MOMENTS_BETWEEN;
        let (operations, _) = record(scratch, name, 1, life, before)?;
        let mut reference = Reference::default();
        let begun = first.operations.iter().filter(|operation| operation.begin < moment);
        reference.follow(&begun.cloned().collect::<Vec<_>>(), first.image.as_deref())?;
        reference.follow(&operations[second..], None)?;
        let mut recording = Self::new(name, operations, reference, None)?;
        recording.second = Some(second);
        if ending == Ending::PowerLost {
            recording.moment_min = moment_second;
        }
        Ok(recording)
    }

    fn new(
        name: &str,
        operations: Vec<Operation>,
        reference: Reference,
        image: Option<Vec<u8>>,
    ) -> Result<Self, String> {
        let recording = Self {
            name: name.to_owned(),
            states: reference.states,
            image,
            second: None,
            moment_min: 0,
            kinds: kinds(&operations),
            operations,
        };
        recording.agrees_with_reference()?;
        Ok(recording)
    }

    /// What the process said of itself is what the reference says.
    fn agrees_with_reference(&self) -> Result<(), String> {
        let mut identity = None;
        for operation in &self.operations {
            match &operation.kind {
                Kind::Identity(written) => identity = Some(written),
                Kind::Record(Record::Opened { index, hash } | Record::Status { index, hash }) => {
                    let state = identity.and_then(|identity| self.states.get(identity)?.get(index));
                    if state.map(|state| state.applied.hash) != Some(*hash) {
                        return Err(format!("{}: entry {index} left {hash}, not {state:?}", self.name));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The calls before `moment`. Of those that were under way, some have come to their end.
    fn until_killed(&self, moment: Moment, random: &mut Random) -> Vec<Operation> {
        let begun = self.operations.iter().filter(|operation| operation.begin < moment);
        let mut kept = Vec::new();
        for operation in begun {
            let returned = operation.end < moment;
            let is_sync = matches!(operation.kind, Kind::Sync { .. });
            if returned || (!is_sync && random.one_in(2)) {
                kept.push(Operation { end: operation.end.min(moment), ..operation.clone() });
            }
        }
        kept
    }

    /// What was said before `moment`, and calls that make, durably, one of the images of that moment.
    fn until_power_lost(&self, moment: Moment, random: &mut Random) -> Vec<Operation> {
        let image = image::draw(&self.operations, moment, Mode::Torn, None, random);
        let begun = self.operations.iter().filter(|operation| operation.begin < moment);
        let said = begun.filter(|operation| matches!(operation.kind, Kind::Identity(_) | Kind::Record(_)));
        let mut kept: Vec<_> = said.cloned().collect();
        for operation in &mut kept {
            operation.end = operation.end.min(moment);
        }
        for (kind, moment) in making(&image).into_iter().zip((moment + 1..).step_by(2)) {
            kept.push(Operation { begin: moment, end: moment + 1, kind });
        }
        kept
    }

    /// A moment: just before, during or some time after something that is drawn by its kind.
    pub(super) fn draw_moment(&self, random: &mut Random) -> Moment {
        if random.one_in(5) {
            return self.moment_at(random.index(self.operations.len()), random);
        }
        if let Some(second) = self.second
            && random.one_in(2)
        {
            return self.moment_at(second + random.index(OPENING_OPERATIONS), random);
        }
        let kinds: Vec<_> = self.kinds.values().collect();
        let kind = kinds[random.index(kinds.len())];
        let later = if random.one_in(2) { 0 } else { random.index(20) };
        self.moment_at(*random.choose(kind) + later, random)
    }

    /// A moment after a call of this sync, if there is one.
    pub(super) fn draw_moment_after(&self, site: Site, random: &mut Random) -> Option<Moment> {
        let synced = *random.choose(self.kinds.get(site.name())?);
        let later = match random.below(4) {
            0 | 1 => random.index(10),
            2 => random.index(100),
            _ => random.index(self.operations.len() - synced),
        };
        Some(self.moment_at(synced + 1 + later, random))
    }

    /// Before, during or after an operation, or after the last.
    fn moment_at(&self, position: usize, random: &mut Random) -> Moment {
        let moment = match self.operations.get(position) {
            Some(operation) => *random.choose(&[operation.begin, operation.begin + 1, operation.end + 1]),
            None => last_end(&self.operations) + 1,
        };
        moment.max(self.moment_min)
    }

    /// A moment to kill the process at: just after a change that matters, before anyone has synced it, or any.
    pub(super) fn draw_kill(&self, number: u64, random: &mut Random) -> Moment {
        let mut after = |wanted: &dyn Fn(&Kind) -> bool| {
            let found: Vec<_> = self.operations.iter().filter(|operation| wanted(&operation.kind)).collect();
            if found.is_empty() { None } else { Some(random.choose(&found).end + 1) }
        };
        let made = |wanted: &str, kind: &Kind| matches!(kind, Kind::Enter { name, .. } if name == wanted);
        let renamed = |wanted: &str, kind: &Kind| matches!(kind, Kind::Rename { to, .. } if to == wanted);
        let house = HOUSE.rsplit('/').next().unwrap_or_default();
        let moment = match number % 8 {
            0 => after(&|kind| renamed("IDENTITY", kind)),
            1 => after(&|kind| made(PARENT, kind) || made(house, kind)),
            2 | 3 => after(&is_manifest),
            4 => after(&|kind| matches!(kind, Kind::Leave { .. })),
            5 => after(&|kind| kind.directory().is_some()),
            6 => after(&|kind| renamed("IDENTITY", kind)).map(|creation| 1 + random.below(creation)),
            _ => None,
        };
        moment.unwrap_or_else(|| self.draw_moment(random))
    }

    /// Whether the first process has not synced the name of its last manifest, and the second has removed a table that it
    /// no longer named: after a power failure, the manifest before may be back, which names the table.
    pub(super) fn drops_a_table_at_opening(&self, scratch: &Path) -> Result<bool, String> {
        let Some(second) = self.second else { return Ok(false) };
        let (before, after) = self.operations.split_at(second);
        let Some(last) = before.iter().rposition(|operation| is_manifest(&operation.kind)) else { return Ok(false) };
        let is_synced = |operation: &Operation| match operation.kind {
            Kind::Sync { inode, .. } => before[last].kind.directory() == Some(inode),
            _ => false,
        };
        if before[last..].iter().any(is_synced) {
            return Ok(false);
        }
        let is_open = |kind: &Kind| is_manifest(kind) || matches!(kind, Kind::Record(_));
        let opened = after.iter().position(|operation| is_open(&operation.kind)).unwrap_or(after.len());
        let all_of =
            |operations: &[Operation]| image::draw(operations, Moment::MAX, Mode::Killed, None, &mut Random::new(0));
        let mut image = all_of(&self.operations[..second + opened]);
        let manifest = format!("{HOUSE}/store/manifest");
        let Some(earlier) = all_of(&before[..last]).remove(&manifest) else { return Ok(false) };
        image.insert(manifest, earlier);
        let root = scratch.join("earlier-manifest");
        image::write(&image, &root).map_err(|error| format!("{}: {error}", root.display()))?;
        let opens = check::opens_store(&root.join(HOUSE).join("store"));
        std::fs::remove_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        Ok(!opens)
    }

    /// How often things happen that a recording is made for, if they all do.
    pub(super) fn coverage(&self) -> Result<String, String> {
        let count =
            |wanted: &dyn Fn(&Kind) -> bool| self.operations.iter().filter(|operation| wanted(&operation.kind)).count();
        let is_segment = |name: &str| name.len() == 16 && name.parse::<u64>().is_ok();
        let begun = count(&|kind| match kind {
            Kind::Enter { name, .. } | Kind::Rename { to: name, .. } => is_segment(name),
            _ => false,
        });
        let ended = count(&|kind| match kind {
            Kind::Leave { name, .. } | Kind::Rename { from: name, .. } => is_segment(name),
            _ => false,
        });
        let manifests = count(&is_manifest);
        let tables = count(&|kind| matches!(kind, Kind::Leave { name, .. } if name.ends_with(".table")));
        let answers = count(&|kind| matches!(kind, Kind::Record(Record::Answered { .. })));
        let coverage = format!(
            "{}: {} operations, {answers} answers, {begun} segments made and {ended} freed, \
             {manifests} manifests, {tables} tables deleted",
            self.name,
            self.operations.len()
        );
        let enough = begun > 5 && ended > 2 && manifests > 20 && tables > 10;
        if enough { Ok(coverage) } else { Err(format!("too little has happened: {coverage}")) }
    }
}

/// Whether a manifest gets its name.
fn is_manifest(kind: &Kind) -> bool {
    matches!(kind, Kind::Rename { to, .. } if to == "manifest")
}

/// Operations that make what an image holds.
fn making(image: &Image) -> Vec<Kind> {
    let mut inodes = BTreeMap::from([("", ROOT)]);
    let mut kinds = Vec::new();
    for (path, node) in image {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let inode: Inode = inodes.len();
        let (directory, is_directory) = (inodes[parent], matches!(node, Node::Directory));
        kinds.push(Kind::Enter { directory, name: name.to_owned(), inode, is_directory });
        if let Node::File(bytes) = node {
            kinds.push(Kind::Write { inode, offset: 0, bytes: bytes.as_slice().into() });
        }
        inodes.insert(path, inode);
    }
    kinds.extend(inodes.into_values().map(|inode| Kind::Sync { inode, site: None }));
    kinds
}

fn kinds(operations: &[Operation]) -> BTreeMap<String, Vec<usize>> {
    let mut directories: BTreeMap<Inode, Inode> = BTreeMap::new();
    let mut kinds: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (position, operation) in operations.iter().enumerate() {
        if let Kind::Enter { directory, inode, .. } = operation.kind {
            directories.insert(inode, directory);
        }
        let place = |inode: &Inode| directories.get(inode).copied().unwrap_or_default();
        let kind = match &operation.kind {
            Kind::Enter { directory, .. } => format!("enter {directory}"),
            Kind::Leave { directory, .. } => format!("leave {directory}"),
            Kind::Rename { directory, .. } => format!("rename {directory}"),
            Kind::Write { inode, .. } => format!("write {}", place(inode)),
            Kind::Truncate { inode, .. } => format!("truncate {}", place(inode)),
            Kind::Allocate { inode, .. } => format!("allocate {}", place(inode)),
            Kind::Sync { site: Some(site), .. } => site.name().to_owned(),
            Kind::Sync { inode, site: None } => format!("sync {}", place(inode)),
            Kind::Identity(_) | Kind::Record(Record::Intended { .. }) => continue,
            Kind::Record(Record::Opened { .. }) => "opened".to_owned(),
            Kind::Record(Record::Flushed { .. }) => "flushed".to_owned(),
            Kind::Record(_) => "answered".to_owned(),
        };
        kinds.entry(kind).or_default().push(position);
    }
    kinds
}
