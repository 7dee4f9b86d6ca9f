//! Lists that refresh, and confirmation before irreversible commands.

use std::io::{BufRead, IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value as JsonValue, json};
use wire::routes::Route;

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::output::{Format, Output};
use crate::reach::duration;
use crate::table::{Column, one_line};

const EVERY: Duration = Duration::from_secs(2);

/// The flags of a list.
#[derive(Args, Clone, Debug)]
pub(crate) struct Listing {
    /// List at most this many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: u64,
    /// Refresh the list every two seconds.
    #[arg(long)]
    watch: bool,
    /// Stop watching after this long.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, requires = "watch")]
    time: Option<Duration>,
}

impl Listing {
    /// Shows the list once, or repeatedly.
    pub(crate) async fn run(
        &self,
        output: &Output,
        mut once: impl AsyncFnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            if self.watch && output.seen() {
                output.clear_screen()?;
            }
            once().await?;
            let left = self.time.map_or(EVERY, |time| time.saturating_sub(began.elapsed()));
            if !self.watch || left.is_zero() {
                return Ok(());
            }
            tokio::time::sleep(left.min(EVERY)).await;
        }
    }

    /// The first rows of a list that the API returns as a whole.
    pub(crate) fn first(&self, mut found: JsonValue, key: &str) -> JsonValue {
        if let Some(rows) = found[key].as_array_mut() {
            rows.truncate(usize::try_from(self.limit).unwrap_or(usize::MAX));
        }
        found
    }

    /// Shows a route's list of bare names, found under a key.
    pub(crate) async fn run_names(
        &self,
        connection: &Connection,
        output: &Output,
        (route, key): (Route, &str),
        columns: &[Column],
    ) -> Result<(), Failure> {
        let once = async || {
            let mut found = self.first(connection.call(route, &[]).ask().await?, key);
            // Tables and lines need rows.
            if output.format != Format::Json
                && let Some(names) = found[key].as_array_mut()
            {
                for name in names.iter_mut().filter(|name| name.is_string()) {
                    *name = json!({ "name": name });
                }
            }
            output.list(&found, key, columns)
        };
        self.run(output, once).await
    }
}

/// The confirmation flag of irreversible commands.
#[derive(Args, Clone, Debug)]
pub(crate) struct Sure {
    /// Do not ask for confirmation; required without a terminal.
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Sure {
    /// Asks on a terminal; without one, the flag is required.
    pub(crate) fn or_ask(&self, what: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let (mut stdin, stdout) = (std::io::stdin().lock(), std::io::stdout());
        if !stdin.is_terminal() || !stdout.is_terminal() {
            return Err(
                Failure::usage(format!("would {what}; this cannot be undone")).next("repeat the command with --yes")
            );
        }
        eprint!("{}? This cannot be undone. [y/N] ", one_line(what));
        let _ = std::io::stderr().flush();
        let mut answer = String::new();
        let read = stdin.read_line(&mut answer);
        match read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            true => Ok(()),
            false => Err(Failure::other("cancelled; nothing was done")),
        }
    }
}
