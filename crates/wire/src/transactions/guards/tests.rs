//! Every combination of members is honoured, or refused by name.

use super::*;
use crate::contracts::{GUARDED, Guard};

fn guard(raw: &str) -> Result<Guard, DecodeError> {
    from_json_text(raw)
}

/// A member of a guard, as JSON.
const MEMBERS: [(&str, &str); 17] = [
    ("cell", r#""cell":"c""#),
    ("cells", r#""cells":{"from":"a","before":"b"}"#),
    ("record", r#""record":"r""#),
    ("run", r#""run":"r""#),
    ("key", r#""key":{"map":"m","key":"k"}"#),
    ("keys", r#""keys":{"map":"m","from":"a","before":{"$b64":"/w=="}}"#),
    ("input", r#""input":{"map":"m","input":"i"}"#),
    ("version", r#""version":1"#),
    ("version_below", r#""version_below":2"#),
    ("absent", r#""absent":true"#),
    ("exists", r#""exists":true"#),
    ("unchanged_since", r#""unchanged_since":3"#),
    ("state_in", r#""state_in":["s"]"#),
    ("attempt", r#""attempt":4"#),
    ("field", r#""field":"f","is":null"#),
    ("last", r#""last":5"#),
    ("position", r#""position":6"#),
];

#[test]
fn every_member_is_what_a_guard_is_about_or_a_condition_of_that() {
    let (mut known, mut members) = (known(&GUARDED), Guard::member_names());
    known.sort_unstable();
    members.sort_unstable();
    assert_eq!(known, members);
    let mut tried: Vec<_> = MEMBERS.iter().map(|(name, _)| *name).chain(["is"]).collect();
    tried.sort_unstable();
    assert_eq!(tried, members, "every member is tried below");
}

#[test]
fn every_combination_of_members_is_honoured_or_refused() {
    let mut taken = 0;
    for chosen in 0_u32..1 << MEMBERS.len() {
        let members = MEMBERS.iter().enumerate().filter(|(place, _)| chosen & 1 << place != 0);
        let (names, texts): (Vec<&str>, Vec<&str>) = members.map(|(_, member)| *member).unzip();
        let raw = format!("{{{}}}", texts.join(","));
        let about: Vec<_> = GUARDED.iter().filter(|thing| names.contains(&thing.member)).collect();
        // Three things are refused like two.
        if about.len() > 2 {
            continue;
        }
        let conditions = &names[about.len().min(names.len())..];
        let fits = match about[..] {
            [thing] => !conditions.is_empty() && conditions.iter().all(|name| thing.conditions.contains(name)),
            _ => false,
        };
        let is_absent = names.contains(&"absent");
        let holds_ever = !is_absent || conditions.iter().all(|name| OF_WHAT_IS_ABSENT.contains(name));
        let read = guard(&raw);
        assert_eq!(read.is_ok(), fits && holds_ever, "{raw} {read:?}");
        if let Ok(read) = read {
            taken += 1;
            let written = serde_json::to_string(&read).expect("JSON");
            let kept: MemberNames = from_json_text(&written).expect("an object");
            let kept: Vec<_> = kept.set().collect();
            assert_eq!(kept, names, "{raw}: nothing is skipped");
            assert_eq!(guard(&written).expect("as it was written"), read);
        }
    }
    // Any of the conditions; or that it is absent, with or without the one that can hold then.
    let of_keys = (16 - 1 + 2) + 1 + 2;
    let of_others = (16 - 1 + 2) + 1 + (64 - 1 + 2) + 1;
    assert_eq!(taken, of_others + of_keys, "of a cell, cells, a record and a run; of a key, keys and an input");
}

#[test]
fn a_member_that_is_null_is_not_there() {
    let read = guard(r#"{"cell":null,"record":"r","version":1,"last":null}"#).expect("about a record");
    assert_eq!(serde_json::to_string(&read).expect("JSON"), r#"{"record":"r","version":1}"#);
    let read = guard(r#"{"record":"r","is":null,"field":"f"}"#).expect("that there is no such field");
    assert_eq!(serde_json::to_string(&read).expect("JSON"), r#"{"record":"r","field":"f","is":null}"#);
}

#[test]
fn what_could_never_hold_is_refused() {
    for raw in [
        r#"{"cell":"c","absent":false}"#,
        r#"{"record":"r","exists":false}"#,
        r#"{"record":"r","state_in":[]}"#,
        r#"{"record":"r","field":"f"}"#,
        r#"{"record":"r","version":1,"is":1}"#,
        r#"{"key":{"map":"m"},"version":1}"#,
        r#"{"key":{"map":"m","key":"k","more":1},"version":1}"#,
        r#"{"key":"k","version":1}"#,
        r#"{"keys":{"map":"m","from":"a","to":"b"},"unchanged_since":1}"#,
        r#"{"input":{"map":"m","input":"i"},"position":1,"absent":true}"#,
        r#"{"cell":"c","version":"1:1"}"#,
        r#"{"cell":"c","version":null}"#,
        r#"{"cells":{"before":"b"},"unchanged_since":1}"#,
        r#"{"cells":{"from":"a","to":"b"},"unchanged_since":1}"#,
        r#"{"cell":"c","version":1,"versions":1}"#,
        r#"{"cell":"c","version":1,"version":1}"#,
        r#"{"cell":null,"cell":null,"record":"r","version":1}"#,
        "[]",
        "null",
    ] {
        assert!(guard(raw).is_err(), "{raw}");
    }
}
#[test]
fn a_refusal_says_what_a_guard_can_be_about_and_what_its_conditions_are() {
    let refused = |raw: &str| guard(raw).expect_err(raw).to_string();
    assert_eq!(refused(r#"{"version":1}"#), "a guard names a cell, cells, a record, a run, a key, keys or an input");
    assert_eq!(
        refused(r#"{"cell":"c","run":"r","last":1}"#),
        "a guard names one of a cell, cells, a record, a run, a key, keys and an input"
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
    let of_key = guard(r#"{"key":{"map":"m","key":"k"},"version":"1:7"}"#).expect("versions of keys have epochs");
    assert_eq!(serde_json::to_string(&of_key).expect("JSON"), r#"{"key":{"map":"m","key":"k"},"version":"1:7"}"#);
    let of_others = r#"{"cell":"c","run":"r","last":true}"#;
    assert_eq!(refused(of_others), r#""last": it is boolean `true`, but must be u64"#, "by name, whatever it is about");
}
