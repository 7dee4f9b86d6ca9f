//! `check`: a verdict per check, for people, monitors and probes. Exits with 7 if a check fails.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value as JsonValue, json};

use crate::bench::load::{Load, Operation, Work};
use crate::checks::{self, Checked, number};
use crate::connection::Connection;
use crate::exit::Failure;
use crate::output::{Format, Output};
use crate::reach::Reach;

/// Check a store: its health, disk space, clock and speed. Exits with 7 if a check fails.
///
/// Examples:
///   statehouse check health
///   statehouse check all --format prometheus
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Check {
    #[command(flatten)]
    reach: Reach,
    /// Format of the verdicts. Default: the format given by -o.
    #[arg(long, global = true, value_enum)]
    format: Option<Verdicts>,
    #[command(subcommand)]
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Verdicts {
    Text,
    Json,
    Prometheus,
}

#[derive(Subcommand)]
enum What {
    /// Check that the store answers, is ready and has no critical problem.
    ///
    /// Examples:
    ///   statehouse check health
    ///   statehouse check health --timeout 1s --format json
    #[command(verbatim_doc_comment)]
    Health,
    /// Check how much disk space is used and how much is free.
    ///
    /// Examples:
    ///   statehouse check disk
    ///   statehouse check disk --format prometheus
    #[command(verbatim_doc_comment)]
    Disk,
    /// Check that its clock agrees with this machine's and that no commit is from the future.
    ///
    /// Examples:
    ///   statehouse check clock
    ///   statehouse check clock --format json
    #[command(verbatim_doc_comment)]
    Clock,
    /// Check that it keeps up with a load. Writes cells under `statehouse-check/`, then deletes them.
    ///
    /// Examples:
    ///   statehouse check perf
    ///   statehouse check perf --load m --seconds 30
    #[command(verbatim_doc_comment)]
    Perf(Perf),
    /// Check health, disk and clock.
    ///
    /// Examples:
    ///   statehouse check all
    ///   statehouse check all --format prometheus
    #[command(verbatim_doc_comment)]
    All,
}

#[derive(Args)]
struct Perf {
    /// Size of the load: s is 150 writes per second, m 1,000, l 8,000.
    #[arg(long, value_enum, default_value_t = Size::S)]
    load: Size,
    /// How long to run it.
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Size {
    S,
    M,
    L,
}

/// Limit of the 99th percentile of writes in ms, measured from when each write was due.
const P99_MS_MAX: f64 = 100.0;
/// The share of the requested rate that must be reached.
const DONE_MIN: f64 = 0.95;

impl Check {
    pub(crate) fn run(self, output: Output) -> Result<(), Failure> {
        self.reach.run(async |connection| {
            let checked = match &self.what {
                What::Health => checks::health(connection).await?,
                What::Disk => checks::disk(connection).await?,
                What::Clock => checks::clock(connection).await?,
                What::Perf(perf) => perf.run(&self.reach, connection).await?,
                What::All => {
                    let mut checked = checks::health(connection).await?;
                    checked.extend(checks::disk(connection).await?);
                    checked.extend(checks::clock(connection).await?);
                    checked
                }
            };
            show(&checked, self.format, &output)
        })
    }
}

impl Perf {
    async fn run(&self, reach: &Reach, connection: &Connection) -> Result<Vec<Checked>, Failure> {
        let rate = match self.load {
            Size::S => 150,
            Size::M => 1_000,
            Size::L => 8_000,
        };
        let load = Load::new(
            Work::Only(Operation::Set),
            rate,
            std::time::Duration::from_secs(self.seconds.max(1)),
            16,
            "statehouse-check/",
        );
        let measured = load.run(reach, connection).await;
        load.clean_up(connection).await?;
        let measured = measured?;
        let done = measured.rate() / number(rate);
        let p99 = measured.percentile_ms(99.0);
        Ok(vec![
            Checked::new("rate", done >= DONE_MIN, format!("{:.0} of {rate} writes per second", measured.rate()))
                .measured(measured.rate(), "per_second")
                .next("use a faster disk or a smaller load"),
            Checked::new(
                "p99",
                p99 <= P99_MS_MAX,
                format!("99% of writes took at most {p99:.1} ms (limit {P99_MS_MAX} ms)"),
            )
            .measured(p99 / 1_000.0, "seconds")
            .next("look for other writers on this disk: every write waits for a sync"),
            Checked::new("failed", measured.failed == 0, format!("{} writes failed (limit 0)", measured.failed))
                .measured(number(measured.failed), "writes")
                .next("see `statehouse status`"),
        ])
    }
}

fn show(checked: &[Checked], format: Option<Verdicts>, output: &Output) -> Result<(), Failure> {
    let failed: Vec<&Checked> = checked.iter().filter(|checked| !checked.ok).collect();
    let found = json!({
        "ok": failed.is_empty(),
        "checks": checked.iter().map(Checked::to_json).collect::<Vec<JsonValue>>(),
    });
    match format {
        Some(Verdicts::Prometheus) => output.line(prometheus(checked).trim_end())?,
        Some(Verdicts::Json) => Output { format: Format::Json, ..*output }.told("", &found)?,
        Some(Verdicts::Text) => Output { format: Format::Table, ..*output }.told(&text(checked), &found)?,
        None => output.told(&text(checked), &found)?,
    }
    match &failed[..] {
        [] => Ok(()),
        [first, ..] => {
            let failure =
                Failure::check(format!("{} of {} checks failed: {}", failed.len(), checked.len(), first.said));
            Err(failure.next(first.next.clone().unwrap_or("see `statehouse status`".to_owned())))
        }
    }
}

/// One line per check, with a mark in front.
pub(crate) fn text(checked: &[Checked]) -> String {
    let mut text = String::new();
    for one in checked {
        text.push_str(&format!("{} {:<12} {}\n", if one.ok { '✓' } else { '✗' }, one.name, one.said));
        if let Some(next) = &one.next {
            text.push_str(&format!("    next: {next}\n"));
        }
    }
    text
}

/// The Prometheus text format.
fn prometheus(checked: &[Checked]) -> String {
    let mut text =
        "# HELP statehouse_check_ok Whether a check passed: 1 or 0.\n# TYPE statehouse_check_ok gauge\n".to_owned();
    for one in checked {
        text.push_str(&format!("statehouse_check_ok{{check=\"{}\"}} {}\n", one.name, u8::from(one.ok)));
    }
    text.push_str(
        "# HELP statehouse_check_value What a check measured, in its unit.\n# TYPE statehouse_check_value gauge\n",
    );
    for one in checked {
        text.push_str(&format!(
            "statehouse_check_value{{check=\"{}\",unit=\"{}\"}} {}\n",
            one.name, one.unit, one.value
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_is_not_well_fails_with_seven_and_says_what_to_do() {
        let checked = [Checked::new("ready", true, "it is"), Checked::new("free", false, "1 B is free").next("delete")];
        let output = Output { format: Format::Table, color: crate::paint::Color::Never };
        let failure = show(&checked, None, &output).expect_err("one failed");
        assert_eq!((failure.exit as u8, failure.next.as_deref()), (7, Some("delete")));
        assert!(failure.detail.contains("1 of 2") && failure.detail.contains("1 B is free"));
        assert!(show(&checked[..1], None, &output).is_ok());
        assert_eq!(text(&checked), "✓ ready        it is\n✗ free         1 B is free\n    next: delete\n");
        assert!(prometheus(&checked).contains("statehouse_check_ok{check=\"free\"} 0\n"));
    }
}
