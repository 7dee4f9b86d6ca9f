//! The thing in each line; `export/lines.rs` does the reverse.

use contract::runs::{RunStatus, StepError, StepSnapshot, StepStatus};
use contract::{Json, Value};
use kernel::cells::item::CellItem;
use kernel::cells::row::Old;
use kernel::keys::things::OwnedId;
use kernel::outbox::Stored;
use kernel::portable::{BuildError, Builder, Item};
use kernel::records::item::RecordItem;
use kernel::records::row::{Content, FieldRow, NO_STATE, Numbers, Row};
use kernel::runs::item::RunItem;
use kernel::runs::row::{EventRow, RunHead};
use kernel::{Catalogue, EventRef, Send, Target, ValueRef};

use super::object::{Object, Wrong};
use crate::export::kinds;

/// Why a line could not be put.
pub(super) enum Unput {
    Wrong(Wrong),
    Build(BuildError),
}

impl From<Wrong> for Unput {
    fn from(wrong: Wrong) -> Self {
        Unput::Wrong(wrong)
    }
}

impl From<BuildError> for Unput {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Refused(wrong) => Unput::Wrong(wrong),
            other => Unput::Build(other),
        }
    }
}

/// Puts the thing of a line.
pub(super) fn put(builder: &mut Builder<'_>, kind: &str, line: Object<'_>) -> Result<(), Unput> {
    match kind {
        kinds::BUCKET => {
            let (bucket, version) = (line.number("bucket")?, line.number("version")?);
            let (attempt, commit) = (line.number("attempt")?, line.number_or_zero("commit")?);
            Ok(builder.put(&Item::Bucket { bucket, version, attempt, commit })?)
        }
        kinds::CELL_FLOOR => {
            let (space, branch) = branch_of(builder.catalogue(), line)?;
            let (bucket, version, commit) =
                (line.number("bucket")?, line.number("version")?, line.number_or_zero("commit")?);
            let updated_at = line.number("updated_us")?;
            Ok(builder.put(&Item::Cell(CellItem::Floor { bucket, space, branch, version, commit, updated_at }))?)
        }
        kinds::CELL_VERSION | kinds::CELL => {
            let cell = &thing(builder.catalogue(), line, "name")?;
            let version = line.number("version")?;
            let value = if line.flag("deleted")? { None } else { Some(line.value("value")?) };
            let value = value.as_ref().map(ValueRef::from);
            let write = Old { commit: line.number("commit")?, updated_at: line.number("updated_us")?, value };
            Ok(builder.put(&match kind {
                kinds::CELL => Item::Cell(CellItem::Newest { cell, version, write }),
                _ => Item::Cell(CellItem::Version { cell, version, write }),
            })?)
        }
        kinds::RECORD => record(builder, line),
        kinds::RUN => {
            let run = thing(builder.catalogue(), line, "name")?;
            Ok(builder.put(&Item::Run(RunItem::Head { run: &run, head: head(line)? }))?)
        }
        kinds::EVENT => event(builder, line),
        kinds::STEP => {
            let run = thing(builder.catalogue(), line, "run")?;
            Ok(builder.put(&Item::Run(RunItem::Step { run: &run, step: step(line)? }))?)
        }
        kinds::RUN_REMOVAL => {
            let run = thing(builder.catalogue(), line, "run")?;
            Ok(builder.put(&Item::Run(RunItem::Removal { run: &run, at_us: line.number("at_us")? }))?)
        }
        kinds::MESSAGE => message(builder, line),
        kinds::MACHINE_STATE => {
            let (space, group) = (space_of(builder.catalogue(), line)?, line.text("group")?);
            let (key, value) = (line.octets("key")?, line.octets("value")?);
            let machine = line.number("machine")?;
            Ok(builder.put(&Item::MachineState { space, machine, group, key: &key, value: &value })?)
        }
        kinds::MACHINE_MEMBER => {
            let (space, group) = (space_of(builder.catalogue(), line)?, line.text("group")?);
            let (session, machine) = (line.number("session")?, line.number("machine")?);
            Ok(builder.put(&Item::MachineMember { session, space, machine, group })?)
        }
        other => Err(format!("a line of the kind {other:?} cannot be here").into()),
    }
}

