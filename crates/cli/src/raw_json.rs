//! User JSON inside a tree of values: values that a tree would alter are kept as their original text.
//!
//! An answer is parsed into a tree for tables and decisions. User values that would not survive that, such as a list, an object, `1.0` or
//! `"\u0041"`, become a mark: an object with one member, under a name that no API answer uses, which holds the text. Keeps: output from
//! such a tree has every value as the API sent it. Never: looks for marks in user data.

use serde_json::{Map, Value as JsonValue};
use statehouse::object_text::{Member, entries, members};
use statehouse::value::in_one_line;
use statehouse::{InvalidJson, Value};

/// The name of a mark's only member.
const MARK: &str = "\0raw";

/// Members of answers that hold nothing but user JSON.
const USERS: [&str; 5] = ["value", "eventData", "engineRunRef", "current", "payload"];

/// A user's value, as a tree that preserves it.
pub(crate) fn keep(json: &str) -> JsonValue {
    let survives = |scalar: &JsonValue| {
        let written = scalar.to_string();
        !scalar.is_object() && !scalar.is_array() && written == json
    };
    match serde_json::from_str::<JsonValue>(json) {
        Ok(scalar) if survives(&scalar) => scalar,
        _ => JsonValue::Object(Map::from_iter([(MARK.to_owned(), json.into())])),
    }
}

/// An answer of the API.
pub(crate) fn parse(answer: &str) -> Result<JsonValue, InvalidJson> {
    let answer = answer.trim();
    match answer.as_bytes().first() {
        Some(b'{') => {
            let found = members(answer)?;
            // An event may have members that only its sender knows.
            let is_event = ["eventType", "runSeq"].iter().all(|name| found.iter().any(|member| member.name == *name));
            let read = |member: &Member<'_>| match &*member.name {
                name if is_event || USERS.contains(&name) => Ok(keep(member.json)),
                "fields" if member.json.starts_with('{') => {
                    let fields = members(member.json)?;
                    Ok(fields.iter().map(|field| (field.name.to_string(), keep(field.json))).collect())
                }
                "artifacts" if member.json.starts_with('[') => {
                    Ok(entries(member.json)?.into_iter().map(keep).collect())
                }
                _ => parse(member.json),
            };
            found.iter().map(|member| Ok((member.name.to_string(), read(member)?))).collect()
        }
        Some(b'[') => entries(answer)?.into_iter().map(parse).collect(),
        _ => serde_json::from_str(answer).map_err(|error| InvalidJson::Malformed { reason: error.to_string() }),
    }
}

/// The text of a mark.
fn kept(tree: &JsonValue) -> Option<&str> {
    let object = tree.as_object().filter(|object| object.len() == 1)?;
    object.get(MARK).and_then(JsonValue::as_str)
}

/// A tree as compact JSON; user JSON keeps its own spaces.
pub(crate) fn text(tree: &JsonValue) -> String {
    let mut out = String::new();
    write(tree, None, &mut out);
    out
}

/// The same on one line: a line break between tokens of user JSON becomes a space.
pub(crate) fn line(tree: &JsonValue) -> String {
    in_one_line(&text(tree)).into_owned()
}

/// A tree as indented JSON; user JSON is unchanged.
pub(crate) fn pretty(tree: &JsonValue) -> String {
    let mut out = String::new();
    write(tree, Some(0), &mut out);
    out
}

/// Text as it is, everything else as JSON.
pub(crate) fn value_text(tree: &JsonValue) -> String {
    match tree {
        JsonValue::String(text) => text.clone(),
        tree => line(tree),
    }
}

/// A value as bytes: text and bytes unchanged, everything else as JSON.
pub(crate) fn to_bytes(tree: &JsonValue) -> Vec<u8> {
    let json = kept(tree).map_or_else(|| tree.to_string(), str::to_owned);
    match Value::from_json_text(&json) {
        Ok(Value::Text(text)) => text.into_bytes(),
        Ok(Value::Bytes(bytes)) => bytes,
        _ => serde_json::from_str::<String>(&json).unwrap_or(json).into_bytes(),
    }
}

