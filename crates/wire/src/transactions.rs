//! Transactions: `transactions.commit`. Guards and operations are read in two steps, because a reader must know which
//! operation it is before it can say which members that has.
//!
//! Keeps: every member of a guard or an operation is honoured or refused; none is skipped.

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::error::{DecodeError, pass};
use crate::reader::{from_json_text, from_tagged_json, read_as_first_of};
use crate::runs::Appended;
use crate::schema::{Described, Member, Schemas, object};
use crate::values::{DurationText, JsonText, Members, Payload, SessionId, TtlText, UserJson};

object! {
    /// Operations of any contract in one commit, all or nothing.
    request Transaction {
        /// What must be the case.
        "if" guards: Option<Vec<Guard>>,
        /// The attempt that must be the live one.
        fence: Option<Fence>,
        /// What is done.
        "do" operations: Vec<Operation>,
    }

    /// An attempt that must be the live one.
    request Fence {
        /// The record, in the transaction's group.
        record: String,
        /// Its attempt.
        attempt: u64,
    }

    /// What a cell or a record must be. All of what is said must be the case.
    request GuardMembers {
        /// The cell.
        cell: Option<String>,
        /// The record.
        record: Option<String>,
        /// Its version.
        version: Option<u64>,
        /// `true`: it does not exist.
        absent: Option<bool>,
        /// The states that the record may be in.
        state_in: Option<Vec<String>>,
        /// A field of the record.
        field: Option<String>,
        /// What the field must hold; null for one that must not be there.
        is: Option<UserJson>,
    }

    /// Writes a cell.
    request CellSet {
        /// The cell.
        name: String,
        /// Its value.
        value: UserJson,
    }

    /// Writes a cell if it does not exist.
    request CellInit {
        /// The cell.
        name: String,
        /// Its value.
        value: UserJson,
    }

    /// Deletes a cell.
    request CellDelete {
        /// The cell.
        name: String,
    }

    /// Replaces a record.
    request RecordPut {
        /// The record.
        name: String,
        /// Names and values; these and no others.
        fields: Members<UserJson>,
        /// Its type.
        "type" record_type: Option<String>,
        /// How long it is to exist.
        ttl: Option<TtlText>,
    }

    /// Changes a record.
    request RecordPatch {
        /// The record.
        name: String,
        /// Fields that are written.
        set: Option<Members<UserJson>>,
        /// Fields that are removed.
        unset: Option<Vec<String>>,
        /// Integer fields that are added to.
        incr: Option<Members<i64>>,
        /// Fields and what they must hold; null for one that must not be there.
        expect: Option<Members<UserJson>>,
        /// How long it is to exist.
        ttl: Option<TtlText>,
    }

    /// Adds to an integer field of a record.
    request RecordIncrement {
        /// The record.
        name: String,
        /// The field.
        field: String,
        /// How much; 1 if it is left out.
        by: Option<i64>,
    }

    /// Writes fields of a record, as its live attempt.
    request RecordStep {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
        /// Fields that are written.
        fields: Members<UserJson>,
    }

    /// Gives a record back.
    request RecordRelease {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
    }

    /// Finishes a record.
    request RecordComplete {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
        /// Fields that are written with it.
        fields: Option<Members<UserJson>>,
    }

    /// Says that the attempt of a record failed.
    request RecordFail {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
        /// Why.
        error: Option<String>,
    }

    /// Deletes a record.
    request RecordDelete {
        /// The record.
        name: String,
    }

    /// Appends an event to a run.
    request RunAppend {
        /// The run.
        run: String,
        /// The event.
        event: JsonText,
        /// The run's last sequence.
        expect: Option<u64>,
        /// What kind of run it is, if this makes it.
        "type" run_type: Option<String>,
    }

    /// Sends a message to a topic.
    request Publish {
        /// The topic.
        topic: String,
        /// What is sent.
        payload: Payload,
        /// Not before so much time has passed.
        after: Option<DurationText>,
    }

    /// Pushes to a session.
    request Push {
        /// The session.
        session: SessionId,
        /// What is sent.
        payload: Payload,
    }

