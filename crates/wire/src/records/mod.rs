//! Requests and answers of the routes for records and attempts.
//!
//! - [`claims`]: what a worker claims. [`types`]: the types of records. [`operations`]: in transactions.
//! - `token`, `ttl`: the attempt of a claim and the time to live, as text.

pub mod claims;
pub mod operations;
mod token;
mod ttl;
pub mod types;

use std::fmt;

use contract::records::filter::{Filter, Test};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::{Value as JsonValue, json};

use crate::error::{DecodeError, pass};
use crate::owners::Holder;
use crate::reader::from_json_text;
use crate::schema::{Described, Schemas, left_out, object};
use crate::values::{DurationText, JsonText, Members, PageCursor, UserJson};
pub use operations::{FailedOperation, RecordGuard, RecordOperation};
pub use token::AttemptToken;
pub use ttl::TtlText;

object! {
    /// Replaces a record.
    request PutRecord {
        /// Its fields: these and no others.
        fields: Members<UserJson>,
        /// Its type; by default the type declared for a prefix of its name.
        "type" record_type: Option<String>,
        /// Its time to live.
        ttl: Option<TtlText>,
    }

    /// Changes a record, in one commit.
    request PatchRecord {
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

    /// Selects what of a record to read.
    request ReadRecord {
        /// Only this field; the others are not read.
        field: Option<String>,
    }

    /// Selects records to read.
    request ScanRecords {
        /// Only names with this prefix.
        prefix: Option<String>,
        /// A list of tests: `[["state","eq","pending"]]`.
        "where" filter: Option<Where>,
        /// Only records of this type.
        "type" record_type: Option<String>,
        /// Maximum number of records.
        limit: Option<u64>,
        /// The cursor of the previous page.
        cursor: Option<PageCursor>,
    }

    /// Selects records to count.
    request CountRecords {
        /// Only names with this prefix.
        prefix: Option<String>,
    }

    /// A record.
    answer Record {
        /// Its name.
        name: String,
        /// Its group, in a listing, if it has one.
        group["Option::is_none"]: Option<String>,
        /// Its type, if it has one.
        "type" record_type: Option<String>,
        /// Its fields.
        fields: Members<UserJson>,
        /// The version at which each field was last written.
        field_versions: Members<u64>,
        /// Counts its writes.
        version: u64,
        /// The commit of its last write.
        commit: u64,
        /// When it was created.
        created_at: String,
        /// When it was last written.
        updated_at: String,
        /// Its remaining time to live, if it has one.
        ttl_ms: Option<u64>,
        /// The number of claims.
        attempt: u64,
        /// The number of failed attempts.
        failures: u64,
        /// The remaining pause before it can be claimed.
        ready_in_ms: Option<u64>,
        /// Its holder, if it is held.
        holder: Option<Holder>,
    }

    /// A page of records, from one view.
    answer RecordPage {
        /// The records.
        records: Vec<Record>,
        /// Where the next page starts, if there may be one.
        cursor: Option<PageCursor>,
        /// The number of records examined.
        looked_at: u64,
    }

    /// The result of a patch.
    answer Patched {
        /// The record.
        name: String,
        /// Its version.
        version: u64,
        /// The commit.
        commit: u64,
        /// The new values of the incremented fields.
        values["Option::is_none"]: Option<Members<i64>>,
    }

    /// The number of records of a type in a state.
    answer StateCount {
        /// The type; empty for records without one.
        "type" record_type: String,
        /// The state.
        state: String,
        /// The number of records.
        count: u64,
    }

    /// The number of records in each state.
    answer RecordCounts {
        /// By type and state; zeros are left out.
        counts: Vec<StateCount>,
    }

    /// Writes fields as an attempt.
    request StepAttempt {
        /// The attempt.
        attempt: u64,
        /// Fields to write.
        fields: Option<Members<UserJson>>,
    }

    /// Extends the lease of a record.
    request ExtendAttempt {
        /// The attempt.
        attempt: u64,
        /// The lease from now on; by default that of the type.
        lease: Option<DurationText>,
    }

    /// Releases a record.
    request ReleaseAttempt {
        /// The attempt.
        attempt: u64,
    }

    /// Completes a record.
    request CompleteAttempt {
        /// The attempt.
        attempt: u64,
        /// Fields to write with it.
        fields: Option<Members<UserJson>>,
    }

    /// Ends an attempt as failed.
    request FailAttempt {
        /// The attempt.
        attempt: u64,
        /// The reason.
        error: Option<String>,
    }

    /// Writes fields as the attempt of a token.
    request StepToken {
        /// The token from the claim.
        token: AttemptToken,
        /// Fields to write.
        fields: Option<Members<UserJson>>,
    }

    /// Extends the lease of the token's record.
    request ExtendToken {
        /// The token from the claim.
        token: AttemptToken,
        /// The lease from now on; by default that of the type.
        lease: Option<DurationText>,
    }

    /// Releases the token's record.
    request ReleaseToken {
        /// The token from the claim.
        token: AttemptToken,
    }

    /// Completes the token's record.
    request CompleteToken {
        /// The token from the claim.
        token: AttemptToken,
        /// Fields to write with it.
        fields: Option<Members<UserJson>>,
    }

    /// Ends the token's attempt as failed.
    request FailToken {
        /// The token from the claim.
        token: AttemptToken,
        /// The reason.
        error: Option<String>,
    }

    /// The fate of a record whose attempt failed.
    answer FailedAttempt {
        /// The record.
        name: String,
        /// The time until it is retried, if it is.
        retry_in_ms: Option<u64>,
        /// Whether its attempts are used up.
        exhausted: bool,
    }
}

left_out! {
    PatchRecord { set, unset, incr, expect, ttl }
    ReadRecord { field }
    ScanRecords { prefix, filter, record_type, limit, cursor }
    CountRecords { prefix }
}

impl PutRecord {
    /// A record with these fields, of the type declared for its name.
    pub fn of(fields: Members<UserJson>) -> Self {
        Self { fields, record_type: None, ttl: None }
    }
}

/// Tests of a scan: `[["state", "eq", "pending"], ["n", "in", [1, 2]], ["error", "exists"]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Where(pub Filter);

/// One test.
struct TestText(String, Test);

impl Serialize for Where {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tests: Vec<String> = self.0.tests.iter().map(|(field, test)| test_text(field, test)).collect();
        serializer.collect_str(&format_args!("[{}]", tests.join(",")))
    }
}

