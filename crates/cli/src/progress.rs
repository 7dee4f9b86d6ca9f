//! Progress of long work: a bar on stderr, only on a terminal.
//!
//! Never: writes anything when stderr is not a terminal, and never to stdout.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often the bar redraws on its own, to show that the command is alive.
const TICK: Duration = Duration::from_millis(100);

/// Bytes done, total, rate and remaining time. The bar takes the rest of the line, so it never wraps: at 80 columns the widest numbers
/// leave it 15.
const BYTES: &str = "{prefix:>8} [{wide_bar}] {percent:>3}% {bytes:>10}/{total_bytes:<10} {bytes_per_sec:>13} {eta:>4}";
/// A percentage and a message, for work that is not counted in bytes.
const SHARE: &str = "{prefix:>8} [{wide_bar}] {percent:>3}% {msg:>10}";
/// Bytes without a known total.
const COUNT: &str = "{prefix:>8} {spinner} {bytes:>10} {bytes_per_sec:>13}";

/// A bar.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar in bytes, with the total if it is known.
    pub(crate) fn bytes(what: &'static str, total: Option<u64>) -> Self {
        match total {
            Some(total) => Self::of(what, BYTES, total),
            None => Self::of(what, COUNT, 0),
        }
    }

    /// A bar in steps, with a message beside it.
    pub(crate) fn steps(what: &'static str, total: u64) -> Self {
        Self::of(what, SHARE, total)
    }

    fn of(what: &'static str, template: &str, total: u64) -> Self {
        let bar = ProgressBar::new(total);
        let seen = std::io::stderr().is_terminal();
        bar.set_draw_target(if seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() });
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(what);
        if seen {
            bar.enable_steady_tick(TICK);
        }
        Self(bar)
    }

    /// Sets how much is done.
    pub(crate) fn at(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Sets the message beside the bar.
    pub(crate) fn say(&self, text: String) {
        self.0.set_message(text);
    }

    /// Ends the bar and removes it from the screen.
    pub(crate) fn leave(self) {
        self.0.finish_and_clear();
    }

    /// Ends the bar and leaves it on the screen.
    pub(crate) fn done(self) {
        self.0.finish();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // A bar abandoned half-way stays where it was.
        if !self.0.is_finished() {
            self.0.abandon();
        }
    }
}
