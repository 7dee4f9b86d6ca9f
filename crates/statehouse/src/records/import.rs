//! The records in the lines of an export, and their types.

use std::time::Duration;

use contract::Value;
use contract::guards::OWNER_RECORD;
use contract::records::types::{Backoff, IndexKind, ReadyOrder, RecordType, State, StateKind};
use kernel::catalogue::Declared;
use kernel::catalogue::types::OWNER_ID;
use kernel::portable::{Builder, Item};
use kernel::records::item::RecordItem;
use kernel::records::row::{Content, FieldRow, NO_STATE, Numbers, Row};
use kernel::{Catalogue, ValueRef};

use crate::export::kinds;
use crate::import::items::{Unput, thing};
use crate::import::object::{Object, Wrong};

/// The kinds of their lines.
pub(crate) const KINDS: &[&str] = &[kinds::BUCKET, kinds::RECORD];

/// Puts what a line declares, if it is a type.
pub(crate) fn declare(catalogue: &mut Catalogue, kind: &str, line: Object<'_>) -> Result<bool, Wrong> {
    match kind {
        kinds::TYPE => record_type(catalogue, line).map(|()| true),
        _ => Ok(false),
    }
}

pub(crate) fn put(builder: &mut Builder<'_>, kind: &str, line: Object<'_>) -> Result<(), Unput> {
    if kind == kinds::BUCKET {
        let (bucket, version) = (line.number("bucket")?, line.number("version")?);
        let (attempt, commit) = (line.number("attempt")?, line.number_or_zero("commit")?);
        return Ok(builder.put(&Item::Record(RecordItem::Floor { bucket, version, attempt, commit }))?);
    }
    record(builder, line)
}

fn record(builder: &mut Builder<'_>, line: Object<'_>) -> Result<(), Unput> {
    let id = thing(builder.catalogue(), line, "name")?;
    let declared = match line.text_if("type")? {
        None => None,
        Some(name) => {
            let space = builder.catalogue().space(id.space).map_err(|rejection| rejection.to_string())?;
            let found = match id.name.as_str() {
                OWNER_RECORD => space.types.get(OWNER_ID),
                _ => space.types.named(name),
            };
            Some(found.ok_or_else(|| format!("there is no type {name:?}"))?)
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
        // It follows from the guards of the space.
        by_name: false,
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
    let row = Row { numbers, worker: line.text_if("worker")?, fields: fields.collect(), row_bytes: 0 };
    Ok(builder.put(&Item::Record(RecordItem::Record { record: &id, row }))?)
}

/// Adds a record type.
fn record_type(catalogue: &mut Catalogue, line: Object<'_>) -> Result<(), Wrong> {
    let space = catalogue.space_named(line.text("space")?).map_err(|rejection| rejection.to_string())?;
    let mut states = Vec::new();
    for state in line.objects("states")? {
        let kind = match state.text("kind")? {
            "ready" => StateKind::Ready,
            "held" => StateKind::Held,
            "terminal" => StateKind::Terminal,
            other => return Err(format!("unknown kind of state {other:?}")),
        };
        states.push(State { name: state.text("name")?.to_owned(), kind });
    }
    let mut indexes = Vec::new();
    for index in line.objects("indexes")? {
        let kind = match index.text("kind")? {
            "bytes" => IndexKind::Bytes,
            "unsigned" => IndexKind::Unsigned,
            "signed" => IndexKind::Signed,
            "text" => IndexKind::Text,
            "time" => IndexKind::Time,
            other => return Err(format!("unknown kind of index {other:?}")),
        };
        indexes.push((index.text("field")?.to_owned(), kind));
    }
    let duration = |name: &str| line.number(name).map(Duration::from_micros);
    let definition = RecordType {
        name: line.text("name")?.to_owned(),
        state_field: line.text("state_field")?.to_owned(),
        states,
        completed: line.text("completed")?.to_owned(),
        failed: line.text("failed")?.to_owned(),
        indexes,
        default_ttl: line.number_if("default_ttl_us")?.map(Duration::from_micros),
        terminal_ttl: line.number_if("terminal_ttl_us")?.map(Duration::from_micros),
        lease: duration("lease_us")?,
        attempts_max: line.number("attempts_max")?,
        backoff: Backoff { first: duration("backoff_first_us")?, max: duration("backoff_max_us")? },
        ready_order: line.string_if("ready_order")?.map_or(ReadyOrder::Oldest, ReadyOrder::Field),
        rescued_to: line.string_if("rescued_to")?,
        exhausted_to: line.string_if("exhausted_to")?,
        guarded: line.flag("guarded")?,
    };
    let declared = Declared::filled(line.number("number")?, definition, line.texts("prefixes")?);
    Ok(catalogue.put_type(space, declared)?)
}
