//! Every setting of a server: its key, kind of value, default and purpose.
//!
//! Keeps: a single table defines the file, the environment variables, the commented template and the list of values.

use std::net::SocketAddr;
use std::time::Duration;

use client::tls::{CA_FILE_VARIABLE, CERTIFICATE_FILE_VARIABLE, KEY_FILE_VARIABLE};
use client::token::{TOKEN_FILE_VARIABLE, TOKEN_VARIABLE};
use server::gate::Hosts;
use statehouse::time::in_unit;

/// Prefix of the environment variables; `.` in a key becomes `__` in a variable.
pub(crate) const VARIABLE_PREFIX: &str = "STATEHOUSE_";

/// Variables with our prefix that are not server settings: they belong to the commands that talk to a server.
pub(crate) const OTHER_VARIABLES: &[&str] = &[
    "STATEHOUSE_CONFIG",
    "STATEHOUSE_CONTEXT",
    "STATEHOUSE_URL",
    CA_FILE_VARIABLE,
    CERTIFICATE_FILE_VARIABLE,
    KEY_FILE_VARIABLE,
    TOKEN_FILE_VARIABLE,
    TOKEN_VARIABLE,
];

/// Prefix of the variables that `watch --exec` sets for the commands it runs.
pub(crate) const CHANGE_PREFIX: &str = "STATEHOUSE_CHANGE_";

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An address with a port.
    Address,
    /// Text: a directory, or a bucket.
    Text,
    /// What to log: a level, or a filter.
    Log,
    /// A whole number.
    Count,
    /// A whole number up to 100.
    Percent,
    /// A number of bytes: `4096`, `64KiB`, `512MiB`, `2GiB`.
    Bytes,
    /// A time: `500ms`, `30s`, `10m`, `2h`, `7d`.
    Duration,
    /// `auto`, `text` or `json`.
    LogFormat,
    /// Host names: a list in a file, separated by commas elsewhere.
    Hosts,
    /// Origins: a list in a file, separated by commas elsewhere.
    Origins,
    /// `required` or `off`.
    Tokens,
    /// `true` or `false`.
    Switch,
}

/// The setting that says whether requests must show a token.
pub(crate) const TOKENS: &str = "server.tokens";

/// The value of [`TOKENS`] with which requests must show one.
pub(crate) const REQUIRED: &str = "required";

/// The value of [`TOKENS`] with which whoever reaches the server may do everything.
pub(crate) const OFF: &str = "off";

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its name in the file; the part before the dot is the table.
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
    /// The default; empty if it is computed or the setting is required.
    pub(crate) default: &'static str,
    /// Its purpose, in one sentence.
    pub(crate) about: &'static str,
}

