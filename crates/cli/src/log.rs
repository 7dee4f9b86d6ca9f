//! Logging to standard error: text on a terminal, JSON otherwise.
//!
//! Keeps: an event takes one line, whatever it contains.

use std::io::{self, IsTerminal, Write};

use statehouse::terminal;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload::Handle;

use crate::Failed;

/// The levels, from least to most verbose.
const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];

/// The filter of a log that was started. It can be changed.
pub(crate) struct Filter(Box<dyn Fn(EnvFilter) -> Result<(), String> + Send>);

impl Filter {
    fn of<S: 'static>(handle: Handle<EnvFilter, S>) -> Self {
        Self(Box::new(move |filter| {
            handle.reload(filter).map_err(|error| format!("the log cannot be changed: {error}"))
        }))
    }

    /// Logs with another filter from now on.
    pub(crate) fn set(&self, filter: &str) -> Result<(), String> {
        (self.0)(parse(filter)?)
    }
}

fn parse(filter: &str) -> Result<EnvFilter, String> {
    EnvFilter::try_new(filter).map_err(|error| format!("{filter:?} is not a filter: {error}"))
}

/// A log that was started.
pub(crate) struct Started {
    pub(crate) is_json: bool,
    pub(crate) filter: Filter,
}

/// Starts logging with a filter, as `text`, `json` or `auto`.
pub(crate) fn start(filter: &str, format: &str) -> Result<Started, Failed> {
    let builder = tracing_subscriber::fmt().with_env_filter(parse(filter)?).with_target(false);
    // If stderr cannot be written, as on a closed terminal, reporting that on stderr would panic.
    let builder = builder.log_internal_errors(false);
    let as_text = format == "text" || (format == "auto" && io::stderr().is_terminal());
    let (filter, started) = match as_text {
        true => {
            // No colours: they need another dependency, and enabling them without it panics.
            let builder = builder.with_ansi(false).with_writer(|| OneLine(terminal::one_line));
            let builder = builder.with_filter_reloading();
            (Filter::of(builder.reload_handle()), builder.try_init())
        }
        false => {
            let builder = builder.json().flatten_event(true).with_writer(|| OneLine(terminal::json));
            let builder = builder.with_filter_reloading();
            (Filter::of(builder.reload_handle()), builder.try_init())
        }
    };
    started.map_err(|error| format!("cannot start logging: {error}"))?;
    Ok(Started { is_json: !as_text, filter })
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
    parse(filter).map(drop)
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
