//! The digest of a command, put together from named members; `docs/formats/sessions.md` is the specification.
//!
//! Keeps: the form is frozen. A command sent under one release and repeated under the next has the same digest: a
//! member at its default is left out, so a new member changes nothing for commands that do not use it.

use xxhash_rust::xxh3::Xxh3;

use crate::machine::CommandDigest;

/// A digest under construction.
pub struct Digester {
    hasher: Xxh3,
}

impl Digester {
    /// The digest of a command of this kind.
    pub fn new(kind: &str) -> Self {
        let mut digester = Self { hasher: Xxh3::new() };
        digester.member("kind", kind.as_bytes());
        digester
    }

    /// Adds a member. Names and lengths make the encoding unambiguous.
    pub fn member(&mut self, name: &str, value: &[u8]) -> &mut Self {
        for bytes in [name.as_bytes(), value] {
            self.hasher.update(&(bytes.len() as u64).to_le_bytes());
            self.hasher.update(bytes);
        }
        self
    }

    /// Adds a text.
    pub fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.member(name, text.as_bytes())
    }

    /// Adds a text, if there is one.
    pub fn optional_text(&mut self, name: &str, text: Option<&str>) -> &mut Self {
        if let Some(text) = text {
            self.text(name, text);
        }
        self
    }

    /// Adds a number.
    pub fn number(&mut self, name: &str, number: u64) -> &mut Self {
        self.member(name, &number.to_le_bytes())
    }

    /// Adds a number, if there is one.
    pub fn optional_number(&mut self, name: &str, number: Option<u64>) -> &mut Self {
        if let Some(number) = number {
            self.number(name, number);
        }
        self
    }

    /// The digest.
    pub fn finish(&self) -> CommandDigest {
        self.hasher.digest128().to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_apart() {
        let digest = |members: &[(&str, &str)]| {
            let mut digester = Digester::new("k");
            for (name, value) in members {
                digester.text(name, value);
            }
            digester.finish()
        };
        let different = [
            digest(&[]),
            digest(&[("a", "")]),
            digest(&[("", "a")]),
            digest(&[("a", "b")]),
            digest(&[("ab", "")]),
            digest(&[("a", "b"), ("c", "d")]),
            digest(&[("c", "d"), ("a", "b")]),
            digest(&[("a", "bcd")]),
            Digester::new("ka").text("", "").finish(),
        ];
        for (place, one) in different.iter().enumerate() {
            assert!(!different[..place].contains(one), "{place}");
        }
    }

    /// A change here is a change of the format: stored answers would not be found again.
    #[test]
    fn golden_digest() {
        let digest = Digester::new("transact").number("space", 1).text("group", "g").finish();
        let hex = digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex, "d555649abbd5e90825f89addfb97abc2");
    }
}
