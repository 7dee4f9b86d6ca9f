//! The line of each thing; `docs/formats/export.md` is the specification.

use contract::records::types::{IndexKind, ReadyOrder, StateKind};
use contract::{Json, Limits};
use kernel::catalogue::types::micros;
use kernel::catalogue::{Catalogue, Declared, Space};
use kernel::cells::item::CellItem;
use kernel::cells::row::Old;
use kernel::keys::things::OwnedId;
use kernel::outbox::Stored;
use kernel::portable::Item;
use kernel::records::item::RecordItem;
use kernel::records::row::{Content, NO_STATE, Row};
use kernel::runs::item::RunItem;
use kernel::runs::row::{EventRow, RunHead};
use kernel::{Applied, Target};
use session::Halt;

use super::line::Line;
use super::{FORMAT, kinds};

/// The first line.
pub(super) fn header(release: &str, space: Option<&str>, applied: &Applied, catalogue: &Catalogue) -> Line {
    let numbers = catalogue.numbers();
    Line::new(kinds::HEADER)
        .number("format", FORMAT)
        .text("release", release)
        .text_if("space", space)
        .number("commit", applied.commit)
        .number("applied_index", applied.index)
        .number("wall_us", applied.stamp.wall_us)
        .number("cluster_us", applied.stamp.cluster_us)
        .number("revision", numbers.revision)
        .number("level", numbers.level)
        .number("buckets", numbers.buckets.count())
        .number("next_space", numbers.next_space)
        .number("next_branch", numbers.next_branch)
        .nested("limits", limits(&numbers.limits))
}

fn limits(limits: &Limits) -> Line {
    let every: [(&str, u64); 19] = [
        ("value_bytes_max", limits.value_bytes_max.into()),
        ("transaction_ops_max", limits.transaction_ops_max.into()),
        ("transaction_bytes_max", limits.transaction_bytes_max.into()),
        ("write_trim_rows_max", limits.write_trim_rows_max.into()),
        ("spaces_max", limits.spaces_max.into()),
        ("branches_per_space_max", limits.branches_per_space_max.into()),
        ("changes_commits_max", limits.changes_commits_max),
        ("changes_age_us_max", limits.changes_age_us_max),
        ("record_fields_max", limits.record_fields_max.into()),
        ("record_bytes_max", limits.record_bytes_max.into()),
        ("claim_records_max", limits.claim_records_max.into()),
        ("claim_bytes_max", limits.claim_bytes_max.into()),
        ("tick_steps_max", limits.tick_steps_max.into()),
        ("tombstone_age_us", limits.tombstone_age_us),
        ("sessions_max", limits.sessions_max.into()),
        ("session_answers_max", limits.session_answers_max.into()),
        ("session_answer_bytes_max", limits.session_answer_bytes_max.into()),
        ("session_pushes_max", limits.session_pushes_max.into()),
        ("session_push_bytes_max", limits.session_push_bytes_max.into()),
    ];
    let line = every.into_iter().fold(Line::object(), |line, (name, value)| line.number(name, value));
    // Younger than the format: absent, it has its default.
    match limits.messages_waiting_max {
        max if max == Limits::default().messages_waiting_max => line,
        max => line.number("messages_waiting_max", max),
    }
}

pub(super) fn space(number: u32, space: &Space) -> Line {
    let branches = space.branches().filter(|(_, branch)| !branch.deleted);
    let branches = branches.map(|(number, branch)| Line::object().text("name", &branch.name).number("number", number));
    Line::new(kinds::SPACE)
        .text("name", &space.name)
        .number("number", number)
        .number("versions_max", space.retention.versions_max)
        .number("age_us_max", space.retention.age_us_max)
        .list("branches", branches)
}

pub(super) fn record_type(space: &Space, declared: &Declared) -> Line {
    let definition = &declared.definition;
    let states = definition.states.iter().map(|state| {
        let kind = match state.kind {
            StateKind::Ready => "ready",
            StateKind::Held => "held",
            StateKind::Terminal => "terminal",
        };
        Line::object().text("name", &state.name).text("kind", kind)
    });
    let indexes = definition.indexes.iter().map(|(field, kind)| {
        let kind = match kind {
            IndexKind::Bytes => "bytes",
            IndexKind::Unsigned => "unsigned",
            IndexKind::Signed => "signed",
            IndexKind::Text => "text",
            IndexKind::Time => "time",
        };
        Line::object().text("field", field).text("kind", kind)
    });
    let order = match &definition.ready_order {
        ReadyOrder::Oldest => None,
        ReadyOrder::Field(field) => Some(field.as_str()),
    };
    Line::new(kinds::TYPE)
        .text("space", &space.name)
        .number("number", declared.id)
        .text("name", &definition.name)
        .texts("prefixes", declared.prefixes.iter().map(String::as_str))
        .text("state_field", &definition.state_field)
        .list("states", states)
        .text("completed", &definition.completed)
        .text("failed", &definition.failed)
        .list("indexes", indexes)
        .number_if("default_ttl_us", definition.default_ttl.map(micros))
        .number_if("terminal_ttl_us", definition.terminal_ttl.map(micros))
        .number("lease_us", micros(definition.lease))
        .number("attempts_max", definition.attempts_max)
        .number("backoff_first_us", micros(definition.backoff.first))
        .number("backoff_max_us", micros(definition.backoff.max))
        .text_if("ready_order", order)
        .text_if("rescued_to", definition.rescued_to.as_deref())
        .text_if("exhausted_to", definition.exhausted_to.as_deref())
}

