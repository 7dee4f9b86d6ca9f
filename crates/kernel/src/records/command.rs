//! Operations on records, as encoded in a command; `docs/formats/entry.md`.

use contract::guards::OWNER_RECORD;
use kv::{DecodeError, Reader, Writer};
use session::Digester;

use crate::command::act::{Act, Open, unless_empty};
use crate::command::count;
use crate::value::ValueRef;

pub use super::guard_command::RecordGuard;

/// A field with the value it gets.
pub type FieldValue<'bytes> = (&'bytes str, ValueRef<'bytes>);

/// A field with the value it gets, or none if it is removed.
pub type FieldPatch<'bytes> = (&'bytes str, Option<ValueRef<'bytes>>);

/// The time to live of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlArgument {
    /// Forever, or the type's default.
    Persist,
    /// Unchanged by this write.
    Keep,
    /// This many µs from now.
    After(u64),
    /// As long as the session that writes it.
    WithSession,
}

/// An operation on a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordAct<'bytes> {
    /// Replaces it.
    Put {
        /// Its type by name, or the one declared for its name.
        record_type: Option<&'bytes str>,
        /// Its time to live.
        ttl: TtlArgument,
        /// Its fields.
        fields: Vec<FieldValue<'bytes>>,
    },
    /// Writes and removes fields.
    Patch {
        /// Whether it is refused if the record does not exist; otherwise the record is created.
        must_exist: bool,
        /// Which.
        fields: Vec<FieldPatch<'bytes>>,
    },
    /// Writes a field if it is as expected; none means that the field does not exist.
    Swap {
        /// Which.
        field: &'bytes str,
        /// The expected value.
        expected: Option<ValueRef<'bytes>>,
        /// The new value.
        new: Option<ValueRef<'bytes>>,
    },
    /// Adds to an integer field; one that does not exist counts as 0.
    Increment {
        /// Which.
        field: &'bytes str,
        /// The amount.
        by: i64,
    },
    /// Deletes it.
    Delete,
    /// Sets how long it will exist.
    Touch {
        /// The new time to live.
        ttl: TtlArgument,
    },
    /// Takes it for a worker.
    Claim {
        /// The worker's name; may be empty.
        worker: &'bytes str,
        /// The lease in µs, if it differs from the type's.
        lease_us: Option<u64>,
    },
    /// Holds it longer.
    Extend {
        /// Which attempt.
        attempt: u64,
        /// The lease from now on in µs, if it differs from the type's.
        lease_us: Option<u64>,
    },
    /// Releases it.
    Release {
        /// Which attempt.
        attempt: u64,
    },
    /// Finishes it.
    Complete {
        /// Which attempt.
        attempt: u64,
        /// Fields written with it.
        fields: Vec<FieldPatch<'bytes>>,
    },
    /// Says that the attempt failed.
    Fail {
        /// Which attempt.
        attempt: u64,
        /// Fields written with it.
        fields: Vec<FieldPatch<'bytes>>,
    },
}

const PUT: u8 = 1;
const PATCH: u8 = 2;
const SWAP: u8 = 3;
const INCREMENT: u8 = 4;
const DELETE: u8 = 5;
const TOUCH: u8 = 6;
const CLAIM: u8 = 7;
const EXTEND: u8 = 8;
const RELEASE: u8 = 9;
const COMPLETE: u8 = 10;
const FAIL: u8 = 11;

