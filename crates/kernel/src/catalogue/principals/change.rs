//! Changes of principals and tokens.

use std::sync::Arc;

use contract::access::token::TokenDigest;
use contract::access::{IssuedToken, Principal};
use contract::{AccessRejection, RefusalReason, Rejection};
use kv::{DecodeError, Reader, Staging, Writer};

use super::bytes::{decode, decode_digest, encode};
use super::encode_row;
use crate::LEVEL_OF_ACCESS;
use crate::catalogue::Catalogue;
use crate::keys::Keys;

/// A change of principals and tokens. What is in it was checked where it arrived; here, whether it fits to what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessChange {
    /// Sets what a principal may do and how it is known, or creates it. Its tokens are not touched.
    SetPrincipal(Box<Principal>),
    /// Removes a principal, and so its tokens.
    RemovePrincipal {
        /// Its name.
        principal: String,
    },
    /// Issues a token, from the stamp of the command on.
    IssueToken {
        /// Whose.
        principal: String,
        /// Its public part.
        id: String,
        /// What is kept of its secret.
        digest: TokenDigest,
        /// How long it is good, in µs.
        age_us: u64,
    },
    /// Revokes a token.
    RevokeToken {
        /// Its public part.
        id: String,
    },
}

const SET_PRINCIPAL: u8 = 1;
const REMOVE_PRINCIPAL: u8 = 2;
const ISSUE_TOKEN: u8 = 3;
const REVOKE_TOKEN: u8 = 4;

impl AccessChange {
    pub(in crate::catalogue) fn encode<'writer>(&self, writer: &'writer mut Writer) -> &'writer mut Writer {
        match self {
            Self::SetPrincipal(principal) => encode(writer.u8(SET_PRINCIPAL), principal),
            Self::RemovePrincipal { principal } => writer.u8(REMOVE_PRINCIPAL).bytes(principal.as_bytes()),
            Self::IssueToken { principal, id, digest, age_us } => {
                writer.u8(ISSUE_TOKEN).bytes(principal.as_bytes()).bytes(id.as_bytes());
                writer.raw(digest.as_bytes()).u64(*age_us)
            }
            Self::RevokeToken { id } => writer.u8(REVOKE_TOKEN).bytes(id.as_bytes()),
        }
    }

    pub(in crate::catalogue) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            SET_PRINCIPAL => Self::SetPrincipal(Box::new(decode(reader)?)),
            REMOVE_PRINCIPAL => Self::RemovePrincipal { principal: reader.text()?.to_owned() },
            ISSUE_TOKEN => Self::IssueToken {
                principal: reader.text()?.to_owned(),
                id: reader.text()?.to_owned(),
                digest: decode_digest(reader)?,
                age_us: reader.u64()?,
            },
            REVOKE_TOKEN => Self::RevokeToken { id: reader.text()?.to_owned() },
            _ => return Err(DecodeError { what: "a change of principals of an unknown kind" }),
        })
    }
}

impl Catalogue {
    /// Applies a change of principals and tokens, here and in the rows.
    pub(in crate::catalogue) fn change_access(
        &mut self,
        change: &AccessChange,
        now_us: u64,
        keys: &Keys,
        state: &mut Staging,
    ) -> Result<(), Rejection> {
        if self.level < LEVEL_OF_ACCESS {
            let what = "a principal or a token".to_owned();
            return Err(Rejection::InvalidDeclaration { what, reason: RefusalReason::OlderLevel });
        }
        // Copied only if somebody reads it meanwhile.
        let principals = Arc::make_mut(&mut self.principals);
        let changed = match change {
            AccessChange::SetPrincipal(principal) => {
                principals.set(principal, now_us)?;
                principal.name.clone()
            }
            AccessChange::RemovePrincipal { principal } => {
                if !principals.take(principal) {
                    return Err(AccessRejection::NoSuchPrincipal { principal: principal.clone() }.into());
                }
                principal.clone()
            }
            AccessChange::IssueToken { principal, id, digest, age_us } => {
                let expires_us = now_us.saturating_add(*age_us);
                let (id, digest) = (id.clone(), *digest);
                principals.issue(principal, &IssuedToken { id, digest, issued_us: now_us, expires_us })?;
                principal.clone()
            }
            AccessChange::RevokeToken { id } => principals.revoke(id)?,
        };
        let key = keys.catalogue_principal(&changed);
        match self.principals.named(&changed) {
            Ok(principal) => state.put(key, encode_row(principal)),
            Err(_) => state.delete(key),
        }
        Ok(())
    }
}
