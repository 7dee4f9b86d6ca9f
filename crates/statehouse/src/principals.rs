//! The principals of a store: who may do what, and by which tokens they are known.
//!
//! A store that is opened by a program asks nobody for a token: whoever can open the directory may do everything. These are for
//! servers, which ask here who sends a request and what that principal may do.

use std::sync::Arc;
use std::time::Duration;

use contract::access::principal::{check_principal, check_token_age};
use contract::access::token::TOKEN_SECRET_BYTES;
use contract::access::{Identity, IssuedToken, Principal, Token};
use contract::{AccessRejection, Error, Failure, FailureKind, Rejection};
use kernel::{AccessChange, CatalogueChange};

use crate::house::Statehouse;
use crate::sender::change;

/// How often an id is drawn again that another token has. It never happens with random numbers that are.
const DRAWS: usize = 4;

/// The principals of a store.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let house = statehouse::Statehouse::open(directory.path().join("house"))?;
/// use std::time::Duration;
/// use statehouse::Shown;
/// use statehouse::access::{Grant, Principal};
/// let principals = house.principals();
/// let grant = Grant::parse("worker@default/records/jobs.")?;
/// principals.set(&Principal::new("mailer").granted(grant))?;
/// let token = principals.issue_token("mailer", Duration::from_secs(3_600))?;
/// let shown = principals.authenticate(&token)?;
/// assert!(matches!(shown, Shown::By { principal, .. } if principal.name == "mailer"));
/// principals.revoke_token(token.id())?;
/// assert!(matches!(principals.authenticate(&token)?, Shown::ByNobody));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Principals {
    house: Statehouse,
}

/// What a store knows of a token that somebody shows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// It is the token of a principal.
    By {
        /// Who.
        principal: Arc<Principal>,
        /// The revision of the catalogue that says so.
        revision: u64,
    },
    /// It was the token of a principal.
    Expired {
        /// Until when it was good, µs since 1970 in UTC.
        at_us: u64,
    },
    /// It was revoked, or issued elsewhere, or made up.
    ByNobody,
}

impl Statehouse {
    /// The principals of this store.
    pub fn principals(&self) -> Principals {
        Principals { house: self.clone() }
    }
}

impl Principals {
    /// Sets what a principal may do and how it is known, or creates it. Its tokens stay as they are.
    pub fn set(&self, principal: &Principal) -> Result<(), Error> {
        principal.check()?;
        let principal = Principal { tokens: Vec::new(), ..principal.clone() };
        self.change(AccessChange::SetPrincipal(Box::new(principal)))
    }

    /// Removes a principal, and so its tokens.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        self.change(AccessChange::RemovePrincipal { principal: name.to_owned() })
    }

    /// A principal by name.
    pub fn get(&self, name: &str) -> Result<Arc<Principal>, Error> {
        Ok(self.house.shard.view()?.1.principals().named(name)?.clone())
    }

    /// All of them, by name.
    pub fn list(&self) -> Result<Vec<Arc<Principal>>, Error> {
        Ok(self.house.shard.view()?.1.principals().iter().cloned().collect())
    }

    /// Issues a token that is good for this long. Nobody can ask for its text again: the store keeps a digest.
    pub fn issue_token(&self, principal: &str, age: Duration) -> Result<Token, Error> {
        let age_us = checked_age(principal, age)?;
        for _ in 0..DRAWS {
            let token = draw_token()?;
            match self.issue(principal, &token, age_us) {
                Err(Error::Rejected(Rejection::AlreadyExists { .. })) => {}
                issued => return issued.map(|()| token),
            }
        }
        Err(Failure::not_applied(FailureKind::Bug, "the random numbers of the operating system repeat themselves")
            .into())
    }

    /// Issues a token that was drawn elsewhere, such as that of the first administrator.
    pub fn adopt_token(&self, principal: &str, token: &Token, age: Duration) -> Result<(), Error> {
        self.issue(principal, token, checked_age(principal, age)?)
    }

    fn issue(&self, principal: &str, token: &Token, age_us: u64) -> Result<(), Error> {
        let (id, digest) = (token.id().to_owned(), token.digest());
        self.change(AccessChange::IssueToken { principal: principal.to_owned(), id, digest, age_us })
    }

    /// Revokes a token: who shows it from now on is not known.
    pub fn revoke_token(&self, id: &str) -> Result<(), Error> {
        self.change(AccessChange::RevokeToken { id: id.to_owned() })
    }

    /// A token by its public part, expired or not, and whose it is.
    pub fn token(&self, id: &str) -> Result<(Arc<Principal>, IssuedToken), Error> {
        let (_, catalogue) = self.house.shard.view()?;
        let found = catalogue.principals().of_token(id);
        let (principal, token) = found.ok_or_else(|| AccessRejection::NoSuchToken { token: id.to_owned() })?;
        Ok((principal.clone(), token.clone()))
    }

    /// Who shows this token.
    pub fn authenticate(&self, token: &Token) -> Result<Shown, Error> {
        let catalogue = self.house.shard.shared.catalogue();
        // First, so that it takes the same time whether or not the id is known.
        let digest = token.digest();
        let found = catalogue.principals().of_token(token.id());
        Ok(match found.filter(|(_, issued)| issued.digest == digest) {
            None => Shown::ByNobody,
            Some((_, issued)) if !issued.is_live(self.now_us()) => Shown::Expired { at_us: issued.expires_us },
            Some((principal, _)) => Shown::By { principal: principal.clone(), revision: catalogue.revision },
        })
    }

    /// Who is known by an identity, and the revision of the catalogue that says so.
    pub fn known_as(&self, identity: &Identity) -> Result<Option<(Arc<Principal>, u64)>, Error> {
        let catalogue = self.house.shard.shared.catalogue();
        Ok(catalogue.principals().known_as(identity).map(|principal| (principal.clone(), catalogue.revision)))
    }

    /// The time by which tokens are judged, µs since 1970 in UTC.
    pub fn now_us(&self) -> u64 {
        self.house.shard.clock().wall_us()
    }

    /// Whether nobody was ever created, or everybody was removed.
    pub fn is_empty(&self) -> bool {
        self.house.shard.shared.catalogue().principals().is_empty()
    }

    fn change(&self, of: AccessChange) -> Result<(), Error> {
        change(&self.house.shard, self.house.sender.as_ref(), CatalogueChange::Access(of))
    }
}

fn checked_age(principal: &str, age: Duration) -> Result<u64, Error> {
    check_principal(principal)?;
    check_token_age(principal, age)?;
    Ok(u64::try_from(age.as_micros()).unwrap_or(u64::MAX))
}

/// Draws a token with the randomness of the operating system. Nobody is known by it until it is
/// [adopted](Principals::adopt_token).
pub fn draw_token() -> Result<Token, Error> {
    let (mut id, mut secret) = ([0; 8], [0; TOKEN_SECRET_BYTES]);
    let drawn = getrandom::fill(&mut id).and_then(|()| getrandom::fill(&mut secret));
    drawn.map_err(|error| {
        let message = format!("the operating system gave no random bytes for a token: {error}");
        Failure::not_applied(FailureKind::Busy, message)
    })?;
    Ok(Token::of(u64::from_be_bytes(id), secret))
}
