//! What is logged, and how: text on a terminal, JSON otherwise; on standard error, so that output stays output.
//!
//! What the libraries below say (the journal's engine and the tree, by the crate `log`) goes the same way: warnings and errors, or everything
//! if a filter names them. Keeps: an event takes one line, whatever is in it.

use std::io::{self, IsTerminal, Write};

use statehouse::terminal;
use tracing_subscriber::EnvFilter;

use crate::Failed;

/// The levels, from few lines to many.
const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];

/// How much the libraries below are heard, where a filter is one level. After every crash the journal's engine warns of
/// corruption at the end of its last file, where a write was cut that nobody had been answered; the journal itself checks that nothing
/// else is missing.
const BELOW: &[&str] = &["raft_engine=warn", "raft_engine::file_pipe_log::pipe_builder=error", "lsm_tree=warn"];

/// Starts to log what `filter` lets through, as `text`, `json`, or by `auto` as fits. Says whether it is JSON.
pub(crate) fn start(filter: &str, format: &str) -> Result<bool, Failed> {
    let filter =
        EnvFilter::try_new(with_libraries(filter)).map_err(|error| format!("{filter:?} is no filter: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false);
    // Where nothing can be written, as on a terminal that is closed, saying so on the same place would panic.
    let builder = builder.log_internal_errors(false);
    let as_text = format == "text" || (format == "auto" && io::stderr().is_terminal());
    let started = match as_text {
        // Without colours: they would be one more dependency, and asking for them without it panics.
        true => builder.with_ansi(false).with_writer(|| OneLine(terminal::one_line)).try_init(),
        false => builder.json().flatten_event(true).with_writer(|| OneLine(terminal::json)).try_init(),
    };
    started.map_err(|error| format!("logging could not be started: {error}"))?;
    Ok(!as_text)
}

/// What is wrong with a filter, if something is: a level, or `TARGET=LEVEL`, or several with commas between.
pub(crate) fn check(filter: &str) -> Result<(), String> {
    for part in filter.split(',') {
        let level = part.rsplit_once('=').map_or(part, |(_, level)| level);
        if !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level)) {
            let known = LEVELS.join(", ");
            return Err(format!("{level:?} is no level; write one of {known}, or TARGET=LEVEL, as info,server=debug"));
        }
    }
    EnvFilter::try_new(filter).map(drop).map_err(|error| format!("{filter:?} is no filter: {error}"))
}

/// One level is for us; the libraries below say more at it than anybody wants to read.
fn with_libraries(filter: &str) -> String {
    let quiet = ["info", "warn"].iter().any(|level| filter.trim().eq_ignore_ascii_case(level));
    match quiet {
        true => BELOW.iter().fold(filter.to_owned(), |filter, library| format!("{filter},{library}")),
        false => filter.to_owned(),
    }
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
        for good in ["info", "WARN", "off", "info,server=debug", "statehouse_server=trace,raft_engine=info"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["verbose", "2", "info,verbose", "server", "server=loud", "", "info,"] {
            let said = check(bad).expect_err(bad);
            assert!(said.contains("error, warn, info, debug, trace"), "{said}");
        }
    }

    #[test]
    fn libraries_are_quiet_beside_one_level_and_heard_when_asked() {
        assert_eq!(
            with_libraries("info"),
            "info,raft_engine=warn,raft_engine::file_pipe_log::pipe_builder=error,lsm_tree=warn"
        );
        assert_eq!(with_libraries("debug"), "debug");
        assert_eq!(with_libraries("info,raft_engine=info"), "info,raft_engine=info");
    }
}
