//! Why a call about principals and tokens is refused. What nobody may do is refused before it is a call.

use crate::facts::{Class, Facts, Members, members};

/// A deterministic "no" about a principal or a token. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessRejection {
    /// There is no such principal.
    #[error("there is no principal {principal:?} [SH-6003]")]
    NoSuchPrincipal {
        /// Its name.
        principal: String,
    },
    /// There is no such token: it was revoked, or its principal is gone, or it never was.
    #[error("there is no token {token:?} [SH-6004]")]
    NoSuchToken {
        /// Its id.
        token: String,
    },
    /// A principal has as many live tokens as it may have.
    #[error("principal {principal:?} has {max} live tokens already; revoke one of them first [SH-6005]")]
    TokensInUse {
        /// Its name.
        principal: String,
        /// The limit.
        max: u64,
    },
    /// Another principal is known by this already.
    #[error("{identity:?} is an identity of principal {principal:?} already [SH-6006]")]
    IdentityTaken {
        /// The identity.
        identity: String,
        /// Whose it is.
        principal: String,
    },
}

impl AccessRejection {
    /// What everybody must know of it.
    pub fn facts(&self) -> Facts {
        match self {
            Self::NoSuchPrincipal { .. } => Facts::of("SH-6003", Class::NotFound),
            Self::NoSuchToken { .. } => Facts::of("SH-6004", Class::NotFound),
            Self::TokensInUse { .. } => Facts::of("SH-6005", Class::Conflict),
            Self::IdentityTaken { .. } => Facts::of("SH-6006", Class::Conflict),
        }
    }

    /// What a caller needs next, as members of JSON.
    pub fn members(&self) -> Members {
        match self {
            Self::NoSuchPrincipal { principal } => members!["principal" => principal],
            Self::NoSuchToken { token } => members!["token" => token],
            Self::TokensInUse { principal, max } => members!["principal" => principal, "max" => max],
            Self::IdentityTaken { identity, principal } => members!["identity" => identity, "principal" => principal],
        }
    }
}