impl<'bytes> RecordAct<'bytes> {
    /// The values that it writes.
    pub fn values(&self) -> impl Iterator<Item = ValueRef<'bytes>> {
        let (put, patch, new): (&[FieldValue<'_>], &[FieldPatch<'_>], Option<ValueRef<'_>>) = match self {
            RecordAct::Put { fields, .. } => (fields, &[], None),
            RecordAct::Patch { fields, .. } | RecordAct::Complete { fields, .. } | RecordAct::Fail { fields, .. } => {
                (&[], fields, None)
            }
            RecordAct::Swap { new, .. } => (&[], &[], *new),
            RecordAct::Increment { by, .. } => (&[], &[], Some(ValueRef::Integer(*by))),
            _ => (&[], &[], None),
        };
        let put = put.iter().map(|(_, value)| *value);
        put.chain(patch.iter().filter_map(|(_, value)| *value)).chain(new)
    }

    fn encode_act(&self, writer: &mut Writer) {
        match self {
            RecordAct::Put { record_type, ttl, fields } => {
                writer.u8(PUT).optional_text(*record_type);
                encode_ttl(writer, *ttl);
                writer.u32(count(fields.len()));
                for (field, value) in fields {
                    value.encode_framed(writer.bytes(field.as_bytes()));
                }
            }
            RecordAct::Patch { must_exist, fields } => encode_patches(writer.u8(PATCH).bool(*must_exist), fields),
            RecordAct::Swap { field, expected, new } => {
                writer.u8(SWAP).bytes(field.as_bytes());
                ValueRef::encode_optional(*expected, writer);
                ValueRef::encode_optional(*new, writer);
            }
            RecordAct::Increment { field, by } => {
                writer.u8(INCREMENT).bytes(field.as_bytes()).i64(*by);
            }
            RecordAct::Delete => {
                writer.u8(DELETE);
            }
            RecordAct::Touch { ttl } => encode_ttl(writer.u8(TOUCH), *ttl),
            RecordAct::Claim { worker, lease_us } => {
                writer.u8(CLAIM).bytes(worker.as_bytes()).optional_u64(*lease_us);
            }
            RecordAct::Extend { attempt, lease_us } => {
                writer.u8(EXTEND).u64(*attempt).optional_u64(*lease_us);
            }
            RecordAct::Release { attempt } => {
                writer.u8(RELEASE).u64(*attempt);
            }
            RecordAct::Complete { attempt, fields } => encode_patches(writer.u8(COMPLETE).u64(*attempt), fields),
            RecordAct::Fail { attempt, fields } => encode_patches(writer.u8(FAIL).u64(*attempt), fields),
        }
    }

    fn decode_act(reader: &mut Reader<'bytes>) -> Result<Self, DecodeError> {
        Ok(match reader.u8()? {
            PUT => {
                let (record_type, ttl) = (reader.optional_text()?, decode_ttl(reader)?);
                let mut fields = Vec::new();
                for _ in 0..reader.u32()? {
                    fields.push((reader.text()?, ValueRef::decode_framed(reader)?));
                }
                RecordAct::Put { record_type, ttl, fields }
            }
            PATCH => RecordAct::Patch { must_exist: reader.bool()?, fields: decode_patches(reader)? },
            SWAP => RecordAct::Swap {
                field: reader.text()?,
                expected: ValueRef::decode_optional(reader)?,
                new: ValueRef::decode_optional(reader)?,
            },
            INCREMENT => RecordAct::Increment { field: reader.text()?, by: reader.i64()? },
            DELETE => RecordAct::Delete,
            TOUCH => RecordAct::Touch { ttl: decode_ttl(reader)? },
            CLAIM => RecordAct::Claim { worker: reader.text()?, lease_us: reader.optional_u64()? },
            EXTEND => RecordAct::Extend { attempt: reader.u64()?, lease_us: reader.optional_u64()? },
            RELEASE => RecordAct::Release { attempt: reader.u64()? },
            COMPLETE => RecordAct::Complete { attempt: reader.u64()?, fields: decode_patches(reader)? },
            FAIL => RecordAct::Fail { attempt: reader.u64()?, fields: decode_patches(reader)? },
            _ => {
                return Err(DecodeError { what: "an act on a record of an unknown kind" });
            }
        })
    }
}

const RECORD: u8 = 5;

