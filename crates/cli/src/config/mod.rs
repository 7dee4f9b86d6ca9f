//! The configuration of a server: defaults, then a file, then the environment, then flags; each value knows its origin.
//!
//! - [`settings`]: the table of all settings.
//! - [`file`]: the TOML file; errors show the line, with carets under the mistake.
//!
//! Keeps: unknown keys, variables and values are errors, never ignored.

mod file;
mod settings;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use server::TlsFiles;
use server::gate::Hosts;
use server::limits::ServerLimits;
use statehouse::terminal::one_line;

use settings::{
    CHANGE_PREFIX, Kind, OTHER_VARIABLES, REQUIRED, SETTINGS, Setting, VARIABLE_PREFIX, parse_bytes, parse_duration,
    parse_hosts, parse_origins,
};
pub(crate) use settings::{OFF, TOKENS};

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The value was not set.
    Default,
    /// A line of a file.
    File(PathBuf, usize),
    /// An environment variable.
    Environment(String),
    /// A command-line flag.
    Flag(&'static str),
}

impl Origin {
    /// Whether the value was set explicitly.
    pub(crate) fn is_said(&self) -> bool {
        *self != Self::Default
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File(path, line) => write!(formatter, "{}:{line}", path.display()),
            Self::Environment(variable) => write!(formatter, "environment {variable}"),
            Self::Flag(flag) => write!(formatter, "flag {flag}"),
        }
    }
}

/// An error in a configuration, as text for people.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ConfigError(String);

/// The values in effect, one per setting.
#[derive(Clone, Debug)]
pub(crate) struct Effective {
    values: Vec<(&'static Setting, String, Origin)>,
}

/// A given flag: its name, the key it sets, and the value.
pub(crate) type Flag = (&'static str, &'static str, String);

impl Effective {
    /// Gathers the configuration from the file, if one is named, the environment and flags.
    pub(crate) fn gather(
        path: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = Flag>,
    ) -> Result<Self, ConfigError> {
        Self::gather_for(&[], path, environment, flags)
    }

    /// The same for a command that has other defaults, by key.
    pub(crate) fn gather_for(
        other_defaults: &[(&str, &str)],
        path: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = Flag>,
    ) -> Result<Self, ConfigError> {
        let default = |setting: &Setting| {
            let other = other_defaults.iter().find(|(key, _)| *key == setting.key);
            other.map_or(setting.default, |(_, value)| value).to_owned()
        };
        let defaults = SETTINGS.iter().map(|setting| (setting, default(setting), Origin::Default));
        let mut effective = Self { values: defaults.collect() };
        if let Some(path) = path {
            let text = std::fs::read_to_string(path)
                .map_err(|error| ConfigError(one_line(&format!("cannot read {}: {error}", path.display()))))?;
            for (setting, value, line) in file::read(path, &text)? {
                effective.set(setting, value, Origin::File(path.to_owned(), line));
            }
        }
        for (variable, value) in environment {
            if let Some(setting) = setting_of_variable(&variable)? {
                let wrong = |complaint| ConfigError(one_line(&format!("{variable}: {complaint}")));
                setting.check(&value).map_err(wrong)?;
                effective.set(setting, value, Origin::Environment(variable));
            }
        }
        for (flag, key, value) in flags {
            let setting = settings::named(key).ok_or_else(|| ConfigError(format!("{key} is not a setting")))?;
            setting.check(&value).map_err(|complaint| ConfigError(one_line(&format!("{flag}: {complaint}"))))?;
            effective.set(setting, value, Origin::Flag(flag));
        }
        effective.check_together()?;
        Ok(effective)
    }

    /// Refuses settings that make no sense together.
    fn check_together(&self) -> Result<(), ConfigError> {
        if self.if_set("server.origins").is_some() && !self.requires_tokens() {
            let origin = self.rows().find(|(key, ..)| *key == "server.origins").map(|(.., origin)| origin.to_string());
            return Err(ConfigError(one_line(&format!(
                "{}: server.origins lets pages of other origins in, and they must show a token; set server.tokens = \"{REQUIRED}\"",
                origin.unwrap_or_default()
            ))));
        }
        Ok(())
    }

