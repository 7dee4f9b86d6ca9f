//! Random JSON documents, with everything that is lost when JSON passes through a tree of values.
//!
//! Numbers of any length, `-0`, `1.0`, `1e400`, escapes that nobody needs, members in any order and twice, whitespace
//! between tokens, bytes in our own spelling and in others. Keeps: a document has no whitespace around it, is at most
//! [`DEPTH_MAX`] deep and is never refused.

use contract::limits::JSON_DEPTH_MAX;
use contract::{InvalidJson, Value};
use testkit::random::Random;

/// The maximum depth of a document: it must also fit into an object, as an extra member of an event.
pub(crate) const DEPTH_MAX: usize = JSON_DEPTH_MAX - 1;

/// JSON that changes, or is lost, when it is parsed into a tree and written again.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-0.0",
    "1.0",
    "1.50",
    "1e400",
    "-1E-400",
    "1E+2",
    "1e0002",
    "0.1e1",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "0.30000000000000004",
    "3.141592653589793238462643",
];
const ESCAPES: &[&str] = &[
    r"\u0041",
    r"\u006e",
    r"\/",
    r"\n",
    r"\u000a",
    r"\u000A",
    r"\\",
    r#"\""#,
    r"\b\f\r\t",
    r"\u0000",
    r"\u001f",
    r"\u007f",
    r"\ud83d\ude00",
    r"\uD83D\uDE00",
    r"\u00e9",
    r"\u2028",
    r"\ufeff",
    r"\uffff",
];
const PLAIN: &[&str] = &[
    "a",
    "b",
    "name",
    "$b64",
    "$json",
    "eventType",
    "é",
    "😀",
    "/",
    "\u{7f}",
    "\u{2028}",
    "\u{feff}",
    "{",
    "]",
    ",",
    "$(x)",
    "  ",
];
const BYTES: &[&str] = &[
    r#"{"$b64":""}"#,
    r#"{"$b64":"AP8="}"#,
    r#"{"$b64": "AP8="}"#,
    r#"{"$b64":"\u0041P8="}"#,
    r#"{"$b64":"AP8=","$b64":"AA=="}"#,
    r#"{"$b64":7}"#,
    r#"{"$json":"1.0"}"#,
];
/// Half a surrogate pair, in forms that a careless check accepts.
const LONE: &[&str] = &[
    r"\ud800",
    r"\udfff",
    r"\uDC00\uD800",
    r"\ud83d\ude00\ud83d",
    r"\ud83d\u0041",
    r"\ud83dA",
    r"\\\ud83d",
    r"\ud83d\\ude00",
    r"\uDBFF\n",
];

/// Generates documents from a seed.
pub(crate) struct Documents {
    random: Random,
}

impl Documents {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }

    /// One document. An object in the form of bytes whose content is not base64 is refused by name, so it is not a document.
    pub(crate) fn next(&mut self) -> String {
        loop {
            let document = self.any();
            if !matches!(Value::from_json_text(&document), Err(InvalidJson::Base64 { .. })) {
                return document;
            }
        }
    }

    fn any(&mut self) -> String {
        let mut out = String::new();
        match self.random.below(200) {
            0 => self.deep(&mut out),
            1 => out.push_str(&"9".repeat(1 + self.random.index(1000))),
            _ => {
                let depth = self.random.below(6);
                self.value(&mut out, depth);
            }
        }
        out
    }

    /// An object.
    pub(crate) fn object(&mut self) -> String {
        let mut out = String::new();
        self.members(&mut out, 5);
        out
    }

    /// A document that must be refused: it contains half a surrogate pair.
    pub(crate) fn lone_surrogate(&mut self) -> String {
        let text = format!(
            "\"{}{}{}\"",
            self.random.pick(&["", "a", r"\n", "é"]),
            self.random.pick(LONE),
            self.random.pick(&["", "a", r"\n", "é"])
        );
        match self.random.below(4) {
            0 => text,
            1 => format!("[1.0,{text}]"),
            2 => format!("{{{text}:1}}"),
            _ => format!("{{\"a\":[{{\"b\":{text}}}]}}"),
        }
    }

    fn deep(&mut self, out: &mut String) {
        let depth = 1 + self.random.index(DEPTH_MAX - 1);
        for _ in 0..depth {
            out.push_str(self.random.pick(&["[", "[ ", "[1.0,"]));
        }
        self.value(out, 0);
        for _ in 0..depth {
            out.push_str(self.random.pick(&["]", "\n]", ",-0]"]));
        }
    }

    fn value(&mut self, out: &mut String, depth: u64) {
        match self.random.below(if depth == 0 { 6 } else { 9 }) {
            0 => out.push_str(self.random.pick(&["null", "true", "false"])),
            1 => out.push_str(self.random.pick(NUMBERS)),
            2 => self.number(out),
            3 => out.push_str(&self.random.next().cast_signed().to_string()),
            4 => self.text(out),
            5 => out.push_str(if depth == 0 { "[]" } else { self.random.pick(BYTES) }),
            6 => {
                out.push('[');
                for place in 0..self.random.below(4) {
                    out.push_str(if place > 0 { "," } else { "" });
                    self.space(out);
                    self.value(out, depth - 1);
                    self.space(out);
                }
                out.push(']');
            }
            _ => self.members(out, depth),
        }
    }

    fn members(&mut self, out: &mut String, depth: u64) {
        out.push('{');
        for place in 0..self.random.below(5) {
            out.push_str(if place > 0 { "," } else { "" });
            self.space(out);
            self.text(out);
            self.space(out);
            out.push(':');
            self.space(out);
            self.value(out, depth - 1);
            self.space(out);
        }
        out.push('}');
    }

    /// Any number that the grammar allows.
    fn number(&mut self, out: &mut String) {
        let digits = |random: &mut Random, max: usize| -> String {
            (0..=random.index(max)).map(|_| char::from(b'0' + u8::try_from(random.below(10)).unwrap_or(0))).collect()
        };
        out.push_str(self.random.pick(&["", "-"]));
        match digits(&mut self.random, 40).trim_start_matches('0') {
            "" => out.push('0'),
            whole => out.push_str(whole),
        }
        if self.random.one_in(2) {
            out.push('.');
            out.push_str(&digits(&mut self.random, 30));
        }
        if self.random.one_in(3) {
            out.push_str(self.random.pick(&["e", "E", "e+", "E-", "e-"]));
            out.push_str(&digits(&mut self.random, 4));
        }
    }

    fn text(&mut self, out: &mut String) {
        out.push('"');
        for _ in 0..self.random.below(5) {
            let part = if self.random.one_in(3) { self.random.pick(ESCAPES) } else { self.random.pick(PLAIN) };
            out.push_str(part);
        }
        out.push('"');
    }

    fn space(&mut self, out: &mut String) {
        if self.random.one_in(6) {
            out.push_str(self.random.pick(&[" ", "\n", "\t", "\r\n", "\r", "   "]));
        }
    }
}
