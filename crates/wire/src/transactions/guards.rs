//! The conditions of a transaction, and how they are read.
//!
//! Keeps: every member of a guard is honoured or refused; none is skipped. Every condition that the store knows has one.

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as JsonValue;
use serde_json::value::RawValue;

use crate::contracts::{GUARDED, GuardMembers};
use crate::error::{DecodeError, pass};
use crate::reader::from_json_text;
use crate::schema::{Described, Schemas};

/// The conditions on one thing; see [`GuardMembers`].
#[derive(Clone, Debug, PartialEq)]
pub struct Guard(pub GuardMembers);

/// What can hold of something that does not exist.
const OF_WHAT_IS_ABSENT: [&str; 2] = ["absent", "unchanged_since"];

impl Serialize for Guard {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.0.write_members(&mut map)?;
        map.end()
    }
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
    let wrong = |reason: String| Err(DecodeError::wrong_value(reason));
    let things = GUARDED.map(|(_, name, _)| name);
    let mut about = GUARDED.iter().zip(members.things()).filter(|(_, is_set)| *is_set).map(|(thing, _)| thing);
    let Some((what, _, possible)) = about.next() else {
        return wrong(format!("a guard names {}", listed(&things, "or")));
    };
    if about.next().is_some() {
        return wrong(format!("a guard names one of {}", listed(&things, "and")));
    }
    let conditions = members.conditions();
    if let Some(other) = conditions.iter().find(|name| !possible.contains(name)) {
        return wrong(format!("{other} is no condition of {what}, which has {}", listed(possible, "or")));
    }
    if conditions.is_empty() {
        return wrong(format!("a guard of {what} has {}", listed(possible, "or")));
    }
    for (name, flag) in [("absent", members.absent), ("exists", members.exists)] {
        if flag == Some(false) {
            return wrong(format!("{name} can only be true"));
        }
    }
    if members.absent.is_some()
        && let Some(other) = conditions.iter().find(|name| !OF_WHAT_IS_ABSENT.contains(name))
    {
        return wrong(format!("absent excludes {other}"));
    }
    if members.state_in.as_ref().is_some_and(Vec::is_empty) {
        return wrong("state_in is empty, so it could never hold".into());
    }
    match (members.field.is_some(), names.iter().any(|name| name == "is")) {
        (true, false) => Err(DecodeError::missing_member("is")),
        (false, true) => Err(DecodeError::missing_member("field")),
        _ => Ok(Guard(members)),
    }
}

/// The names as a list: `a, b or c`.
fn listed(names: &[&str], word: &str) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} {word} {last}", rest.join(", ")),
        names => names.concat(),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A member of a guard, as JSON.
    const MEMBERS: [(&str, &str); 13] = [
        ("cell", r#""cell":"c""#),
        ("cells", r#""cells":{"from":"a","before":"b"}"#),
        ("record", r#""record":"r""#),
        ("run", r#""run":"r""#),
        ("version", r#""version":1"#),
        ("version_below", r#""version_below":2"#),
        ("absent", r#""absent":true"#),
        ("exists", r#""exists":true"#),
        ("unchanged_since", r#""unchanged_since":3"#),
        ("state_in", r#""state_in":["s"]"#),
        ("attempt", r#""attempt":4"#),
        ("field", r#""field":"f","is":null"#),
        ("last", r#""last":5"#),
    ];

    #[test]
    fn every_combination_of_members_is_honoured_or_refused() {
        let mut taken = 0;
        for chosen in 0_u32..1 << MEMBERS.len() {
            let members = MEMBERS.iter().enumerate().filter(|(place, _)| chosen & 1 << place != 0);
            let (names, texts): (Vec<&str>, Vec<&str>) = members.map(|(_, member)| *member).unzip();
            let raw = format!("{{{}}}", texts.join(","));
            let about: Vec<_> = GUARDED.iter().filter(|(what, ..)| names.contains(what)).collect();
            let conditions = &names[about.len().min(names.len())..];
            let fits = match about[..] {
                [(_, _, possible)] => !conditions.is_empty() && conditions.iter().all(|name| possible.contains(name)),
                _ => false,
            };
            let is_absent = names.contains(&"absent");
            let holds_ever = !is_absent || conditions.iter().all(|name| OF_WHAT_IS_ABSENT.contains(name));
            let read = guard(&raw);
            assert_eq!(read.is_ok(), fits && holds_ever, "{raw} {read:?}");
            if let Ok(read) = read {
                taken += 1;
                assert_eq!(read.0.conditions(), conditions, "{raw}: nothing is skipped");
                let written = serde_json::to_string(&read).expect("JSON");
                assert_eq!(guard(&written).expect("as it was written"), read);
            }
        }
        // Any of the conditions; or that it is absent, with or without the one that can hold then.
        assert_eq!(taken, (16 - 1 + 2) + 1 + (64 - 1 + 2) + 1, "of a cell, of cells, of a record, of a run");
    }

    #[test]
    fn what_could_never_hold_is_refused() {
        for raw in [
            r#"{"cell":"c","absent":false}"#,
            r#"{"record":"r","exists":false}"#,
            r#"{"record":"r","state_in":[]}"#,
            r#"{"record":"r","field":"f"}"#,
            r#"{"record":"r","version":1,"is":1}"#,
            r#"{"cell":"c","version":null}"#,
            r#"{"cells":{"before":"b"},"unchanged_since":1}"#,
            r#"{"cells":{"from":"a","to":"b"},"unchanged_since":1}"#,
            r#"{"cell":"c","version":1,"versions":1}"#,
        ] {
            assert!(guard(raw).is_err(), "{raw}");
        }
    }
    #[test]
    fn a_refusal_says_what_a_guard_can_be_about_and_what_its_conditions_are() {
        let refused = |raw: &str| guard(raw).expect_err(raw).to_string();
        assert_eq!(refused(r#"{"version":1}"#), "a guard names a cell, cells, a record or a run");
        assert_eq!(
            refused(r#"{"cell":"c","run":"r","last":1}"#),
            "a guard names one of a cell, cells, a record and a run"
        );
        assert_eq!(refused(r#"{"run":"r","version":1}"#), "version is no condition of run, which has last");
        assert_eq!(
            refused(r#"{"cell":"c"}"#),
            "a guard of cell has version, version_below, absent, exists or unchanged_since"
        );
        assert_eq!(refused(r#"{"cell":"c","absent":true,"version":1}"#), "absent excludes version");
        assert_eq!(refused(r#"{"cell":"c","exists":false}"#), "exists can only be true");
        assert_eq!(refused(r#"{"record":"r","state_in":[]}"#), "state_in is empty, so it could never hold");
        assert_eq!(refused(r#"{"record":"r","field":"f"}"#), r#""is" is missing"#);
        assert_eq!(refused(r#"{"record":"r","version":1,"is":1}"#), r#""field" is missing"#);
        assert_eq!(refused(r#"{"record":"r","verson":1}"#), r#""verson" is unknown; did you mean "version"?"#);
        assert_eq!(refused(r#"{"record":"r","version":"1"}"#), r#""version": it is string "1", but must be u64"#);
    }
}
