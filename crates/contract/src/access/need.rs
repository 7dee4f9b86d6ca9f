//! What a request would do: one verb to some things. A request may need several.

use std::fmt;

use super::{Area, Verb};

/// One thing that a request would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need<'request> {
    /// In which space; none if it is about all of them.
    pub space: Option<&'request str>,
    /// What it is done to.
    pub area: Area,
    /// What is done.
    pub verb: Verb,
    /// To which things.
    pub things: Things<'request>,
}

/// Things of a space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Things<'request> {
    /// One thing.
    One {
        /// Its group; none if it is alone.
        group: Option<&'request str>,
        /// Its name.
        name: &'request str,
    },
    /// All whose names begin with a prefix, in a group or in all groups.
    Prefix {
        /// The group; none for all groups.
        group: Option<&'request str>,
        /// The prefix.
        prefix: &'request str,
    },
    /// All of them.
    All,
}

impl Things<'_> {
    /// Whether all of them lie under a prefix: their names begin with it, or the name of their group does.
    pub fn are_under(&self, prefix: &str) -> bool {
        let (group, name) = match *self {
            Things::One { group, name } => (group, name),
            Things::Prefix { group, prefix } => (group, prefix),
            Things::All => (None, ""),
        };
        name.starts_with(prefix) || group.is_some_and(|group| group.starts_with(prefix))
    }
}

impl fmt::Display for Need<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { space, area, verb, things } = self;
        write!(formatter, "{verb} {area}")?;
        match things {
            Things::One { name, .. } => write!(formatter, " {name:?}")?,
            Things::Prefix { prefix, .. } if !prefix.is_empty() => write!(formatter, " that begin with {prefix:?}")?,
            Things::Prefix { .. } | Things::All => {}
        }
        if let Things::One { group: Some(group), .. } | Things::Prefix { group: Some(group), .. } = things {
            write!(formatter, " in group {group:?}")?;
        }
        match space {
            Some(space) => write!(formatter, " of space {space:?}"),
            None => formatter.write_str(" of every space"),
        }
    }
}
