//! The command line: a workload, then `--option value` pairs and bare `--flags`.

use std::collections::BTreeMap;

/// Options by name, without their dashes; a bare flag has an empty value.
pub struct Arguments(BTreeMap<String, String>);

/// The workload and its options.
pub fn parse() -> (String, Arguments) {
    let mut words = std::env::args().skip(1).peekable();
    let workload = words.next().unwrap_or_default();
    let mut options = BTreeMap::new();
    while let Some(word) = words.next() {
        let name = word.trim_start_matches("--").to_owned();
        let value = words.next_if(|next| !next.starts_with("--")).unwrap_or_default();
        options.insert(name, value);
    }
    (workload, Arguments(options))
}

impl Arguments {
    /// The number given as `--name`, or `default`.
    pub fn number(&self, name: &str, default: u64) -> u64 {
        self.0
            .get(name)
            .map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("--{name} takes a number, not {value:?}")))
    }

    /// The text given as `--name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether the flag was given.
    pub fn flag(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
