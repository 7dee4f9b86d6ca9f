//! Progress of long work: a bar on stderr, and only where a person sees it.
//!
//! Never: writes anything when stderr is not a terminal, and never to stdout.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often the bar moves on its own, so that a person sees that something lives.
const TICK: Duration = Duration::from_millis(100);

/// With bytes, of how many, how fast, and how long it will take. The bar takes the room that is left, so a line never wraps: at 80
/// columns the widest numbers leave it 15.
const BYTES: &str = "{prefix:>8} [{wide_bar}] {percent:>3}% {bytes:>10}/{total_bytes:<10} {bytes_per_sec:>13} {eta:>4}";
/// With bytes while nobody knows of how many, and a share that something else says.
const SHARE: &str = "{prefix:>8} [{wide_bar}] {percent:>3}% {msg:>10}";
/// With bytes alone.
const COUNT: &str = "{prefix:>8} {spinner} {bytes:>10} {bytes_per_sec:>13}";

/// A bar.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Of bytes, of how many if that is known.
    pub(crate) fn bytes(what: &'static str, total: Option<u64>) -> Self {
        match total {
            Some(total) => Self::of(what, BYTES, total),
            None => Self::of(what, COUNT, 0),
        }
    }

    /// Of steps, with what was done so far beside it.
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

    /// So much is done.
    pub(crate) fn at(&self, done: u64) {
        self.0.set_position(done);
    }

    /// What stands beside the bar.
    pub(crate) fn say(&self, text: String) {
        self.0.set_message(text);
    }

    /// It is over, and nothing of it stays on the screen.
    pub(crate) fn leave(self) {
        self.0.finish_and_clear();
    }

    /// Everything is done; the bar stays as it was last.
    pub(crate) fn done(self) {
        self.0.finish();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // Given up half-way, it stays where it was.
        if !self.0.is_finished() {
            self.0.abandon();
        }
    }
}