fn test_text(field: &str, test: &Test) -> String {
    let list = |values: &[contract::Value]| {
        format!("[{}]", values.iter().map(contract::Value::to_json_text).collect::<Vec<_>>().join(","))
    };
    let (kind, value) = match test {
        Test::Eq(value) => ("eq", Some(value.to_json_text())),
        Test::Ne(value) => ("ne", Some(value.to_json_text())),
        Test::Lt(value) => ("lt", Some(value.to_json_text())),
        Test::Lte(value) => ("lte", Some(value.to_json_text())),
        Test::Gt(value) => ("gt", Some(value.to_json_text())),
        Test::Gte(value) => ("gte", Some(value.to_json_text())),
        Test::In(values) => ("in", Some(list(values))),
        Test::NotIn(values) => ("not_in", Some(list(values))),
        _ => ("exists", None),
    };
    let value = value.map_or_else(String::new, |value| format!(",{value}"));
    format!("[{},{kind:?}{value}]", contract::Value::from(field).to_json_text())
}

impl<'de> Deserialize<'de> for Where {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl Visitor<'_> for Reading {
            type Value = Where;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of [field, test, value] as JSON")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Where, E> {
                let tests: Vec<TestText> = from_json_text(text).map_err(pass)?;
                Ok(Where(Filter { tests: tests.into_iter().map(|TestText(field, test)| (field, test)).collect() }))
            }
        }

        deserializer.deserialize_str(Reading)
    }
}

impl<'de> Deserialize<'de> for TestText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = TestText;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("[field, test, value]")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<TestText, A::Error> {
                let short = || de::Error::custom("a test is [field, test, value]");
                let field: String = parts.next_element()?.ok_or_else(short)?;
                let kind: String = parts.next_element()?.ok_or_else(short)?;
                let value: Option<JsonText> = parts.next_element()?;
                if parts.next_element::<de::IgnoredAny>()?.is_some() {
                    return Err(short());
                }
                test(&kind, value.as_ref().map(|value| value.0.as_str()))
                    .map(|test| TestText(field, test))
                    .map_err(pass)
            }
        }

        deserializer.deserialize_seq(Reading)
    }
}

/// The kinds of tests.
const TESTS: &[&str] = &["eq", "ne", "lt", "lte", "gt", "gte", "in", "not_in", "exists"];

fn test(kind: &str, value: Option<&str>) -> Result<Test, DecodeError> {
    if kind == "exists" {
        return match value {
            None => Ok(Test::Exists),
            Some(_) => Err(DecodeError::wrong_value("exists has no value")),
        };
    }
    if !TESTS.contains(&kind) {
        return Err(de::Error::unknown_variant(kind, TESTS));
    }
    let text = value.ok_or_else(|| DecodeError::wrong_value(format!("{kind} has no value")))?;
    let one = || from_json_text::<UserJson>(text).map(|value| value.0);
    let list = || from_json_text::<Vec<UserJson>>(text).map(|list| list.into_iter().map(|value| value.0).collect());
    Ok(match kind {
        "eq" => Test::Eq(one()?),
        "ne" => Test::Ne(one()?),
        "lt" => Test::Lt(one()?),
        "lte" => Test::Lte(one()?),
        "gt" => Test::Gt(one()?),
        "gte" => Test::Gte(one()?),
        "in" => Test::In(list()?),
        _ => Test::NotIn(list()?),
    })
}

impl Described for Where {
    fn schema(_: &mut Schemas) -> JsonValue {
        json!({ "type": "string", "description": "A list of [field, test, value] as JSON" })
    }
}
