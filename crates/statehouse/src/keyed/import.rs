//! The keyed state in the lines of an export.

use contract::Value;
use contract::keyed::{InputPosition, LogicalTime};
use kernel::keyed::entry::{Entry, KeyState};
use kernel::keyed::head::{Content, MapHead};
use kernel::keyed::item::KeyedItem;
use kernel::portable::{Builder, Item};
use kernel::{Catalogue, ValueRef};
use kv::Writer;

use crate::export::kinds;
use crate::import::items::{Unput, thing};
use crate::import::object::{Object, Wrong};

/// The kinds of their lines.
pub(crate) const KINDS: &[&str] = &[kinds::MAP, kinds::MAP_KEY, kinds::MAP_POSITION, kinds::MAP_ANSWER];

/// Nothing is declared for keyed state.
pub(crate) fn declare(_: &mut Catalogue, _: &str, _: Object<'_>) -> Result<bool, Wrong> {
    Ok(false)
}

pub(crate) fn put(builder: &mut Builder<'_>, kind: &str, line: Object<'_>) -> Result<(), Unput> {
    let map = &thing(builder.catalogue(), line, if kind == kinds::MAP { "name" } else { "map" })?;
    Ok(match kind {
        kinds::MAP => builder.put(&Item::Map(KeyedItem::Head { map, head: head(line)? })),
        kinds::MAP_POSITION => {
            let (position, commit) = (line.number("position")?, line.number("commit")?);
            let position = InputPosition::new(position, commit, line.number("updated_at")?);
            builder.put(&Item::Map(KeyedItem::Position { map, input: line.text("input")?, position }))
        }
        kinds::MAP_ANSWER => builder.put(&Item::Map(KeyedItem::Answer { map, row: &line.octets("answer")? })),
        _ => {
            let key = match line.value("key")? {
                Value::Text(text) => text.into_bytes(),
                Value::Bytes(bytes) => bytes,
                _ => return Err(Unput::Wrong("\"key\" is neither text nor bytes".into())),
            };
            let mut value = Writer::new();
            let entry = Entry { commit: line.number("commit")?, state: state(line, &mut value)? };
            builder.put(&Item::Map(KeyedItem::Key { map, key: &key, entry }))
        }
    }?)
}

fn head(line: Object<'_>) -> Result<MapHead, Wrong> {
    let mut content = Content::default();
    content.keys = line.number("keys")?;
    content.deleted = line.number_or_zero("deleted")?;
    content.last_number = line.number_or_zero("last_number")?;
    content.forgotten = line.number_or_zero("forgotten")?;
    content.seal = if line.has("seal") { Some(version(line, "seal")?) } else { None };
    let mut head = MapHead::default();
    (head.content, head.commit, head.updated_us) = (content, line.number("commit")?, line.number("updated_us")?);
    head.sweep_us = line.number_if("sweep_us")?;
    Ok(head)
}

/// The state of a key. Its value is put into `bytes`.
fn state<'bytes>(line: Object<'_>, bytes: &'bytes mut Writer) -> Result<KeyState<'bytes>, Wrong> {
    if line.has("deleted") {
        return Ok(KeyState::Deleted(version(line, "deleted")?));
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