pub(super) fn machine(number: u16, version: u16) -> Line {
    Line::new(kinds::MACHINE).number("number", number).number("version", version)
}

/// The kind and the line of a thing. Floors leave out the commit in the header.
pub(super) fn item(catalogue: &Catalogue, header: &Applied, item: &Item<'_>) -> Result<(&'static str, Line), Halt> {
    let unless_in_header = |commit: u64| (commit != 0 && commit != header.commit).then_some(commit);
    let named = |kind: &'static str, id: &OwnedId, name: &str| placed(catalogue, kind, id, name);
    Ok(match item {
        Item::Bucket { bucket, version, attempt, commit } => {
            let line = Line::new(kinds::BUCKET).number("bucket", *bucket);
            (
                kinds::BUCKET,
                line.number("version", *version)
                    .number("attempt", *attempt)
                    .number_if("commit", unless_in_header(*commit)),
            )
        }
        Item::Cell(CellItem::Floor { bucket, space, branch, version, commit, updated_at }) => {
            let line = in_branch(catalogue, kinds::CELL_FLOOR, *space, *branch)?;
            let line = line.number("bucket", *bucket).number("version", *version);
            let line = line.number_if("commit", unless_in_header(*commit)).number("updated_us", *updated_at);
            (kinds::CELL_FLOOR, line)
        }
        Item::Cell(CellItem::Version { cell, version, write }) => {
            (kinds::CELL_VERSION, written(named(kinds::CELL_VERSION, cell, "name")?, *version, write))
        }
        Item::Cell(CellItem::Newest { cell, version, write }) => {
            (kinds::CELL, written(named(kinds::CELL, cell, "name")?, *version, write))
        }
        Item::Record(RecordItem { record: id, row }) => {
            (kinds::RECORD, record(catalogue, named(kinds::RECORD, id, "name")?, id, row))
        }
        Item::Run(RunItem::Head { run: id, head }) => (kinds::RUN, run(named(kinds::RUN, id, "name")?, head)),
        Item::Run(RunItem::Event { run, seq, event: row }) => {
            (kinds::EVENT, event(named(kinds::EVENT, run, "run")?, *seq, row))
        }
        Item::Run(RunItem::Step { run, step }) => {
            let error = |error: &contract::runs::StepError| {
                let line = Line::object().text("code", &error.code).text("message", &error.message);
                line.boolean("retryable", error.retryable)
            };
            let line = named(kinds::STEP, run, "run")?
                .text("step_id", &step.step_id)
                .text("status", step.status.name())
                .text("logical_attempt_id", &step.logical_attempt_id)
                .text_if("engine_attempt_id", step.engine_attempt_id.as_deref())
                .text_if("started_at", step.started_at.as_deref())
                .text_if("completed_at", step.completed_at.as_deref());
            let line = match &step.error {
                Some(found) => line.nested("error", error(found)),
                None => line,
            };
            (kinds::STEP, line.texts("artifacts", step.artifacts.iter().map(Json::as_str)))
        }
        Item::Run(RunItem::Removal { run, at_us }) => {
            (kinds::RUN_REMOVAL, named(kinds::RUN_REMOVAL, run, "run")?.number("at_us", *at_us))
        }
        Item::Message { due_us, commit, ordinal, message: stored } => {
            (kinds::MESSAGE, message(catalogue, *due_us, *commit, *ordinal, stored)?)
        }
        Item::MachineState { space, machine, group, key, value } => {
            let line = Line::new(kinds::MACHINE_STATE).text("space", space_name(catalogue, *space)?);
            let line = line.number("machine", *machine).text("group", group);
            (kinds::MACHINE_STATE, line.octets("key", key).octets("value", value))
        }
        Item::MachineMember { session, space, machine, group } => {
            let line = Line::new(kinds::MACHINE_MEMBER).text("space", space_name(catalogue, *space)?);
            (kinds::MACHINE_MEMBER, line.number("machine", *machine).text("group", group).number("session", *session))
        }
    })
}

fn space_name(catalogue: &Catalogue, space: u32) -> Result<&str, Halt> {
    match catalogue.space(space) {
        Ok(space) => Ok(&space.name),
        Err(_) => Err(Halt::Inconsistent(format!("something is in space #{space}, which does not exist"))),
    }
}

/// A line with the place of a thing; its name is in `name`.
fn placed(catalogue: &Catalogue, kind: &str, id: &OwnedId, name: &str) -> Result<Line, Halt> {
    let line = in_branch(catalogue, kind, id.space, id.branch)?;
    Ok(line.text_if("group", id.group.as_deref()).text(name, &id.name))
}

