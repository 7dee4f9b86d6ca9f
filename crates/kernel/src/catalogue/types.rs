//! Record types as catalogue state: which are declared in a space, and for which prefixes.
//!
//! Keeps: K6 for types: a number is never reused for another type, and the states and indexes of a type keep their
//! numbers, because rows contain them.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use contract::guards::OWNER;
use contract::limits::NAME_BYTES_MAX;
use contract::records::types::{IndexKind, RecordType, StateKind, TASK_PREFIX};
use contract::{RefusalReason, Rejection};

use crate::LEVEL_OF_GUARDS;

/// The number of a record type in its space. 0 means no type.
pub type TypeId = u32;

/// The number of the built-in type of jobs in every space.
const TASK_ID: TypeId = 1;

/// The number of the built-in type of owners. It has no row: nobody can change it.
pub const OWNER_ID: TypeId = TypeId::MAX;

static OWNER_TYPE: LazyLock<Declared> = LazyLock::new(|| Declared::filled(OWNER_ID, RecordType::owner(), Vec::new()));

/// Record types of one space, and prefixes that types are declared for.
pub const TYPES_MAX: usize = 256;

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

    /// The state of completed records; none if they are never finished.
    pub fn completed(&self) -> Option<u8> {
        self.state_number(&self.definition.completed)
    }

    /// The state of records whose attempts are used up; none if they never are.
    pub fn failed(&self) -> Option<u8> {
        self.state_number(&self.definition.failed)
    }
}

/// The types of one space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Types {
    by_id: BTreeMap<TypeId, Declared>,
    /// Whether one of them is guarded.
    any_guarded: bool,
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
        Self { by_id: BTreeMap::from([(TASK_ID, task)]), any_guarded: false }
    }

    /// A type by number.
    pub fn get(&self, id: TypeId) -> Option<&Declared> {
        match id {
            OWNER_ID => Some(&OWNER_TYPE),
            id => self.by_id.get(&id),
        }
    }

    /// Whether writes to some held records of the space need a fence.
    pub(crate) fn any_guarded(&self) -> bool {
        self.any_guarded
    }

    /// A type by name.
    pub fn named(&self, name: &str) -> Option<&Declared> {
        self.declared(name).or_else(|| Some(&*OWNER_TYPE).filter(|_| name == OWNER))
    }

    /// A type by name that was declared in the space, or is that of jobs.
    pub(super) fn declared(&self, name: &str) -> Option<&Declared> {
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

    /// All declared types, by number.
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
        self.any_guarded |= declared.definition.guarded;
        self.by_id.insert(declared.id, declared);
    }

    /// Refuses a type that a level of behaviour does not know, or that has the name of a built-in one.
    pub(super) fn check_level(&self, level: u32, definition: &RecordType) -> Result<(), Rejection> {
        let invalid = |reason| Rejection::InvalidDeclaration { what: format!("type {:?}", definition.name), reason };
        match level >= LEVEL_OF_GUARDS {
            // One that was declared before there was a built-in one keeps its name.
            true if definition.name == OWNER && self.declared(OWNER).is_none() => Err(invalid(RefusalReason::BuiltIn)),
            false if definition.never_ends() => Err(invalid(RefusalReason::EndNotTerminal)),
            _ => Ok(()),
        }
    }

    /// Declares a type for a prefix, or changes what can be changed of an existing one. Returns its number.
    pub(super) fn declare(&mut self, prefix: &str, definition: &RecordType) -> Result<TypeId, Rejection> {
        let invalid = |reason| Rejection::InvalidDeclaration { what: format!("type {:?}", definition.name), reason };
        if let Some(reason) = definition.fault() {
            return Err(invalid(reason));
        }
        let id = match self.declared(&definition.name) {
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
        self.any_guarded = self.by_id.values().any(|declared| declared.definition.guarded);
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

/// A duration in µs.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

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
