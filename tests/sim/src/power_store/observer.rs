//! Turns the calls of a traced process into operations on the files below one directory.
//!
//! Keeps: descriptors with their offsets, and which name is which file, as the process saw them. A call belongs to
//! a name as it was when the call ended; nobody here uses a name that another thread is changing.
//! Never: lets a change pass that it does not know. Such a call on our files is an error.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::operation::{Inode, Kind, Operation, ROOT, identity_in};
use super::sites::{HOUSE, Synced, UNFINISHED, site_of};
use super::strace::{Call, bytes_of, text_of};

/// Follows a process that works below `root` and writes its records to `records`.
pub(super) struct Observer {
    root: String,
    records: String,
    operations: Vec<Operation>,
    /// The names in each directory; none for a file.
    names: Vec<Option<BTreeMap<String, Inode>>>,
    /// Below the root, as last named.
    paths: Vec<String>,
    /// Names that this process has changed in a directory since it last synced it.
    changed: HashMap<Inode, Vec<String>>,
    descriptors: HashMap<i64, Rc<RefCell<OpenFile>>>,
}

struct OpenFile {
    target: Target,
    offset: usize,
    append: bool,
    writable: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Inode(Inode),
    Records,
}

/// A name in a directory, and what has it.
struct Place {
    directory: Inode,
    name: String,
    inode: Option<Inode>,
}

impl Observer {
    /// Continues after `operations`, which other processes did before.
    pub(super) fn new(root: &str, records: &str, operations: Vec<Operation>) -> Self {
        let mut observer = Self {
            root: root.to_owned(),
            records: records.to_owned(),
            operations: Vec::new(),
            names: vec![Some(BTreeMap::new())],
            paths: vec![String::new()],
            changed: HashMap::new(),
            descriptors: HashMap::new(),
        };
        let inodes = operations.iter().filter_map(|operation| match operation.kind {
            Kind::Enter { inode, .. } => Some(inode + 1),
            _ => None,
        });
        let inode_count = inodes.max().unwrap_or(1).max(1);
        observer.names.resize(inode_count, None);
        observer.paths.resize(inode_count, String::new());
        for operation in &operations {
            if let Kind::Enter { inode, is_directory: true, .. } = operation.kind {
                observer.names[inode] = Some(BTreeMap::new());
            }
            observer.rename(&operation.kind);
        }
        observer.operations = operations;
        observer
    }

    /// Everything that was done, the operations before included.
    pub(super) fn observe(mut self, calls: &[Call]) -> Result<Vec<Operation>, String> {
        // A descriptor is free when its closing begins, and in use when its opening has ended.
        let closings = calls.iter().filter(|call| call.name == "close").map(|call| (call.begin, call));
        let others = calls.iter().filter(|call| call.name != "close").map(|call| (call.end, call));
        let mut ordered: Vec<_> = closings.chain(others).collect();
        ordered.sort_by_key(|(moment, _)| *moment);
        for (_, call) in ordered {
            self.call(call).map_err(|wrong| format!("{}({wrong})", call.name))?;
        }
        Ok(self.operations)
    }

    fn call(&mut self, call: &Call) -> Result<(), String> {
        let Some(result) = call.result else { return Ok(()) };
        let argument = |position: usize| call.arguments.get(position).map_or("", String::as_str);
        match call.name.as_str() {
            "openat" => self.open(call, argument(0), argument(1), argument(2), result)?,
            "open" => self.open(call, "AT_FDCWD", argument(0), argument(1), result)?,
            "creat" => self.open(call, "AT_FDCWD", argument(0), "O_WRONLY|O_CREAT|O_TRUNC", result)?,
            "close" => {
                self.descriptors.remove(&number(argument(0))?);
            }
            "dup" | "dup2" | "dup3" => self.duplicate(argument(0), result)?,
            "fcntl" if argument(1).starts_with("F_DUPFD") => self.duplicate(argument(0), result)?,
            "fcntl" if argument(1) == "F_SETFL" => self.refuse_if_ours(argument(0))?,
            "fcntl" | "execve" => {}
            "lseek" => {
                if let Some(file) = self.file(argument(0)) {
                    file.borrow_mut().offset = usize::try_from(result).map_err(|error| error.to_string())?;
                }
            }
            "read" | "readv" => {
                if let Some(file) = self.file(argument(0)) {
                    file.borrow_mut().offset += usize::try_from(result).map_err(|error| error.to_string())?;
                }
            }
            "write" | "writev" => self.write(call, argument(0), argument(1), None, result)?,
            "pwrite64" | "pwritev" => {
                self.write(call, argument(0), argument(1), Some(argument(3)), result)?;
            }
            "ftruncate" => {
                if let Some(inode) = self.inode(argument(0)) {
                    self.push(call, Kind::Truncate { inode, length: length(argument(1))? });
                }
            }
            "fallocate" => {
                if let Some(inode) = self.inode(argument(0)) {
                    if argument(1) != "0" {
                        return Err(format!("unknown mode {}", argument(1)));
                    }
                    let length = length(argument(2))? + length(argument(3))?;
                    self.push(call, Kind::Allocate { inode, length });
                }
            }
            "fsync" | "fdatasync" => {
                if let Some(inode) = self.inode(argument(0)) {
                    self.sync(call, inode);
                }
            }
            "mkdir" => self.make_directory(call, "AT_FDCWD", argument(0))?,
            "mkdirat" => self.make_directory(call, argument(0), argument(1))?,
            "unlink" | "rmdir" => self.remove(call, "AT_FDCWD", argument(0))?,
            "unlinkat" => self.remove(call, argument(0), argument(1))?,
            "rename" => self.move_name(call, ("AT_FDCWD", argument(0)), ("AT_FDCWD", argument(1)))?,
            "renameat" => self.move_name(call, (argument(0), argument(1)), (argument(2), argument(3)))?,
            "renameat2" if argument(4) == "0" => {
                self.move_name(call, (argument(0), argument(1)), (argument(2), argument(3)))?;
            }
            "mmap" => {
                let shared = argument(3).contains("MAP_SHARED") && argument(2).contains("PROT_WRITE");
                if shared && argument(4) != "-1" {
                    self.refuse_if_ours(argument(4))?;
                }
            }
            "truncate" | "link" | "symlink" | "openat2" | "linkat" | "symlinkat" | "renameat2" => {
                let paths = call.arguments.iter().filter(|argument| argument.starts_with('"'));
                for path in paths {
                    if self.below_root(&text_of(path)?).is_some() {
                        return Err("on our files, which this test does not know".into());
                    }
                }
            }
            "copy_file_range" | "sendfile" | "splice" | "vmsplice" | "pwritev2" => {
                self.refuse_if_ours(argument(0))?;
                self.refuse_if_ours(argument(2))?;
            }
            // These say nothing about durability that we rely on.
            "sync_file_range" => {}
            _ => return Err("which this test does not know".into()),
        }
        Ok(())
    }

