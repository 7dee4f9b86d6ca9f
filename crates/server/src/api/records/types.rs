//! Record types: list and declare.

use contract::records::types::{Backoff, IndexKind, ReadyOrder, RecordType, State, StateKind};
use contract::time::millis;
use wire::operations::NoBody;
use wire::query::NoQuery;
use wire::records::types::{DeclareType, IndexKindText, ShownBackoff, ShownType, StateKindText, StateText, TypeList};

use crate::Server;
use crate::api::{Answered, Call, Refusal, Reply, duration_or_ms};

pub(super) async fn list(server: Server, call: Call<NoQuery, NoBody>) -> Answered<TypeList> {
    let types = call.scope.open(&server.house)?.space.types()?;
    let types = types.into_iter().map(|(prefixes, declared)| shown(prefixes, declared)).collect();
    Ok(Reply::new(TypeList { types }))
}

/// Declares a type for the records whose names start with the prefix. Omitted members default to those of the built-in
/// type `task`.
pub(super) async fn declare(server: Server, call: Call<NoQuery, DeclareType>) -> Answered<ShownType> {
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
    let space = scope.open(&server.house)?.space;
    server.call(move |_| space.declare_type(&prefix, declared)).await?;
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
        guarded: declared.guarded,
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
    declared.default_ttl = duration_or_ms("default_ttl_ms", body.default_ttl, body.default_ttl_ms)?;
    let terminal_ttl = duration_or_ms("terminal_ttl_ms", body.terminal_ttl, body.terminal_ttl_ms)?;
    declared.terminal_ttl = match (terminal_ttl, body.keep_finished) {
        (Some(_), Some(true)) => {
            let detail = "keep_finished contradicts terminal_ttl: send one of them";
            return Err(Refusal::invalid("keep_finished", detail));
        }
        (None, Some(true)) => None,
        (ttl, _) => ttl.or(declared.terminal_ttl),
    };
    declared.lease = duration_or_ms("lease_ms", body.lease, body.lease_ms)?.unwrap_or(declared.lease);
    declared.guarded = body.guarded.unwrap_or(declared.guarded);
    declared.attempts_max = body.attempts_max.unwrap_or(declared.attempts_max);
    if let Some(backoff) = body.backoff {
        let first = duration_or_ms("first_ms", backoff.first, backoff.first_ms)?.unwrap_or(declared.backoff.first);
        let max = duration_or_ms("max_ms", backoff.max, backoff.max_ms)?.unwrap_or(declared.backoff.max);
        declared.backoff = Backoff { first, max };
    }
    if let Some(field) = body.ready_order {
        declared.ready_order = ReadyOrder::Field(field);
    }
    declared.rescued_to = body.rescued_to;
    declared.exhausted_to = body.exhausted_to;
    Ok(declared)
}
