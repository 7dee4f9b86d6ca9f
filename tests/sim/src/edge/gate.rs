//! `sim edge-gate --seed N [--cases N] [--small]`: which requests a server process lets in, and what a web page can do to it.
//!
//! - [`matrix`]: Host × Origin × Sec-Fetch-Site × method × content type, each case with its expected outcome.
//! - [`browser`]: a real headless Chromium. [`lure`]: the servers of its pages, and the wire to ours.
//! - [`attacks`]: the pages, and whether they changed or read anything.
//!
//! Keeps: forbidden requests do not pass, and allowed ones do. Without Chromium its items count as failed, because nothing was tested.

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
