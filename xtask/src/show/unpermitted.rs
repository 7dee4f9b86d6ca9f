//! A route without a permission, which must not compile.

use std::path::Path;

use super::figures::{Figure, Report};
use crate::process::cargo;

/// The feature of the server that adds such a route.
const FEATURE: &str = "unpermitted_route";

/// What the compiler says of it: an argument is missing, in the line that adds the route, which it quotes.
const ERROR: &str = "error[E0061]";
const PLACE: &str = "\"A route without a permission\"";

/// What a run does, in words.
pub(super) const DESCRIPTION: &str = "cargo check of the server, as it is and with a route that has no permission";

/// Compiles the server without and with the route.
pub(super) fn run(root: &Path, topic: &str, item: &str, report: &mut Report) -> Result<(), String> {
    let checked = |more: &str| {
        let line = format!("check --locked --quiet --color never -p statehouse-server{more}");
        println!("\nshow: cargo {line}");
        let output = cargo(root, &line).output().map_err(|error| format!("start cargo: {error}"))?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        println!("{errors}");
        Ok::<_, String>((output.status.success(), errors))
    };
    let (compiles, _) = checked("")?;
    let (compiles_without, errors) = checked(&format!(" --features {FEATURE}"))?;
    let is_named = errors.contains(ERROR) && errors.matches("error[").count() == 1 && errors.contains(PLACE);
    let ok = compiles && !compiles_without && is_named;
    let figure = match (compiles, compiles_without) {
        (true, false) => "the-route-alone-does-not-compile",
        (_, true) => "the-route-compiles",
        (false, false) => "nothing-compiles",
    };
    let verdict = if ok { "ok" } else { "short" };
    let text = format!(
        "show {topic} {item} {figure} (goal a route without a permission fails to compile, and only it) {verdict}"
    );
    report.push(Figure::measured(text, !ok));
    Ok(())
}
