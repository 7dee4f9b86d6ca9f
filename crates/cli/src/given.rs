//! Values as they are given on a command line, and back.
//!
//! A value is JSON if it reads as JSON, and text otherwise; `-` is all of stdin, `@FILE` a file. Bytes that are not text are
//! `{"$b64":"..."}`, as in the API. Keeps: JSON is sent as it was given, to the byte. Never: reads stdin twice.

use std::io::Read;

use serde_json::{Map, Value as JsonValue, json};
use statehouse::{InvalidJson, Value, object_text};

use crate::exit::Failure;
use crate::raw_json;

/// Bytes of a value that is read from a file or from stdin; the server's own limit is lower.
const GIVEN_BYTES_MAX: u64 = 64 << 20;

/// A value.
pub(crate) fn value(given: &str, as_text: bool) -> Result<JsonValue, Failure> {
    let bytes = match given {
        "-" => read("stdin", &mut std::io::stdin().lock())?,
        _ => match given.strip_prefix('@') {
            Some(path) => {
                let mut file = std::fs::File::open(path).map_err(|error| Failure::usage(format!("{path}: {error}")))?;
                read(path, &mut file)?
            }
            None => given.as_bytes().to_vec(),
        },
    };
    if !as_text && let Ok(json) = std::str::from_utf8(&bytes) {
        match Value::from_json_text(json) {
            Ok(_) => return Ok(raw_json::keep(json.trim())),
            Err(InvalidJson::Malformed { .. }) => {}
            // It reads as JSON, and no server would take it.
            Err(refused) => return Err(Failure::usage(refused.to_string())),
        }
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => raw_json::keep(&Value::Bytes(error.into_bytes()).to_json_text()),
    })
}

fn read(what: &str, input: &mut dyn Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = input.take(GIVEN_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("{what}: {error}")))?;
    match bytes.len() as u64 > GIVEN_BYTES_MAX {
        true => Err(Failure::usage(format!("{what} has more than {GIVEN_BYTES_MAX} bytes"))),
        false => Ok(bytes),
    }
}

/// Fields: each `NAME=VALUE`; or one JSON object, on the command line, in a file or on stdin.
pub(crate) fn fields(given: &[String], as_text: bool) -> Result<Map<String, JsonValue>, Failure> {
    if let [one] = given
        && (one == "-" || one.starts_with(['@', '{']))
    {
        return object(one, &value(one, false)?);
    }
    if given.iter().filter(|field| field.ends_with("=-")).count() > 1 {
        return Err(Failure::usage("only one value can come from stdin"));
    }
    given.iter().map(|field| one_field(field, as_text)).collect()
}

/// The members of a value that was given and has to be a JSON object; each is kept as it is.
pub(crate) fn object(given: &str, value: &JsonValue) -> Result<Map<String, JsonValue>, Failure> {
    let json = raw_json::text(value);
    let members = object_text::members(&json).map_err(|_| Failure::usage(format!("{given}: is no JSON object")))?;
    let mut object = Map::new();
    for member in members {
        if object.insert(member.name.to_string(), raw_json::keep(member.json)).is_some() {
            return Err(Failure::usage(format!("{given}: has {:?} twice", member.name)));
        }
    }
    Ok(object)
}

/// `NAME=VALUE`.
pub(crate) fn one_field(given: &str, as_text: bool) -> Result<(String, JsonValue), Failure> {
    let Some((name, given)) = given.split_once('=') else {
        return Err(Failure::usage(format!("{given:?} is no field; write NAME=VALUE")));
    };
    Ok((name.to_owned(), value(given, as_text)?))
}

/// Tests of a scan: `FIELD=VALUE`, `!=`, `<`, `<=`, `>`, `>=`, `FIELD in A,B`, `FIELD not in A,B`, `FIELD exists`.
pub(crate) fn test(given: &str) -> Result<JsonValue, Failure> {
    let list = |given: &str| given.split(',').map(|one| value(one.trim(), false)).collect::<Result<Vec<_>, _>>();
    if let Some(field) = given.strip_suffix(" exists") {
        return Ok(json!([field.trim(), "exists"]));
    }
    if let Some((field, values)) = given.split_once(" not in ") {
        return Ok(json!([field.trim(), "not_in", list(values)?]));
    }
    if let Some((field, values)) = given.split_once(" in ") {
        return Ok(json!([field.trim(), "in", list(values)?]));
    }
    let operator = given.find(['=', '!', '<', '>']).filter(|place| *place > 0);
    let Some(place) = operator else {
        return Err(Failure::usage(format!("{given:?} is no test; write FIELD=VALUE, FIELD>=VALUE or FIELD exists")));
    };
    let (field, rest) = given.split_at(place);
    let tests = [("!=", "ne"), ("<=", "lte"), (">=", "gte"), ("<", "lt"), (">", "gt"), ("=", "eq")];
    let Some((name, given)) = tests.iter().find_map(|(sign, name)| Some((name, rest.strip_prefix(sign)?))) else {
        return Err(Failure::usage(format!("{given:?} is no test; != is the only one that begins with !")));
    };
    Ok(json!([field.trim(), name, value(given.trim(), false)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_if_it_reads_as_json_and_text_otherwise() {
        let given = |text| value(text, false).expect("a value");
        assert_eq!(given("5"), json!(5));
        assert_eq!(given("\"5\""), json!("5"));
        assert_eq!(given("blue"), json!("blue"));
        assert_eq!(raw_json::text(&given("{\"b\": 1.0, \"a\":-0}")), "{\"b\": 1.0, \"a\":-0}");
        assert_eq!(raw_json::text(&given("12345678901234567890123456789")), "12345678901234567890123456789");
        assert!(value("\"\\ud800\"", false).is_err(), "refused by name, and not taken for text");
        assert_eq!(value("5", true).expect("text"), json!("5"));
        assert!(value("@/no/such/file", false).is_err());
    }

    #[test]
    fn a_file_of_any_bytes_comes_back_as_it_was() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [0_u8, 159, 146, 150]).expect("written");
        let read = value(&format!("@{}", file.path().display()), false).expect("a value");
        assert_eq!(raw_json::to_bytes(&read), [0, 159, 146, 150]);
    }

    #[test]
    fn tests_have_signs_and_words() {
        let tested = |text| test(text).expect("a test");
        assert_eq!(tested("state=pending"), json!(["state", "eq", "pending"]));
        assert_eq!(tested("n >= 5"), json!(["n", "gte", 5]));
        assert_eq!(tested("n!=5"), json!(["n", "ne", 5]));
        assert_eq!(tested("state in a,b"), json!(["state", "in", ["a", "b"]]));
        assert_eq!(tested("worker exists"), json!(["worker", "exists"]));
        assert!(test("state").is_err() && test("=5").is_err() && test("a!5").is_err());
    }
}
