//! The lines of an export for keyed state.

use contract::Value;
use contract::keyed::{LogicalTime, Policy};
use kernel::catalogue::Space;
use kernel::keyed::entry::{Entry, KeyState, Use};
use kernel::keyed::head::MapHead;
use kernel::keyed::item::KeyedItem;
use session::Halt;

use crate::export::kinds;
use crate::export::line::Line;
use crate::export::lines::Place;

/// Nothing is declared for keyed state.
pub(crate) fn declared(_: &Space) -> Vec<(&'static str, Line)> {
    Vec::new()
}

pub(crate) fn line(place: &Place<'_>, item: &KeyedItem<'_>) -> Result<(&'static str, Line), Halt> {
    Ok(match item {
        KeyedItem::Head { map: id, head } => (kinds::MAP, map(place.line(kinds::MAP, id, "name")?, head)),
        KeyedItem::Key { map, key, entry } => {
            (kinds::MAP_KEY, entry_of(place.line(kinds::MAP_KEY, map, "map")?, key, entry)?)
        }
        KeyedItem::Position { map, input, position } => {
            let line = place.line(kinds::MAP_POSITION, map, "map")?.text("input", input);
            let line = line.number("position", position.position).number("commit", position.commit);
            (kinds::MAP_POSITION, line.number("updated_at", position.updated_at))
        }
        KeyedItem::Waiting { map, version: at, key, row } => {
            let line = place.line(kinds::MAP_WAITING, map, "map")?.value("key", &key_of(key));
            (kinds::MAP_WAITING, line.nested("version", version(*at)).octets("update", row))
        }
        KeyedItem::Answer { map, row } => {
            (kinds::MAP_ANSWER, place.line(kinds::MAP_ANSWER, map, "map")?.octets("answer", row))
        }
    })
}

fn map(line: Line, head: &MapHead) -> Line {
    let content = &head.content;
    let line = line
        .flag("ordered", head.policy == Policy::Ordered)
        .number("keys", content.keys)
        .number_unless_zero("deleted", content.deleted)
        .number_unless_zero("waiting", content.waiting)
        .number_unless_zero("last_number", content.last_number)
        .number_unless_zero("forgotten", content.forgotten)
        .number_unless_zero("since", content.since)
        .number("commit", head.commit)
        .number("updated_us", head.updated_us);
    let line = match content.seal {
        Some(seal) => line.nested("seal", version(seal)),
        None => line,
    };
    line.number_if("sweep_us", head.sweep_us)
}

fn entry_of(line: Line, key: &[u8], entry: &Entry<'_>) -> Result<Line, Halt> {
    let line = line.value("key", &key_of(key)).number_unless_zero("commit", entry.commit);
    Ok(match (entry.state, entry.value()?) {
        (KeyState::Deleted(deleted), _) => line.nested("deleted", version(deleted)),
        (KeyState::Nothing(of), _) => line.text("nothing", use_word(of)),
        (KeyState::Merged(value), _) => line.value("merged", &Value::Integer(value)),
        (KeyState::Put { version: put, .. }, value) => {
            let value = value.map_or(Value::Null, |value| value.to_value());
            line.nested("version", version(put)).value("value", &value)
        }
    })
}

fn key_of(key: &[u8]) -> Value {
    match std::str::from_utf8(key) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(_) => Value::Bytes(key.to_vec()),
    }
}

/// The word for what a key without a value is for.
pub(super) fn use_word(of: Use) -> &'static str {
    match of {
        Use::Unknown => "unknown",
        Use::Put => "put",
        Use::Merged => "merged",
    }
}

fn version(version: LogicalTime) -> Line {
    Line::object().number_unless_zero("epoch", version.epoch).number("round", version.round)
}
