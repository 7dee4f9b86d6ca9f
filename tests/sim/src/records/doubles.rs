//! placeholder
pub(crate) fn run(_: &testkit::arguments::Arguments) -> testkit::report::Report {
    testkit::report::Report::new("records")
}
