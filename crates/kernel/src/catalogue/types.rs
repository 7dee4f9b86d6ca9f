//! Record types as catalogue state: which are declared in a space, for which prefixes, and their bytes.
//!
//! Keeps: K6 for types: a number is never reused for another type, and the states and indexes of a type keep their
//! numbers, because rows contain them.

use std::collections::BTreeMap;
use std::time::Duration;

use contract::limits::NAME_BYTES_MAX;
use contract::records::types::{Backoff, IndexKind, ReadyOrder, RecordType, State, StateKind, TASK_PREFIX};
use contract::{RefusalReason, Rejection};
use kv::{DecodeError, Reader, Writer};

use super::SpaceId;

/// The number of a record type in its space. 0 means no type.
pub type TypeId = u32;

/// The number of the built-in type in every space.
const TASK_ID: TypeId = 1;

/// Record types of one space, and prefixes that types are declared for.
pub const TYPES_MAX: usize = 256;

const FORMAT: u8 = 2;

/// A declared type, with lookups needed for every record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// Its number.
    pub id: TypeId,
    /// The declaration.
    pub definition: RecordType,
    /// For which prefixes of names.
    pub prefixes: Vec<String>,
    /// So many of its indexes, the first ones, have an entry for every record; the others are being filled.
    pub filled: u8,
}

impl Declared {
    /// A type whose indexes are all filled.
    pub fn filled(id: TypeId, definition: RecordType, prefixes: Vec<String>) -> Self {
        let filled = index_count(&definition);
        Self { id, definition, prefixes, filled }
    }

    /// Whether some of its indexes lack entries.
    pub fn is_filling(&self) -> bool {
        self.filled < index_count(&self.definition)
    }

    /// The kind of a state.
    pub fn kind(&self, state: u8) -> StateKind {
        self.definition.states.get(usize::from(state)).map_or(StateKind::Terminal, |state| state.kind)
    }

    /// The name of a state.
    pub fn state_name(&self, state: u8) -> &str {
        self.definition.states.get(usize::from(state)).map_or("", |state| &state.name)
    }

    /// The number of a state.
    pub fn state_number(&self, name: &str) -> Option<u8> {
        self.definition.state(name).and_then(|(number, _)| u8::try_from(number).ok())
    }

    /// The state that claimed records move to.
    pub fn held(&self) -> u8 {
        let held = self.definition.states.iter().position(|state| state.kind == StateKind::Held);
        held.and_then(|number| u8::try_from(number).ok()).expect("a declared type has a held state")
    }

    /// The state of completed records.
    pub fn completed(&self) -> u8 {
        self.state_number(&self.definition.completed).expect("a declared type has it")
    }

    /// The state of records whose attempts are used up.
    pub fn failed(&self) -> u8 {
        self.state_number(&self.definition.failed).expect("a declared type has it")
    }
}

/// The types of one space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Types {
    by_id: BTreeMap<TypeId, Declared>,
}

/// Those of a new space.
impl Default for Types {
    fn default() -> Self {
        Self::of_task(RecordType::task())
    }
}

impl Types {
    /// Those of a space without rows of types: earlier releases wrote none for the built-in type, which had no index and kept
    /// what was finished.
    pub(super) fn without_rows() -> Self {
        Self::of_task(RecordType { indexes: Vec::new(), terminal_ttl: None, ..RecordType::task() })
    }

    fn of_task(task: RecordType) -> Self {
        let task = Declared::filled(TASK_ID, task, vec![TASK_PREFIX.to_owned()]);
        Self { by_id: BTreeMap::from([(TASK_ID, task)]) }
    }

    /// A type by number.
    pub fn get(&self, id: TypeId) -> Option<&Declared> {
        self.by_id.get(&id)
    }

    /// A type by name.
    pub fn named(&self, name: &str) -> Option<&Declared> {
        self.by_id.values().find(|declared| declared.definition.name == name)
    }

    /// The type declared for the longest prefix of a record's name.
    pub fn of_record(&self, name: &str) -> Option<&Declared> {
        let matching = self.by_id.values().filter_map(|declared| {
            let lengths = declared.prefixes.iter().filter(|prefix| name.starts_with(prefix.as_str()));
            lengths.map(String::len).max().map(|length| (length, declared))
        });
        matching.max_by_key(|(length, _)| *length).map(|(_, declared)| declared)
    }

