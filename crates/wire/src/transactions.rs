//! Transactions: `transactions.commit`. Guards and operations are read in two steps, because the reader must know the
//! operation before it can know its members.
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
        /// The conditions.
        "if" guards: Option<Vec<Guard>>,
        /// The attempt that must be live.
        fence: Option<Fence>,
        /// The operations.
        "do" operations: Vec<Operation>,
    }

    /// An attempt that must be live.
    request Fence {
        /// The record, in the transaction's group.
        record: String,
        /// Its attempt.
        attempt: u64,
    }

    /// The conditions on a cell or a record. All of them must hold.
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
        /// The expected value of the field; null expects that it does not exist.
        is: Option<UserJson>,
    }

    /// Writes a cell.
    request CellSet {
        /// The cell.
        name: String,
        /// Its value.
        value: UserJson,
    }

    /// Creates a cell if it does not exist.
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
        /// Its fields: these and no others.
        fields: Members<UserJson>,
        /// Its type.
        "type" record_type: Option<String>,
        /// Its time to live.
        ttl: Option<TtlText>,
    }

    /// Changes a record.
    request RecordPatch {
        /// The record.
        name: String,
        /// Fields to write.
        set: Option<Members<UserJson>>,
        /// Fields to remove.
        unset: Option<Vec<String>>,
        /// Integer fields to increment.
        incr: Option<Members<i64>>,
        /// Fields and their expected values; null expects that the field does not exist.
        expect: Option<Members<UserJson>>,
        /// Its time to live.
        ttl: Option<TtlText>,
    }

    /// Adds to an integer field of a record.
    request RecordIncrement {
        /// The record.
        name: String,
        /// The field.
        field: String,
        /// The amount; 1 by default.
        by: Option<i64>,
    }

    /// Writes fields of a record, as its live attempt.
    request RecordStep {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
        /// Fields to write.
        fields: Members<UserJson>,
    }

    /// Releases a record.
    request RecordRelease {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
    }

    /// Completes a record.
    request RecordComplete {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
        /// Fields to write with it.
        fields: Option<Members<UserJson>>,
    }

    /// Ends the attempt of a record as failed.
    request RecordFail {
        /// The record.
        name: String,
        /// Its attempt.
        attempt: u64,
        /// The reason.
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
        /// The expected last sequence of the run.
        expect: Option<u64>,
        /// The kind of the run, if this append creates it.
        "type" run_type: Option<String>,
    }

    /// Sends a message to a topic.
    request Publish {
        /// The topic.
        topic: String,
        /// The message.
        payload: Payload,
        /// The delay.
        after: Option<DurationText>,
    }

    /// Pushes to a session.
    request Push {
        /// The session.
        session: SessionId,
        /// The message.
        payload: Payload,
    }

    /// Sends a transaction to another group.
    request Send {
        /// The group.
        group: String,
        /// The delay.
        after: Option<DurationText>,
        /// The conditions, checked when it is applied.
        "if" guards: Option<Vec<Guard>>,
        /// The attempt that must be live when it is applied.
        fence: Option<Fence>,
        /// The operations.
        "do" operations: Vec<Operation>,
    }

    /// The result of a commit.
    answer Committed {
        /// The commit.
        commit: u64,
        /// The result of each operation.
        done: Vec<Done>,
    }
}

/// The conditions on a cell or a record; see [`GuardMembers`].
#[derive(Clone, Debug, PartialEq)]
pub struct Guard(pub GuardMembers);

impl Serialize for Guard {
    /// Only the members that are set: `is` belongs to a field, and is null where the field must not exist.
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

/// The condition of a guard on a field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldIs {
    /// The field.
    pub field: String,
    /// Its expected value; none expects that the field does not exist.
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
        Some(false) => return wrong("absent can only be true"),
        Some(true) if members.version.is_some() || members.state_in.is_some() || members.field.is_some() => {
            return wrong("absent excludes version, state_in and field");
        }
        _ => {}
    }
    if members.state_in.as_ref().is_some_and(Vec::is_empty) {
        return wrong("state_in is empty, so it could never hold");
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

/// The name of an object's operation.
#[derive(serde::Deserialize)]
struct OperationHead {
    op: String,
}

macro_rules! operations {
    ($( $(#[doc = $says:literal])* $variant:ident($members:ident) = $op:literal, )*) => {
        /// One operation of a transaction: an object with its name in `op`.
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
    /// Creates a cell if it does not exist.
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
    /// Releases a record.
    RecordRelease(RecordRelease) = "record.release",
    /// Completes a record.
    RecordComplete(RecordComplete) = "record.complete",
    /// Ends the attempt of a record as failed.
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

/// The result of one operation.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Done {
    /// An event was appended.
    Appended(Appended),
    /// A cell or a record was written or deleted, or a cell already existed.
    Written(WrittenOperation),
    /// There was nothing to delete.
    Nothing(NothingDone),
    /// An attempt failed.
    Failed(FailedOperation),
    /// A message or a push was sent.
    Sent(Sent),
}

object! {
    /// The result of an operation on a cell or a record.
    answer WrittenOperation {
        /// The version.
        version: u64,
        /// Whether the cell already existed and was left unchanged.
        existing["Option::is_none"]: Option<bool>,
        /// The new value of the incremented field.
        value["Option::is_none"]: Option<i64>,
        /// The new values of a patch's incremented fields.
        values["Option::is_none"]: Option<Members<i64>>,
    }

    /// There was nothing to delete.
    answer NothingDone {
        /// Always `true`.
        nothing: bool,
    }

    /// The fate of a record whose attempt failed.
    answer FailedOperation {
        /// The time until it is retried, if it is.
        retry_in_ms: Option<u64>,
        /// Whether its attempts are used up.
        exhausted: bool,
    }

    /// A message or a push was sent.
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
