//! The contract of records: named sets of fields that workers claim, move and finish.
//!
//! - A record is replaced, patched, deleted and expired as a whole commit; its version counts those and never restarts.
//! - A record of a type has a state. Terminal states are never left. A record that is ready is claimed by one worker at
//!   a time, for one *attempt*, until a lease ends; attempts rise by one.
//! - A write that carries a fence (record, attempt) is refused once the attempt is over.
//! - Expiry and rescue are commits of their own, with a reason, in the change feed.
//!
//! [`types`]: what a space declares for a prefix of names. [`filter`]: what a scan looks for. [`state_store`]: the
//! portable contract that other backends can keep too.

pub mod filter;
pub mod state_store;
pub mod types;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::names::{NameInGroup, push_escaped, unescaped};
use crate::value::Value;

/// A record as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// What it holds. A record of a type also has its state here, and the times that the store keeps for it.
    pub fields: BTreeMap<String, Field>,
    /// Counts the record's writes.
    pub version: u64,
    /// The commit number of the last write.
    pub commit: u64,
    /// When it was created, µs since 1970 in UTC.
    pub created_at: u64,
    /// When it was last written, µs since 1970 in UTC.
    pub updated_at: u64,
    /// How long it will still exist, if that is bounded.
    pub ttl: Option<Duration>,
    /// Its type, if it has one.
    pub record_type: Option<String>,
    /// How often it was claimed.
    pub attempt: u64,
    /// How many of its attempts have failed.
    pub failures: u64,
    /// How long it cannot be claimed yet, if it pauses after an attempt that failed.
    pub ready_in: Option<Duration>,
    /// Who holds it, if anyone does.
    pub holder: Option<Holder>,
}

impl Record {
    /// A record without fields, for those who implement the contract.
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

/// A field with the record's version that wrote it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The value.
    pub value: Value,
    /// The record's version at which the field was last written.
    pub version: u64,
}

/// Who holds a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The worker's own name, if it gave one.
    pub worker: Option<String>,
    /// The session that it was claimed in, if it was in one.
    pub session: Option<u64>,
    /// For how long, unless it is extended.
    pub lease_left: Duration,
}

/// How long a record will exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ttl {
    /// For ever, or as long as its type says.
    #[default]
    Persist,
    /// As long as it would have without this write.
    Keep,
    /// So long from now.
    After(Duration),
    /// As long as the session that writes it.
    WithSession,
}

/// How a record is put.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Put {
    /// How long it will exist.
    pub ttl: Ttl,
    /// Its type by name; left out, the type that is declared for a prefix of its name.
    pub record_type: Option<String>,
}

impl Put {
    /// A record that exists so long.
    pub fn expiring(ttl: Duration) -> Self {
        Self { ttl: Ttl::After(ttl), record_type: None }
    }

    /// A record of a type.
    pub fn typed(record_type: impl Into<String>) -> Self {
        Self { ttl: Ttl::Persist, record_type: Some(record_type.into()) }
    }
}

/// What a comparison of a field did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldSwapped {
    /// The field was as expected and has been written.
    Written(crate::cells::Written),
    /// It was not; nothing was changed.
    Conflict {
        /// What the field holds, or none if it or its record does not exist.
        current: Option<Value>,
    },
}

/// A record that was taken for one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claimed {
    /// Its name.
    pub name: String,
    /// Its group, or none if that is its name.
    pub group: Option<String>,
    /// Which try this is; what every write of this try is fenced by.
    pub attempt: u64,
    /// Until it is extended, the record is held so long from the claim on.
    pub lease: Duration,
    /// Group, name and attempt as one text, the same for the whole attempt: an idempotency key for what is done
    /// elsewhere, within one branch.
    pub token: String,
    /// The record as claimed.
    pub record: Record,
}

impl Claimed {
    /// An attempt of which only the number is known, as a client has it that kept nothing else. It says nothing of the record.
    pub fn of_attempt(name: &str, group: Option<&str>, attempt: u64) -> Self {
        let record = Record { attempt, ..Record::empty(0, 0, 0, 0) };
        Self::new(name.to_owned(), group.map(str::to_owned), Duration::ZERO, record)
    }

