//! Principals as catalogue state: who may do what, by which tokens and identities they are known, and their bytes.
//!
//! Keeps: no two principals have the same identity, and no two tokens the same id. What a principal may do is decided where
//! a request arrives, once; nothing here is asked when a command is applied.

mod bytes;
mod change;

use std::collections::BTreeMap;
use std::sync::Arc;

use contract::access::{Identity, IssuedToken, Principal};
use contract::limits::PRINCIPALS_MAX;
use contract::{AccessRejection, Rejection};

pub(super) use bytes::{decode_row, encode_row};
pub use change::AccessChange;

/// The principals of a store.
#[derive(Clone, Debug, Default)]
pub struct Principals {
    by_name: BTreeMap<String, Arc<Principal>>,
    of_tokens: BTreeMap<String, Arc<Principal>>,
    of_identities: BTreeMap<Identity, Arc<Principal>>,
}

impl Principals {
    /// A principal by name.
    pub fn named(&self, name: &str) -> Result<&Arc<Principal>, AccessRejection> {
        self.by_name.get(name).ok_or_else(|| AccessRejection::NoSuchPrincipal { principal: name.to_owned() })
    }

    /// The token with this id, and whose it is. It may have expired.
    pub fn of_token(&self, id: &str) -> Option<(&Arc<Principal>, &IssuedToken)> {
        let principal = self.of_tokens.get(id)?;
        principal.tokens.iter().find(|token| token.id == id).map(|token| (principal, token))
    }

    /// The principal that is known by this.
    pub fn known_as(&self, identity: &Identity) -> Option<&Arc<Principal>> {
        self.of_identities.get(identity)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Principal>> {
        self.by_name.values()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Adds a principal in place of the one that has its name.
    pub(super) fn put(&mut self, principal: Principal) {
        self.take(&principal.name);
        let principal = Arc::new(principal);
        for token in &principal.tokens {
            self.of_tokens.insert(token.id.clone(), principal.clone());
        }
        for identity in &principal.identities {
            self.of_identities.insert(identity.clone(), principal.clone());
        }
        self.by_name.insert(principal.name.clone(), principal);
    }

    /// Removes a principal; whether there was one.
    fn take(&mut self, name: &str) -> bool {
        let Some(removed) = self.by_name.remove(name) else { return false };
        for token in &removed.tokens {
            self.of_tokens.remove(&token.id);
        }
        for identity in &removed.identities {
            self.of_identities.remove(identity);
        }
        true
    }

    /// Sets what a principal may do and how it is known. It keeps its tokens that are live.
    fn set(&mut self, principal: &Principal, now_us: u64) -> Result<(), Rejection> {
        let before = self.by_name.get(&principal.name);
        if before.is_none() {
            Rejection::check_limit("principals_max", PRINCIPALS_MAX, self.by_name.len() + 1)?;
        }
        let taken = |identity: &&Identity| self.known_as(identity).is_some_and(|other| other.name != principal.name);
        if let Some(identity) = principal.identities.iter().find(taken) {
            let other = self.known_as(identity).map(|other| other.name.clone()).unwrap_or_default();
            let identity = identity.to_string();
            return Err(AccessRejection::IdentityTaken { identity, principal: other }.into());
        }
        let tokens = before.map(|before| before.live_tokens(now_us).cloned().collect()).unwrap_or_default();
        self.put(Principal { tokens, ..principal.clone() });
        Ok(())
    }

    /// Adds a token to those of a principal. Those that have expired are forgotten.
    fn issue(&mut self, principal: &str, token: &IssuedToken) -> Result<(), Rejection> {
        if self.of_tokens.contains_key(&token.id) {
            return Err(Rejection::AlreadyExists { what: "token", name: token.id.clone() });
        }
        let before = self.named(principal)?;
        before.check_room_for_token(token.issued_us)?;
        let tokens = before.live_tokens(token.issued_us).chain([token]).cloned().collect();
        let after = Principal { tokens, ..Principal::clone(before) };
        self.put(after);
        Ok(())
    }

    /// Forgets a token. Returns whose it was.
    fn revoke(&mut self, id: &str) -> Result<String, AccessRejection> {
        let owner = self.of_tokens.get(id);
        let owner = owner.ok_or_else(|| AccessRejection::NoSuchToken { token: id.to_owned() })?;
        let tokens = owner.tokens.iter().filter(|token| token.id != id).cloned().collect();
        let after = Principal { tokens, ..Principal::clone(owner) };
        let name = after.name.clone();
        self.put(after);
        Ok(name)
    }
}

/// The same principals, whatever is derived from them.
impl PartialEq for Principals {
    fn eq(&self, other: &Self) -> bool {
        self.by_name == other.by_name
    }
}

impl Eq for Principals {}

#[cfg(test)]
mod tests;
