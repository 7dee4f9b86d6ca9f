//! One writer: in a guarded group nobody but its owner writes, whichever way the write comes.
//!
//! - [`over_http`] and [`in_library`]: every operation, with every fence that a caller could show.
//! - [`paused`]: an owner that is stopped in the middle of its work, replaced, and wakes up.
//! - [`waiters`]: a thousand that wait for one group.

mod in_library;
mod over_http;
mod paused;
mod waiters;

use testkit::arguments::Arguments;
use testkit::report::Report;

use crate::fences;

pub(crate) use paused::{child as paused_child, run as run_paused};
pub(crate) use waiters::run as run_waiters;

/// What anybody may do of an operation to a thing with an open name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForAnybody {
    Never,
    IfAbsent,
    Always,
}

/// What was tried, and what came out otherwise than it must.
#[derive(Default)]
struct Cells {
    tried: usize,
    /// Those of an owner that was replaced, and how many of them it was let in.
    of_old: usize,
    old_let_in: usize,
    wrong: Vec<String>,
}

/// The refusal of an owner that was replaced, and of nobody else.
const REPLACED: &str = "SH-4002";

impl Cells {
    fn compare(&mut self, what: &dyn Fn() -> String, found: &str, expected: &str) {
        self.tried += 1;
        if expected == REPLACED {
            self.of_old += 1;
            self.old_let_in += usize::from(found != expected);
        }
        if found != expected {
            self.wrong.push(format!("{}: {found}, not {expected}", what()));
        }
    }

    /// What anybody may do to a thing with an open name is done to one that is there. The fence is what is asked about: an event that
    /// is there already has its own refusal.
    fn again(&mut self, what: &dyn Fn() -> String, found: &str, for_anybody: ForAnybody) {
        let let_in = |is_in: bool| if is_in { "let in" } else { "SH-4003" };
        self.compare(what, let_in(found != "SH-4003"), let_in(for_anybody == ForAnybody::Always));
    }
}

/// `sim one-writer`: all operations, over HTTP and in the library; then again with everything switched off that refuses an owner that was
/// replaced: each cell of one must come out wrong.
pub(crate) fn run_matrices(_: &Arguments) -> Report {
    let mut report = Report::new("keyed");
    for (name, cells) in [("one-writer.http", over_http::try_all(true)), ("one-writer.library", in_library::try_all())]
    {
        cells.wrong.iter().take(20).for_each(|wrong| println!("one-writer: {wrong}"));
        let figure = format!("{}-cells-{}-wrong", cells.tried, cells.wrong.len());
        let goal = "every operation, with no, an old, the right and a foreign fence, open names and force: 0 wrong";
        report.add(name, figure, goal, cells.wrong.is_empty() && cells.tried > 0);
    }
    // Handles refuse an owner that was replaced before the store is asked: that must be off as well.
    let unfenced = [over_http::try_all(false), fences::skipped(in_library::try_all)];
    let [over_http, in_library] = unfenced.map(|cells| {
        println!("one-writer: {} wrong cells without fences", cells.wrong.len());
        (cells.old_let_in, cells.of_old)
    });
    let figure =
        format!("{}-of-{}-over-http-{}-of-{}-in-library", over_http.0, over_http.1, in_library.0, in_library.1);
    let goal = "every owner that was replaced is let in with fences off, in both";
    report.add(
        "one-writer.canary",
        figure,
        goal,
        [over_http, in_library].iter().all(|(let_in, of)| let_in == of && *of > 0),
    );
    report
}