    fn push(&mut self, call: &Call, kind: Kind) {
        self.rename(&kind);
        if let (Some(directory), Some(name)) = (kind.directory(), kind.name()) {
            self.changed.entry(directory).or_default().push(name.to_owned());
        }
        self.operations.push(Operation { begin: call.begin, end: call.end, kind });
    }

    /// Makes the change of a name, if it is one.
    fn rename(&mut self, kind: &Kind) {
        match kind {
            Kind::Enter { directory, name, inode, .. } => {
                self.paths[*inode] = joined(&self.paths[*directory], name);
                self.names_of(*directory).insert(name.clone(), *inode);
            }
            Kind::Leave { directory, name } => {
                self.names_of(*directory).remove(name);
            }
            Kind::Rename { directory, from, to, inode } => {
                self.paths[*inode] = joined(&self.paths[*directory], to);
                let names = self.names_of(*directory);
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            _ => {}
        }
    }

    fn names_of(&mut self, directory: Inode) -> &mut BTreeMap<String, Inode> {
        self.names[directory].as_mut().expect("a directory")
    }

    fn open(&mut self, call: &Call, at: &str, path: &str, flags: &str, result: i64) -> Result<(), String> {
        let path = text_of(path)?;
        let has = |flag: &str| flags.split('|').any(|set| set == flag);
        let mut file = OpenFile {
            target: Target::Records,
            offset: 0,
            append: has("O_APPEND"),
            writable: has("O_WRONLY") || has("O_RDWR"),
        };
        if path != self.records {
            let Some(place) = self.locate(at, &path)? else { return Ok(()) };
            if let Some(flag) = ["O_SYNC", "O_DSYNC", "O_TMPFILE", "O_DIRECT"].into_iter().find(|flag| has(flag)) {
                return Err(format!("{path} with {flag}, which this test does not know"));
            }
            let inode = match place.inode {
                Some(inode) => {
                    if has("O_TRUNC") {
                        self.push(call, Kind::Truncate { inode, length: 0 });
                    }
                    inode
                }
                None if has("O_CREAT") => self.enter(call, place, false),
                None => return Err(format!("{path}, which nobody made")),
            };
            file.target = Target::Inode(inode);
        }
        self.descriptors.insert(result, Rc::new(RefCell::new(file)));
        Ok(())
    }

    fn enter(&mut self, call: &Call, place: Place, is_directory: bool) -> Inode {
        let inode = self.names.len();
        self.names.push(is_directory.then(BTreeMap::new));
        self.paths.push(String::new());
        let Place { directory, name, .. } = place;
        self.push(call, Kind::Enter { directory, name, inode, is_directory });
        inode
    }

    fn duplicate(&mut self, descriptor: &str, result: i64) -> Result<(), String> {
        if let Some(file) = self.descriptors.get(&number(descriptor)?).cloned() {
            self.descriptors.insert(result, file);
        }
        Ok(())
    }

    fn write(
        &mut self,
        call: &Call,
        descriptor: &str,
        data: &str,
        offset: Option<&str>,
        result: i64,
    ) -> Result<(), String> {
        let Some(file) = self.file(descriptor) else { return Ok(()) };
        let mut bytes = Vec::new();
        // A single string, or a list of buffers with a string in each.
        for string in data.split('"').skip(1).step_by(2) {
            bytes.extend(bytes_of(&format!("\"{string}\""))?);
        }
        if data.contains("\"...") {
            return Err("a string that was cut".into());
        }
        bytes.truncate(usize::try_from(result).map_err(|error| error.to_string())?);
        let target = file.borrow().target;
        let inode = match target {
            Target::Inode(inode) => inode,
            Target::Records => {
                let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
                for line in text.lines() {
                    self.push(call, Kind::Record(line.parse()?));
                }
                return Ok(());
            }
        };
        let offset = match offset {
            Some(offset) => length(offset)?,
            None => {
                let mut file = file.borrow_mut();
                if file.append {
                    return Err("an append to our files, which this test does not know".into());
                }
                let offset = file.offset;
                file.offset += bytes.len();
                offset
            }
        };
        if let Some(identity) = identity_in(&bytes).filter(|_| UNFINISHED.contains(&self.paths[inode].as_str())) {
            self.push(call, Kind::Identity(identity));
        }
        self.push(call, Kind::Write { inode, offset, bytes: bytes.into() });
        Ok(())
    }

    fn sync(&mut self, call: &Call, inode: Inode) {
        let empty = BTreeMap::new();
        let house = self.names.iter().zip(&self.paths).rfind(|(_, path)| path.as_str() == HOUSE);
        let site = site_of(&Synced {
            path: &self.paths[inode],
            names: self.names[inode].as_ref(),
            changed: self.changed.get(&inode).map_or(&[], Vec::as_slice),
            house: house.and_then(|(names, _)| names.as_ref()).unwrap_or(&empty),
        });
        self.changed.remove(&inode);
        self.push(call, Kind::Sync { inode, site });
    }

    fn make_directory(&mut self, call: &Call, at: &str, path: &str) -> Result<(), String> {
        if let Some(place) = self.locate(at, &text_of(path)?)? {
            self.enter(call, place, true);
        }
        Ok(())
    }

    fn remove(&mut self, call: &Call, at: &str, path: &str) -> Result<(), String> {
        let path = text_of(path)?;
        if let Some(Place { directory, name, inode }) = self.locate(at, &path)? {
            inode.ok_or_else(|| format!("{path}, which nobody made"))?;
            self.push(call, Kind::Leave { directory, name });
        }
        Ok(())
    }

    fn move_name(&mut self, call: &Call, from: (&str, &str), to: (&str, &str)) -> Result<(), String> {
        let (from_path, to_path) = (text_of(from.1)?, text_of(to.1)?);
        match (self.locate(from.0, &from_path)?, self.locate(to.0, &to_path)?) {
            (None, None) => Ok(()),
            (Some(from), Some(to)) if from.directory == to.directory => {
                let inode = from.inode.ok_or_else(|| format!("{from_path}, which nobody made"))?;
                let kind = Kind::Rename { directory: from.directory, from: from.name, to: to.name, inode };
                self.push(call, kind);
                Ok(())
            }
            _ => Err(format!("{from_path} to {to_path}: between directories, which this test does not know")),
        }
    }

    fn file(&self, descriptor: &str) -> Option<Rc<RefCell<OpenFile>>> {
        self.descriptors.get(&number(descriptor).ok()?).cloned()
    }

    fn inode(&self, descriptor: &str) -> Option<Inode> {
        match self.file(descriptor)?.borrow().target {
            Target::Inode(inode) => Some(inode),
            Target::Records => None,
        }
    }

    fn refuse_if_ours(&self, descriptor: &str) -> Result<(), String> {
        match self.file(descriptor) {
            Some(file) if file.borrow().writable => Err("on our files, which this test does not know".into()),
            _ => Ok(()),
        }
    }

    fn below_root<'path>(&self, path: &'path str) -> Option<&'path str> {
        let rest = path.strip_prefix(&self.root)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }

    /// Where a path leads, if it is one of ours.
    fn locate(&self, at: &str, path: &str) -> Result<Option<Place>, String> {
        let (mut directory, rest) = if path.starts_with('/') {
            let Some(rest) = self.below_root(path) else { return Ok(None) };
            (ROOT, rest)
        } else {
            let Some(directory) = self.inode(at) else { return Ok(None) };
            (directory, path)
        };
        let mut parts = rest.split('/').filter(|part| !part.is_empty()).peekable();
        let nobody = || format!("{path}, which nobody made");
        while let Some(part) = parts.next() {
            if matches!(part, "." | "..") {
                return Err(format!("{path}: a path that this test does not know"));
            }
            let names = self.names[directory].as_ref().ok_or_else(nobody)?;
            let inode = names.get(part).copied();
            if parts.peek().is_none() {
                return Ok(Some(Place { directory, name: part.to_owned(), inode }));
            }
            directory = inode.ok_or_else(nobody)?;
        }
        Ok(Some(Place { directory, name: String::new(), inode: Some(directory) }))
    }
}

fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

fn number(argument: &str) -> Result<i64, String> {
    argument.parse().map_err(|_| format!("{argument} is not a number"))
}

fn length(argument: &str) -> Result<usize, String> {
    argument.parse().map_err(|_| format!("{argument} is not a length"))
}
