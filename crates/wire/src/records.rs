//! Records and attempts: what their routes are asked, and what they answer.

use std::fmt;

use contract::records::filter::{Filter, Test};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::{Value as JsonValue, json};

use crate::error::{DecodeError, pass};
use crate::reader::from_json_text;
use crate::schema::{Described, Schemas, object};
use crate::values::{AttemptToken, DurationText, JsonText, Members, PageCursor, SessionId, TtlText, UserJson};

object! {
    /// How a record is put.
    request PutRecord {
        /// Names and values; these and no others.
        fields: Members<UserJson>,
        /// Its type; left out, the type that is declared for a prefix of its name.
        "type" record_type: Option<String>,
        /// How long it is to exist.
        ttl: Option<TtlText>,
    }

    /// How a record is changed: all of it in one commit.
    request PatchRecord {
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

    /// Which records are read.
    request ScanRecords {
        /// Only names that begin so.
        prefix: Option<String>,
        /// A list of tests: `[["state","eq","pending"]]`.
        "where" filter: Option<Where>,
        /// Only of this type.
        "type" record_type: Option<String>,
        /// How many at most.
        limit: Option<u64>,
        /// Where the page before ended.
        cursor: Option<PageCursor>,
    }

    /// Which records are counted.
    request CountRecords {
        /// Only names that begin so.
        prefix: Option<String>,
    }

    /// A record.
    answer Record {
        /// Its name.
        name: String,
        /// Its group, where a listing gives it and it is not its own name.
        group["Option::is_none"]: Option<String>,
        /// Its type, if it has one.
        "type" record_type: Option<String>,
        /// What it holds.
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
        /// How long it will still exist, if that is bounded.
        ttl_ms: Option<u64>,
        /// How often it was claimed.
        attempt: u64,
        /// How many of its attempts have failed.
        failures: u64,
        /// How long it cannot be claimed yet.
        ready_in_ms: Option<u64>,
        /// Who holds it, if anyone does.
        holder: Option<Holder>,
    }

    /// Who holds a record.
    answer Holder {
        /// The worker's own name, if it gave one.
        worker: Option<String>,
        /// The session that it was claimed in, if it was in one.
        session: Option<SessionId>,
        /// For how long, unless it is extended.
        lease_ms: u64,
    }

    /// A page of records, at one view.
    answer RecordPage {
        /// The records.
        records: Vec<Record>,
        /// Where the next page begins, if there may be one.
        cursor: Option<PageCursor>,
        /// How many records were looked at.
        looked_at: u64,
    }

    /// What a patch left behind.
    answer Patched {
        /// The record.
        name: String,
        /// Its version.
        version: u64,
        /// The commit.
        commit: u64,
        /// What the counted fields hold now.
        values["Option::is_none"]: Option<Members<i64>>,
    }

    /// How many records of a type are in a state.
    answer StateCount {
        /// The type; empty for records without one.
        "type" record_type: String,
        /// The state.
        state: String,
        /// How many.
        count: u64,
    }

    /// How many records are in each state.
    answer RecordCounts {
        /// By type and state; what is zero is left out.
        counts: Vec<StateCount>,
    }

    /// Fields that an attempt writes.
    request StepAttempt {
        /// The attempt.
        attempt: u64,
        /// Fields that are written.
        fields: Option<Members<UserJson>>,
    }

    /// Holds a record longer.
    request ExtendAttempt {
        /// The attempt.
        attempt: u64,
        /// So long from now; left out, as the type says.
        lease: Option<DurationText>,
    }

    /// Gives a record back.
    request ReleaseAttempt {
        /// The attempt.
        attempt: u64,
    }

    /// Finishes a record.
    request CompleteAttempt {
        /// The attempt.
        attempt: u64,
        /// Fields that are written with it.
        fields: Option<Members<UserJson>>,
    }

    /// Says that an attempt failed.
    request FailAttempt {
        /// The attempt.
        attempt: u64,
        /// Why.
        error: Option<String>,
    }

    /// Fields that the attempt of a token writes.
    request StepToken {
        /// The attempt, as the claim gave it.
        token: AttemptToken,
        /// Fields that are written.
        fields: Option<Members<UserJson>>,
    }

    /// Holds the record of a token longer.
    request ExtendToken {
        /// The attempt, as the claim gave it.
        token: AttemptToken,
        /// So long from now; left out, as the type says.
        lease: Option<DurationText>,
    }

    /// Gives the record of a token back.
    request ReleaseToken {
        /// The attempt, as the claim gave it.
        token: AttemptToken,
    }

    /// Finishes the record of a token.
    request CompleteToken {
        /// The attempt, as the claim gave it.
        token: AttemptToken,
        /// Fields that are written with it.
        fields: Option<Members<UserJson>>,
    }

    /// Says that the attempt of a token failed.
    request FailToken {
        /// The attempt, as the claim gave it.
        token: AttemptToken,
        /// Why.
        error: Option<String>,
    }

    /// What becomes of a record whose attempt failed.
    answer FailedAttempt {
        /// The record.
        name: String,
        /// When it will be tried again, if it will.
        retry_in_ms: Option<u64>,
        /// Whether its attempts are used up.
        exhausted: bool,
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
