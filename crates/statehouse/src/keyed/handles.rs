//! Where keyed state is reached from.

use contract::catalogue::DEFAULT_SPACE;

use super::{Maps, Operator};
use crate::group::Group;
use crate::house::{Space, Statehouse};
use crate::sessions::Session;

impl Statehouse {
    /// Maps of the space `default`, branch `main`, each in its own group.
    pub fn maps(&self) -> Maps {
        self.default_space().maps()
    }

    /// An operator of the space `default`, branch `main`.
    pub fn keyed(&self, operator: impl Into<String>) -> Operator {
        self.default_space().keyed(operator)
    }
}

impl Space {
    /// Maps of this branch, each in its own group.
    pub fn maps(&self) -> Maps {
        Maps { scope: self.scope.clone(), group: None }
    }

    /// An operator of this branch.
    pub fn keyed(&self, operator: impl Into<String>) -> Operator {
        Operator::new(self.clone(), operator.into())
    }
}

impl Group {
    /// The maps of this group.
    pub fn maps(&self) -> Maps {
        Maps { scope: self.scope.clone(), group: Some(self.name.clone()) }
    }
}

impl Session {
    /// Maps of the space `default`, in this session.
    pub fn maps(&self) -> Maps {
        self.space(DEFAULT_SPACE).maps()
    }
}
