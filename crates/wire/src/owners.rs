//! Guarded groups and their owners: `guards.*` and `groups.*`.

use std::fmt;
use std::ops::Deref;

use contract::guards::OwnerToken as Attempt;

use crate::opaque::opaque;
use crate::schema::{left_out, object};
use crate::values::{DurationText, SessionId};

/// The attempt that owns a group, as text: its owner keeps it, and sends it back unchanged with every write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerToken(pub Attempt);

impl OwnerToken {
    /// Reads what a server issued.
    pub fn parse(text: &str) -> Option<Self> {
        Attempt::parse(text).map(Self)
    }
}

impl Deref for OwnerToken {
    type Target = Attempt;

    fn deref(&self) -> &Attempt {
        &self.0
    }
}

impl fmt::Display for OwnerToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

opaque! {
    OwnerToken: "token of a group", "^[!-~]+#[0-9]{1,20}#h[0-9a-f]{16}(#[!-~]+#[!-~]+#[0-9]{1,10})?$",
}

object! {
    /// The holder of a record, and so the owner of a group.
    answer Holder {
        /// The worker's own name, if it gave one.
        worker: Option<String>,
        /// The session of the claim, if there was one.
        session: Option<SessionId>,
        /// The remaining lease.
        lease_ms: u64,
    }

    /// Guards the groups whose names begin with a prefix: only their owner writes them.
    request SetGuard {
        /// Names, and prefixes of names, that anybody may create, and append to.
        open: Option<Vec<String>>,
    }

    /// A guard.
    answer ShownGuard {
        /// The prefix of group names.
        prefix: String,
        /// Names, and prefixes of names, that anybody may create, and append to.
        open: Vec<String>,
    }

    /// The guards of a space.
    answer GuardList {
        /// The guards, by prefix.
        guards: Vec<ShownGuard>,
    }

    /// Owns a group.
    request OwnGroup {
        /// The worker's own name, shown in answers.
        worker: Option<String>,
        /// The lease; 30 s by default.
        lease: Option<DurationText>,
        /// How long to wait if another owns it; at most a minute.
        wait: Option<DurationText>,
    }

    /// A group that the caller owns.
    answer GroupOwned {
        /// The group.
        group: String,
        /// The attempt's token: keep it, and send it as `Statehouse-Owner` with every write.
        token: String,
        /// The attempt. It only rises.
        attempt: u64,
    }

    /// The owner of a group.
    answer GroupOwner {
        /// The group.
        group: String,
        /// The prefix of the guard that decides about the group; null if it is not guarded.
        guard: Option<String>,
        /// Who owns it; null if nobody does.
        holder: Option<Holder>,
    }

    /// Owns a group longer.
    request ExtendOwner {
        /// The token of the attempt.
        token: OwnerToken,
        /// The lease from now on; 30 s by default.
        lease: Option<DurationText>,
    }

    /// Gives a group up.
    request ReleaseOwner {
        /// The token of the attempt.
        token: OwnerToken,
    }
}

left_out! {
    SetGuard { open }
    OwnGroup { worker, lease, wait }
}

impl OwnGroup {
    /// Owns a group as the worker of this name.
    pub fn by(worker: impl Into<String>) -> Self {
        Self { worker: Some(worker.into()), ..Self::default() }
    }
}

impl SetGuard {
    /// A guard with these open names.
    pub fn open<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self { open: Some(names.into_iter().map(Into::into).collect()) }
    }
}
