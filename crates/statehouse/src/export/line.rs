//! One line of an export: a JSON object whose members keep the order in which they were added.
//!
//! Keeps: the same things give the same bytes, on every machine and in every build; a hash is computed over them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contract::Value;

/// A value of bytes: `{"$b64": "..."}`.
pub(crate) const BYTES: &str = "$b64";
/// A value of JSON, as its original text: `{"$json": "..."}`.
pub(crate) const JSON: &str = "$json";

/// A JSON object under construction.
pub(crate) struct Line {
    bytes: Vec<u8>,
}

impl Line {
    /// A line of a kind.
    pub(crate) fn new(kind: &str) -> Self {
        let mut line = Self { bytes: Vec::with_capacity(256) };
        line.bytes.push(b'{');
        line.text("kind", kind)
    }

    /// An object inside a line.
    pub(crate) fn object() -> Self {
        Self { bytes: vec![b'{'] }
    }

    pub(crate) fn text(mut self, name: &str, text: &str) -> Self {
        self.name(name);
        push_text(&mut self.bytes, text);
        self
    }

    pub(crate) fn number(mut self, name: &str, number: impl Into<u64>) -> Self {
        self.name(name);
        self.bytes.extend_from_slice(number.into().to_string().as_bytes());
        self
    }

    pub(crate) fn boolean(mut self, name: &str, boolean: bool) -> Self {
        self.name(name);
        self.bytes.extend_from_slice(if boolean { b"true" } else { b"false" });
        self
    }

    /// A text, if there is one.
    pub(crate) fn text_if(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    /// A number, if there is one.
    pub(crate) fn number_if(self, name: &str, number: Option<u64>) -> Self {
        match number {
            Some(number) => self.number(name, number),
            None => self,
        }
    }

    /// A number, unless it is 0.
    pub(crate) fn number_unless_zero(self, name: &str, number: impl Into<u64>) -> Self {
        self.number_if(name, Some(number.into()).filter(|number| *number != 0))
    }

    /// `true`, if it is.
    pub(crate) fn flag(self, name: &str, set: bool) -> Self {
        if set { self.boolean(name, true) } else { self }
    }

    /// A member that is an object itself.
    pub(crate) fn nested(mut self, name: &str, object: Line) -> Self {
        self.name(name);
        self.bytes.extend_from_slice(&object.finish());
        self
    }

    /// A member that is a list of objects.
    pub(crate) fn list(mut self, name: &str, objects: impl Iterator<Item = Line>) -> Self {
        self.name(name);
        self.bytes.push(b'[');
        for (place, object) in objects.enumerate() {
            if place > 0 {
                self.bytes.push(b',');
            }
            self.bytes.extend_from_slice(&object.finish());
        }
        self.bytes.push(b']');
        self
    }

    /// A member that is a list of texts.
    pub(crate) fn texts<'text>(mut self, name: &str, texts: impl Iterator<Item = &'text str>) -> Self {
        self.name(name);
        self.bytes.push(b'[');
        for (place, text) in texts.enumerate() {
            if place > 0 {
                self.bytes.push(b',');
            }
            push_text(&mut self.bytes, text);
        }
        self.bytes.push(b']');
        self
    }

    /// A value, in a form that shows its kind.
    pub(crate) fn value(mut self, name: &str, value: &Value) -> Self {
        match value {
            Value::Null => {
                self.name(name);
                self.bytes.extend_from_slice(b"null");
                self
            }
            Value::Boolean(boolean) => self.boolean(name, *boolean),
            Value::Integer(integer) => {
                self.name(name);
                self.bytes.extend_from_slice(integer.to_string().as_bytes());
                self
            }
            Value::Text(text) => self.text(name, text),
            Value::Json(json) => self.json(name, json.as_str()),
            Value::Bytes(bytes) => self.octets(name, bytes),
            _ => unreachable!("every kind of value is listed above"),
        }
    }

    /// JSON, as the text that it is.
    pub(crate) fn json(self, name: &str, text: &str) -> Self {
        self.nested(name, Line::object().text(JSON, text))
    }

    /// JSON, if there is any.
    pub(crate) fn json_if(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.json(name, text),
            None => self,
        }
    }

    /// Bytes.
    pub(crate) fn octets(self, name: &str, bytes: &[u8]) -> Self {
        self.nested(name, Line::object().text(BYTES, &STANDARD.encode(bytes)))
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(b'}');
        self.bytes
    }

    fn name(&mut self, name: &str) {
        if self.bytes.len() > 1 {
            self.bytes.push(b',');
        }
        push_text(&mut self.bytes, name);
        self.bytes.push(b':');
    }
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(bytes, text).expect("text is written to memory");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_in_the_order_they_were_added_and_kinds_of_values_are_told_apart() {
        let json = |text: &str| Value::json(text).expect("JSON");
        let line = Line::new("k")
            .text("t", "a\"\n\u{7f}ä")
            .number("n", u64::MAX)
            .value("0", &Value::Null)
            .value("1", &Value::Integer(i64::MIN))
            .value("2", &Value::from("5"))
            .value("3", &json("{\"b\": 1,\n\"a\": 1.50}"))
            .value("4", &Value::Bytes(vec![0, 255]))
            .list("l", [Line::object(), Line::object().flag("f", true)].into_iter())
            .texts("s", ["x", "y"].into_iter());
        let expected = concat!(
            r#"{"kind":"k","t":"a\"\nä","n":18446744073709551615,"0":null,"1":-9223372036854775808,"2":"5","#,
            r#""3":{"$json":"{\"b\": 1,\n\"a\": 1.50}"},"4":{"$b64":"AP8="},"l":[{},{"f":true}],"s":["x","y"]}"#
        );
        let expected = expected.replace("nä", "n\u{7f}ä");
        assert_eq!(String::from_utf8(line.finish()).expect("text"), expected);
    }
}
