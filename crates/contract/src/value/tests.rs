//! Values from JSON text and back: kinds, preserved text, refusals.

use super::*;

#[test]
fn each_kind_is_read_from_the_one_spelling_that_is_its_own() {
    let json = |text: &str| Value::Json(Json(text.to_owned()));
    let kinds = [
        ("null", Value::Null),
        ("true", Value::Boolean(true)),
        ("false", Value::Boolean(false)),
        ("0", Value::Integer(0)),
        ("9223372036854775807", Value::Integer(i64::MAX)),
        ("-9223372036854775808", Value::Integer(i64::MIN)),
        ("\"\"", Value::from("")),
        ("\"a\\n\\u0001\\\"\\\\/\u{7f}é😀\"", Value::from("a\n\u{1}\"\\/\u{7f}é😀")),
        (r#"{"$b64":""}"#, Value::Bytes(Vec::new())),
        (r#"{"$b64":"AP8="}"#, Value::Bytes(vec![0, 255])),
    ];
    for (text, value) in kinds {
        assert_eq!(Value::from_json_text(text), Ok(value), "{text}");
    }
    let kept = [
        "9223372036854775808",
        "12345678901234567890123456789",
        "-0",
        "0.0",
        "1.0",
        "1e400",
        "1E+2",
        r#""\u0041""#,
        r#""\/""#,
        r#""\u000A""#,
        r#""\ud83d\ude00""#,
        "[]",
        "{ }",
        "[1,\n2]",
        r#"{"b":1,"a":2,"b":3}"#,
        r#"{"$b64": "AP8="}"#,
        r#"{"$b64":"AP8=","a":""}"#,
        r#"{"$b64":"\u0041P8="}"#,
        r#"{"$b64":1}"#,
    ];
    for text in kept {
        assert_eq!(Value::from_json_text(text), Ok(json(text)));
    }
}

#[test]
fn text_comes_back_as_it_was_given() {
    let texts =
        ["null", "-0", "1.50", "\"\\u0041\"", "\"\\\"\"", "{\"a\" :\t1,\"a\":1e400}", "{\"$b64\":\"AAA=\"}", "7"];
    for text in texts {
        let value = Value::from_json_text(&format!(" \n{text}\t\r")).expect("JSON");
        assert_eq!(value.to_json_text(), text);
        assert_eq!(serde_json::to_string(&value).expect("JSON"), text, "and by a serializer");
    }
    for code in (0..=0xff).chain([0x2028, 0xd7ff, 0xe000, 0x10ffff]) {
        let text = Value::Text(char::from_u32(code).expect("a character").into());
        assert_eq!(text.to_json_text(), serde_json::to_string(&text).expect("JSON"), "both spell it alike");
        assert_eq!(Value::from_json_text(&text.to_json_text()), Ok(text));
    }
}

#[test]
fn half_a_surrogate_pair_is_refused_by_name_wherever_it_is() {
    let (high, low, pair) = ("\\ud83d", "\\uDE00", "\\uD83D\\ude00");
    for (text, at) in [
        (format!("\"{high}\""), 1),
        (format!("\"{low}\""), 1),
        (format!("\"{low}{high}\""), 1),
        (format!("\"{pair}{high}\""), 13),
        (format!("\"{high}{high}{low}\""), 1),
        (format!("\"{high}\\\\{low}\""), 1),
        (format!("[{{\"{high}\":1}}]"), 3),
    ] {
        assert_eq!(Value::from_json_text(&text), Err(InvalidJson::LoneSurrogate { at }), "{text}");
        assert_eq!(Json::new(text), Err(InvalidJson::LoneSurrogate { at }));
    }
    for text in [format!("\"{pair}\""), "\"\\\\ud83d\"".to_owned(), "\"\\\\\\\\ud83d\"".to_owned()] {
        assert_eq!(Value::from_json_text(&text).map(|value| value.to_json_text()), Ok(text));
    }
}

#[test]
fn what_lies_too_deep_is_refused_by_name() {
    let nested = |depth| format!("{}\"[[{{\"{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Json::new(nested(JSON_DEPTH_MAX)).is_ok());
    let deep = Err(InvalidJson::TooDeep { max: JSON_DEPTH_MAX });
    assert_eq!(Json::new(nested(JSON_DEPTH_MAX + 1)), deep);
    assert_eq!(Json::new(nested(1_000_000)), deep);
    assert!(Json::new(format!("[{}1]", "[1],".repeat(1000))).is_ok(), "beside each other is not in each other");
}

#[test]
fn what_is_no_json_is_refused() {
    for text in [
        "",
        " ",
        "01",
        "+1",
        "1.",
        ".5",
        "nul",
        "'a'",
        "\"\n\"",
        "\"a",
        "{\"a\":1,}",
        "[1 2]",
        "1 2",
        "\u{feff}1",
        "NaN",
    ] {
        assert!(matches!(Value::from_json_text(text), Err(InvalidJson::Malformed { .. })), "{text:?}");
    }
    for base64 in ["AP8", "AP9=", "AP8=AP8=", "A P8", "-_8="] {
        let bytes = format!("{{\"$b64\":\"{base64}\"}}");
        assert!(matches!(Value::from_json_text(&bytes), Err(InvalidJson::Base64 { .. })), "{base64}");
    }
}