    /// Sends a transaction to another group.
    request Send {
        /// The group.
        group: String,
        /// Not before so much time has passed.
        after: Option<DurationText>,
        /// What must be the case then.
        "if" guards: Option<Vec<Guard>>,
        /// The attempt that must be the live one then.
        fence: Option<Fence>,
        /// What is done then.
        "do" operations: Vec<Operation>,
    }

    /// What was committed.
    answer Committed {
        /// The commit.
        commit: u64,
        /// What each operation did.
        done: Vec<Done>,
    }
}

/// What a cell or a record must be; see [`GuardMembers`].
#[derive(Clone, Debug, PartialEq)]
pub struct Guard(pub GuardMembers);

impl Serialize for Guard {
    /// Only what it says: `is` belongs to a field, and is null where the field must not be there.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let GuardMembers { cell, record, version, absent, state_in, field, is } = &self.0;
        let mut map = serializer.serialize_map(None)?;
        for (name, text) in [("cell", cell), ("record", record), ("field", field)] {
            if let Some(text) = text {
                map.serialize_entry(name, text)?;
            }
        }
        if field.is_some() {
            map.serialize_entry("is", is)?;
        }
        if let Some(version) = version {
            map.serialize_entry("version", version)?;
        }
        if let Some(absent) = absent {
            map.serialize_entry("absent", absent)?;
        }
        if let Some(states) = state_in {
            map.serialize_entry("state_in", states)?;
        }
        map.end()
    }
}

/// What a guard compares a field with.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldIs {
    /// The field.
    pub field: String,
    /// What it must hold; none for a field that must not be there.
    pub is: Option<UserJson>,
}

impl<'de> Deserialize<'de> for Guard {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        guard(raw).map_err(pass)
    }
}

fn guard(raw: &str) -> Result<Guard, DecodeError> {
    let members: GuardMembers = from_json_text(raw)?;
    let MemberNames(names) = from_json_text(raw)?;
    let wrong = |reason: &str| Err(DecodeError::wrong_value(reason));
    let says = members.version.is_some() || members.absent.is_some();
    match (&members.cell, &members.record) {
        (Some(_), Some(_)) => return wrong("a guard names a cell or a record, not both"),
        (None, None) => return wrong("a guard names a cell or a record"),
        (Some(_), None) if members.state_in.is_some() || members.field.is_some() => {
            return wrong("a guard of a cell has version or absent; state_in and field are of records");
        }
        (Some(_), None) if !says => return wrong("a guard of a cell has version or absent"),
        (None, Some(_)) if !says && members.state_in.is_none() && members.field.is_none() => {
            return wrong("a guard of a record has version, absent, state_in or field");
        }
        _ => {}
    }
    match members.absent {
        Some(false) => return wrong("absent is only known as true"),
        Some(true) if members.version.is_some() || members.state_in.is_some() || members.field.is_some() => {
            return wrong("what is absent has no version, state or field");
        }
        _ => {}
    }
    if members.state_in.as_ref().is_some_and(Vec::is_empty) {
        return wrong("state_in names no state, so it would never hold");
    }
    match (members.field.is_some(), names.iter().any(|name| name == "is")) {
        (true, false) => Err(DecodeError::missing_member("is")),
        (false, true) => Err(DecodeError::missing_member("field")),
        _ => Ok(Guard(members)),
    }
}

impl Described for Guard {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        GuardMembers::schema(schemas)
    }
}

/// The names of an object's members.
struct MemberNames(Vec<String>);

impl<'de> Deserialize<'de> for MemberNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = MemberNames;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MemberNames, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = map.next_key()? {
                    map.next_value::<de::IgnoredAny>()?;
                    names.push(name);
                }
                Ok(MemberNames(names))
            }
        }

        deserializer.deserialize_map(Reading)
    }
}

/// Which operation an object is.
#[derive(serde::Deserialize)]
struct OperationHead {
    op: String,
}

