//! Who sends a request: found from its head and its connection, before its body is read.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use contract::access::{Area, Grant, Identity, Need, Principal, Token, Verb};
use statehouse::{Sender, Shown, Statehouse};

use crate::problem::Problem;
use crate::transport::{ClientCertificate, Peer, UNMAPPED_USER};

/// Who sends a request.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// Whoever reaches the server: it asks nobody for a token.
    Anybody,
    /// Nobody in particular, on a server that asks.
    Unknown(Stranger),
    /// A principal, and the revision of the catalogue that says what it may do.
    Known {
        principal: Arc<Principal>,
        revision: u64,
        /// By what it is known.
        by: KnownBy,
    },
}

/// By what a principal is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownBy {
    /// The public part of a token.
    Token(String),
    /// A certificate, until it expires, µs since 1970 in UTC.
    Certificate { not_after_us: u64 },
    /// The user of a process on this machine.
    User,
}

/// What somebody shows who is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// Nothing.
    Silent,
    /// A certificate with URIs that no principal has, or with none.
    Certificate,
    /// A certificate with URIs that are of more than one identity.
    Ambiguous,
    /// A certificate that was valid when its connection began.
    ExpiredCertificate { not_after_us: u64 },
    /// A user of this machine that is no principal.
    User(u32),
    /// A user of this machine that the system does not name.
    UnmappedUser,
}

/// Whether a server asks who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identification {
    /// It does not: whoever reaches it may do everything.
    Off,
    /// It does.
    Required,
}

impl Caller {
    /// Who has sent a request with this head over a connection. A token decides if there is one, and otherwise the connection.
    pub(crate) fn of(
        identification: Identification,
        headers: &HeaderMap,
        peer: &Peer,
        house: &Statehouse,
    ) -> Result<Self, Problem> {
        if identification == Identification::Off {
            return Ok(Self::Anybody);
        }
        let Some(token) = bearer(headers)? else { return Self::of_peer(peer, house) };
        match house.principals().authenticate(&token).map_err(Problem::from)? {
            Shown::By { principal, revision } => {
                Ok(Self::Known { principal, revision, by: KnownBy::Token(token.id().to_owned()) })
            }
            Shown::Expired { at_us } => Err(Problem::token_expired(token.id(), at_us)),
            _ => Err(Problem::token_unknown(token.id())),
        }
    }

    /// Who has begun a connection.
    fn of_peer(peer: &Peer, house: &Statehouse) -> Result<Self, Problem> {
        match peer {
            Peer::Tcp | Peer::Tls(None) => Ok(Self::Unknown(Stranger::Silent)),
            Peer::Tls(Some(certificate)) => Self::of_certificate(certificate, house),
            Peer::User(UNMAPPED_USER) => Ok(Self::Unknown(Stranger::UnmappedUser)),
            Peer::User(user) => {
                let known = house.principals().known_as(&Identity::User(*user)).map_err(Problem::from)?;
                Ok(match known {
                    Some((principal, revision)) => Self::Known { principal, revision, by: KnownBy::User },
                    None => Self::Unknown(Stranger::User(*user)),
                })
            }
        }
    }

    /// Exactly one of the URIs must be an identity of a principal: which of two the sender means to be, nobody can say.
    fn of_certificate(certificate: &ClientCertificate, house: &Statehouse) -> Result<Self, Problem> {
        let (principals, not_after_us) = (house.principals(), certificate.not_after_us());
        if principals.now_us() > not_after_us {
            return Ok(Self::Unknown(Stranger::ExpiredCertificate { not_after_us }));
        }
        let known: Result<Vec<_>, _> = certificate.uris.iter().map(|uri| principals.known_as(uri)).collect();
        let mut known = known.map_err(Problem::from)?.into_iter().flatten();
        Ok(match (known.next(), known.next()) {
            (None, _) => Self::Unknown(Stranger::Certificate),
            (Some((principal, revision)), None) => {
                Self::Known { principal, revision, by: KnownBy::Certificate { not_after_us } }
            }
            (Some(_), Some(_)) => Self::Unknown(Stranger::Ambiguous),
        })
    }

    /// Refuses a request that needs more than was granted to its sender.
    pub(crate) fn authorize(&self, needs: &[Need<'_>]) -> Result<(), Problem> {
        match self {
            Self::Anybody => Ok(()),
            Self::Unknown(stranger) => Err(Problem::stranger(stranger)),
            Self::Known { principal, .. } => match self.lacks(needs) {
                None => Ok(()),
                Some(need) => Err(Problem::not_granted(&principal.name, need)),
            },
        }
    }

    /// What a request needs that was not granted to its sender.
    pub(crate) fn lacks<'needs, 'request>(&self, needs: &'needs [Need<'request>]) -> Option<&'needs Need<'request>> {
        match self {
            #[cfg(feature = "canary")]
            Self::Known { principal, .. } if crate::canary::Hole::Ranges.is_open() => needs.iter().find(|need| {
                let from = match need.things {
                    contract::access::Things::Prefix { prefix, .. } => Some(prefix),
                    _ => None,
                };
                let begins = |grant: &Grant| {
                    grant.verbs.has(need.verb) && from.is_some_and(|from| grant.prefix.starts_with(from))
                };
                !principal.may(need) && !principal.grants.iter().any(begins)
            }),
            Self::Known { principal, .. } => needs.iter().find(|need| !principal.may(need)),
            Self::Anybody | Self::Unknown(_) => None,
        }
    }

    /// Whether it may do something in some space.
    pub(crate) fn has_somewhere(&self, verb: Verb, area: Area) -> bool {
        let permits = |grant: &Grant| grant.verbs.has(verb) && grant.area.is_none_or(|of| of == area);
        matches!(self, Self::Known { principal, .. } if principal.grants.iter().any(permits))
    }

    /// Whether it is the principal of this name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name() == Some(name)
    }

    /// Whether one of its tokens has this public part.
    pub(crate) fn has_token(&self, id: &str) -> bool {
        matches!(self, Self::Known { principal, .. } if principal.tokens.iter().any(|token| token.id == id))
    }

    /// Its name, if it is known.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Known { principal, .. } => Some(&principal.name),
            Self::Anybody | Self::Unknown(_) => None,
        }
    }

    /// The store as this caller sends to it.
    pub(crate) fn acting_on(&self, house: &Statehouse) -> Statehouse {
        match self {
            Self::Anybody | Self::Unknown(_) => house.clone(),
            Self::Known { principal, revision, .. } => {
                house.sent_by(Sender { principal: principal.name.as_str().into(), policy_revision: *revision })
            }
        }
    }
}

/// The token of `Authorization: Bearer`. The refusal does not repeat what is malformed: it may be most of a secret.
fn bearer(headers: &HeaderMap) -> Result<Option<Token>, Problem> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), rest) = (given.next(), given.next()) else { return Ok(None) };
    if rest.is_some() {
        return Err(Problem::token_malformed("the header Authorization is repeated"));
    }
    let text = value.to_str().unwrap_or_default();
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Problem::token_malformed("the header Authorization must be Bearer and a token"));
    }
    let token = Token::parse(token.trim());
    token.map(Some).ok_or_else(|| Problem::token_malformed("what follows Bearer is no token: it was cut, or mistyped"))
}
