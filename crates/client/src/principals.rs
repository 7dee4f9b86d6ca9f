//! Principals and tokens: who may do what.

use wire::access::{
    AccessAnswer, AuditPage, CheckAccess, IssueToken, IssuedToken, ListPrincipals, PrincipalList, ReadAudit,
    SetPrincipal, ShownPrincipal, Whoami,
};
use wire::routes::{
    ACCESS_CHECK, ACCESS_WHOAMI, AUDIT_READ, PRINCIPALS_LIST, PRINCIPALS_READ, PRINCIPALS_REMOVE, PRINCIPALS_SET,
    TOKENS_ISSUE, TOKENS_REVOKE,
};

use crate::client::Client;
use crate::error::Error;
use crate::reply::Reply;

/// The principals of a server, and their tokens. What is done here is sent once and in no session: an answer with a token is
/// stored nowhere.
#[derive(Clone)]
pub struct Principals<'client> {
    client: &'client Client,
}

impl Client {
    /// Who may do what.
    pub fn principals(&self) -> Principals<'_> {
        Principals { client: self }
    }
}

impl Principals<'_> {
    /// The principals, by name.
    pub async fn list(&self, query: &ListPrincipals) -> Result<PrincipalList, Error> {
        self.client.call(PRINCIPALS_LIST, &[]).query(query).read().await
    }

    /// A principal by name.
    pub async fn get(&self, principal: &str) -> Result<ShownPrincipal, Error> {
        self.client.call(PRINCIPALS_READ, &[principal]).read().await
    }

    /// Sets what a principal may do and how it is known, or creates it.
    pub async fn set(&self, principal: &str, body: &SetPrincipal) -> Result<ShownPrincipal, Error> {
        self.client.call(PRINCIPALS_SET, &[principal]).json(body).repeatable().read().await
    }

    /// Removes a principal, and so its tokens.
    pub async fn remove(&self, principal: &str) -> Result<Reply, Error> {
        self.client.call(PRINCIPALS_REMOVE, &[principal]).send().await
    }

    /// Issues a token.
    pub async fn issue_token(&self, principal: &str, body: &IssueToken) -> Result<IssuedToken, Error> {
        self.client.call(TOKENS_ISSUE, &[principal]).json(body).read().await
    }

    /// Revokes a token, by its public part.
    pub async fn revoke_token(&self, token: &str) -> Result<Reply, Error> {
        self.client.call(TOKENS_REVOKE, &[token]).send().await
    }

    /// Who sends the requests of this client.
    pub async fn whoami(&self) -> Result<Whoami, Error> {
        self.client.call(ACCESS_WHOAMI, &[]).read().await
    }

    /// Events of the audit.
    pub async fn audit(&self, query: &ReadAudit) -> Result<AuditPage, Error> {
        self.client.call(AUDIT_READ, &[]).query(query).read().await
    }

    /// Whether somebody may do something.
    pub async fn check(&self, body: &CheckAccess) -> Result<AccessAnswer, Error> {
        self.client.call(ACCESS_CHECK, &[]).json(body).read().await
    }
}
