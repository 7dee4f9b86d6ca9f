//! `sim edge-gate --seed N [--cases N] [--small]`: who is let in by a server process, and what a web page can do to one.
//!
//! - [`matrix`]: Host × Origin × Sec-Fetch-Site × method × content type, each case with what has to come of it.
//! - [`browser`]: a real Chromium, without a screen. [`lure`]: the servers that its pages are from, and the wire to ours.
//! - [`attacks`]: the pages, and whether they changed or read anything.
//!
//! Keeps: what must not pass does not, and what must does. Without Chromium its items are short, because nothing was shown.

mod attacks;
mod browser;
mod lure;
mod matrix;

use testkit::arguments::Arguments;
use testkit::report::Report;

/// Runs the matrix, and the attacks in a browser.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let mut report = Report::new("edge");
    matrix::run(arguments, &mut report);
    attacks::run(&mut report);
    report
}
