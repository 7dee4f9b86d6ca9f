//! The scope of a request: its space, branch and group, and its session. Each contract adds its own handle to [`Handles`].

use contract::catalogue::DEFAULT_SPACE;
use contract::{Error, SessionSecret};
use statehouse::{Group, Space, Statehouse};

/// The scope of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestScope {
    pub(crate) space: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) session: Option<InSession>,
    /// The secret shown for that session, or for the one in the path.
    pub(crate) secret: Option<SessionSecret>,
}

/// A numbered request of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InSession {
    pub(crate) session: u64,
    pub(crate) request: u64,
    pub(crate) lowest_pending: u64,
}

/// The scope of a request in an open store.
pub(crate) struct Handles {
    pub(crate) space: Space,
    group: Option<String>,
}

impl RequestScope {
    /// Opens the scope, in the session if there is one and its secret was shown.
    pub(crate) fn open(&self, house: &Statehouse) -> Result<Handles, Error> {
        let name = self.space.as_deref().unwrap_or(DEFAULT_SPACE);
        let space = match self.session {
            None => house.space(name),
            Some(InSession { session, request, lowest_pending }) => {
                let sessions = house.sessions();
                let shown = sessions.shown(session, self.secret.clone())?;
                sessions.request_in(&shown, request, lowest_pending, name)?
            }
        };
        let space = match &self.branch {
            Some(branch) => space.branch(branch),
            None => space,
        };
        Ok(Handles { space, group: self.group.clone() })
    }
}

impl Handles {
    /// What the scope has of one contract: of the group, or of the whole space.
    pub(crate) fn of<T>(&self, in_group: impl FnOnce(Group) -> T, in_space: impl FnOnce(&Space) -> T) -> T {
        match &self.group {
            Some(group) => in_group(self.space.group(group)),
            None => in_space(&self.space),
        }
    }

    /// Whether the answer was stored by an earlier sending of the request.
    pub(crate) fn replayed(&self) -> bool {
        self.space.was_replayed()
    }
}