macro_rules! operations {
    ($( $(#[doc = $says:literal])* $variant:ident($members:ident) = $op:literal, )*) => {
        /// One operation of a transaction: an object whose `op` says which.
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(tag = "op")]
        pub enum Operation {
            $( $(#[doc = $says])* #[serde(rename = $op)] $variant($members), )*
        }

        /// Every operation by name.
        pub const OPERATIONS: &[&str] = &[$($op),*];

        fn operation(raw: &str) -> Result<Operation, DecodeError> {
            let OperationHead { op } = from_json_text(raw)?;
            match op.as_str() {
                $( $op => from_tagged_json(raw, "op").map(Operation::$variant), )*
                other => {
                    let unknown: DecodeError = de::Error::unknown_variant(other, OPERATIONS);
                    Err(unknown.in_member("op"))
                }
            }
        }

        impl Described for Operation {
            fn schema(schemas: &mut Schemas) -> JsonValue {
                let choices = vec![$({
                    schemas.object(concat!(stringify!($members), "Operation"), concat!($($says),*).trim(), true, |schemas| {
                        let op = Member {
                            name: "op",
                            schema: json!({ "type": "string", "const": $op }),
                            required: true,
                            says: String::new(),
                        };
                        let mut members = vec![op];
                        members.extend($members::members(schemas));
                        members
                    })
                }),*];
                json!({ "oneOf": choices })
            }
        }
    };
}

operations! {
    /// Writes a cell.
    CellSet(CellSet) = "cell.set",
    /// Writes a cell if it does not exist.
    CellInit(CellInit) = "cell.init",
    /// Deletes a cell.
    CellDelete(CellDelete) = "cell.delete",
    /// Replaces a record.
    RecordPut(RecordPut) = "record.put",
    /// Changes a record.
    RecordPatch(RecordPatch) = "record.patch",
    /// Adds to an integer field of a record.
    RecordIncrement(RecordIncrement) = "record.incr",
    /// Writes fields of a record, as its live attempt.
    RecordStep(RecordStep) = "record.step",
    /// Gives a record back.
    RecordRelease(RecordRelease) = "record.release",
    /// Finishes a record.
    RecordComplete(RecordComplete) = "record.complete",
    /// Says that the attempt of a record failed.
    RecordFail(RecordFail) = "record.fail",
    /// Deletes a record.
    RecordDelete(RecordDelete) = "record.delete",
    /// Appends an event to a run.
    RunAppend(RunAppend) = "run.append",
    /// Sends a message to a topic.
    Publish(Publish) = "publish",
    /// Pushes to a session.
    Push(Push) = "push",
    /// Sends a transaction to another group.
    Send(Send) = "send",
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        operation(raw).map_err(pass)
    }
}

/// What one operation did.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Done {
    /// An event was appended.
    Appended(Appended),
    /// A cell or a record was written, or deleted; or a cell was there already.
    Written(WrittenOperation),
    /// There was nothing to delete.
    Nothing(NothingDone),
    /// An attempt failed.
    Failed(FailedOperation),
    /// A message or a push is on its way.
    Sent(Sent),
}

object! {
    /// What an operation on a cell or a record left behind.
    answer WrittenOperation {
        /// The version.
        version: u64,
        /// Whether the cell was there already, and was left as it is.
        existing["Option::is_none"]: Option<bool>,
        /// What the counted field holds now.
        value["Option::is_none"]: Option<i64>,
        /// What the counted fields of a patch hold now.
        values["Option::is_none"]: Option<Members<i64>>,
    }

    /// There was nothing to delete.
    answer NothingDone {
        /// Always `true`.
        nothing: bool,
    }

    /// What becomes of a record whose attempt failed.
    answer FailedOperation {
        /// When it will be tried again, if it will.
        retry_in_ms: Option<u64>,
        /// Whether its attempts are used up.
        exhausted: bool,
    }

    /// A message or a push is on its way.
    answer Sent {
        /// Always `true`.
        sent: bool,
    }
}

read_as_first_of!(Done:
    Appended(Appended), Written(WrittenOperation), Nothing(NothingDone), Failed(FailedOperation), Sent(Sent)
);

impl Described for Done {
    fn schema(schemas: &mut Schemas) -> JsonValue {
        json!({ "anyOf": [
            WrittenOperation::schema(schemas),
            Appended::schema(schemas),
            NothingDone::schema(schemas),
            FailedOperation::schema(schemas),
            Sent::schema(schemas),
        ] })
    }
}
