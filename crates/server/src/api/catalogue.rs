//! Declarations of a store: spaces and how much history they keep, branches, record types; and the limits in force.

use std::time::Duration;

use contract::Retention as StoredRetention;
use contract::records::types::{Backoff, IndexKind, ReadyOrder, RecordType, State, StateKind};
use contract::time::millis;
use wire::catalogue::{BranchList, BranchMade, LimitsAnswer, Retention, SetRetention, SpaceList, SpaceMade};
use wire::operations::{NoBody, Nothing};
use wire::query::NoQuery;
use wire::records::types::{DeclareType, IndexKindText, ShownBackoff, ShownType, StateKindText, StateText, TypeList};
use wire::values::DurationText;

use super::{Answered, Call, Refusal, Reply};
use crate::Server;

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
    let retention = match time("age_ms", age, age_ms)? {
        Some(age) => StoredRetention::within(versions, age),
        None => StoredRetention::versions(versions),
    };
    server.call(move |house| house.space(&call.name).set_retention(retention)).await?;
    Ok(Reply::new(Nothing {}))
}

/// A duration under its own name, or in ms under the name that answers use.
fn time(shown: &'static str, said: Option<DurationText>, ms: Option<u64>) -> Result<Option<Duration>, Refusal> {
    match (said, ms) {
        (Some(_), Some(_)) => Err(Refusal::invalid(shown, format!("{shown} repeats its other form: send one of them"))),
        (said, ms) => Ok(said.map(|said| said.0).or(ms.map(Duration::from_millis))),
    }
}

pub(crate) async fn branches(server: Server, call: Call<NoQuery, NoBody>) -> Answered<BranchList> {
    Ok(Reply::new(BranchList { branches: call.scope.open(&server.house).space.branches()? }))
}

pub(crate) async fn create_branch(server: Server, call: Call<NoQuery, NoBody>) -> Answered<BranchMade> {
    let (scope, name) = (call.scope, call.name.clone());
    server.call(move |house| scope.open(house).space.create_branch(&name).map(drop)).await?;
    Ok(Reply::new(BranchMade { branch: call.name }).created(true))
}