    /// All types, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Declared> {
        self.by_id.values()
    }

    /// Notes how many indexes of a type are filled: so many, or all that there are.
    pub(super) fn set_filled(&mut self, id: TypeId, filled: u8) {
        if let Some(declared) = self.by_id.get_mut(&id) {
            declared.filled = filled.min(index_count(&declared.definition));
        }
    }

    /// Inserts a type read from its row.
    pub(super) fn insert(&mut self, declared: Declared) {
        self.by_id.insert(declared.id, declared);
    }

    /// Declares a type for a prefix, or changes what can be changed of an existing one. Returns its number.
    pub(super) fn declare(&mut self, prefix: &str, definition: &RecordType) -> Result<TypeId, Rejection> {
        let invalid = |reason| Rejection::InvalidDeclaration { what: format!("type {:?}", definition.name), reason };
        if let Some(reason) = definition.fault() {
            return Err(invalid(reason));
        }
        let id = match self.named(&definition.name) {
            Some(declared) => {
                if !extends(&declared.definition, definition) {
                    return Err(invalid(RefusalReason::OnlyAddedTo));
                }
                declared.id
            }
            None => {
                Rejection::check_limit("record_types_max", TYPES_MAX, self.by_id.len() + 1)?;
                self.by_id.keys().next_back().copied().unwrap_or(TASK_ID) + 1
            }
        };
        if prefix.len() > NAME_BYTES_MAX {
            return Err(invalid(RefusalReason::LongName));
        }
        let prefixes = self.by_id.values().flat_map(|declared| &declared.prefixes);
        let others = prefixes.filter(|other| *other != prefix).count();
        Rejection::check_limit("record_types_max", TYPES_MAX, others + 1)?;
        for declared in self.by_id.values_mut() {
            declared.prefixes.retain(|other| other != prefix);
        }
        let new = || Declared::filled(id, definition.clone(), Vec::new());
        let declared = self.by_id.entry(id).or_insert_with(new);
        let known = std::mem::take(&mut declared.definition.indexes);
        declared.definition = definition.clone();
        declared.definition.indexes = with_known_first(known, &definition.indexes);
        declared.prefixes.push(prefix.to_owned());
        Ok(id)
    }
}

/// Whether records of the old type are records of the new one.
fn extends(old: &RecordType, new: &RecordType) -> bool {
    new.states.starts_with(&old.states)
        && new.state_field == old.state_field
        && old.indexes.iter().all(|index| new.indexes.contains(index))
        && new.ready_order == old.ready_order
}

/// Indexes in the order of their numbers: the new ones follow, in whatever order they were given.
fn with_known_first(mut known: Vec<(String, IndexKind)>, all: &[(String, IndexKind)]) -> Vec<(String, IndexKind)> {
    let new: Vec<_> = all.iter().filter(|index| !known.contains(index)).cloned().collect();
    known.extend(new);
    known
}

fn index_count(definition: &RecordType) -> u8 {
    u8::try_from(definition.indexes.len()).unwrap_or(u8::MAX)
}

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
    writer.optional_text(definition.exhausted_to.as_deref()).no_members();
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
    reader.no_members()?;
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
    })
}

/// A duration in µs.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_as_written() {
        let mut definition = RecordType::task().named("mail").index("to", IndexKind::Text).sweep_to("r", "e");
        definition.ready_order = ReadyOrder::Field("priority".into());
        definition.default_ttl = Some(Duration::from_secs(9));
        let declared = Declared::filled(7, definition, vec!["mail.".into(), "post.".into()]);
        assert_eq!(decode_row(&encode_row(3, &declared)), Ok((3, declared)));
    }

    #[test]
    fn the_longest_prefix_decides_and_numbers_are_not_given_twice() {
        let mut types = Types::default();
        let mail = RecordType::task().named("mail");
        assert_eq!(types.declare("jobs.", &RecordType::task()), Ok(TASK_ID));
        assert_eq!(types.declare("jobs.mail.", &mail), Ok(TASK_ID + 1));
        assert_eq!(types.of_record("jobs.mail.1").map(|declared| declared.id), Some(TASK_ID + 1));
        assert_eq!(types.of_record("jobs.other").map(|declared| declared.id), Some(TASK_ID));
        assert_eq!(types.of_record("other"), None);
        assert_eq!(types.declare("jobs.", &mail), Ok(TASK_ID + 1), "a prefix has one type");
        assert_eq!(types.of_record("jobs.other").map(|declared| declared.id), Some(TASK_ID + 1));
    }

    #[test]
    fn what_rows_hold_is_not_changed_under_them() {
        let mut types = Types::default();
        let mut fewer = RecordType::task();
        fewer.states.pop();
        assert!(types.declare("a.", &fewer).is_err());
        let indexed = RecordType::task().index("to", IndexKind::Text).index("n", IndexKind::Signed);
        assert_eq!(types.declare("a.", &indexed), Ok(TASK_ID));
        let task = types.get(TASK_ID).expect("declared");
        let filled = &task.definition.indexes[..task.filled.into()];
        assert!(task.is_filling() && filled == RecordType::task().indexes, "old records lack entries");
        assert!(types.declare("a.", &RecordType::task().index("to", IndexKind::Text)).is_err(), "one less");
        let other_kind = RecordType::task().index("to", IndexKind::Bytes).index("n", IndexKind::Signed);
        assert!(types.declare("a.", &other_kind).is_err());
        let mut turned = indexed.clone();
        turned.indexes.reverse();
        assert_eq!(types.declare("a.", &turned), Ok(TASK_ID));
        assert_eq!(
            types.get(TASK_ID).expect("declared").definition.indexes,
            indexed.indexes,
            "they keep their numbers"
        );
        types.set_filled(TASK_ID, 3);
        assert_eq!(types.declare("a.", &indexed.lease(Duration::from_secs(2))), Ok(TASK_ID));
        assert!(!types.get(TASK_ID).expect("declared").is_filling());
        let mut types = Types::default();
        assert_eq!(types.declare("a.", &RecordType::task().lease(Duration::from_secs(1))), Ok(TASK_ID));
    }
}
