//! The scope of a request: its space, branch and group, its session, and what it may do there besides what anybody may. Each
//! contract adds its own handle to [`Handles`].

use contract::catalogue::DEFAULT_SPACE;
use contract::{AttemptPlace, SessionSecret};
use statehouse::{Group, Space, Statehouse};
use wire::owners::OwnerToken;

use super::refusal::Refusal;

/// The header by which a request shows that its sender owns the group.
pub(crate) const OWNER: &str = "Statehouse-Owner";

/// The header of a request that is written without the fences that a guard requires, or takes a group from its owner.
pub(crate) const FORCE: &str = "Statehouse-Force";

/// The scope of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestScope {
    pub(crate) space: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) session: Option<InSession>,
    /// The secret shown for that session, or for the one in the path.
    pub(crate) secret: Option<SessionSecret>,
    /// The attempt by which the sender owns the group.
    pub(crate) owner: Option<ShownToken>,
    /// Whether it is written without the fences that a guard requires.
    pub(crate) force: bool,
}

/// A numbered request of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InSession {
    pub(crate) session: u64,
    pub(crate) request: u64,
    pub(crate) lowest_pending: u64,
}

/// The token of a group's owner, and the header or the member that it was in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownToken {
    pub(crate) token: OwnerToken,
    pub(crate) member: &'static str,
}

/// The scope of a request in an open store.
pub(crate) struct Handles {
    /// The space, for what anybody may do.
    pub(crate) space: Space,
    /// The space, for what this request may do.
    allowed: Space,
    group: Option<Group>,
}

impl RequestScope {
    /// Opens the scope, in the session if there is one and its secret was shown.
    pub(crate) fn open(&self, house: &Statehouse) -> Result<Handles, Refusal> {
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
        let allowed = if self.force { space.forced() } else { space.clone() };
        let group = match (&self.group, &self.owner) {
            (None, None) => None,
            (Some(group), None) => Some(allowed.group(group)),
            (group, Some(owner)) => {
                // What is checked here and what is written to is one branch, whoever deletes and creates it meanwhile.
                let allowed = allowed.pinned()?;
                let attempt = owner.attempt_in(house, &allowed, group.as_deref())?;
                group.as_ref().map(|group| Group::clone(&allowed.group(group).owned(attempt)))
            }
        };
        Ok(Handles { space, allowed, group })
    }

    /// Opens the scope in the group that the path or the body names.
    pub(crate) fn open_group(self, house: &Statehouse, group: &str) -> Result<(Handles, Group), Refusal> {
        let handles = Self { group: Some(group.to_owned()), ..self }.open(house)?;
        let group = handles.group.clone().unwrap_or_else(|| handles.allowed.group(group));
        Ok((handles, group))
    }
}

impl ShownToken {
    /// The attempt by which it owns a group in a pinned place. The token of another group, place or history proves nothing
    /// here.
    pub(crate) fn attempt_in(&self, house: &Statehouse, place: &Space, group: Option<&str>) -> Result<u64, Refusal> {
        let Self { token, member } = self;
        let (owned, attempt) = (token.group.as_str(), token.attempt);
        if Some(owned) != group {
            let named =
                group.map_or_else(|| "names no group".to_owned(), |group| format!("is for the group {group:?}"));
            let detail = format!("{member} is a token of the group {owned:?}, but the request {named}");
            return Err(Refusal::invalid(member, detail));
        }
        let (meant, is) = ((token.space.as_str(), token.branch.as_str()), (place.name(), place.branch_name()));
        if meant != is {
            let words = |(space, branch): (&str, &str)| format!("branch {branch:?} of space {space:?}");
            let detail = format!("{member} is a token for {}, but the request is for {}", words(meant), words(is));
            return Err(Refusal::invalid(member, detail));
        }
        let (history, branch) = (token.history, token.branch_number);
        check_place(house, place, member, AttemptPlace { history, branch })?;
        Ok(attempt)
    }
}

/// Refuses the number of an attempt of another history, or of another branch than that of the space.
pub(crate) fn check_place(
    house: &Statehouse,
    space: &Space,
    member: &'static str,
    place: AttemptPlace,
) -> Result<(), Refusal> {
    let AttemptPlace { history, branch } = place;
    if history != house.history() {
        return Err(Refusal::OtherHistory { member, meant: history, is: house.history() });
    }
    let (name, number) = (space.branch_name(), space.branch_number()?);
    if branch != number {
        let detail = format!(
            "{member} is a token for the branch with the number {branch}, but the request is for branch {name:?}, which has \
             the number {number}"
        );
        return Err(Refusal::invalid(member, detail));
    }
    Ok(())
}

impl Handles {
    /// What the scope has of one contract: of the group, or of the whole space.
    pub(crate) fn of<T>(&self, in_group: impl FnOnce(&Group) -> T, in_space: impl FnOnce(&Space) -> T) -> T {
        match &self.group {
            Some(group) => in_group(group),
            None => in_space(&self.allowed),
        }
    }

    /// The space, for what this request may do.
    pub(crate) fn allowed(&self) -> &Space {
        &self.allowed
    }

    /// Whether the answer was stored by an earlier sending of the request.
    pub(crate) fn replayed(&self) -> bool {
        self.space.was_replayed()
    }
}