pub(crate) async fn delete_branch(server: Server, call: Call<NoQuery, NoBody>) -> Answered<Nothing> {
    server.call(move |house| call.scope.open(house).space.delete_branch(&call.name)).await?;
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

pub(crate) async fn types(server: Server, call: Call<NoQuery, NoBody>) -> Answered<TypeList> {
    let types = call.scope.open(&server.house).space.types()?;
    let types = types.into_iter().map(|(prefixes, declared)| shown(prefixes, declared)).collect();
    Ok(Reply::new(TypeList { types }))
}

/// Declares a type for the records whose names start with the prefix. Omitted members default to those of the built-in
/// type `task`.
pub(crate) async fn declare_type(server: Server, call: Call<NoQuery, DeclareType>) -> Answered<ShownType> {
    let Call { scope, name: prefix, body, .. } = call;
    if let Some(prefixes) = &body.prefixes
        && !prefixes.contains(&prefix)
    {
        let detail = format!("the type is declared for {prefix:?}, which is not among its prefixes {prefixes:?}");
        return Err(Refusal::invalid("prefixes", detail));
    }
    let declared = declared(body)?;
    if declared.rescued_to.is_some() || declared.exhausted_to.is_some() {
        server.expect_broker(|| format!("type {:?} with rescued_to or exhausted_to", declared.name))?;
    }
    let answer = shown(vec![prefix.clone()], declared.clone());
    server.call(move |house| scope.open(house).space.declare_type(&prefix, declared)).await?;
    Ok(Reply::new(answer))
}

fn shown(prefixes: Vec<String>, declared: RecordType) -> ShownType {
    let states = declared.states.into_iter().map(|state| StateText {
        name: state.name,
        kind: match state.kind {
            StateKind::Ready => StateKindText::Ready,
            StateKind::Held => StateKindText::Held,
            StateKind::Terminal => StateKindText::Terminal,
        },
    });
    let indexes = declared.indexes.into_iter().map(|(field, kind)| {
        let kind = match kind {
            IndexKind::Bytes => IndexKindText::Bytes,
            IndexKind::Unsigned => IndexKindText::Unsigned,
            IndexKind::Signed => IndexKindText::Signed,
            IndexKind::Text => IndexKindText::Text,
            IndexKind::Time => IndexKindText::Time,
        };
        (field, kind)
    });
    ShownType {
        name: declared.name,
        prefixes,
        state_field: declared.state_field,
        states: states.collect(),
        completed: declared.completed,
        failed: declared.failed,
        indexes: indexes.collect(),
        default_ttl_ms: declared.default_ttl.map(millis),
        terminal_ttl_ms: declared.terminal_ttl.map(millis),
        keep_finished: declared.terminal_ttl.is_none(),
        lease_ms: millis(declared.lease),
        attempts_max: declared.attempts_max,
        backoff: ShownBackoff { first_ms: millis(declared.backoff.first), max_ms: millis(declared.backoff.max) },
        ready_order: match declared.ready_order {
            ReadyOrder::Oldest => None,
            ReadyOrder::Field(field) => Some(field),
        },
        rescued_to: declared.rescued_to,
        exhausted_to: declared.exhausted_to,
    }
}

fn declared(body: DeclareType) -> Result<RecordType, Refusal> {
    let mut declared = RecordType::task().named(&body.name);
    declared.state_field = body.state_field.unwrap_or(declared.state_field);
    if let Some(states) = body.states.filter(|states| !states.is_empty()) {
        let state = |state: StateText| State {
            name: state.name,
            kind: match state.kind {
                StateKindText::Ready => StateKind::Ready,
                StateKindText::Held => StateKind::Held,
                StateKindText::Terminal => StateKind::Terminal,
            },
        };
        declared.states = states.into_iter().map(state).collect();
    }
    declared.completed = body.completed.unwrap_or(declared.completed);
    declared.failed = body.failed.unwrap_or(declared.failed);
    for (field, kind) in body.indexes.unwrap_or_default().0 {
        let kind = match kind {
            IndexKindText::Bytes => IndexKind::Bytes,
            IndexKindText::Unsigned => IndexKind::Unsigned,
            IndexKindText::Signed => IndexKind::Signed,
            IndexKindText::Text => IndexKind::Text,
            IndexKindText::Time => IndexKind::Time,
        };
        declared = declared.index(&field, kind);
    }
    declared.default_ttl = time("default_ttl_ms", body.default_ttl, body.default_ttl_ms)?;
    let terminal_ttl = time("terminal_ttl_ms", body.terminal_ttl, body.terminal_ttl_ms)?;
    declared.terminal_ttl = match (terminal_ttl, body.keep_finished) {
        (Some(_), Some(true)) => {
            let detail = "keep_finished contradicts terminal_ttl: send one of them";
            return Err(Refusal::invalid("keep_finished", detail));
        }
        (None, Some(true)) => None,
        (ttl, _) => ttl.or(declared.terminal_ttl),
    };
    declared.lease = time("lease_ms", body.lease, body.lease_ms)?.unwrap_or(declared.lease);
    declared.attempts_max = body.attempts_max.unwrap_or(declared.attempts_max);
    if let Some(backoff) = body.backoff {
        let first = time("first_ms", backoff.first, backoff.first_ms)?.unwrap_or(declared.backoff.first);
        let max = time("max_ms", backoff.max, backoff.max_ms)?.unwrap_or(declared.backoff.max);
        declared.backoff = Backoff { first, max };
    }
    if let Some(field) = body.ready_order {
        declared.ready_order = ReadyOrder::Field(field);
    }
    declared.rescued_to = body.rescued_to;
    declared.exhausted_to = body.exhausted_to;
    Ok(declared)
}