fn write(tree: &JsonValue, indent: Option<usize>, out: &mut String) {
    if let Some(json) = kept(tree) {
        return out.push_str(json);
    }
    let inner = indent.map(|indent| indent + 1);
    let begin = |place: usize, out: &mut String| {
        out.push_str(if place > 0 { "," } else { "" });
        new_line(inner, out);
    };
    match tree {
        JsonValue::Object(object) if !object.is_empty() => {
            out.push('{');
            for (place, (name, value)) in object.iter().enumerate() {
                begin(place, out);
                statehouse::value::write_text_json(name, out);
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write(value, inner, out);
            }
            new_line(indent, out);
            out.push('}');
        }
        JsonValue::Array(list) if !list.is_empty() => {
            out.push('[');
            for (place, value) in list.iter().enumerate() {
                begin(place, out);
                write(value, inner, out);
            }
            new_line(indent, out);
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn new_line(indent: Option<usize>, out: &mut String) {
    if let Some(indent) = indent {
        out.push('\n');
        out.push_str(&"  ".repeat(indent));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_the_users_is_written_as_it_was_and_the_rest_can_be_asked() {
        let record = r#"{"name":"r","fields":{"b":12345678901234567890,"a":{"z": 1.0,"z":-0},"s":"x","e":"\u0041"},"version":3}"#;
        let event =
            r#"{"events":[{"runSeq":1,"eventType":"T","eventData":[1e400, 2],"own":{"b":1,"a":2},"commit":7}]}"#;
        let (record, event) = (parse(record).expect("JSON"), parse(event).expect("JSON"));
        assert_eq!((record["fields"]["s"].as_str(), record["version"].as_u64()), (Some("x"), Some(3)));
        assert_eq!(event["events"][0]["runSeq"].as_u64(), Some(1));
        let written = text(&record);
        for part in [r#""b":12345678901234567890"#, r#""a":{"z": 1.0,"z":-0}"#, r#""e":"\u0041""#] {
            assert!(written.contains(part), "{written}");
        }
        let written = text(&event);
        for part in [r#""eventData":[1e400, 2]"#, r#""own":{"b":1,"a":2}"#] {
            assert!(written.contains(part), "{written}");
        }
        assert_eq!(value_text(&record["fields"]["a"]), r#"{"z": 1.0,"z":-0}"#);
        assert_eq!(
            pretty(&json!({ "value": keep("[1.0,\n2]"), "l": [] })),
            "{\n  \"l\": [],\n  \"value\": [1.0,\n2]\n}"
        );
        assert_eq!(text(&json!({ "value": keep("[1.0,\n2]") })), "{\"value\":[1.0,\n2]}");
        assert_eq!(line(&json!({ "value": keep("[1.0,\n2]") })), r#"{"value":[1.0, 2]}"#);
    }

    #[test]
    fn a_tree_without_marks_is_written_as_serde_does() {
        let tree = json!({ "a": [1, {}, { "b": [] }], "c": { "d": null, "\n\u{1}": 1.5 } });
        assert_eq!(text(&tree), tree.to_string());
        assert_eq!(pretty(&tree), serde_json::to_string_pretty(&tree).expect("JSON"));
    }

    #[test]
    fn a_mark_that_a_user_stored_is_only_a_value() {
        let users = format!(r#"{{"value":{{"{}":"[1]"}}}}"#, r"\u0000raw");
        assert_eq!(text(&parse(&users).expect("JSON")), users);
    }

    #[test]
    fn raw_is_text_or_bytes_or_the_json_that_it_is() {
        let raw = |json: &str| String::from_utf8(to_bytes(&keep(json))).expect("text");
        assert_eq!(raw("\"red\""), "red");
        assert_eq!(raw("\"\\u0041\""), "A");
        assert_eq!(raw("{\"$b64\":\"QQ==\"}"), "A");
        assert_eq!(raw("{ \"a\" :1.0 }"), "{ \"a\" :1.0 }");
        assert_eq!(raw("7"), "7");
    }
}
