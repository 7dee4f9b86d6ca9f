//! The keyed state in the lines of an export.

use contract::Value;
use contract::keyed::{InputPosition, LogicalTime, Policy};
use kernel::keyed::entry::{Entry, KeyState, Use, Waiting};
use kernel::keyed::head::{Content, MapHead};
use kernel::keyed::item::KeyedItem;
use kernel::portable::{Builder, Item};
use kernel::{Catalogue, ValueRef};
use kv::Writer;

use super::export::use_word;
use crate::export::kinds;
use crate::import::items::{Unput, thing};
use crate::import::object::{Object, Wrong};

/// The kinds of their lines.
pub(crate) const KINDS: &[&str] =
    &[kinds::MAP, kinds::MAP_KEY, kinds::MAP_POSITION, kinds::MAP_WAITING, kinds::MAP_ANSWER];

/// Nothing is declared for keyed state.
pub(crate) fn declare(_: &mut Catalogue, _: &str, _: Object<'_>) -> Result<bool, Wrong> {
    Ok(false)
}

pub(crate) fn put(builder: &mut Builder<'_>, kind: &str, line: Object<'_>) -> Result<(), Unput> {
    let map = &thing(builder.catalogue(), line, if kind == kinds::MAP { "name" } else { "map" })?;
    Ok(match kind {
        kinds::MAP => builder.put(&Item::Map(KeyedItem::Head { map, head: Box::new(head(line)?) })),
        kinds::MAP_POSITION => {
            let (position, commit) = (line.number("position")?, line.number("commit")?);
            let position = InputPosition::new(position, commit, line.number("updated_at")?);
            builder.put(&Item::Map(KeyedItem::Position { map, input: line.text("input")?, position }))
        }
        kinds::MAP_WAITING => {
            let (key, version, row) = (key_of(line)?, version(line, "version")?, line.octets("update")?);
            builder.put(&Item::Map(KeyedItem::Waiting { map, version, key: &key, row: &row }))
        }
        kinds::MAP_ANSWER => builder.put(&Item::Map(KeyedItem::Answer { map, row: &line.octets("answer")? })),
        _ => {
            let (key, mut value) = (key_of(line)?, Writer::new());
            // What waits follows, and is counted then.
            let (commit, waiting) = (line.number_or_zero("commit")?, Waiting::default());
            let entry = Entry { commit, waiting, state: state(line, &mut value)? };
            builder.put(&Item::Map(KeyedItem::Key { map, key: &key, entry }))
        }
    }?)
}

fn head(line: Object<'_>) -> Result<MapHead, Wrong> {
    let content = Content {
        keys: line.number("keys")?,
        waiting: line.number_or_zero("waiting")?,
        deleted: line.number_or_zero("deleted")?,
        last_number: line.number_or_zero("last_number")?,
        forgotten: line.number_or_zero("forgotten")?,
        since: line.number_or_zero("since")?,
        seal: if line.has("seal") { Some(version(line, "seal")?) } else { None },
        ..Content::default()
    };
    Ok(MapHead {
        content,
        commit: line.number("commit")?,
        updated_us: line.number("updated_us")?,
        policy: if line.flag("ordered")? { Policy::Ordered } else { Policy::Monotonic },
        sweep_us: line.number_if("sweep_us")?,
        ..MapHead::default()
    })
}

fn key_of(line: Object<'_>) -> Result<Vec<u8>, Wrong> {
    match line.value("key")? {
        Value::Text(text) => Ok(text.into_bytes()),
        Value::Bytes(bytes) => Ok(bytes),
        _ => Err("\"key\" is neither text nor bytes".into()),
    }
}

/// The state of a key. Its value is put into `bytes`.
fn state<'bytes>(line: Object<'_>, bytes: &'bytes mut Writer) -> Result<KeyState<'bytes>, Wrong> {
    if line.has("deleted") {
        return Ok(KeyState::Deleted(version(line, "deleted")?));
    }
    if let Some(nothing) = line.text_if("nothing")? {
        let found = [Use::Unknown, Use::Put, Use::Merged].into_iter().find(|of| use_word(*of) == nothing);
        return found.map(KeyState::Nothing).ok_or_else(|| format!("a key is for nothing like {nothing:?}"));
    }
    if line.has("merged") {
        return match line.value("merged")? {
            Value::Integer(value) => Ok(KeyState::Merged(value)),
            _ => Err("\"merged\" is not an integer".into()),
        };
    }
    ValueRef::from(&line.value("value")?).encode(bytes);
    Ok(KeyState::Put { version: version(line, "version")?, value: bytes.as_slice() })
}

fn version(line: Object<'_>, name: &str) -> Result<LogicalTime, Wrong> {
    let version = line.object(name)?;
    Ok(LogicalTime::new(version.number_or_zero("epoch")?, version.number("round")?))
}
