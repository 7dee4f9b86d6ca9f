//! What a traced process did to its files, in order.

use std::sync::Arc;

use super::records::Record;
use super::sites::Site;

/// A place in the order of all beginnings and ends of calls.
pub(super) type Moment = u64;

/// A file or directory, whatever it is called.
pub(super) type Inode = usize;

/// The directory that everything happens in. It was there before, durably.
pub(super) const ROOT: Inode = 0;

/// One call. Its effect came about some time between its beginning and its end.
#[derive(Clone)]
pub(super) struct Operation {
    pub(super) begin: Moment,
    pub(super) end: Moment,
    pub(super) kind: Kind,
}

#[derive(Clone)]
pub(super) enum Kind {
    /// A new file or directory.
    Enter {
        directory: Inode,
        name: String,
        inode: Inode,
        is_directory: bool,
    },
    /// A name was removed.
    Leave {
        directory: Inode,
        name: String,
    },
    /// A name was changed within its directory; what had the new name has lost it.
    Rename {
        directory: Inode,
        from: String,
        to: String,
        inode: Inode,
    },
    Write {
        inode: Inode,
        offset: usize,
        bytes: Arc<[u8]>,
    },
    Truncate {
        inode: Inode,
        length: usize,
    },
    /// The file is at least this long from now on.
    Allocate {
        inode: Inode,
        length: usize,
    },
    /// Of a file: its data. Of a directory: its names. `site` says which of the known calls it was.
    Sync {
        inode: Inode,
        site: Option<Site>,
    },
    /// This number was written as the identity of the directory.
    Identity(u64),
    /// What the process said about itself.
    Record(Record),
}

impl Kind {
    /// The directory whose names are changed.
    pub(super) fn directory(&self) -> Option<Inode> {
        match self {
            Kind::Enter { directory, .. } | Kind::Leave { directory, .. } | Kind::Rename { directory, .. } => {
                Some(*directory)
            }
            _ => None,
        }
    }

    /// The name that something got or lost.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Kind::Enter { name, .. } | Kind::Leave { name, .. } | Kind::Rename { to: name, .. } => Some(name),
            _ => None,
        }
    }

    /// The file whose data is changed.
    pub(super) fn file(&self) -> Option<Inode> {
        match self {
            Kind::Write { inode, .. } | Kind::Truncate { inode, .. } | Kind::Allocate { inode, .. } => Some(*inode),
            _ => None,
        }
    }
}

/// The number in an identity file.
pub(super) fn identity_in(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let id = text.lines().find_map(|line| line.strip_prefix("id "))?;
    u64::from_str_radix(id, 16).ok()
}

/// When the last of them had ended.
pub(super) fn last_end(operations: &[Operation]) -> Moment {
    operations.iter().map(|operation| operation.end).max().unwrap_or(0)
}
