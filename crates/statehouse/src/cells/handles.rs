//! Where cells are reached from.

use contract::catalogue::DEFAULT_SPACE;

use super::Cells;
use crate::group::Group;
use crate::house::{Space, Statehouse};
use crate::sessions::Session;

impl Statehouse {
    /// Cells of the space `default`, branch `main`, each in its own group.
    pub fn cells(&self) -> Cells {
        self.default_space().cells()
    }
}

impl Space {
    /// Cells of this branch, each in its own group.
    pub fn cells(&self) -> Cells {
        Cells::new(self.scope.clone(), None)
    }
}

impl Group {
    /// The cells of this group.
    pub fn cells(&self) -> Cells {
        Cells::new(self.scope.clone(), Some(self.name.clone()))
    }
}

impl Session {
    /// Cells of the space `default`, in this session.
    pub fn cells(&self) -> Cells {
        self.space(DEFAULT_SPACE).cells()
    }
}
