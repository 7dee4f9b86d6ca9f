//! The lines of an export for records and of their types.

use contract::records::types::{IndexKind, ReadyOrder, StateKind};
use kernel::catalogue::types::micros;
use kernel::catalogue::{Catalogue, Declared, Space};
use kernel::keys::things::OwnedId;
use kernel::records::item::RecordItem;
use kernel::records::row::{Content, NO_STATE, Row};
use session::Halt;

use crate::export::kinds;
use crate::export::line::Line;
use crate::export::lines::Place;

/// The lines of the types of a space.
pub(crate) fn declared(space: &Space) -> Vec<(&'static str, Line)> {
    space.types.iter().map(|declared| (kinds::TYPE, record_type(space, declared))).collect()
}

pub(crate) fn line(place: &Place<'_>, item: &RecordItem<'_>) -> Result<(&'static str, Line), Halt> {
    Ok(match item {
        // The line has its name from a time when nothing else was known of a bucket.
        RecordItem::Floor { bucket, version, attempt, commit } => {
            let line = Line::new(kinds::BUCKET).number("bucket", *bucket).number("version", *version);
            let line = line.number("attempt", *attempt);
            (kinds::BUCKET, line.number_if("commit", place.unless_in_header(*commit)))
        }
        RecordItem::Record { record: id, row } => {
            (kinds::RECORD, record(place.catalogue, place.line(kinds::RECORD, id, "name")?, id, row))
        }
    })
}

fn record_type(space: &Space, declared: &Declared) -> Line {
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
        .flag("guarded", definition.guarded)
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