fn space_of(catalogue: &Catalogue, line: Object<'_>) -> Result<u32, Wrong> {
    catalogue.space_named(line.text("space")?).map_err(|rejection| rejection.to_string())
}

/// The place of a thing, and its name, which is in `name`.
fn thing(catalogue: &Catalogue, line: Object<'_>, name: &str) -> Result<OwnedId, Wrong> {
    let (space, branch) = branch_of(catalogue, line)?;
    Ok(OwnedId { space, branch, group: line.string_if("group")?, name: line.text(name)?.to_owned() })
}

fn branch_of(catalogue: &Catalogue, line: Object<'_>) -> Result<(u32, u32), Wrong> {
    let space = space_of(catalogue, line)?;
    let found = catalogue.space(space).and_then(|found| found.branch_named(line.text("branch").unwrap_or_default()));
    Ok((space, found.map_err(|rejection| rejection.to_string())?))
}

fn record(builder: &mut Builder<'_>, line: Object<'_>) -> Result<(), Unput> {
    let id = thing(builder.catalogue(), line, "name")?;
    let declared = match line.text_if("type")? {
        None => None,
        Some(name) => {
            let space = builder.catalogue().space(id.space).map_err(|rejection| rejection.to_string())?;
            Some(space.types.named(name).ok_or_else(|| format!("there is no type {name:?}"))?)
        }
    };
    let state = match (declared, line.text_if("state")?) {
        (None, None) => NO_STATE,
        (Some(declared), Some(state)) => {
            declared.state_number(state).ok_or_else(|| format!("its type has no state {state:?}"))?
        }
        _ => return Err("a record has a type and a state, or neither".to_owned().into()),
    };
    let numbers = Numbers {
        version: line.number("version")?,
        commit: line.number("commit")?,
        created_us: line.number("created_us")?,
        updated_us: line.number("updated_us")?,
        record_type: declared.map_or(0, |declared| declared.id),
        state,
        deleted: line.flag("deleted")?,
        waiting: line.flag("waiting")?,
        attempt: line.number_or_zero("attempt")?,
        failures: line.number_or_zero("failures")?,
        expires_us: line.number_or_zero("expires_us")?,
        expires_entry_us: 0,
        lease_us: line.number_or_zero("lease_cluster_us")?,
        lease_entry_us: 0,
        ready_us: line.number_or_zero("ready_us")?,
        holder_session: line.number_or_zero("holder_session")?,
        life_session: line.number_or_zero("life_session")?,
    };
    let fields = line.object("fields")?;
    let mut values: Vec<(&str, u64, Value)> = Vec::new();
    for name in fields.0.keys() {
        let field = fields.object(name)?;
        values.push((name, field.number("version")?, field.value("value")?));
    }
    values.sort_by(|one, other| one.0.cmp(other.0));
    let fields = values.iter().map(|(name, version, value)| {
        let content = Content::Inline(ValueRef::from(value));
        FieldRow { name, version: *version, content }
    });
    let row = Row { numbers, worker: line.text_if("worker")?, fields: fields.collect() };
    Ok(builder.put(&Item::Record(RecordItem { record: &id, row }))?)
}

