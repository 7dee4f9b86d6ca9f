//! Record types as bytes: their rows, and their declarations in commands; `docs/formats/keys.md`.

use std::time::Duration;

use contract::records::types::{Backoff, IndexKind, ReadyOrder, RecordType, State, StateKind};
use kv::{DecodeError, Reader, Writer};

use super::SpaceId;
use super::types::{Declared, micros};

const FORMAT: u8 = 2;

/// The member of a type whose held records are written with their fence only.
const GUARDED: u8 = 1;

/// The row of a type.
pub(super) fn encode_row(space: u32, declared: &Declared) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u8(FORMAT).u32(space).u32(declared.id);
    writer.u32(u32::try_from(declared.prefixes.len()).expect("few prefixes"));
    for prefix in &declared.prefixes {
        writer.bytes(prefix.as_bytes());
    }
    encode(&mut writer, &declared.definition);
    writer.finish()
}

/// Reads the row of a type: its space, and the type.
pub(super) fn decode_row(bytes: &[u8]) -> Result<(u32, Declared), DecodeError> {
    let mut reader = Reader::new(bytes);
    reader.format(FORMAT)?;
    let (space, id) = (reader.u32()?, reader.u32()?);
    let mut prefixes = Vec::new();
    for _ in 0..reader.u32()? {
        prefixes.push(reader.text()?.to_owned());
    }
    let definition = decode(&mut reader)?;
    reader.end()?;
    Ok((space, Declared::filled(id, definition, prefixes)))
}

/// The declaration of a record type for a prefix of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDeclaration {
    /// In which space.
    pub space: SpaceId,
    /// For which names.
    pub prefix: String,
    /// The type.
    pub record_type: Box<RecordType>,
}

impl TypeDeclaration {
    pub(super) fn encode<'writer>(&self, writer: &'writer mut Writer) -> &'writer mut Writer {
        writer.u32(self.space).bytes(self.prefix.as_bytes());
        encode(writer, &self.record_type);
        writer
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (space, prefix) = (reader.u32()?, reader.text()?.to_owned());
        Ok(Self { space, prefix, record_type: Box::new(decode(reader)?) })
    }
}

/// Appends a type's bytes, in a command and in its row alike.
pub(super) fn encode(writer: &mut Writer, definition: &RecordType) {
    writer.bytes(definition.name.as_bytes()).bytes(definition.state_field.as_bytes());
    writer.u8(u8::try_from(definition.states.len()).unwrap_or(u8::MAX));
    for state in definition.states.iter().take(usize::from(u8::MAX)) {
        writer.bytes(state.name.as_bytes()).u8(match state.kind {
            StateKind::Ready => 0,
            StateKind::Held => 1,
            StateKind::Terminal => 2,
        });
    }
    writer.bytes(definition.completed.as_bytes()).bytes(definition.failed.as_bytes());
    writer.u8(u8::try_from(definition.indexes.len()).unwrap_or(u8::MAX));
    for (field, kind) in definition.indexes.iter().take(usize::from(u8::MAX)) {
        writer.bytes(field.as_bytes()).u8(match kind {
            IndexKind::Bytes => 0,
            IndexKind::Unsigned => 1,
            IndexKind::Signed => 2,
            IndexKind::Text => 3,
            IndexKind::Time => 4,
        });
    }
    writer.optional_u64(definition.default_ttl.map(micros)).optional_u64(definition.terminal_ttl.map(micros));
    writer.u64(micros(definition.lease)).u64(definition.attempts_max);
    writer.u64(micros(definition.backoff.first)).u64(micros(definition.backoff.max));
    let order_field = match &definition.ready_order {
        ReadyOrder::Oldest => None,
        ReadyOrder::Field(field) => Some(field.as_str()),
    };
    writer.optional_text(order_field).optional_text(definition.rescued_to.as_deref());
    writer.optional_text(definition.exhausted_to.as_deref());
    writer.members(if definition.guarded { &[(GUARDED, &[])] } else { &[] });
}

/// Reads a type.
pub(super) fn decode(reader: &mut Reader<'_>) -> Result<RecordType, DecodeError> {
    let (name, state_field) = (reader.text()?.to_owned(), reader.text()?.to_owned());
    let mut states = Vec::new();
    for _ in 0..reader.u8()? {
        let name = reader.text()?.to_owned();
        let kind = match reader.u8()? {
            0 => StateKind::Ready,
            1 => StateKind::Held,
            2 => StateKind::Terminal,
            _ => return Err(DecodeError { what: "a state of an unknown kind" }),
        };
        states.push(State { name, kind });
    }
    let (completed, failed) = (reader.text()?.to_owned(), reader.text()?.to_owned());
    let mut indexes = Vec::new();
    for _ in 0..reader.u8()? {
        let field = reader.text()?.to_owned();
        let kind = match reader.u8()? {
            0 => IndexKind::Bytes,
            1 => IndexKind::Unsigned,
            2 => IndexKind::Signed,
            3 => IndexKind::Text,
            4 => IndexKind::Time,
            _ => return Err(DecodeError { what: "an index of an unknown kind" }),
        };
        indexes.push((field, kind));
    }
    let duration = Duration::from_micros;
    let (default_ttl, terminal_ttl) = (reader.optional_u64()?.map(duration), reader.optional_u64()?.map(duration));
    let (lease, attempts_max) = (duration(reader.u64()?), reader.u64()?);
    let backoff = Backoff { first: duration(reader.u64()?), max: duration(reader.u64()?) };
    let mut text = || Ok(reader.optional_text()?.map(str::to_owned));
    let ready_order = text()?.map_or(ReadyOrder::Oldest, ReadyOrder::Field);
    let (rescued_to, exhausted_to) = (text()?, text()?);
    let mut guarded = false;
    for (tag, content) in reader.members()? {
        match (tag, content) {
            (GUARDED, []) => guarded = true,
            _ => return Err(DecodeError::NEWER_MEMBER),
        }
    }
    Ok(RecordType {
        name,
        state_field,
        states,
        completed,
        failed,
        indexes,
        default_ttl,
        terminal_ttl,
        lease,
        attempts_max,
        backoff,
        ready_order,
        rescued_to,
        exhausted_to,
        guarded,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_as_written() {
        let mut definition = RecordType::task().named("mail").index("to", IndexKind::Text).sweep_to("r", "e");
        definition.ready_order = ReadyOrder::Field("priority".into());
        definition.default_ttl = Some(Duration::from_secs(9));
        for definition in [definition.clone(), definition.guarded(), RecordType::owner()] {
            let declared = Declared::filled(7, definition, vec!["mail.".into(), "post.".into()]);
            assert_eq!(decode_row(&encode_row(3, &declared)), Ok((3, declared)));
        }
    }
}
