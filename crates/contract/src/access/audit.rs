//! The audit: what was done to the administration of a store, by whom, and what was refused.
//!
//! Each event names the digest of the one before it, so one that was changed, removed or put in between is found by whoever reads
//! them all. An event has names, and no values.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::object_text::{ObjectText, members, text};
use crate::time::iso;

/// The space that the store keeps for itself. Nobody else can create one of this name.
pub const SYSTEM_SPACE: &str = "_statehouse";

/// The kind of the runs that have the audit: one for each month.
pub const AUDIT_KIND: &str = "audit";

/// The run that has what happened at a time, µs since 1970 in UTC.
///
/// ```
/// assert_eq!(statehouse_contract::access::audit::run_of(1_795_000_000_000_000), "audit.2026-11");
/// ```
pub fn run_of(at_us: u64) -> String {
    let month = iso(at_us);
    format!("{AUDIT_KIND}.{}", month.get(..7).unwrap_or(&month))
}

/// Before the first event.
const NOTHING: [u8; 32] = [0; 32];

/// What became of what somebody wanted to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// It was permitted, and done in the same commit.
    Done,
    /// It was permitted, and is done after this was recorded.
    Permitted,
    /// It was permitted by force, where only an owner may.
    Forced,
    /// It was refused.
    Denied,
}

impl Decision {
    /// All of them, in the order of their stored numbers. Append only.
    pub const ALL: &[Self] = &[Self::Done, Self::Permitted, Self::Forced, Self::Denied];

    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Permitted => "permitted",
            Self::Forced => "forced",
            Self::Denied => "denied",
        }
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditEvent<'event> {
    /// Who, if it is known.
    pub principal: Option<&'event str>,
    /// The revision of the catalogue that says what they may do.
    pub policy: u64,
    /// What was done: `principals.set`.
    pub act: &'event str,
    /// To what: names, as a JSON object.
    pub on: &'event str,
    /// What became of it.
    pub decision: Decision,
}

/// How far an audit has come: its last event, by number and digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditHead {
    /// The number of the last event; 0 before the first.
    pub number: u64,
    /// Its digest.
    pub digest: [u8; 32],
}

/// What is wrong with an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditFault {
    /// An event is missing, or one was put in between.
    Number {
        /// The number that should have come.
        expected: u64,
        /// The one that came; none for what has no number.
        found: Option<u64>,
    },
    /// An event is not the one that the next one names.
    Changed {
        /// Its number.
        number: u64,
    },
}

impl Default for AuditHead {
    fn default() -> Self {
        Self { number: 0, digest: NOTHING }
    }
}

impl AuditHead {
    /// Adds an event. Returns its JSON, which is what the next event names.
    pub fn add(&mut self, at_us: u64, event: &AuditEvent<'_>) -> String {
        let AuditEvent { principal, policy, act, on, decision } = event;
        let mut object = ObjectText::default();
        object.number("number", self.number + 1).text("at", &iso(at_us)).text_if("principal", *principal);
        object.number("policy", *policy).text("act", act).raw("on", on).text("decision", decision.word());
        object.text("before", &hex(&self.digest));
        let json = object.finish();
        *self = Self { number: self.number + 1, digest: digest_of(&json) };
        json
    }

    /// Checks that an event is the next one, and goes on to it.
    pub fn check(&mut self, json: &str) -> Result<(), AuditFault> {
        let all = members(json).unwrap_or_default();
        let of = |name: &str| all.iter().find(|member| member.name == name).map(|member| member.json);
        let found = of("number").and_then(|json| json.parse().ok());
        let expected = self.number + 1;
        if found != Some(expected) {
            return Err(AuditFault::Number { expected, found });
        }
        let before = of("before").and_then(|json| text(json).ok());
        if before.as_deref() != Some(&hex(&self.digest)) {
            return Err(AuditFault::Changed { number: self.number });
        }
        *self = Self { number: expected, digest: digest_of(json) };
        Ok(())
    }

    /// Checks that this is where the audit ends.
    pub fn check_end(&self, end: &Self) -> Result<(), AuditFault> {
        match self.number == end.number {
            false => Err(AuditFault::Number { expected: self.number + 1, found: None }),
            true if self.digest != end.digest => Err(AuditFault::Changed { number: self.number }),
            true => Ok(()),
        }
    }
}

impl fmt::Display for AuditFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { expected, found: Some(found) } => {
                write!(formatter, "event {expected} is missing: event {found} comes in its place")
            }
            Self::Number { expected, found: None } => write!(formatter, "event {expected} is missing"),
            Self::Changed { number } => {
                write!(formatter, "event {number} is not the one that was recorded, or what follows it is not")
            }
        }
    }
}

fn digest_of(json: &str) -> [u8; 32] {
    Sha256::digest(json).into()
}

/// A digest as text.
pub fn hex(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(count: u64) -> (Vec<String>, AuditHead) {
        let mut head = AuditHead::default();
        let of = |number| AuditEvent {
            principal: Some("root"),
            policy: number,
            act: "spaces.create",
            on: r#"{"space":"shop"}"#,
            decision: Decision::Done,
        };
        let lines = (0..count).map(|number| head.add(1_795_000_000_000_000 + number, &of(number))).collect();
        (lines, head)
    }

    fn verified(lines: &[String], end: &AuditHead) -> Result<(), AuditFault> {
        let mut head = AuditHead::default();
        lines.iter().try_for_each(|line| head.check(line))?;
        head.check_end(end)
    }

    #[test]
    fn whatever_is_changed_removed_or_put_in_between_is_found() {
        let (lines, end) = events(20);
        assert_eq!(verified(&lines, &end), Ok(()));
        for place in 0..lines.len() {
            let mut removed = lines.clone();
            removed.remove(place);
            assert!(verified(&removed, &end).is_err(), "without {place}");
            let mut inserted = lines.clone();
            inserted.insert(place, lines[place].clone());
            assert!(verified(&inserted, &end).is_err(), "{place} twice");
            for byte in 0..lines[place].len() {
                let mut flipped = lines.clone();
                let mut bytes = flipped[place].clone().into_bytes();
                bytes[byte] ^= 1;
                flipped[place] = String::from_utf8_lossy(&bytes).into_owned();
                assert!(verified(&flipped, &end).is_err(), "{place}, byte {byte}");
            }
        }
        assert!(verified(&lines[..19], &end).is_err() && verified(&lines, &AuditHead::default()).is_err());
    }

    #[test]
    fn an_event_is_one_line_of_json() {
        let (lines, _) = events(1);
        let zeros = "0".repeat(64);
        let golden = format!(
            r#"{{"number":1,"at":"2026-11-18T11:06:40Z","principal":"root","policy":0,"act":"spaces.create","on":{{"space":"shop"}},"decision":"done","before":"{zeros}"}}"#
        );
        assert_eq!(lines[0], golden, "as docs/formats/audit.md has it");
    }
}
