//! Which thing: a cell, a record or a run.

/// The place and the name of a thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) space: u32,
    pub(crate) branch: u32,
    /// None if it is the name.
    pub(crate) group: Option<String>,
    pub(crate) name: String,
}

impl Id {
    pub(crate) fn new(space: u32, branch: u32, group: Option<&str>, name: &str) -> Self {
        let group = group.filter(|group| *group != name).map(str::to_owned);
        Self { space, branch, group, name: name.to_owned() }
    }

    /// Space and branch.
    pub(crate) fn place(&self) -> (u32, u32) {
        (self.space, self.branch)
    }

    /// The group that it is in.
    pub(crate) fn home(&self) -> &str {
        self.group.as_deref().unwrap_or(&self.name)
    }

    /// Another thing of its group.
    pub(crate) fn sibling(&self, name: &str) -> Self {
        Self::new(self.space, self.branch, Some(self.home()), name)
    }

    /// Its queue: the name up to the last separator, at most the eighth.
    pub(crate) fn queue(&self) -> &str {
        let separators = self.name.char_indices().filter(|(_, letter)| ".:/".contains(*letter));
        separators.take(8).last().map_or("", |(at, _)| &self.name[..=at])
    }
}
