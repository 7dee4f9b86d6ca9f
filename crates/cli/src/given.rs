//! Values given on the command line.
//!
//! A value is JSON if it parses as JSON, otherwise text; `-` reads all of stdin, `@FILE` a file. Bytes that are not text are written
//! `{"$b64":"..."}`, as in the API. Keeps: JSON is sent byte for byte as given. Never: reads stdin twice.

use std::collections::BTreeSet;
use std::io::Read;

use serde::de::DeserializeOwned;
use serde::de::value::StrDeserializer;
use statehouse::{InvalidJson, Value, object_text};
use wire::DecodeError;
use wire::values::{Members, UserJson};

use crate::exit::Failure;

/// Limit of a value read from a file or stdin, in bytes; the server's own limit is lower.
const GIVEN_BYTES_MAX: u64 = 64 << 20;

/// A value.
pub(crate) fn value(given: &str, as_text: bool) -> Result<UserJson, Failure> {
    let bytes = bytes(given)?;
    if !as_text && let Ok(json) = std::str::from_utf8(&bytes) {
        match Value::from_json_text(json.trim()) {
            Ok(value) => return Ok(UserJson(value)),
            Err(InvalidJson::Malformed { .. }) => {}
            // It parses as JSON, but every server would refuse it.
            Err(refused) => return Err(Failure::usage(refused.to_string())),
        }
    }
    Ok(UserJson(match String::from_utf8(bytes) {
        Ok(text) => Value::Text(text),
        Err(error) => Value::Bytes(error.into_bytes()),
    }))
}

/// The bytes of an argument, a file or stdin.
fn bytes(given: &str) -> Result<Vec<u8>, Failure> {
    match (given, given.strip_prefix('@')) {
        ("-", _) => read("stdin", &mut std::io::stdin().lock()),
        (_, Some(path)) => {
            let mut file = std::fs::File::open(path).map_err(|error| Failure::usage(format!("{path}: {error}")))?;
            read(path, &mut file)
        }
        _ => Ok(given.as_bytes().to_vec()),
    }
}

/// The text of an argument, a file or stdin.
pub(crate) fn text(given: &str) -> Result<String, Failure> {
    String::from_utf8(bytes(given)?).map_err(|_| Failure::usage(format!("{given}: not UTF-8 text")))
}

/// An API document from an argument, a file or stdin; errors name the member.
pub(crate) fn document<T: DeserializeOwned>(given: &str, json: &str) -> Result<T, Failure> {
    wire::from_json_text(json).map_err(|error| Failure::usage(format!("{given}: {error}")))
}

/// The value of a flag, parsed as the API's type: a cursor, a status, a time.
pub(crate) fn word<T: DeserializeOwned>(flag: &str, word: &str) -> Result<T, Failure> {
    let read = T::deserialize(StrDeserializer::<DecodeError>::new(word));
    read.map_err(|error| Failure::usage(format!("{flag}: {error}")))
}

/// The same for an optional flag.
pub(crate) fn word_if_given<T: DeserializeOwned>(flag: &str, given: &Option<String>) -> Result<Option<T>, Failure> {
    given.as_ref().map(|given| word(flag, given)).transpose()
}

fn read(what: &str, input: &mut dyn Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = input.take(GIVEN_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::usage(format!("{what}: {error}")))?;
    match bytes.len() as u64 > GIVEN_BYTES_MAX {
        true => Err(Failure::usage(format!("{what} is larger than {GIVEN_BYTES_MAX} bytes"))),
        false => Ok(bytes),
    }
}

/// Fields: each `NAME=VALUE`; or one JSON object, on the command line, in a file or on stdin.
pub(crate) fn fields(given: &[String], as_text: bool) -> Result<Members<UserJson>, Failure> {
    if let [one] = given
        && (one == "-" || one.starts_with(['@', '{']))
    {
        return object(one, &text(one)?);
    }
    if given.iter().filter(|field| field.ends_with("=-")).count() > 1 {
        return Err(Failure::usage("only one value can come from stdin"));
    }
    given.iter().map(|field| one_field(field, as_text)).collect()
}

/// The members of a JSON object, each kept as its original text.
pub(crate) fn object(given: &str, json: &str) -> Result<Members<UserJson>, Failure> {
    let members = object_text::members(json).map_err(|_| Failure::usage(format!("{given}: not a JSON object")))?;
    let (mut object, mut names) = (Members::default(), BTreeSet::new());
    for member in members {
        if !names.insert(member.name.to_string()) {
            return Err(Failure::usage(format!("{given}: duplicate member {:?}", member.name)));
        }
        let value = Value::from_json_text(member.json).map_err(|error| Failure::usage(format!("{given}: {error}")))?;
        object.0.push((member.name.to_string(), UserJson(value)));
    }
    Ok(object)
}

/// `NAME=VALUE`.
pub(crate) fn one_field(given: &str, as_text: bool) -> Result<(String, UserJson), Failure> {
    let Some((name, given)) = given.split_once('=') else {
        return Err(Failure::usage(format!("{given:?} is not a field; write NAME=VALUE")));
    };
    Ok((name.to_owned(), value(given, as_text)?))
}

#[cfg(test)]
mod tests {
    use wire::runs::StatusText;

    use super::*;

    #[test]
    fn json_if_it_reads_as_json_and_text_otherwise() {
        let given = |text: &str| value(text, false).expect("a value").0;
        assert_eq!(given("5"), Value::Integer(5));
        assert_eq!(given("\"5\""), Value::from("5"));
        assert_eq!(given("blue"), Value::from("blue"));
        for json in
            ["{\"b\": 1.0, \"a\":-0, \"b\":1e400}", "-0", "1e400", "12345678901234567890123456789", "\"\\u0041\""]
        {
            assert_eq!(serde_json::to_string(&UserJson(given(&format!(" {json}\n")))).expect("JSON"), json);
        }
        assert!(value("\"\\ud800\"", false).is_err(), "refused by name, and not taken for text");
        assert_eq!(value("5", true).expect("text").0, Value::from("5"));
        assert!(value("@/no/such/file", false).is_err());
    }

    #[test]
    fn a_file_of_any_bytes_comes_back_as_it_was() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [0_u8, 159, 146, 150]).expect("written");
        let read = value(&format!("@{}", file.path().display()), false).expect("a value");
        assert_eq!(read.0, Value::Bytes(vec![0, 159, 146, 150]));
    }

    #[test]
    fn an_object_has_each_member_once_and_as_it_was_written() {
        let members = fields(&["{\"b\": [1.0, 1.0],\"a\":{\"x\":1,\"x\":2}}".to_owned()], false).expect("fields");
        assert_eq!(serde_json::to_string(&members).expect("JSON"), "{\"b\":[1.0, 1.0],\"a\":{\"x\":1,\"x\":2}}");
        assert!(fields(&["{\"a\":1,\"\\u0061\":2}".to_owned()], false).is_err());
        assert!(fields(&["{".to_owned()], false).is_err());
    }

    #[test]
    fn the_word_of_a_flag_is_refused_by_the_flag() {
        assert_eq!(word::<StatusText>("--status", "RUNNING").expect("a status"), StatusText::Running);
        let refused = word::<StatusText>("--status", "ODD").expect_err("no status");
        assert!(refused.detail.starts_with("--status: \"ODD\" is unknown; known are PENDING"), "{refused}");
    }
}
