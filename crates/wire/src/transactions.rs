//! Transactions: `transactions.commit`. Guards and operations are read in two steps, because the reader must know the
//! operation before it can know its members.
//!
//! Keeps: every member of a guard or an operation is honoured or refused; none is skipped.

use serde::de::{self, Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value as JsonValue, json};

use crate::error::{DecodeError, pass};
use crate::guards::Guard;
use crate::reader::{from_json_text, from_tagged_json, read_as_first_of};
use crate::records::TtlText;
use crate::runs::Appended;
use crate::schema::{Described, Member, Schemas, object};
use crate::values::{DurationText, JsonText, Members, Payload, SessionId, UserJson};

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

impl Transaction {
    /// Operations without conditions.
    pub fn of(operations: Vec<Operation>) -> Self {
        Self { guards: None, fence: None, operations }
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
