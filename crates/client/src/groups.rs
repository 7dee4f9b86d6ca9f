//! One writer: owning a group, and the guards of a space.

use std::ops::Deref;
use std::time::Duration;

use wire::owners::{
    ExtendOwner, GroupOwned, GroupOwner, GuardList, OwnGroup, OwnerToken, ReleaseOwner, SetGuard, ShownGuard,
};
use wire::routes::{GROUPS_EXTEND, GROUPS_OWN, GROUPS_OWNER, GROUPS_RELEASE, GUARDS_LIST, GUARDS_REMOVE, GUARDS_SET};
use wire::values::DurationText;

use crate::catalogue::Catalogue;
use crate::client::{Client, Scope};
use crate::error::Error;
use crate::reply::Reply;

/// A group that this client owns, until it is released or lost: the client in that group, whose every write shows the token.
#[derive(Clone)]
pub struct OwnedGroup {
    client: Client,
    token: OwnerToken,
}

impl Deref for OwnedGroup {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Client {
    /// Owns a group; with [`OwnGroup::wait`], waits for it. In a guarded group nobody else can write.
    ///
    /// ```no_run
    /// # async fn example(client: statehouse_client::Client) -> Result<(), statehouse_client::Error> {
    /// use statehouse_client::wire::owners::OwnGroup;
    /// let agent = client.own("agents.7", &OwnGroup::by("w1")).await?;
    /// agent.cells().set("step", 1).await?;
    /// agent.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn own(&self, group: &str, own: &OwnGroup) -> Result<OwnedGroup, Error> {
        let call = self.call(GROUPS_OWN, &[group]).json(own).waiting(own.wait.map(|wait| wait.0));
        let owned: GroupOwned = call.read().await?;
        self.owned(&owned.token)
    }

    /// The group that a token owns, which this client or another has received before.
    pub fn owned(&self, token: &str) -> Result<OwnedGroup, Error> {
        let token = Self::owner_token(token)?;
        let (group, owner) = (Some(token.group.clone()), Some(token.to_string()));
        let scope = Scope { group, owner, force: false, ..self.scope.clone() };
        Ok(OwnedGroup { client: Client { scope, ..self.clone() }, token })
    }

    /// The same client, whose writes show that the sender owns their group.
    pub fn showing_owner(&self, token: &str) -> Result<Self, Error> {
        let scope = Scope { owner: Some(Self::owner_token(token)?.to_string()), ..self.scope.clone() };
        Ok(Self { scope, ..self.clone() })
    }

    fn owner_token(token: &str) -> Result<OwnerToken, Error> {
        let parsed = OwnerToken::parse(token);
        parsed.ok_or_else(|| Error::Unsendable { cause: format!("{token:?} is not a token of a group") })
    }

    /// Who owns a group, and which guard decides about it.
    pub async fn owner(&self, group: &str) -> Result<GroupOwner, Error> {
        self.call(GROUPS_OWNER, &[group]).read().await
    }

    /// The same client, whose writes need no fence where a group or a type is guarded, and which takes a group from whoever
    /// owns it. For repairs by hand.
    pub fn forced(&self) -> Self {
        let scope = Scope { force: true, ..self.scope.clone() };
        Self { scope, ..self.clone() }
    }
}

impl OwnedGroup {
    /// The token, for others that write on behalf of this owner.
    pub fn token(&self) -> String {
        self.token.to_string()
    }

    /// The attempt by which it is owned. It only rises.
    pub fn attempt(&self) -> u64 {
        self.token.attempt
    }

    /// Owns the group for so long from now on, or for the lease of 30 s.
    pub async fn extend(&self, lease: Option<Duration>) -> Result<(), Error> {
        let body = ExtendOwner { token: self.token.clone(), lease: lease.map(DurationText) };
        let call = self.client.call(GROUPS_EXTEND, &[&self.token.group]).json(&body);
        call.read::<GroupOwned>().await.map(drop)
    }

    /// Gives the group up: the next one can own it at once.
    pub async fn release(self) -> Result<(), Error> {
        let body = ReleaseOwner { token: self.token.clone() };
        self.client.call(GROUPS_RELEASE, &[&self.token.group]).json(&body).send().await.map(drop)
    }
}

impl Catalogue<'_> {
    /// The guards of the client's space.
    pub async fn guards(&self) -> Result<GuardList, Error> {
        self.call(GUARDS_LIST, &[]).read().await
    }

    /// Guards the groups with a name prefix: only their owner writes them.
    pub async fn set_guard(&self, prefix: &str, guard: &SetGuard) -> Result<ShownGuard, Error> {
        let call = self.call(GUARDS_SET, &[prefix]).json(guard);
        call.repeatable().read().await
    }

    /// Removes the guard of a name prefix.
    pub async fn remove_guard(&self, prefix: &str) -> Result<Reply, Error> {
        self.call(GUARDS_REMOVE, &[prefix]).send().await
    }
}