const fn setting(key: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Setting {
    Setting { key, kind, default, about }
}

/// All settings, in the order they are printed.
pub(crate) const SETTINGS: &[Setting] = &[
    setting("data", Kind::Text, "", "The data directory, created if missing."),
    setting(
        "checkpoints",
        Kind::Text,
        "",
        "Where checkpoints of partitions lie: an absolute path, or s3://bucket/prefix; without it, none are taken or restored.",
    ),
    setting(
        "memory",
        Kind::Bytes,
        "",
        "Memory of the whole process. Default: 60 % of the control group's limit, or of the machine's memory.",
    ),
    setting(
        "log",
        Kind::Log,
        "info",
        "What to log: error, warn, info, debug, trace, or a filter such as info,server=debug.",
    ),
    setting("log_format", Kind::LogFormat, "auto", "text, json, or auto: text on a terminal, JSON otherwise."),
    setting(
        "server.listen",
        Kind::Address,
        "127.0.0.1:7420",
        "Address to listen on. One that other machines can reach needs TLS and tokens.",
    ),
    setting("server.socket", Kind::Text, "", "A socket in the file system to listen on, too; its group may connect."),
    setting(
        "server.hosts",
        Kind::Hosts,
        "",
        "Host names that the server answers to, besides localhost and IP addresses; other names are refused.",
    ),
    setting(
        "server.origins",
        Kind::Origins,
        "",
        "Origins whose web pages may send requests, each with a token: https://app.example; only where tokens are required.",
    ),
    setting(
        TOKENS,
        Kind::Tokens,
        REQUIRED,
        "Whether requests must show a token: required, or off: whoever reaches the server may do everything. Default of statehouse dev: off.",
    ),
    setting(
        "server.root_token_file",
        Kind::Text,
        "",
        "The file with the first administrator's token. Default: root.token in the data directory, written if missing.",
    ),
    setting(
        "server.tls_certificate",
        Kind::Text,
        "",
        "The file of the server's certificate and those that lead to its authority, in PEM. With it, the address speaks only TLS.",
    ),
    setting("server.tls_key", Kind::Text, "", "The file of that certificate's private key, in PEM."),
    setting(
        "server.tls_client_ca",
        Kind::Text,
        "",
        "The file of the authorities of client certificates, in PEM. Without it, clients are not asked for one.",
    ),
    setting(
        "server.insecure",
        Kind::Switch,
        "false",
        "Whether other machines may reach the server without TLS or without tokens: true or false.",
    ),
    setting(
        "disk.low_percent",
        Kind::Percent,
        "10",
        "Writes are refused while less than this percentage of the disk, or low_bytes if that is less, is free.",
    ),
    setting("disk.low_bytes", Kind::Bytes, "2GiB", "Upper bound of the space kept free, however large the disk."),
    setting(
        "disk.scrub_bytes_per_second",
        Kind::Bytes,
        "4MiB",
        "How fast the store is read in the background to find damage; 0 for not at all.",
    ),
    setting("limits.connections_max", Kind::Count, "4096", "Concurrent connections."),
    setting("limits.requests_max", Kind::Count, "1024", "Requests in progress at a time."),
    setting(
        "limits.waits_max",
        Kind::Count,
        "4096",
        "Concurrent requests that may wait: claims, long polls and followed streams.",
    ),
    setting(
        "limits.streams_max",
        Kind::Count,
        "1024",
        "Concurrent answers without a known size: event streams and large files.",
    ),
    setting("limits.head_bytes_max", Kind::Bytes, "16KiB", "Size of a request's headers, including the request line."),
    setting("limits.headers_max", Kind::Count, "64", "Number of headers in a request."),
    setting("limits.url_bytes_max", Kind::Bytes, "8KiB", "Size of a request's path and query."),
    setting("limits.body_bytes_max", Kind::Bytes, "4MiB", "Size of a request's body."),
    setting(
        "limits.send_buffer_bytes_max",
        Kind::Bytes,
        "64KiB",
        "Bytes per connection that the kernel buffers for a slow reader.",
    ),
    setting("limits.handshakes_max", Kind::Count, "256", "Concurrent TLS handshakes; more wait for their turn."),
    setting(
        "limits.handshake_time_max",
        Kind::Duration,
        "5s",
        "Time from the beginning of a connection to the end of its TLS handshake.",
    ),
    setting(
        "limits.head_time_max",
        Kind::Duration,
        "10s",
        "Time from the first byte of a request to the end of its headers.",
    ),
    setting("limits.body_time_max", Kind::Duration, "30s", "Time from the end of the headers to the end of the body."),
    setting(
        "limits.request_time_max",
        Kind::Duration,
        "10s",
        "Time from the end of the body to the answer, plus any wait that the request asked for.",
    ),
    setting("limits.wait_time_max", Kind::Duration, "60s", "Longest wait that a request may ask for."),
    setting("limits.idle_time_max", Kind::Duration, "60s", "How long to keep a connection without requests."),
    setting("limits.write_stall_time_max", Kind::Duration, "10s", "How long a client may stop reading its answer."),
    setting("limits.drain_time_max", Kind::Duration, "30s", "How long a shutdown waits for requests in progress."),
];

impl Setting {
    /// The environment variable that sets it.
    pub(crate) fn variable(&self) -> String {
        format!("{VARIABLE_PREFIX}{}", self.key.replace('.', "__").to_uppercase())
    }

    /// Checks a value and describes what is wrong with it.
    pub(crate) fn check(&self, text: &str) -> Result<(), String> {
        let wrong = |wanted: &str| Err(format!("{text:?} is not {wanted}"));
        match self.kind {
            Kind::Address if text.parse::<SocketAddr>().is_err() => {
                wrong("an address with a port, such as 127.0.0.1:7420")
            }
            Kind::Text if text.is_empty() => Err("must not be empty".to_owned()),
            Kind::Log => crate::log::check(text),
            Kind::Count if text.parse::<usize>().is_ok_and(|count| count > 0) => Ok(()),
            Kind::Count => wrong("a whole number above 0"),
            Kind::Percent if text.parse::<u8>().is_ok_and(|percent| percent <= 100) => Ok(()),
            Kind::Percent => wrong("a whole number up to 100"),
            Kind::Bytes if parse_bytes(text).is_none() => {
                wrong("a number of bytes, such as 65536, 64KiB, 512MiB or 2GiB")
            }
            Kind::Duration if parse_duration(text).is_none() => wrong("a duration, such as 500ms, 30s, 10m, 2h or 7d"),
            Kind::Hosts if parse_hosts(text).is_none() => {
                wrong("a list of host names without ports, such as state.internal")
            }
            Kind::Origins if parse_origins(text, &mut Hosts::default()).is_none() => {
                wrong("a list of origins without paths, such as https://app.example")
            }
            Kind::Tokens if ![REQUIRED, OFF].contains(&text) => wrong("required or off"),
            Kind::Switch if !["true", "false"].contains(&text) => wrong("true or false"),
            Kind::LogFormat if !["auto", "text", "json"].contains(&text) => wrong("auto, text or json"),
            _ => Ok(()),
        }
    }
}

/// The setting with this key.
pub(crate) fn named(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// A number and its unit.
fn split_unit(text: &str) -> Option<(u64, &str)> {
    let unit = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..unit].parse().ok()?, text[unit..].trim_start()))
}