    /// The settings with another value than here.
    pub(crate) fn differences(&self, other: &Self) -> Vec<&'static str> {
        let pairs = self.rows().zip(other.rows());
        pairs.filter(|((_, old, _), (_, new, _))| old != new).map(|((key, ..), _)| key).collect()
    }

    /// Takes the values of some settings.
    pub(crate) fn take(&mut self, other: &Self, keys: &[&str]) {
        for (setting, value, origin) in other.values.iter().filter(|(setting, ..)| keys.contains(&setting.key)) {
            self.set(setting, value.clone(), origin.clone());
        }
    }

    fn set(&mut self, setting: &'static Setting, value: String, origin: Origin) {
        for held in &mut self.values {
            if held.0.key == setting.key {
                (held.1, held.2) = (value, origin);
                return;
            }
        }
    }

    /// Every key with its value and origin. A value that is not set and has no default is empty.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, &str, &Origin)> {
        self.values.iter().map(|(setting, value, origin)| (setting.key, value.as_str(), origin))
    }

    fn text(&self, key: &str) -> &str {
        self.rows().find(|(name, ..)| *name == key).map_or("", |(_, value, _)| value)
    }

    /// The text of a setting, if there is one.
    pub(crate) fn if_set(&self, key: &str) -> Option<&str> {
        Some(self.text(key)).filter(|text| !text.is_empty())
    }

    /// The data directory, if one is set.
    pub(crate) fn data(&self) -> Option<PathBuf> {
        self.if_set("data").map(PathBuf::from)
    }

    /// Memory of the whole process in bytes, if set.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        parse_bytes(self.text("memory"))
    }

    /// The log filter.
    pub(crate) fn log(&self) -> &str {
        self.text("log")
    }

    /// `auto`, `text` or `json`.
    pub(crate) fn log_format(&self) -> &str {
        self.text("log_format")
    }

    /// The address to listen on.
    pub(crate) fn listen(&self) -> SocketAddr {
        self.text("server.listen").parse().expect("checked when it was set")
    }

    /// Whether requests must show a token.
    pub(crate) fn requires_tokens(&self) -> bool {
        self.text(TOKENS) == REQUIRED
    }

    /// The files of the server's certificate, if it has one.
    pub(crate) fn tls_files(&self) -> Result<Option<TlsFiles>, ConfigError> {
        let file = |key| self.if_set(key).map(PathBuf::from);
        let client_ca = file("server.tls_client_ca");
        match (file("server.tls_certificate"), file("server.tls_key")) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key, client_ca })),
            (None, None) if client_ca.is_none() => Ok(None),
            (None, None) => Err(ConfigError(
                "server.tls_client_ca is set, and TLS is not; set server.tls_certificate and server.tls_key, too"
                    .into(),
            )),
            (Some(_), None) => {
                Err(ConfigError("server.tls_certificate is set, and server.tls_key is not; set both or neither".into()))
            }
            (None, Some(_)) => {
                Err(ConfigError("server.tls_key is set, and server.tls_certificate is not; set both or neither".into()))
            }
        }
    }

    /// The socket in the file system, if there is one.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        self.if_set("server.socket").map(PathBuf::from)
    }

    /// Whether other machines may reach the server without protection.
    pub(crate) fn is_insecure_allowed(&self) -> bool {
        self.text("server.insecure") == "true"
    }

    /// The file of the first administrator's token, if it is set.
    pub(crate) fn root_token_file(&self) -> Option<PathBuf> {
        self.if_set("server.root_token_file").map(PathBuf::from)
    }

    /// The host names that the server answers to, and the origins whose pages may send requests.
    pub(crate) fn hosts(&self) -> Hosts {
        let mut hosts = parse_hosts(self.text("server.hosts")).expect("checked when it was set");
        parse_origins(self.text("server.origins"), &mut hosts).expect("checked when it was set");
        hosts
    }

    /// Writes are refused below this percentage of the disk and this many bytes.
    pub(crate) fn disk_low(&self) -> (u8, u64) {
        let percent = self.text("disk.low_percent").parse().expect("checked when it was set");
        (percent, self.bytes("disk.low_bytes"))
    }

    /// How many bytes per second the scrub reads.
    pub(crate) fn scrub_bytes_per_second(&self) -> u64 {
        self.bytes("disk.scrub_bytes_per_second")
    }

    /// The server's limits.
    pub(crate) fn limits(&self) -> ServerLimits {
        let mut limits = ServerLimits::default();
        limits.connections_max = self.count("limits.connections_max");
        limits.requests_max = self.count("limits.requests_max");
        limits.waits_max = self.count("limits.waits_max");
        limits.streams_max = self.count("limits.streams_max");
        limits.head_bytes_max = self.size("limits.head_bytes_max");
        limits.headers_max = self.count("limits.headers_max");
        limits.url_bytes_max = self.size("limits.url_bytes_max");
        limits.body_bytes_max = self.size("limits.body_bytes_max");
        limits.send_buffer_bytes_max = self.size("limits.send_buffer_bytes_max");
        limits.handshakes_max = self.count("limits.handshakes_max");
        limits.handshake_time_max = self.duration("limits.handshake_time_max");
        limits.head_time_max = self.duration("limits.head_time_max");
        limits.body_time_max = self.duration("limits.body_time_max");
        limits.request_time_max = self.duration("limits.request_time_max");
        limits.wait_time_max = self.duration("limits.wait_time_max");
        limits.idle_time_max = self.duration("limits.idle_time_max");
        limits.write_stall_time_max = self.duration("limits.write_stall_time_max");
        limits.drain_time_max = self.duration("limits.drain_time_max");
        limits
    }

    fn count(&self, key: &str) -> usize {
        self.text(key).parse().expect("checked when it was set")
    }

    fn bytes(&self, key: &str) -> u64 {
        parse_bytes(self.text(key)).expect("checked when it was set")
    }

    fn size(&self, key: &str) -> usize {
        usize::try_from(self.bytes(key)).unwrap_or(usize::MAX)
    }

    fn duration(&self, key: &str) -> Duration {
        parse_duration(self.text(key)).expect("checked when it was set")
    }
}

