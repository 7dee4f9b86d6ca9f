//! Principals and tokens: who may do what.
//!
//! A principal may rotate its own tokens; everything else here is for administrators.

use contract::access::{Area, Grant, Identity, IssuedToken as StoredToken, Need, Principal, Things, Verb};
use contract::catalogue::DEFAULT_SPACE;
use contract::limits::{PAGE_ROWS_MAX, TOKEN_AGE_MAX};
use contract::suggest::nearest;
use contract::time::iso;
use contract::{Error, Rejection};
use wire::access::{
    AccessAnswer, CheckAccess, IssueToken, IssuedToken, ListPrincipals, PrincipalList, SetPrincipal, ShownPrincipal,
    ShownToken, TokenText, Whoami,
};
use wire::operations::{NoBody, Nothing};
use wire::query::NoQuery;

use super::{Answered, Call, Refusal, Reply, page_limit};
use crate::Server;
use crate::access::{Caller, KnownBy};

/// The default number of principals in a page.
const PAGE_ROWS: usize = 100;

pub(crate) async fn list(server: Server, call: Call<ListPrincipals, NoBody>) -> Answered<PrincipalList> {
    let limit = page_limit(call.query.limit, PAGE_ROWS)?;
    Rejection::check_limit("page_rows_max", PAGE_ROWS_MAX, limit).map_err(Error::from)?;
    let (all, now_us) = (server.house.principals().list()?, server.house.principals().now_us());
    let after = call.query.after.unwrap_or_default();
    let mut behind = all.iter().filter(|principal| principal.name > after);
    let principals: Vec<_> = behind.by_ref().take(limit).map(|principal| shown(principal, now_us)).collect();
    let next_after = behind.next().and_then(|_| principals.last()).map(|last| last.principal.clone());
    Ok(Reply::new(PrincipalList { principals, next_after }))
}

pub(crate) async fn read(server: Server, call: Call<NoQuery, NoBody>) -> Answered<ShownPrincipal> {
    let principals = server.house.principals();
    Ok(Reply::new(shown(&*principals.get(&call.name)?, principals.now_us())))
}

pub(crate) async fn set(server: Server, call: Call<NoQuery, SetPrincipal>) -> Answered<ShownPrincipal> {
    let SetPrincipal { grants, identities, requests_per_second_max } = call.body;
    let read = grants.iter().map(|text| Grant::parse(text).map_err(|wrong| Refusal::invalid("grants", wrong)));
    let grants = read.collect::<Result<Vec<_>, _>>()?;
    let identities = identities.unwrap_or_default();
    let identities = identities.iter().map(|text| Identity::parse(text)).collect::<Result<Vec<_>, _>>();
    let identities = identities.map_err(Error::from)?;
    let principal = Principal { grants, identities, requests_per_second_max, ..Principal::new(&call.name) };
    let principals = server.house.principals();
    let set = server.call(move |_| {
        principals.set(&principal)?;
        Ok(shown(&*principals.get(&principal.name)?, principals.now_us()))
    });
    Ok(Reply::new(set.await?))
}

pub(crate) async fn remove(server: Server, call: Call<NoQuery, NoBody>) -> Answered<Nothing> {
    let principals = server.house.principals();
    server.call(move |_| principals.remove(&call.name)).await?;
    Ok(Reply::new(Nothing {}))
}

pub(crate) async fn issue_token(server: Server, call: Call<NoQuery, IssueToken>) -> Answered<IssuedToken> {
    let age = call.body.expires_in.map_or(TOKEN_AGE_MAX, |age| age.0);
    let (principals, principal) = (server.house.principals(), call.name);
    let issued = server.call(move |_| {
        let token = principals.issue_token(&principal, age)?;
        let (_, stored) = principals.token(token.id())?;
        Ok(IssuedToken {
            principal,
            id: token.id().to_owned(),
            token: TokenText::new(&token),
            expires_at: iso(stored.expires_us),
        })
    });
    Ok(Reply::new(issued.await?).created(true))
}

pub(crate) async fn revoke_token(server: Server, call: Call<NoQuery, NoBody>) -> Answered<Nothing> {
    let principals = server.house.principals();
    server.call(move |_| principals.revoke_token(&call.name)).await?;
    Ok(Reply::new(Nothing {}))
}

pub(crate) async fn whoami(server: Server, _: Call<NoQuery, NoBody>) -> Answered<Whoami> {
    Ok(Reply::new(match &server.caller {
        Caller::Known { principal, by, .. } => Whoami {
            principal: Some(principal.name.clone()),
            grants: principal.grants.iter().map(Grant::to_string).collect(),
            token: principal
                .tokens
                .iter()
                .find(|of| *by == KnownBy::Token(of.id.clone()))
                .map(|of| shown_token(of, server.house.principals().now_us())),
        },
        Caller::Anybody | Caller::Unknown(_) => {
            Whoami { principal: None, grants: vec![Grant::everything().to_string()], token: None }
        }
    }))
}

/// Whoever asks about others must be able to read their grants.
pub(crate) async fn check(server: Server, call: Call<NoQuery, CheckAccess>) -> Answered<AccessAnswer> {
    let CheckAccess { principal, verb, area, space, group, name, prefix } = call.body;
    let verb = Verb::named(&verb).ok_or_else(|| unknown("verb", &verb, Verb::ALL.iter().map(|verb| verb.word())))?;
    let area = Area::named(&area).ok_or_else(|| unknown("area", &area, Area::ALL.iter().map(|area| area.name())))?;
    let group = group.as_deref();
    let things = match (&name, &prefix) {
        (Some(_), Some(_)) => return Err(Refusal::invalid("prefix", "prefix and name exclude each other: send one")),
        (Some(name), None) => Things::One { group, name },
        (None, Some(prefix)) => Things::Prefix { group, prefix },
        (None, None) if group.is_some() => Things::Prefix { group, prefix: "" },
        (None, None) => Things::All,
    };
    let space = space.as_deref().unwrap_or(DEFAULT_SPACE);
    let need = Need { space: (space != "*").then_some(space), area, verb, things };
    let found = match (principal, &server.caller) {
        (Some(name), _) => server.house.principals().get(&name)?,
        (None, Caller::Known { principal, .. }) => principal.clone(),
        (None, _) => return Err(Refusal::invalid("principal", "principal is missing, and the sender is not known")),
    };
    let grant = found.grants.iter().find(|grant| grant.covers(&need)).map(Grant::to_string);
    let (principal, need, allowed) = (found.name.clone(), need.to_string(), grant.is_some());
    Ok(Reply::new(AccessAnswer { principal, need, allowed, grant }))
}

fn unknown(member: &'static str, word: &str, known: impl Iterator<Item = &'static str>) -> Refusal {
    let meant = nearest(word, known).map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    Refusal::invalid(member, format!("{member} {word:?} is unknown{meant}"))
}

fn shown(principal: &Principal, now_us: u64) -> ShownPrincipal {
    ShownPrincipal {
        principal: principal.name.clone(),
        grants: principal.grants.iter().map(Grant::to_string).collect(),
        identities: principal.identities.iter().map(Identity::to_string).collect(),
        requests_per_second_max: principal.requests_per_second_max,
        tokens: principal.tokens.iter().map(|token| shown_token(token, now_us)).collect(),
    }
}

fn shown_token(token: &StoredToken, now_us: u64) -> ShownToken {
    ShownToken {
        token: token.id.clone(),
        issued_at: iso(token.issued_us),
        expires_at: iso(token.expires_us),
        expired: !token.is_live(now_us),
    }
}
