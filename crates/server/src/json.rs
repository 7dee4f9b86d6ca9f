//! JSON bodies, taken apart as text: what is the user's in them is kept as it was written, to the byte.

use std::borrow::Cow;

use contract::object_text::{self, Member};
use contract::{InvalidJson, Value};

use crate::problem::Problem;

/// A JSON object as text. No member is in it twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object<'body>(Vec<Member<'body>>);

impl<'body> Object<'body> {
    /// The value of a member, as text.
    pub(crate) fn get(&self, name: &str) -> Option<&'body str> {
        self.iter().find(|(found, _)| *found == name).map(|(_, json)| json)
    }

    /// Names and values, in the order in which they were written.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'body str)> {
        self.0.iter().map(|member| (&*member.name, member.json))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A value.
pub(crate) fn from_json(json: &str) -> Result<Value, Problem> {
    Value::from_json_text(json).map_err(refused)
}

/// A value, unless it is `null`.
pub(crate) fn unless_null(json: &str) -> Result<Option<Value>, Problem> {
    if json == "null" { Ok(None) } else { from_json(json).map(Some) }
}

/// The value that a body is.
pub(crate) fn value_of(bytes: &[u8]) -> Result<Value, Problem> {
    from_json(utf8(bytes)?)
}

fn utf8(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes).map_err(|_| Problem::malformed("the body is not JSON: it is not UTF-8"))
}

/// Why JSON cannot be taken.
pub(crate) fn refused(error: InvalidJson) -> Problem {
    match error {
        InvalidJson::TooDeep { max } => Problem::too_deep(max),
        other => Problem::malformed(other.to_string()),
    }
}

/// Text as JSON text.
pub(crate) fn text_json(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

/// The members of an object.
pub(crate) fn object_of<'body>(json: &'body str, what: &str) -> Result<Object<'body>, Problem> {
    if !json.starts_with('{') {
        from_json(json)?;
        return Err(Problem::malformed(format!("{what} is no JSON object")));
    }
    let members = object_text::members(json).map_err(refused)?;
    for (place, member) in members.iter().enumerate() {
        if members[..place].iter().any(|before| before.name == member.name) {
            return Err(Problem::malformed(format!("{what} has {:?} twice", member.name)));
        }
    }
    Ok(Object(members))
}

/// A body that is JSON, as text.
pub(crate) fn parse(bytes: &[u8]) -> Result<&str, Problem> {
    Ok(utf8(bytes)?.trim_matches([' ', '\t', '\n', '\r']))
}

/// A body that must be a JSON object; an empty one is an empty object.
pub(crate) fn parse_object(bytes: &[u8]) -> Result<Object<'_>, Problem> {
    if bytes.is_empty() {
        return Ok(Object::default());
    }
    object_of(parse(bytes)?, "the body")
}

/// The fields of an object as values.
pub(crate) fn fields(object: &Object<'_>) -> Result<Vec<(String, Value)>, Problem> {
    object.iter().map(|(name, json)| Ok((name.to_owned(), from_json(json)?))).collect()
}

/// The text that some JSON is, if it is text.
pub(crate) fn as_text(json: &str) -> Result<Option<Cow<'_, str>>, Problem> {
    if json.starts_with('"') { object_text::text(json).map(Some).map_err(refused) } else { Ok(None) }
}

/// A member that is not there or `null` is none.
fn given<'body>(object: &Object<'body>, name: &str) -> Option<&'body str> {
    object.get(name).filter(|json| *json != "null")
}

/// A text of an object, if it is there.
pub(crate) fn text<'body>(object: &Object<'body>, name: &str) -> Result<Option<Cow<'body, str>>, Problem> {
    match given(object, name) {
        None => Ok(None),
        Some(json) => match as_text(json)? {
            Some(text) => Ok(Some(text)),
            None => Err(Problem::malformed(format!("{name} is not text"))),
        },
    }
}

/// An object of an object, if it is there.
pub(crate) fn object_in<'body>(object: &Object<'body>, name: &str) -> Result<Option<Object<'body>>, Problem> {
    given(object, name).map(|json| object_of(json, name)).transpose()
}

/// The entries of a list, as text.
pub(crate) fn entries<'body>(json: &'body str, what: &str) -> Result<Vec<&'body str>, Problem> {
    if !json.starts_with('[') {
        return Err(Problem::malformed(format!("{what} is no list")));
    }
    object_text::entries(json).map_err(refused)
}

/// A list of an object; one that is not there is empty.
pub(crate) fn list<'body>(object: &Object<'body>, name: &str) -> Result<Vec<&'body str>, Problem> {
    given(object, name).map_or_else(|| Ok(Vec::new()), |json| entries(json, name))
}

/// A text that must be there.
pub(crate) fn required<'body>(object: &Object<'body>, name: &str) -> Result<Cow<'body, str>, Problem> {
    text(object, name)?.ok_or_else(|| Problem::malformed(format!("{name} is missing")))
}

/// A number that must be there.
pub(crate) fn required_number(object: &Object<'_>, name: &str) -> Result<u64, Problem> {
    number(object, name)?.ok_or_else(|| Problem::malformed(format!("{name} is missing")))
}

/// A number of an object, if it is there.
pub(crate) fn number(object: &Object<'_>, name: &str) -> Result<Option<u64>, Problem> {
    match given(object, name) {
        None => Ok(None),
        Some(json) => match json.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Problem::malformed(format!("{name} is not a whole number"))),
        },
    }
}

/// A duration of an object, if it is there: a number of ms, or text as `500ms`, `30s`, `10m`, `2h`, `7d`.
pub(crate) fn duration(object: &Object<'_>, name: &str) -> Result<Option<std::time::Duration>, Problem> {
    match given(object, name).map(as_text).transpose()?.flatten() {
        Some(text) => parse_duration(&text).map(Some),
        None => Ok(number(object, name)?.map(std::time::Duration::from_millis)),
    }
}

/// See [`duration`].
pub(crate) fn parse_duration(text: &str) -> Result<std::time::Duration, Problem> {
    let malformed = || Problem::malformed(format!("{text:?} is no duration; write 500ms, 30s, 10m, 2h or 7d"));
    contract::time::parse_duration(text).ok_or_else(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_there_twice_is_refused_by_name() {
        let refused = format!("{:?}", parse_object(br#"{"a":1,"\u0061":2}"#).expect_err("refused"));
        assert!(refused.contains(r#"the body has \"a\" twice"#), "{refused}");
        assert!(parse_object(br#"{"a":{"b":1,"b":2}}"#).is_ok(), "what is the user's is the user's");
    }

    #[test]
    fn durations_have_units() {
        let ms = |text| parse_duration(text).map(|duration| duration.as_millis()).ok();
        assert_eq!(
            (ms("30s"), ms("10m"), ms("5"), ms("7d")),
            (Some(30_000), Some(600_000), Some(5), Some(604_800_000))
        );
        assert_eq!((ms("x"), ms("1y"), ms("99999999999999999999s")), (None, None, None));
    }
}
