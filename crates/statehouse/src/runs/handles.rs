//! Where runs are reached from.

use contract::catalogue::DEFAULT_SPACE;

use super::Runs;
use crate::group::Group;
use crate::house::{Space, Statehouse};
use crate::sessions::Session;

impl Statehouse {
    /// Runs of the space `default`, branch `main`, each in its own group.
    pub fn runs(&self) -> Runs {
        self.default_space().runs()
    }
}

impl Space {
    /// Runs of this branch, each in its own group.
    pub fn runs(&self) -> Runs {
        Runs { scope: self.scope.clone(), group: None }
    }
}

impl Group {
    /// The runs of this group.
    pub fn runs(&self) -> Runs {
        Runs { scope: self.scope.clone(), group: Some(self.name.clone()) }
    }
}

impl Session {
    /// Runs of the space `default`, in this session.
    pub fn runs(&self) -> Runs {
        self.space(DEFAULT_SPACE).runs()
    }
}