/// Host names, separated by commas.
pub(crate) fn parse_hosts(text: &str) -> Option<Hosts> {
    let mut hosts = Hosts::default();
    let mut names = text.split(',').map(str::trim).filter(|_| !text.is_empty());
    names.all(|name| hosts.add(name)).then_some(hosts)
}

/// Adds origins, separated by commas.
pub(crate) fn parse_origins(text: &str, hosts: &mut Hosts) -> Option<()> {
    let mut origins = text.split(',').map(str::trim).filter(|_| !text.is_empty());
    origins.all(|origin| hosts.add_origin(origin)).then_some(())
}

/// A number of bytes.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// A duration with its unit.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text).filter(|(_, unit)| !unit.is_empty())?;
    in_unit(number, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_values_of_their_kinds() {
        for setting in SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
            assert_eq!(setting.check(setting.default), Ok(()), "{}", setting.key);
        }
    }

    #[test]
    fn units_are_read() {
        assert_eq!(parse_bytes("64KiB"), Some(65_536));
        assert_eq!(parse_bytes("2 GiB"), Some(2 << 30));
        assert_eq!((parse_bytes("64KB"), parse_bytes("x"), parse_bytes("99999999999TiB")), (None, None, None));
        assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!((parse_duration("5"), parse_duration("5y")), (None, None), "a time has a unit");
    }

    #[test]
    fn hosts_are_names_without_ports() {
        let names = |text| parse_hosts(text).map(|hosts| hosts.names().to_vec());
        assert_eq!(names("a.internal, B"), Some(vec!["a.internal".to_owned(), "B".to_owned()]));
        assert_eq!(names(""), Some(Vec::new()));
        for wrong in ["a:1", "*.a", "a,,b", "a,", "http://a", "127.0.0.1", "[::1]", "a b"] {
            assert_eq!(names(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_nearest_name_is_found() {
        use contract::suggest::nearest;
        let keys = || SETTINGS.iter().map(|setting| setting.key);
        assert_eq!(nearest("limits.conections_max", keys()), Some("limits.connections_max"));
        assert_eq!(nearest("listen", keys()), None, "nothing is near enough");
    }
}
