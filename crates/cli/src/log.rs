//! Logging to standard error: text on a terminal, JSON otherwise.
//!
//! Keeps: an event takes one line, whatever it contains.

use std::io::{self, IsTerminal, Write};

use statehouse::terminal;
use tracing_subscriber::EnvFilter;

use crate::Failed;

/// The levels, from least to most verbose.
const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];

/// Starts logging with a filter, as `text`, `json` or `auto`. Returns whether the log is JSON.
pub(crate) fn start(filter: &str, format: &str) -> Result<bool, Failed> {
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("{filter:?} is not a filter: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false);
    // If stderr cannot be written, as on a closed terminal, reporting that on stderr would panic.
    let builder = builder.log_internal_errors(false);
    let as_text = format == "text" || (format == "auto" && io::stderr().is_terminal());
    let started = match as_text {
        // No colours: they need another dependency, and enabling them without it panics.
        true => builder.with_ansi(false).with_writer(|| OneLine(terminal::one_line)).try_init(),
        false => builder.json().flatten_event(true).with_writer(|| OneLine(terminal::json)).try_init(),
    };
    started.map_err(|error| format!("cannot start logging: {error}"))?;
    Ok(!as_text)
}

/// Checks a filter: a level, or `TARGET=LEVEL`, or several separated by commas.
pub(crate) fn check(filter: &str) -> Result<(), String> {
    for part in filter.split(',') {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
        if !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level)) {
            let known = LEVELS.join(", ");
            return Err(format!(
                "{level:?} is not a level; write one of {known}, or TARGET=LEVEL, such as info,server=debug"
            ));
        }
    }
    EnvFilter::try_new(filter).map(drop).map_err(|error| format!("{filter:?} is not a filter: {error}"))
}

/// Writes events, each as one line without control characters.
struct OneLine(fn(&str) -> String);

impl Write for OneLine {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = (self.0)(text.strip_suffix('\n').unwrap_or(&text)) + "\n";
        io::stderr().lock().write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_levels_are_levels() {
        for good in ["info", "WARN", "off", "info,server=debug", "statehouse_server=trace,hyper=info"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["verbose", "2", "info,verbose", "server", "server=loud", "", "info,"] {
            let said = check(bad).expect_err(bad);
            assert!(said.contains("error, warn, info, debug, trace"), "{said}");
        }
    }
}