fn head(line: Object<'_>) -> Result<RunHead, Wrong> {
    let status = line.text("status")?;
    let found = RunStatus::ALL.into_iter().find(|known| known.name() == status);
    let parent = match line.object_if("parent")? {
        None => None,
        Some(parent) => Some((parent.text("run")?.to_owned(), parent.number("seq")?)),
    };
    Ok(RunHead {
        run_type: line.text("type")?.to_owned(),
        closed: line.flag("closed")?,
        deleted: line.flag("deleted")?,
        last_seq: line.number("last_seq")?,
        commit: line.number("commit")?,
        created_us: line.number("created_us")?,
        last_event_us: line.number("last_event_us")?,
        index_us: 0,
        parent,
        depth: line.number_or_zero("depth")?,
        forks: line.number_or_zero("forks")?,
        status: found.ok_or_else(|| format!("there is no status {status:?}"))?,
        steps: line.number("steps")?,
        steps_left_out: line.number_or_zero("steps_left_out")?,
        started_at: line.string_if("started_at")?,
        completed_at: line.string_if("completed_at")?,
        artifacts: line.json_texts("artifacts")?.into_iter().map(Json::into_string).collect(),
    })
}

fn event(builder: &mut Builder<'_>, line: Object<'_>) -> Result<(), Unput> {
    let run = thing(builder.catalogue(), line, "run")?;
    let (data, engine_run_ref, extra) = (line.json("data")?, line.json_if("engine_run_ref")?, line.json_if("extra")?);
    let event = EventRef {
        event_type: line.text("type")?,
        data: data.as_str(),
        idempotency_key: line.text("key")?,
        event_id: line.text_if("event_id")?,
        step_id: line.text_if("step_id")?,
        engine_attempt_id: line.text_if("engine_attempt_id")?,
        logical_attempt_id: line.text_if("logical_attempt_id")?,
        emitted_at: line.text_if("emitted_at")?,
        adapter_version: line.text_if("adapter_version")?,
        engine_run_ref: engine_run_ref.as_ref().map(Json::as_str),
        caused_by_signal_id: line.text_if("caused_by_signal_id")?,
        parent_event_id: line.text_if("parent_event_id")?,
        extra: extra.as_ref().map(Json::as_str),
    };
    let event = EventRow {
        persisted_us: line.number("persisted_us")?,
        commit: line.number("commit")?,
        prev_seq: line.number("prev_seq")?,
        event,
    };
    Ok(builder.put(&Item::Run(RunItem::Event { run: &run, seq: line.number("seq")?, event }))?)
}

fn step(line: Object<'_>) -> Result<StepSnapshot, Wrong> {
    let status = line.text("status")?;
    let found = StepStatus::ALL.into_iter().find(|known| known.name() == status);
    let error = match line.object_if("error")? {
        None => None,
        Some(error) => Some(StepError {
            code: error.text("code")?.to_owned(),
            message: error.text("message")?.to_owned(),
            retryable: error.boolean("retryable")?,
        }),
    };
    Ok(StepSnapshot {
        step_id: line.text("step_id")?.to_owned(),
        status: found.ok_or_else(|| format!("there is no status {status:?}"))?,
        logical_attempt_id: line.text("logical_attempt_id")?.to_owned(),
        engine_attempt_id: line.string_if("engine_attempt_id")?,
        started_at: line.string_if("started_at")?,
        completed_at: line.string_if("completed_at")?,
        error,
        artifacts: line.json_texts("artifacts")?,
    })
}

fn message(builder: &mut Builder<'_>, line: Object<'_>) -> Result<(), Unput> {
    let space = space_of(builder.catalogue(), line)?;
    let bytes = line.octets(if line.has("topic") { "payload" } else { "command" })?;
    let target = match line.text_if("topic")? {
        Some(topic) => Target::Topic { topic, payload: &bytes },
        None => Target::Transact(&bytes),
    };
    let send = Send { target, after_us: line.number_if("after_us")? };
    let message = Stored { space, branch: line.number("branch_number")?, source: line.text("source")?, send };
    let due_us = line.number_if("due_us")?;
    let (commit, ordinal) = (line.number("commit")?, line.number("ordinal")?);
    Ok(builder.put(&Item::Message { due_us, commit, ordinal, message })?)
}
