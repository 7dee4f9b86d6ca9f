//! What is logged, and how: text on a terminal, JSON otherwise; on standard error, so that output stays output.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::Failed;

/// Starts to log what `filter` lets through, as `text`, `json`, or by `auto` as fits.
pub(crate) fn start(filter: &str, format: &str) -> Result<(), Failed> {
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("{filter:?} says nothing to log by: {error}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // Where nothing can be written, as on a terminal that is closed, saying so on the same place would panic.
    let builder = builder.log_internal_errors(false);
    let as_text = format == "text" || (format == "auto" && std::io::stderr().is_terminal());
    let started = match as_text {
        // Without colours: they would be one more dependency, and asking for them without it panics.
        true => builder.with_ansi(false).try_init(),
        false => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| format!("logging could not be started: {error}").into())
}