/// The setting that an environment variable sets; none if the variable is not ours.
fn setting_of_variable(variable: &str) -> Result<Option<&'static Setting>, ConfigError> {
    let other = OTHER_VARIABLES.contains(&variable) || variable.starts_with(CHANGE_PREFIX);
    if other || !variable.starts_with(VARIABLE_PREFIX) {
        return Ok(None);
    }
    let variables: Vec<_> = SETTINGS.iter().map(Setting::variable).collect();
    if let Some(place) = variables.iter().position(|known| known == variable) {
        return Ok(Some(&SETTINGS[place]));
    }
    // The likeliest mistake is a missing table: STATEHOUSE_LISTEN for STATEHOUSE_SERVER__LISTEN.
    let rest = &variable[VARIABLE_PREFIX.len()..];
    let without_table = variables.iter().map(String::as_str).find(|known| known.ends_with(&format!("__{rest}")));
    let names = variables.iter().map(|known| &known[VARIABLE_PREFIX.len()..]);
    let near = without_table.map(str::to_owned);
    let near = near.or_else(|| contract::suggest::nearest(rest, names).map(|near| format!("{VARIABLE_PREFIX}{near}")));
    let hint =
        near.map_or("`statehouse config init` prints all settings".to_owned(), |near| format!("did you mean {near}?"));
    Err(ConfigError(one_line(&format!("environment variable {variable} is not a setting; {hint}"))))
}

/// A file with every setting, its default, its variable and its purpose, all commented out.
pub(crate) fn template() -> String {
    let mut text = String::from("# Settings of a Statehouse server. Commented-out lines show the defaults.\n");
    let mut table = "";
    for setting in SETTINGS {
        let (of, name) = setting.key.rsplit_once('.').unwrap_or(("", setting.key));
        if of != table {
            text += &format!("\n[{of}]\n");
            table = of;
        }
        let value = match setting.kind {
            Kind::Count | Kind::Percent | Kind::Switch => setting.default.to_owned(),
            Kind::Hosts | Kind::Origins => "[]".to_owned(),
            _ => format!("{:?}", setting.default),
        };
        text += &format!("\n# {}\n# Environment: {}\n# {name} = {value}\n", setting.about, setting.variable());
    }
    text
}

#[cfg(test)]
mod tests;
