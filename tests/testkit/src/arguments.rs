//! The command line of `sim` and `bench`: what to run, then `--option value` pairs and bare `--flags`.

use std::collections::BTreeMap;

/// Options by name, without their dashes; a bare flag has an empty value.
pub struct Arguments {
    options: BTreeMap<String, String>,
}

impl Arguments {
    /// What to run, and its options.
    pub fn from_environment() -> Result<(String, Self), String> {
        let mut words = std::env::args().skip(1).peekable();
        let name = words.next().ok_or("what is to be run? see the first lines of its main.rs")?;
        let mut options = BTreeMap::new();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").ok_or_else(|| format!("{word:?} is not an option"))?;
            let value = words.next_if(|next| !next.starts_with("--")).unwrap_or_default();
            options.insert(name.to_owned(), value);
        }
        Ok((name, Self { options }))
    }

    /// The number given as `--name`, or `default`.
    pub fn number(&self, name: &str, default: u64) -> u64 {
        match self.options.get(name) {
            None => default,
            Some(value) => value.parse().unwrap_or_else(|_| panic!("--{name} takes a number, not {value:?}")),
        }
    }

    /// The text given as `--name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Whether the flag was given.
    pub fn flag(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The seed given as `--seed`, or one from the clock.
    #[allow(clippy::disallowed_methods, reason = "a fresh seed is the one thing here that must differ each time")]
    pub fn seed(&self) -> u64 {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        self.number("seed", clock.map_or(1, |elapsed| elapsed.as_secs()))
    }
}
