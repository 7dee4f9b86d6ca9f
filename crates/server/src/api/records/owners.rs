//! One writer: the guards of a space, and who owns a group.
//!
//! Keeps: a group is extended and released by the attempt that owns it, and by no other (SH-4002).

use statehouse::OwnedGroup;
use statehouse::guards::GroupGuard;
use statehouse::records::ClaimOptions;
use wire::operations::{NoBody, Nothing};
use wire::owners::{
    ExtendOwner, GroupOwned, GroupOwner, GuardList, OwnGroup, OwnerToken, ReleaseOwner, SetGuard, ShownGuard,
};
use wire::query::NoQuery;

use super::forms;
use crate::Server;
use crate::api::scope::{Handles, ShownToken};
use crate::api::{Answered, Call, Refusal, Reply, RequestScope};

pub(super) async fn guards(server: Server, call: Call<NoQuery, NoBody>) -> Answered<GuardList> {
    let guards = call.scope.open(&server.house)?.space.guards()?;
    let shown = |(prefix, GroupGuard { open })| ShownGuard { prefix, open };
    Ok(Reply::new(GuardList { guards: guards.into_iter().map(shown).collect() }))
}

pub(super) async fn set_guard(server: Server, call: Call<NoQuery, SetGuard>) -> Answered<ShownGuard> {
    let Call { scope, name: prefix, body, .. } = call;
    let open = body.open.unwrap_or_default();
    let shown = ShownGuard { prefix: prefix.clone(), open: open.clone() };
    let space = scope.open(&server.house)?.space;
    server.call(move |_| space.set_guard(&prefix, GroupGuard { open })).await?;
    Ok(Reply::new(shown))
}

pub(super) async fn remove_guard(server: Server, call: Call<NoQuery, NoBody>) -> Answered<Nothing> {
    let space = call.scope.open(&server.house)?.space;
    server.call(move |_| space.remove_guard(&call.name)).await?;
    Ok(Reply::new(Nothing {}))
}

pub(super) async fn own(server: Server, call: Call<NoQuery, OwnGroup>) -> Answered<GroupOwned> {
    let Call { scope, name, body, wait, .. } = call;
    let mut options = ClaimOptions::worker(body.worker.unwrap_or_default());
    if let Some(lease) = body.lease {
        options = options.lease(lease.0);
    }
    let (handles, group) = scope.open_group(&server.house, &name)?;
    let owned = group.own_until(&options, server.waited(wait)).await?;
    Ok(Reply::new(shown(&owned)).replayed(handles.replayed()))
}

pub(super) async fn owner(server: Server, call: Call<NoQuery, NoBody>) -> Answered<GroupOwner> {
    let (_, group) = call.scope.open_group(&server.house, &call.name)?;
    let (guard, holder) = (group.guard()?.map(|(prefix, _)| prefix), group.owner()?.map(forms::holder));
    Ok(Reply::new(GroupOwner { group: call.name, guard, holder }))
}

pub(super) async fn extend(server: Server, call: Call<NoQuery, ExtendOwner>) -> Answered<GroupOwned> {
    let ExtendOwner { token, lease } = call.body;
    let (handles, owned) = of_token(&server, call.scope, &call.name, token)?;
    owned.extend_later(lease.map(|lease| lease.0)).await?;
    Ok(Reply::new(shown(&owned)).replayed(handles.replayed()))
}

pub(super) async fn release(server: Server, call: Call<NoQuery, ReleaseOwner>) -> Answered<Nothing> {
    let (handles, owned) = of_token(&server, call.scope, &call.name, call.body.token)?;
    owned.release_later().await?;
    Ok(Reply::new(Nothing {}).replayed(handles.replayed()))
}

/// The group as a token owns it.
fn of_token(
    server: &Server,
    scope: RequestScope,
    group: &str,
    token: OwnerToken,
) -> Result<(Handles, OwnedGroup), Refusal> {
    let attempt = token.attempt;
    let owner = Some(ShownToken { token, member: "token" });
    let (handles, group) = RequestScope { owner, ..scope }.open_group(&server.house, group)?;
    Ok((handles, group.owned(attempt)))
}

fn shown(owned: &OwnedGroup) -> GroupOwned {
    GroupOwned { group: owned.name().to_owned(), token: owned.token(), attempt: owned.attempt() }
}