fn in_branch(catalogue: &Catalogue, kind: &str, space: u32, branch: u32) -> Result<Line, Halt> {
    let found = catalogue.space(space).ok();
    let found = found.and_then(|found| Some((found, found.live_branch(branch).ok()?)));
    let Some((space, branch)) = found else {
        return Err(Halt::Inconsistent(format!("a {kind} is in a branch that does not exist")));
    };
    Ok(Line::new(kind).text("space", &space.name).text("branch", &branch.name))
}

fn written(line: Line, version: u64, write: &Old<'_>) -> Line {
    let line = line.number("version", version).number("commit", write.commit).number("updated_us", write.updated_at);
    match write.value {
        None => line.flag("deleted", true),
        Some(value) => line.value("value", &value.to_value()),
    }
}

fn record(catalogue: &Catalogue, line: Line, id: &OwnedId, row: &Row<'_>) -> Line {
    let numbers = &row.numbers;
    let declared = catalogue.record_type(id.space, numbers.record_type);
    let state = declared.filter(|_| numbers.state != NO_STATE).map(|declared| declared.state_name(numbers.state));
    let fields = row.fields.iter().fold(Line::object(), |fields, field| {
        let value = match field.content {
            Content::Inline(value) => value.to_value(),
            Content::Apart { .. } => unreachable!("a walk puts large values in their places"),
        };
        fields.nested(field.name, Line::object().number("version", field.version).value("value", &value))
    });
    line.number("version", numbers.version)
        .number("commit", numbers.commit)
        .number("created_us", numbers.created_us)
        .number("updated_us", numbers.updated_us)
        .flag("deleted", numbers.deleted)
        .text_if("type", declared.map(|declared| declared.definition.name.as_str()))
        .text_if("state", state)
        .number_unless_zero("attempt", numbers.attempt)
        .number_unless_zero("failures", numbers.failures)
        .number_unless_zero("expires_us", numbers.expires_us)
        .number_unless_zero("ready_us", numbers.ready_us)
        .flag("waiting", numbers.waiting)
        .number_unless_zero("lease_cluster_us", numbers.lease_us)
        .text_if("worker", row.worker)
        .number_unless_zero("holder_session", numbers.holder_session)
        .number_unless_zero("life_session", numbers.life_session)
        .nested("fields", fields)
}

fn run(line: Line, head: &RunHead) -> Line {
    let line = line
        .text("type", &head.run_type)
        .text("status", head.status.name())
        .flag("closed", head.closed)
        .flag("deleted", head.deleted)
        .number("last_seq", head.last_seq)
        .number("commit", head.commit)
        .number("created_us", head.created_us)
        .number("last_event_us", head.last_event_us);
    let line = match &head.parent {
        None => line,
        Some((run, seq)) => line.nested("parent", Line::object().text("run", run).number("seq", *seq)),
    };
    line.number_unless_zero("depth", head.depth)
        .number_unless_zero("forks", head.forks)
        .number("steps", head.steps)
        .number_unless_zero("steps_left_out", head.steps_left_out)
        .text_if("started_at", head.started_at.as_deref())
        .text_if("completed_at", head.completed_at.as_deref())
        .texts("artifacts", head.artifacts.iter().map(String::as_str))
}

fn event(line: Line, seq: u64, row: &EventRow<'_>) -> Line {
    let event = &row.event;
    line.number("seq", seq)
        .number("prev_seq", row.prev_seq)
        .number("commit", row.commit)
        .number("persisted_us", row.persisted_us)
        .text("type", event.event_type)
        .text("key", event.idempotency_key)
        .text_if("emitted_at", event.emitted_at)
        .text_if("event_id", event.event_id)
        .text_if("step_id", event.step_id)
        .text_if("engine_attempt_id", event.engine_attempt_id)
        .text_if("logical_attempt_id", event.logical_attempt_id)
        .text_if("adapter_version", event.adapter_version)
        .json_if("engine_run_ref", event.engine_run_ref)
        .text_if("caused_by_signal_id", event.caused_by_signal_id)
        .text_if("parent_event_id", event.parent_event_id)
        .json_if("extra", event.extra)
        .json("data", event.data)
}

fn message(
    catalogue: &Catalogue,
    due_us: Option<u64>,
    commit: u64,
    ordinal: u32,
    stored: &Stored<'_>,
) -> Result<Line, Halt> {
    let line = Line::new(kinds::MESSAGE)
        .text("space", space_name(catalogue, stored.space)?)
        .number("branch_number", stored.branch)
        .text("source", stored.source)
        .number("commit", commit)
        .number("ordinal", ordinal)
        .number_if("due_us", due_us)
        .number_if("after_us", stored.send.after_us);
    Ok(match stored.send.target {
        Target::Topic { topic, payload } => line.text("topic", topic).octets("payload", payload),
        Target::Transact(body) => line.octets("command", body),
    })
}
