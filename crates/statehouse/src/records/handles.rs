//! Where records are reached from.

use contract::catalogue::DEFAULT_SPACE;

use super::Records;
use crate::group::Group;
use crate::house::{Space, Statehouse};
use crate::sessions::Session;

impl Statehouse {
    /// Records of the space `default`, branch `main`, each in its own group.
    pub fn records(&self) -> Records {
        self.default_space().records()
    }
}

impl Space {
    /// Records of this branch, each in its own group.
    pub fn records(&self) -> Records {
        Records::new(self.scope.clone(), None)
    }
}

impl Group {
    /// The records of this group.
    pub fn records(&self) -> Records {
        Records::new(self.scope.clone(), Some(self.name.clone()))
    }
}

impl Session {
    /// Records of the space `default`, in this session.
    pub fn records(&self) -> Records {
        self.space(DEFAULT_SPACE).records()
    }
}
