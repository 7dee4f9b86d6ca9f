//! The sync calls that a test can take away, each known by what was synced and what was there at the time.

use std::collections::BTreeMap;

use super::operation::Inode;

/// The directory that holds the store's, made by it; below the traced root.
pub(super) const PARENT: &str = "parent";
/// The store's directory.
pub(super) const HOUSE: &str = "parent/house";

/// Its identity file, as long as the directory is being made or filled.
pub(super) const UNFINISHED: [&str; 2] = ["parent/house/IDENTITY.new", "parent/house/IDENTITY.transfer"];

/// One sync call in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// `directory.rs`: the parent, after a directory was made in it.
    Parent,
    /// `directory.rs`: the parent of a directory that was found, but without an identity.
    FoundParent,
    /// `directory.rs`: the identity file.
    Identity,
    /// `directory.rs`: the identity file, written again when an image has brought its own number of buckets.
    IdentityBuckets,
    /// `directory.rs`: the directory, after the identity file got its first name.
    Begun,
    /// `directory.rs`: the directory, when everything is in it, before the identity file gets its last name.
    Filled,
    /// `directory.rs`: the directory, after the identity file got its last name.
    Finished,
    /// `directory.rs`: a whole directory, when it is opened.
    Opened,
    /// `tree.rs`: the store's directory, when it is opened.
    StoreOpened,
    /// `table_writer.rs`: a table.
    Table,
    /// `manifest.rs`: a manifest, before it gets its name.
    Manifest,
    /// `manifest.rs`: the store's directory with new tables, before the manifest gets its name.
    Tables,
    /// `manifest.rs`: the store's directory, after the manifest got its name.
    ManifestDirectory,
    /// The journal: a segment.
    Append,
    /// The journal: the directory of segments, after one was made or got its next name.
    Spare,
}

impl Site {
    pub(super) fn name(self) -> &'static str {
        match self {
            Site::Parent => "directory-parent",
            Site::FoundParent => "directory-found-parent",
            Site::Identity => "directory-identity",
            Site::IdentityBuckets => "directory-buckets",
            Site::Begun => "directory-begun",
            Site::Filled => "directory-filled",
            Site::Finished => "directory-finished",
            Site::Opened => "directory-opened",
            Site::StoreOpened => "store-opened",
            Site::Table => "store-table",
            Site::Manifest => "store-manifest",
            Site::Tables => "store-tables",
            Site::ManifestDirectory => "store-manifest-directory",
            Site::Append => "journal-append",
            Site::Spare => "journal-spare",
        }
    }
}

/// What is known when a file or directory is synced.
pub(super) struct Synced<'state> {
    /// Its path below the traced root.
    pub(super) path: &'state str,
    /// The names in it, if it is a directory.
    pub(super) names: Option<&'state BTreeMap<String, Inode>>,
    /// The names in it that this process has changed since it last synced it.
    pub(super) changed: &'state [String],
    /// The names in the store's directory.
    pub(super) house: &'state BTreeMap<String, Inode>,
}

/// Which of the known calls it is.
pub(super) fn site_of(synced: &Synced<'_>) -> Option<Site> {
    let changed = |wanted: &dyn Fn(&str) -> bool| synced.changed.iter().any(|name| wanted(name));
    let in_house = |name: &str| synced.house.contains_key(name);
    match synced.path.strip_prefix(HOUSE).map(|rest| rest.trim_start_matches('/')) {
        None if changed(&|_| true) => Some(Site::Parent),
        None => Some(Site::FoundParent),
        Some("") if in_house("IDENTITY") && changed(&|name| name == "IDENTITY") => Some(Site::Finished),
        Some("") if in_house("IDENTITY") => Some(Site::Opened),
        Some("") if in_house("journal") => Some(Site::Filled),
        Some("") => Some(Site::Begun),
        Some("IDENTITY.new" | "IDENTITY.transfer") if in_house("journal") => Some(Site::IdentityBuckets),
        Some("IDENTITY.new" | "IDENTITY.transfer") => Some(Site::Identity),
        Some("store") if changed(&|name| name == "manifest") => Some(Site::ManifestDirectory),
        Some("store") if changed(&|name| name.ends_with(".table")) => Some(Site::Tables),
        Some("store") if !changed(&|_| true) => Some(Site::StoreOpened),
        Some("journal/segments") if changed(&|_| true) => Some(Site::Spare),
        Some(path) if synced.names.is_none() => match path.split_once('/') {
            Some(("store", file)) if file.ends_with(".table") => Some(Site::Table),
            Some(("store", "manifest.new")) => Some(Site::Manifest),
            Some(("journal", file)) if file.starts_with("segments/") => Some(Site::Append),
            _ => None,
        },
        Some(_) => None,
    }
}
