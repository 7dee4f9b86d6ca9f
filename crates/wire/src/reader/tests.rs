//! What is read, and which name a refusal gives.

use contract::limits::JSON_DEPTH_MAX;

use super::*;
use crate::Reason;
use crate::records::PutRecord;
use crate::records::claims::Claim;
use crate::transactions::Transaction;

fn refused<'de, T: Deserialize<'de>>(text: &'de str) -> String {
    from_json_text::<T>(text).map(drop).expect_err("refused").to_string()
}

#[test]
fn members_are_known_once_and_of_their_type() {
    for (text, says) in [
        (r#"{"prefx":"jobs."}"#, r#""prefx" is unknown; did you mean "prefix"?"#),
        (r#"{"prefix":"a.","prefix":"b."}"#, r#""prefix" is repeated"#),
        (r#"{"prefix":1}"#, r#""prefix": it is integer `1`, but must be a string"#),
        (r#"{"n":"1"}"#, r#""n": it is string "1", but must be u32"#),
        (r#"{"n":-1}"#, r#""n": it is integer `-1`, but must be u32"#),
        (r#"{"n":1.0}"#, r#""n": it is floating point `1.0`, but must be u32"#),
        (r#"{"lease":true}"#, r#""lease": it is boolean `true`, but must be a duration: 500ms, 30s, 10m, 2h or 7d"#),
        (r#"["jobs."]"#, "it is a list, but must be an object"),
        (r#"{"prefix":"jobs."} x"#, "not JSON: there is text after its end, at byte 19"),
        (r#"{"prefix":"jobs.",}"#, "not JSON: nothing follows a comma, at byte 18"),
        ("", "not JSON: it is empty"),
    ] {
        assert_eq!(refused::<Claim>(text), says, "{text}");
    }
}

#[test]
fn a_refusal_names_the_path() {
    let text =
        r#"{"do":[{"op":"cell.delete","name":"a"},{"name":"r","op":"record.put","fields":{"a":1,"b":"\ud800"}}]}"#;
    assert!(refused::<Transaction>(text).contains("lone surrogate"));
    for (text, member) in [
        (r#"{"do":[{"op":"cell.delete","nam":"a"}]}"#, "do[0].nam"),
        (r#"{"do":[{"op":"cell.delete"}]}"#, "do[0].name"),
        (r#"{"do":[{"op":"cell.delet","name":"a"}]}"#, "do[0].op"),
        (r#"{"do":[{"op":"cell.delete","name":"a","op":"cell.delete"}]}"#, "do[0].op"),
        (r#"{"do":[{"op":"record.put","name":"a","fields":{"x":1,"x":2}}]}"#, "do[0].fields.x"),
        (r#"{"do":[],"iff":[]}"#, "iff"),
        (r#"{"do":[],"if":[{"cell":"a","version":"1"}]}"#, "if[0].version"),
        (r#"{"do":[],"if":[{"record":"a","field":"f"}]}"#, "if[0].is"),
        (r#"{"do":[],"if":[{"record":"a","is":1,"version":1}]}"#, "if[0].field"),
        (r#"{"do":[{"op":"send","group":"g","do":[{"op":"cell.delete","name":1}]}]}"#, "do[0].do[0].name"),
    ] {
        let error = from_json_text::<Transaction>(text).expect_err("refused");
        assert_eq!(error.member().as_deref(), Some(member), "{text}: {error}");
    }
}

#[test]
fn what_callers_own_is_the_text_that_was_sent() {
    for value in ["1.0", "-0", "1e400", "12345678901234567890123456789", r#""\u0041""#, r#"{"b":1, "a":[ 2 ],"b":3}"#] {
        let text = format!(r#"{{"fields":{{"f":{value}}}}}"#);
        let put: PutRecord = from_json_text(&text).expect("read");
        let written = serde_json::to_string(&put).expect("JSON");
        assert!(written.contains(&format!(r#""f":{value}"#)), "{value}: {written}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!(r#"{{"fields":{{"f":{}1{}}}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert!(from_json_text::<PutRecord>(&nested(JSON_DEPTH_MAX)).is_ok(), "what stands around a value does not count");
    for depth in [JSON_DEPTH_MAX + 1, 10_000, 1_000_000] {
        let error = from_json_text::<PutRecord>(&nested(depth)).expect_err("too deep");
        assert_eq!(error.reason(), &Reason::TooDeep, "{depth}");
    }
}

#[test]
fn whatever_is_json_for_serde_is_json_here() {
    let texts = [
        "0",
        "-1",
        "01",
        "1.",
        ".5",
        "1e5",
        "1e",
        "1E+9",
        "-",
        "nul",
        "true",
        "\"a\"",
        "\"a",
        "\"é\"",
        "\"\\x\"",
        "[1,2]",
        "[1,2,]",
        "[",
        "{}",
        "{\"a\":1}",
        "{\"a\"}",
        "{a:1}",
        " 1 ",
        "\"😀\"",
        "\"\\ud83d\\ude00\"",
        "\"\n\"",
    ];
    for text in texts {
        let ours = from_json_text::<de::IgnoredAny>(text).is_ok();
        let theirs = serde_json::from_str::<de::IgnoredAny>(text).is_ok();
        assert_eq!(ours, theirs, "{text}");
    }
}

#[test]
fn tests_of_a_scan_have_two_or_three_parts() {
    use crate::query::{from_parameters, parameters};
    use crate::records::ScanRecords;
    let read = |text: &str| {
        let query = format!("where={}", crate::query::encode(text));
        from_parameters::<ScanRecords>(&parameters(&query).expect("parameters"))
    };
    let tests =
        read(r#"[["age","gte",17],["name","exists"],["n","in",[1,1.0]]]"#).expect("read").filter.expect("tests");
    assert_eq!(tests.0.tests.len(), 3);
    let written = serde_json::to_string(&tests).expect("JSON");
    assert_eq!(written, r#""[[\"age\",\"gte\",17],[\"name\",\"exists\"],[\"n\",\"in\",[1,1.0]]]""#);
    for wrong in
        [r#"[["age"]]"#, r#"[["age","gt"]]"#, r#"[["age","exists",1]]"#, r#"[["age","eq",1,2]]"#, r#"[["a","is",1]]"#]
    {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_answer_of_several_forms_keeps_what_users_wrote() {
    use crate::cells::CellRead;
    use crate::contracts::Done;
    use crate::runs::AppendAnswer;

    fn comes_back<T: serde::Serialize + serde::de::DeserializeOwned>(text: &str) -> T {
        // As a client reads it, by `serde_json`.
        let read: T = serde_json::from_str(text).expect("an answer");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        read
    }
    let cell = r#""version":1,"commit":7,"updated_at":"2026-02-11T10:00:00Z","value":1.50"#;
    assert!(matches!(comes_back(&format!(r#"{{"name":"a",{cell}}}"#)), CellRead::Cell(_)));
    let version = cell.replace("\"commit\"", "\"deleted\":false,\"commit\"");
    let history = format!(r#"{{"name":"a","versions":[{{{version}}}],"next_before":null}}"#);
    assert!(matches!(comes_back(&history), CellRead::History(_)));
    let appended = r#"{"runSeq":1,"idempotent":true,"persisted":false,"payloadMismatch":true,"event":{"n":1e400}}"#;
    assert!(matches!(comes_back(appended), AppendAnswer::One(_)));
    assert!(matches!(comes_back(&format!(r#"{{"results":[{appended}]}}"#)), AppendAnswer::Several(_)));
    assert!(matches!(comes_back(appended), Done::Appended(_)));
    assert!(serde_json::from_str::<CellRead>(r#"{"name":"a"}"#).is_err());
}