    /// A claimed record.
    pub fn new(name: String, group: Option<String>, lease: Duration, record: Record) -> Self {
        let attempt = record.attempt;
        let token = token(group.as_deref(), &name, attempt);
        Self { name, group, attempt, lease, token, record }
    }
}

/// The token of an attempt: the record's name, behind its group's if that is another, and the attempt. A `#` or `%` in
/// a name is written as `%23` or `%25`, so that no two attempts of a branch have one token.
///
/// ```
/// use statehouse_contract::records::token;
/// assert_eq!(token(None, "jobs.email.42", 1), "jobs.email.42#1");
/// assert_eq!(token(Some("order-7"), "charge", 2), "order-7#charge#2");
/// assert_eq!(token(None, "order-7#charge", 2), "order-7%23charge#2");
/// ```
pub fn token(group: Option<&str>, name: &str, attempt: u64) -> String {
    let attempt = attempt.to_string();
    let bytes = group.map_or(0, |group| group.len() + 1) + name.len() + 1 + attempt.len();
    let mut token = String::with_capacity(bytes);
    for name in group.into_iter().chain([name]) {
        push_escaped(&mut token, name);
        token.push('#');
    }
    token + &attempt
}

/// The group, the record and the attempt of a token; none if the text is no token.
///
/// ```
/// use statehouse_contract::records::{parse_token, token};
/// let parsed = |text: &str| parse_token(text).map(|(group, name, attempt)| token(group.as_deref(), &name, attempt));
/// for text in ["jobs.email.42#1", "order-7#charge#2", "order-7%23charge#2"] {
///     assert_eq!(parsed(text).as_deref(), Some(text));
/// }
/// for text in ["", "jobs", "jobs#", "jobs#x", "#1", "a#b#c#1", "jobs#01", "a%2#1"] {
///     assert_eq!(parsed(text), None, "{text}");
/// }
/// ```
pub fn parse_token(text: &str) -> Option<(Option<String>, String, u64)> {
    let (names, digits) = text.rsplit_once('#')?;
    let attempt: u64 = digits.parse().ok()?;
    let (group, name) = match names.split_once('#') {
        Some((group, name)) => (Some(unescaped(group)?), unescaped(name)?),
        None => (None, unescaped(names)?),
    };
    // One attempt has one token: whatever is spelled in another way is none.
    let spelled = !name.is_empty() && token(group.as_deref(), &name, attempt) == text;
    spelled.then_some((group, name, attempt))
}

/// The message that says what a sweep did to a record: JSON with `record`, `attempt`, `token` and `reason`.
///
/// ```
/// let message = statehouse_contract::records::sweep_message(None, "jobs.1", 2, "rescued");
/// assert_eq!(message, r#"{"attempt":2,"reason":"rescued","record":"jobs.1","token":"jobs.1#2"}"#);
/// ```
pub fn sweep_message(group: Option<&str>, record: &str, attempt: u64, reason: &str) -> String {
    // Put together here: the order of a JSON map's keys is a feature of its crate, and this is stored.
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let (record_text, token) = (text(record), text(&token(group, record, attempt)));
    format!(r#"{{"attempt":{attempt},"reason":{},"record":{record_text},"token":{token}}}"#, text(reason))
}

/// What became of a record whose attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It will be ready again.
    After(Duration),
    /// Its budget is used up: it is in the failed state for good.
    Exhausted,
}

/// How many records of a prefix are in each state, by type.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Type and state to number; what is zero is left out.
    pub by_state: BTreeMap<(String, String), u64>,
}

impl Counts {
    /// The number in one state, of all types.
    pub fn of(&self, state: &str) -> u64 {
        self.by_state.iter().filter(|((_, other), _)| other == state).map(|(_, count)| count).sum()
    }
}

/// A page of records, at one view.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Scanned {
    /// Names and records, in the order of (name, group), or in the order of the index that served the scan.
    pub records: Vec<(NameInGroup, Record)>,
    /// Where to go on, if the scan stopped at a bound. There may be nothing more.
    pub cursor: Option<Vec<u8>>,
    /// How many records were looked at.
    pub looked_at: usize,
}
