//! Declarations of a store: spaces and how much history they keep, branches; and the limits in force.

use contract::access::{Area, Verb};
use contract::{Retention as StoredRetention, Usage};
use wire::catalogue::{
    BranchList, BranchMade, ContractUsage, LimitsAnswer, Retention, SetRetention, SpaceList, SpaceMade, UsageAnswer,
};
use wire::operations::{NoBody, Nothing};
use wire::query::NoQuery;

use super::{Answered, Call, Reply, duration_or_ms};
use crate::Server;
use crate::access::Permission;

/// A verb on the catalogue of the space in the path.
pub(crate) fn of_space<Q: 'static, B>(verb: Verb) -> Permission<Q, B> {
    let area = Area::Catalogue;
    Permission::of(format!("{verb} {area}"), move |asking, needs| needs.everything_in(asking.name, verb, area))
}

pub(crate) async fn spaces(server: Server, _: Call<NoQuery, NoBody>) -> Answered<SpaceList> {
    Ok(Reply::new(SpaceList { spaces: server.house.spaces()? }))
}

pub(crate) async fn create_space(server: Server, call: Call<NoQuery, NoBody>) -> Answered<SpaceMade> {
    let name = call.name.clone();
    server.call(move |house| house.create_space(&name).map(drop)).await?;
    Ok(Reply::new(SpaceMade { space: call.name }).created(true))
}

pub(crate) async fn retention(server: Server, call: Call<NoQuery, NoBody>) -> Answered<Retention> {
    let StoredRetention { versions_max, age_us_max } = server.house.space(&call.name).retention()?;
    let bound = |bound: u64, shown: u64| (bound != u64::MAX).then_some(shown);
    Ok(Reply::new(Retention {
        versions: bound(versions_max, versions_max),
        age_ms: bound(age_us_max, age_us_max / 1_000),
    }))
}

pub(crate) async fn set_retention(server: Server, call: Call<NoQuery, SetRetention>) -> Answered<Nothing> {
    let SetRetention { versions, age, age_ms } = call.body;
    let versions = versions.unwrap_or(u64::MAX);
    let retention = match duration_or_ms("age_ms", age, age_ms)? {
        Some(age) => StoredRetention::within(versions, age),
        None => StoredRetention::versions(versions),
    };
    server.call(move |house| house.space(&call.name).set_retention(retention)).await?;
    Ok(Reply::new(Nothing {}))
}

pub(crate) async fn usage(server: Server, call: Call<NoQuery, NoBody>) -> Answered<UsageAnswer> {
    let usage = server.house.space(&call.name).usage()?;
    let Usage { things, bytes } = usage.total();
    let of = |(contract, Usage { things, bytes })| ContractUsage { contract, things, bytes };
    Ok(Reply::new(UsageAnswer { contracts: usage.by_contract.into_iter().map(of).collect(), things, bytes }))
}

pub(crate) async fn branches(server: Server, call: Call<NoQuery, NoBody>) -> Answered<BranchList> {
    Ok(Reply::new(BranchList { branches: call.scope.open(&server.house)?.space.branches()? }))
}

pub(crate) async fn create_branch(server: Server, call: Call<NoQuery, NoBody>) -> Answered<BranchMade> {
    let (space, name) = (call.scope.open(&server.house)?.space, call.name.clone());
    server.call(move |_| space.create_branch(&name).map(drop)).await?;
    Ok(Reply::new(BranchMade { branch: call.name }).created(true))
}

pub(crate) async fn delete_branch(server: Server, call: Call<NoQuery, NoBody>) -> Answered<Nothing> {
    let space = call.scope.open(&server.house)?.space;
    server.call(move |_| space.delete_branch(&call.name)).await?;
    Ok(Reply::new(Nothing {}))
}

pub(crate) async fn limits(server: Server, _: Call<NoQuery, NoBody>) -> Answered<LimitsAnswer> {
    let limits = server.house.limits()?;
    Ok(Reply::new(LimitsAnswer {
        value_bytes_max: limits.value_bytes_max,
        transaction_ops_max: limits.transaction_ops_max,
        transaction_bytes_max: limits.transaction_bytes_max,
        write_trim_rows_max: limits.write_trim_rows_max,
        spaces_max: limits.spaces_max,
        branches_per_space_max: limits.branches_per_space_max,
        changes_commits_max: limits.changes_commits_max,
        changes_age_us_max: limits.changes_age_us_max,
        record_fields_max: limits.record_fields_max,
        record_bytes_max: limits.record_bytes_max,
        claim_records_max: limits.claim_records_max,
        claim_bytes_max: limits.claim_bytes_max,
        tick_steps_max: limits.tick_steps_max,
        tombstone_age_us: limits.tombstone_age_us,
        sessions_max: limits.sessions_max,
        session_answers_max: limits.session_answers_max,
        session_answer_bytes_max: limits.session_answer_bytes_max,
        session_pushes_max: limits.session_pushes_max,
        session_push_bytes_max: limits.session_push_bytes_max,
        messages_waiting_max: limits.messages_waiting_max,
    }))
}
