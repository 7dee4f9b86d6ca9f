//! Spaces, branches and limits. The calls about record types are with the records.

use wire::catalogue::{
    BranchList, BranchMade, LimitsAnswer, Retention, SetRetention, SpaceList, SpaceMade, UsageAnswer,
};
use wire::routes::{
    BRANCHES_CREATE, BRANCHES_DELETE, BRANCHES_LIST, LIMITS_READ, Route, SPACES_CREATE, SPACES_LIST, SPACES_RETENTION,
    SPACES_SET_RETENTION, SPACES_USAGE,
};

use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::reply::Reply;

/// The catalogue of a server. Its changes are not numbered in a session: each states the wanted result, so a repeated one
/// changes nothing or is refused.
#[derive(Clone)]
pub struct Catalogue<'client> {
    client: &'client Client,
}

impl Client {
    /// Spaces, branches, record types and limits.
    pub fn catalogue(&self) -> Catalogue<'_> {
        Catalogue { client: self }
    }
}

impl Catalogue<'_> {
    pub(crate) fn call(&self, route: Route, parts: &[&str]) -> Call {
        self.client.call(route, parts)
    }

    /// The spaces.
    pub async fn spaces(&self) -> Result<SpaceList, Error> {
        self.call(SPACES_LIST, &[]).read().await
    }

    /// Creates a space.
    pub async fn create_space(&self, space: &str) -> Result<SpaceMade, Error> {
        self.call(SPACES_CREATE, &[space]).read().await
    }

    /// How much history the cells of a space keep.
    pub async fn retention(&self, space: &str) -> Result<Retention, Error> {
        self.call(SPACES_RETENTION, &[space]).read().await
    }

    /// Sets how much history the cells of a space keep.
    pub async fn set_retention(&self, space: &str, retention: &SetRetention) -> Result<Retention, Error> {
        let call = self.call(SPACES_SET_RETENTION, &[space]).json(retention);
        call.repeatable().read().await
    }

    /// How many things a space has, and how many bytes they take.
    pub async fn usage(&self, space: &str) -> Result<UsageAnswer, Error> {
        self.call(SPACES_USAGE, &[space]).read().await
    }

    /// The branches of the client's space.
    pub async fn branches(&self) -> Result<BranchList, Error> {
        self.call(BRANCHES_LIST, &[]).read().await
    }

    /// Creates an empty branch.
    pub async fn create_branch(&self, branch: &str) -> Result<BranchMade, Error> {
        self.call(BRANCHES_CREATE, &[branch]).read().await
    }

    /// Deletes a branch.
    pub async fn delete_branch(&self, branch: &str) -> Result<Reply, Error> {
        self.call(BRANCHES_DELETE, &[branch]).send().await
    }

    /// The limits in force.
    pub async fn limits(&self) -> Result<LimitsAnswer, Error> {
        self.call(LIMITS_READ, &[]).read().await
    }
}
