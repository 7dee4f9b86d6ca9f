//! `sim http-surface`: calls every route successfully at least once, and provokes every error code.

use std::sync::Arc;

use testkit::arguments::Arguments;
use testkit::http::Client;
use testkit::http::routes::Called;
use testkit::report::Report;
use testkit::server_process::Launch;

use super::{codes, routes};
use crate::directories::fast_directory;

/// Calls every route and provokes every error code.
pub(crate) fn run(_: &Arguments) -> Report {
    let mut report = Report::new("server");
    let directory = fast_directory().expect("a directory");
    let this = std::env::current_exe().expect("the path of this program");
    let launch = Launch::program(this).arguments(["serve-machine", "--data"]).argument(directory.path().join("house"));
    let checkpoints = directory.path().join("checkpoints");
    let server = launch.argument("--checkpoints").argument(&checkpoints).start().expect("a server");
    let called = Arc::new(Called::default());
    let client = Client::new(server.address(), called.clone());
    let codes = codes::bring_about(&client, &checkpoints);
    codes.wrong.iter().for_each(|wrong| println!("http-surface: {wrong}"));
    let figure = format!("{}-codes {}-wrong", codes.answered.len(), codes.wrong.len());
    report.add("surface.codes", figure, "each is brought about", codes.wrong.is_empty());
    let (count, missing) = routes::tour(&client, &called);
    missing.iter().for_each(|route| println!("http-surface: never called: {} {}", route.method, route.template));
    let figure = format!("{count}-routes {}-missing", missing.len());
    report.add("surface.routes", figure, "each is called", missing.is_empty() && count > 0);
    report
}
