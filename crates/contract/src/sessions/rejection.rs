//! Why a call on a session is refused.

use crate::facts::{Class, Facts, Members, members};

/// A deterministic "no" about a session. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionRejection {
    /// The session is unknown: never opened here, closed or expired. The command was not executed.
    #[error("the session is unknown or has expired; the command was not executed [SH-5004]")]
    Expired,
    /// The client no longer waits for this request. It was not executed now; whether it was executed before is no
    /// longer known.
    #[error(
        "request {request} is below {floor}, the lowest the session still waits for; it was not executed now [SH-5003]"
    )]
    Evicted {
        /// The request.
        request: u64,
        /// The lowest request that is still answered.
        floor: u64,
    },
    /// The session has executed another command under this number. This one was not executed.
    #[error(
        "request {request} was already used for another command; this one was not executed: send it with an unused number [SH-5006]"
    )]
    RequestReused {
        /// The request.
        request: u64,
    },
    /// A session has reached a limit. The command was not executed.
    #[error("the session has reached {limit} = {max}; release answers or acknowledge pushes, then retry [SH-5001]")]
    Busy {
        /// The limit's name.
        limit: &'static str,
        /// The limit.
        max: u64,
    },
    /// The session exists, and the secret shown is not its own, or none was shown. Nothing was done.
    #[error(
        "the secret of the session is missing or wrong; nothing was done: show the one that its creation returned [SH-5007]"
    )]
    WrongSecret,
    /// The session belongs to another space. Nothing was done.
    #[error("the session belongs to space {space:?}, and acts nowhere else; open another one there [SH-5008]")]
    OtherSpace {
        /// The space of the session.
        space: String,
    },
    /// The user's machine cannot read the command.
    #[error("machine {machine} cannot read the command; nothing was changed [SH-5005]")]
    UnreadableCommand {
        /// The machine's number.
        machine: u16,
    },
}

impl SessionRejection {
    /// What everybody must know of it.
    pub fn facts(&self) -> Facts {
        match self {
            Self::Expired => Facts::of("SH-5004", Class::Gone),
            Self::Evicted { .. } => Facts::of("SH-5003", Class::Gone),
            Self::Busy { .. } => Facts::retryable("SH-5001", Class::Busy),
            Self::RequestReused { .. } => Facts::of("SH-5006", Class::Unprocessable),
            Self::WrongSecret => Facts::of("SH-5007", Class::Forbidden),
            Self::OtherSpace { .. } => Facts::of("SH-5008", Class::Unprocessable),
            Self::UnreadableCommand { .. } => Facts::of("SH-5005", Class::Invalid),
        }
    }

    /// What a caller needs next, as members of JSON.
    pub fn members(&self) -> Members {
        match self {
            Self::Expired | Self::WrongSecret => members![],
            Self::Evicted { request, floor } => members!["request" => request, "floor" => floor],
            Self::Busy { limit, max } => members!["limit" => limit, "max" => max],
            Self::RequestReused { request } => members!["request" => request],
            Self::OtherSpace { space } => members!["space" => space],
            Self::UnreadableCommand { machine } => members!["machine" => machine],
        }
    }
}