impl<'bytes> Act<'bytes> for RecordAct<'bytes> {
    const CODES: &'static [u8] = &[RECORD];

    fn encode(&self, name: &str, writer: &mut Writer) {
        self.encode_act(writer.u8(RECORD).bytes(name.as_bytes()));
    }

    fn decode(_: u8, reader: &mut Reader<'bytes>) -> Result<(&'bytes str, Self), DecodeError> {
        Ok((reader.text()?, Self::decode_act(reader)?))
    }

    fn open(&self, name: &str) -> Open {
        match self {
            // A claim is refused while another has it, and the others name their attempt.
            RecordAct::Claim { .. } | RecordAct::Extend { .. } | RecordAct::Release { .. } if name == OWNER_RECORD => {
                Open::Everywhere
            }
            RecordAct::Put { .. }
            | RecordAct::Patch { must_exist: false, .. }
            | RecordAct::Swap { expected: None, .. }
            | RecordAct::Increment { .. } => Open::IfAbsent,
            _ => Open::Never,
        }
    }

    fn grows(&self) -> bool {
        match self {
            RecordAct::Put { .. } | RecordAct::Increment { .. } => true,
            RecordAct::Patch { fields, .. } => fields.iter().any(|(_, value)| value.is_some()),
            RecordAct::Swap { new, .. } => new.is_some(),
            RecordAct::Delete
            | RecordAct::Touch { .. }
            | RecordAct::Claim { .. }
            | RecordAct::Extend { .. }
            | RecordAct::Release { .. }
            | RecordAct::Complete { .. }
            | RecordAct::Fail { .. } => false,
        }
    }

    fn value_bytes(&self) -> usize {
        self.values().map(|value| value.len()).max().unwrap_or(0)
    }

    fn digest(&self, name: &str, digester: &mut Digester) {
        let mut begin = |kind: &str| {
            digester.text("do", kind).text("name", name);
        };
        match self {
            RecordAct::Put { record_type, ttl: lifetime, fields } => {
                begin("record-put");
                digester.optional_text("type", *record_type);
                digest_ttl(digester, *lifetime);
                for (field, value) in fields {
                    digest_patch(digester, &(*field, Some(*value)));
                }
            }
            RecordAct::Patch { must_exist, fields } => {
                begin("record-patch");
                if *must_exist {
                    digester.text("must-exist", "");
                }
                digest_patches(digester, fields);
            }
            RecordAct::Swap { field, expected, new } => {
                begin("record-swap");
                digest_patch(digester, &(*field, *expected));
                digest_patch(digester, &(*field, *new));
            }
            RecordAct::Increment { field, by } => {
                begin("record-increment");
                digester.text("field", field).member("by", &by.to_le_bytes());
            }
            RecordAct::Delete => begin("record-delete"),
            RecordAct::Touch { ttl: lifetime } => {
                begin("record-touch");
                digest_ttl(digester, *lifetime);
            }
            RecordAct::Claim { worker, lease_us } => {
                begin("record-claim");
                digester.optional_text("worker", unless_empty(worker)).optional_number("lease", *lease_us);
            }
            RecordAct::Extend { attempt, lease_us } => {
                begin("record-extend");
                digester.number("attempt", *attempt).optional_number("lease", *lease_us);
            }
            RecordAct::Release { attempt } => {
                begin("record-release");
                digester.number("attempt", *attempt);
            }
            RecordAct::Complete { attempt, fields } => {
                begin("record-complete");
                digester.number("attempt", *attempt);
                digest_patches(digester, fields);
            }
            RecordAct::Fail { attempt, fields } => {
                begin("record-fail");
                digester.number("attempt", *attempt);
                digest_patches(digester, fields);
            }
        }
    }
}

fn digest_ttl(digester: &mut Digester, ttl: TtlArgument) {
    match ttl {
        TtlArgument::Persist => {}
        TtlArgument::Keep => {
            digester.text("ttl", "keep");
        }
        TtlArgument::After(us) => {
            digester.number("ttl-after", us);
        }
        TtlArgument::WithSession => {
            digester.text("ttl", "session");
        }
    }
}

fn digest_patches(digester: &mut Digester, fields: &[FieldPatch<'_>]) {
    for field in fields {
        digest_patch(digester, field);
    }
}

pub(super) fn digest_patch(digester: &mut Digester, (field, value): &FieldPatch<'_>) {
    digester.text("field", field);
    if let Some(value) = value {
        value.digest("value", digester);
    }
}

fn encode_ttl(writer: &mut Writer, ttl: TtlArgument) {
    match ttl {
        TtlArgument::Persist => writer.u8(0),
        TtlArgument::Keep => writer.u8(1),
        TtlArgument::After(us) => writer.u8(2).u64(us),
        TtlArgument::WithSession => writer.u8(3),
    };
}

fn decode_ttl(reader: &mut Reader<'_>) -> Result<TtlArgument, DecodeError> {
    Ok(match reader.u8()? {
        0 => TtlArgument::Persist,
        1 => TtlArgument::Keep,
        2 => TtlArgument::After(reader.u64()?),
        3 => TtlArgument::WithSession,
        _ => return Err(DecodeError { what: "a TTL of an unknown kind" }),
    })
}

fn encode_patches(writer: &mut Writer, fields: &[FieldPatch<'_>]) {
    writer.u32(count(fields.len()));
    for (field, value) in fields {
        ValueRef::encode_optional(*value, writer.bytes(field.as_bytes()));
    }
}

fn decode_patches<'bytes>(reader: &mut Reader<'bytes>) -> Result<Vec<FieldPatch<'bytes>>, DecodeError> {
    let mut fields = Vec::new();
    for _ in 0..reader.u32()? {
        fields.push((reader.text()?, ValueRef::decode_optional(reader)?));
    }
    Ok(fields)
}
