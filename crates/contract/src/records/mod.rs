//! The contract of records: named sets of fields that workers claim, move and finish.
//!
//! - A record is replaced, patched, deleted and expired in one commit; its version counts those and never restarts.
//! - A record of a type has a state. It never leaves a terminal state. One worker at a time claims a ready record, for
//!   one *attempt*, until a lease ends; attempts rise by one.
//! - A write that carries a fence (record, attempt) is refused once the attempt is over.
//! - Expiry and rescue are separate commits, with their own reason in the change feed.
//!
//! [`types`]: declarations for name prefixes. [`filter`]: filters of scans. [`state_store`]: the portable contract for
//! other backends.

mod rejection;
mod token;

pub use rejection::RecordRejection;
pub use token::AttemptToken;

pub mod filter;
pub mod state_store;
pub mod types;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::attempt_place::AttemptPlace;
use crate::names::NameInGroup;
use crate::value::Value;

/// The stored number of a record in the change feed.
pub(crate) const SUBJECT_CODE: u8 = 2;

/// A change has one of many reasons, and metrics tell them apart.
pub(crate) const IS_COUNTED_BY_REASON: bool = true;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Its fields. For a record of a type, they include its state and the times that the store maintains.
    pub fields: BTreeMap<String, Field>,
    /// Counts the record's writes.
    pub version: u64,
    /// The commit number of the last write.
    pub commit: u64,
    /// When it was created, µs since 1970 in UTC.
    pub created_at: u64,
    /// When it was last written, µs since 1970 in UTC.
    pub updated_at: u64,
    /// Its remaining time to live, if it has one.
    pub ttl: Option<Duration>,
    /// Its type, if it has one.
    pub record_type: Option<String>,
    /// The number of claims.
    pub attempt: u64,
    /// The number of failed attempts.
    pub failures: u64,
    /// The remaining pause after a failed attempt, before which it cannot be claimed.
    pub ready_in: Option<Duration>,
    /// Its holder, if it is held.
    pub holder: Option<Holder>,
}

impl Record {
    /// A record without fields, for implementations of the contract.
    pub fn empty(version: u64, commit: u64, created_at: u64, updated_at: u64) -> Self {
        Self {
            fields: BTreeMap::new(),
            version,
            commit,
            created_at,
            updated_at,
            ttl: None,
            record_type: None,
            attempt: 0,
            failures: 0,
            ready_in: None,
            holder: None,
        }
    }

    /// The value of a field.
    pub fn value(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).map(|field| &field.value)
    }
}

/// A field with the record's version at its last write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The value.
    pub value: Value,
    /// The record's version at which the field was last written.
    pub version: u64,
}

/// The holder of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The worker's own name, if it gave one.
    pub worker: Option<String>,
    /// The session of the claim, if there was one.
    pub session: Option<u64>,
    /// The remaining lease.
    pub lease_left: Duration,
}

/// The time to live of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ttl {
    /// Forever, or the type's default.
    #[default]
    Persist,
    /// Unchanged by this write.
    Keep,
    /// This long from now.
    After(Duration),
    /// Until the writing session ends.
    WithSession,
}

/// Options of a put.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Put {
    /// Its time to live.
    pub ttl: Ttl,
    /// The name of its type; by default the type declared for a prefix of its name.
    pub record_type: Option<String>,
}

impl Put {
    /// A record with this time to live.
    pub fn expiring(ttl: Duration) -> Self {
        Self { ttl: Ttl::After(ttl), record_type: None }
    }

    /// A record of a type.
    pub fn typed(record_type: impl Into<String>) -> Self {
        Self { ttl: Ttl::Persist, record_type: Some(record_type.into()) }
    }
}

/// The result of a compare-and-swap of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldSwapped {
    /// The field was as expected and was written.
    Written(crate::cells::Written),
    /// It was not; nothing was changed.
    Conflict {
        /// The current value, or none if the field or its record does not exist.
        current: Option<Value>,
    },
}

/// A record claimed for one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claimed {
    /// Its name.
    pub name: String,
    /// Its group, or none if it has no group.
    pub group: Option<String>,
    /// The number of this attempt, which fences its writes.
    pub attempt: u64,
    /// The lease, counted from the claim, until it is extended.
    pub lease: Duration,
    /// Group, name, attempt and place as one text, unique per attempt: an idempotency key for effects elsewhere.
    pub token: String,
    /// Where the number means this attempt; none if it is known by its number alone.
    pub place: Option<AttemptPlace>,
    /// The record at the time of the claim.
    pub record: Record,
}

impl Claimed {
    /// An attempt known only by its number, for clients that kept nothing else. It holds nothing of the record, and its token
    /// has no place: no server takes it.
    pub fn of_attempt(name: &str, group: Option<&str>, attempt: u64) -> Self {
        let token = token::numbered(group, name, attempt);
        let (name, group, record) = (name.to_owned(), group.map(str::to_owned), Record::empty(0, 0, 0, 0));
        let record = Record { attempt, ..record };
        Self { name, group, attempt, lease: Duration::ZERO, token, place: None, record }
    }

    /// An attempt known by its token. It holds nothing of the record.
    pub fn of_token(token: AttemptToken) -> Self {
        let AttemptToken { group, record: name, attempt, place } = token;
        let record = Record { attempt, ..Record::empty(0, 0, 0, 0) };
        Self::new(name, group, Duration::ZERO, record, place)
    }

    /// A claimed record.
    pub fn new(name: String, group: Option<String>, lease: Duration, record: Record, place: AttemptPlace) -> Self {
        let token = AttemptToken { group, record: name, attempt: record.attempt, place };
        let text = token.to_string();
        let AttemptToken { group, record: name, attempt, .. } = token;
        Self { name, group, attempt, lease, token: text, place: Some(place), record }
    }
}

/// The message that reports what a sweep did to a record: JSON with `record`, `attempt`, `token` and `reason`. This token is
/// the beginning of the claim's, without its place: the store that sweeps knows no history.
///
/// ```
/// let message = statehouse_contract::records::sweep_message(None, "jobs.1", 2, "rescued");
/// assert_eq!(message, r#"{"attempt":2,"reason":"rescued","record":"jobs.1","token":"jobs.1#2"}"#);
/// ```
pub fn sweep_message(group: Option<&str>, record: &str, attempt: u64, reason: &str) -> String {
    // Assembled by hand: the key order of a JSON map is a crate feature, and this is stored.
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let (record_text, token) = (text(record), text(&token::numbered(group, record, attempt)));
    format!(r#"{{"attempt":{attempt},"reason":{},"record":{record_text},"token":{token}}}"#, text(reason))
}

/// The fate of a record whose attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It becomes ready again.
    After(Duration),
    /// Its attempts are used up: it is in the failed state for good.
    Exhausted,
}

/// The number of records of a prefix in each state, by type.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Type and state to number; zeros are left out.
    pub by_state: BTreeMap<(String, String), u64>,
}

impl Counts {
    /// The number of records in a state, across all types.
    pub fn of(&self, state: &str) -> u64 {
        self.by_state.iter().filter(|((_, other), _)| other == state).map(|(_, count)| count).sum()
    }
}

/// A page of records, from one view.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Scanned {
    /// Names and records, ordered by (name, group) or by the index that served the scan.
    pub records: Vec<(NameInGroup, Record)>,
    /// Where to continue, if the scan stopped at a limit. There may be nothing more.
    pub cursor: Option<Vec<u8>>,
    /// The number of records examined.
    pub looked_at: usize,
}
