//! The identity of a directory: a small text file, `docs/formats/directory.md`.

use std::io::Read;
use std::path::Path;

use contract::Error;
use kernel::Buckets;
use xxhash_rust::xxh3::xxh3_64;

use crate::directory::owner_only;
use crate::error::cannot_open;

const FORMAT: u32 = 3;
/// How the store is kept: its page in `docs/formats/` has this number.
const STORE: &str = "tables-2";
/// How the journal is stored: its page in `docs/formats/` has this number.
const JOURNAL: &str = "segments-3";
/// The way out for data that this build does not read.
const MOVE_DATA: &str = "To move the data: `statehouse export` with the release that created it, then `statehouse import` \
                         with this one";

/// The permanent identity of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Drawn at random; part of every hash in the journal.
    pub(crate) id: u64,
    pub(crate) buckets: Buckets,
}

/// Why an identity cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unusable {
    Damaged(String),
    OtherRelease(String),
}

impl Identity {
    pub(crate) fn encode(&self) -> String {
        let lines = format!(
            "statehouse directory\nformat {FORMAT}\nid {:016x}\nbuckets {}\nstore {STORE}\njournal {JOURNAL}\n",
            self.id,
            self.buckets.count()
        );
        format!("{lines}hash {:016x}\n", xxh3_64(lines.as_bytes()))
    }

    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let mut text = String::new();
        let read = owner_only::open(path).and_then(|mut file| file.read_to_string(&mut text));
        read.map_err(|error| crate::directory::cannot_use(path, "read", &error))?;
        Self::decode(&text).map_err(|unusable| {
            let file = path.display();
            cannot_open(match unusable {
                Unusable::Damaged(reason) => format!("{file} is damaged: {reason}; restore it from a copy"),
                Unusable::OtherRelease(reason) => format!("{file} is from another release: {reason}"),
            })
        })
    }

    fn decode(text: &str) -> Result<Self, Unusable> {
        let damaged = |reason: &str| Unusable::Damaged(reason.to_owned());
        let (lines, hash) = text.rsplit_once("hash ").ok_or_else(|| damaged("it has no hash"))?;
        if u64::from_str_radix(hash.trim_end(), 16) != Ok(xxh3_64(lines.as_bytes())) {
            return Err(damaged("its hash does not match its lines"));
        }
        let line = |name: &str| {
            let found = lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            found.ok_or_else(|| Unusable::Damaged(format!("it has no line {name:?}")))
        };
        if line("format")? != FORMAT.to_string() {
            return Err(Unusable::OtherRelease(format!(
                "its format is {}, this release reads {FORMAT}. {MOVE_DATA}",
                line("format")?
            )));
        }
        // Directories whose journal was kept by raft-engine do not say so.
        let journal = line("journal").unwrap_or("raft-engine");
        for (part, found, ours) in [("journal", journal, JOURNAL), ("store", line("store")?, STORE)] {
            if found != ours {
                let reason = format!("its {part} is {found:?}, this release reads {ours:?}. {MOVE_DATA}");
                return Err(Unusable::OtherRelease(reason));
            }
        }
        let id = u64::from_str_radix(line("id")?, 16).map_err(|error| Unusable::Damaged(error.to_string()))?;
        let buckets = line("buckets")?.parse().ok().and_then(Buckets::new);
        Ok(Self { id, buckets: buckets.ok_or_else(|| damaged("its number of buckets is impossible"))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_written_and_every_change_is_found() {
        let identity = Identity { id: 7, buckets: Buckets::default() };
        let text = identity.encode();
        assert_eq!(Identity::decode(&text), Ok(identity));
        for position in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[position] ^= 1;
            let changed = String::from_utf8(bytes).expect("still ASCII");
            assert!(Identity::decode(&changed).is_err(), "byte {position}");
        }
    }

    #[test]
    fn another_journal_or_store_is_refused_by_name_with_the_way_out() {
        let text = Identity { id: 7, buckets: Buckets::default() }.encode();
        let (lines, _) = text.rsplit_once("hash ").expect("a hash");
        for (lines, [theirs, ours]) in [
            (lines.replace("journal segments-3\n", ""), ["raft-engine", JOURNAL]),
            (lines.replace("segments-3", "segments-2"), ["segments-2", JOURNAL]),
            // Its manifests have format 1, and it has no second copies.
            (lines.replace("tables-2", "tables-1"), ["tables-1", STORE]),
        ] {
            let other = format!("{lines}hash {:016x}\n", xxh3_64(lines.as_bytes()));
            let Err(Unusable::OtherRelease(reason)) = Identity::decode(&other) else { panic!("it is read: {other}") };
            for part in [theirs, ours, "statehouse export", "statehouse import"] {
                assert!(reason.contains(part), "{part:?} in {reason}");
            }
        }
    }
}
