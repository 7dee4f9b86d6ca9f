//! `sim http-schemathesis --examples N`: schemathesis calls every operation of `/openapi.json` with generated requests, valid
//! and invalid, and no answer may be a server error.
//!
//! Touches: PyPI, unless already installed; a virtual environment in the cache directory.
//! Without Python or the network it reports no success, because nothing was tested.

use std::path::Path;
use std::process::Command;

use testkit::arguments::Arguments;
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use crate::directories::fast_directory;
use crate::tools;

const HOOKS: &str = include_str!("schemathesis_hooks.py");

/// The checks of every answer: no server error, and a status, content type and body that the document names.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// Installs schemathesis if necessary, runs it and reports the result.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let examples = arguments.number("examples", 50);
    let mut report = Report::new("server");
    let goal = "no server error, every answer as the document says";
    let ran = tools::schemathesis().and_then(|program| call_all(&program, arguments, seed, examples));
    match ran {
        Ok(passed) => {
            let verdict = if passed { "0-failures" } else { "failures" };
            report.add("schemathesis", format!("{examples}-examples-an-operation {verdict} seed-{seed}"), goal, passed)
        }
        Err(complaint) => {
            println!("http-schemathesis: {complaint}");
            report.add("schemathesis", "not-run", goal, false)
        }
    };
    report
}

/// Runs it against its own server; returns whether all checks passed.
fn call_all(program: &Path, arguments: &Arguments, seed: u64, examples: u64) -> Result<bool, String> {
    let directory = fast_directory().map_err(|error| error.to_string())?;
    let launch = Launch::serve(binary(), directory.path().join("house"));
    let mut server = launch.argument("--checkpoints").argument(directory.path().join("checkpoints")).start()?;
    let document = format!("http://{}/openapi.json", server.address());
    std::fs::write(directory.path().join("hooks.py"), HOOKS).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONPATH", directory.path());
    command.args(["run", &document, "--checks", arguments.text("checks").unwrap_or(CHECKS)]);
    command.args(["--phases", "examples,coverage,fuzzing", "--max-examples", &examples.to_string()]);
    command.args([
        "--seed",
        &seed.to_string(),
        "--no-color",
        "--request-timeout",
        "40",
        "--suppress-health-check",
        "all",
    ]);
    // A backup occupies a slot that the next one waits for.
    command.args(["--exclude-path-regex", "/v1/backup"]).current_dir(directory.path());
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if let Some(ended) = server.ended() {
        return Err(format!("the server ended by itself: {ended}: {}", server.stderr()));
    }
    let said = server.stderr();
    if said.contains("panicked") {
        return Err(format!("the server panicked: {said}"));
    }
    Ok(status.success())
}
