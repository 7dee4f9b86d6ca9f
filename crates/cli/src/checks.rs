//! The checks of a store's health, shared by `check` and `status`.
//!
//! Keeps: every result names the measured value, the limit and one safe next step.

use serde_json::{Value as JsonValue, json};
use wire::changes::ReadChanges;
use wire::operations::Probe;
use wire::routes::{CHANGES_READ, SERVER_LIVE, SERVER_READY, SERVER_STATUS};
use wire::values::FeedCursor;

use crate::connection::{Ask, Connection};
use crate::exit::Failure;
use crate::table::{millis, one_line, size};

/// How far the server's clock may be off ours, in ms. Its answers give whole seconds.
const CLOCK_MS_MAX: u64 = 3_000;
/// How much of the disk should be free if no reserve is configured. A server refuses writes below its reserve.
const FREE_BYTES_MIN: u64 = 1 << 30;

/// The result of one check.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) name: &'static str,
    pub(crate) ok: bool,
    /// What was found, with its numbers.
    pub(crate) said: String,
    /// The measured value, for programs.
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// What to do about it.
    pub(crate) next: Option<String>,
}

impl Checked {
    pub(crate) fn new(name: &'static str, ok: bool, said: impl Into<String>) -> Self {
        Self { name, ok, said: said.into(), value: if ok { 1.0 } else { 0.0 }, unit: "bool", next: None }
    }

    pub(crate) fn measured(mut self, value: f64, unit: &'static str) -> Self {
        (self.value, self.unit) = (value, unit);
        self
    }

    pub(crate) fn next(mut self, next: &str) -> Self {
        self.next = (!self.ok).then(|| next.to_owned());
        self
    }

    pub(crate) fn to_json(&self) -> JsonValue {
        json!({ "check": self.name, "ok": self.ok, "detail": self.said, "value": self.value, "unit": self.unit, "next": self.next })
    }
}

/// The store answers, is ready and has no critical problem.
pub(crate) async fn health(connection: &Connection) -> Result<Vec<Checked>, Failure> {
    let alive = connection.call(SERVER_LIVE, &[]).answer().await?.status.is_success();
    let verbose = Probe { verbose: Some(true) };
    let reply = connection.call(SERVER_READY, &[]).query(&verbose).answer().await?;
    let ready = reply.status.is_success();
    let reasons = String::from_utf8_lossy(&reply.body).into_owned();
    let failed: Vec<_> = reasons.lines().filter(|line| line.contains(": FAILED: ")).map(one_line).collect();
    let status = connection.call(SERVER_STATUS, &[]).ask().await?;
    let problems = status["problems"].as_array().map(Vec::as_slice).unwrap_or_default();
    let critical: Vec<_> = problems.iter().filter(|problem| problem["severity"] == "critical").collect();
    let said = if ready { "it takes reads and writes".to_owned() } else { failed.join("; ") };
    let worst = critical.first().map_or(String::new(), |first| {
        let part = |name: &str| one_line(first[name].as_str().unwrap_or("?"));
        format!(": {}: {}", part("object"), part("text"))
    });
    Ok(vec![
        Checked::new("alive", alive, if alive { "it answers" } else { "it reports that it needs a restart" })
            .next("restart it, and check its log"),
        Checked::new("ready", ready, said).next("wait for it; its log shows what it is doing"),
        Checked::new(
            "problems",
            critical.is_empty(),
            format!("{} critical problem{}{worst}", critical.len(), if critical.len() == 1 { "" } else { "s" }),
        )
        .measured(number(critical.len() as u64), "problems")
        .next("see `statehouse status`"),
    ])
}

/// The disk has enough free space.
pub(crate) async fn disk(connection: &Connection) -> Result<Vec<Checked>, Failure> {
    let status = connection.call(SERVER_STATUS, &[]).ask().await?;
    let used = status["journal_bytes"].as_u64().unwrap_or(0) + status["store_bytes"].as_u64().unwrap_or(0);
    let used_said = Checked::new("used", true, format!("journal and store use {}", size(used)));
    let mut checked = vec![used_said.measured(number(used), "bytes")];
    if let Some(free) = status["disk_free_bytes"].as_u64() {
        let bound = status["disk_low_bytes"].as_u64().filter(|bytes| *bytes > 0).unwrap_or(FREE_BYTES_MIN);
        checked.push(
            Checked::new("free", free > bound, format!("{} free (at least {} required)", size(free), size(bound)))
                .measured(number(free), "bytes")
                .next("delete data, which is always allowed, or enlarge the disk"),
        );
    }
    Ok(checked)
}

/// The server's clock agrees with ours, and no commit is from the future.
pub(crate) async fn clock(connection: &Connection) -> Result<Vec<Checked>, Failure> {
    let now = jiff::Timestamp::now();
    let reply = connection.call(SERVER_LIVE, &[]).answer().await?;
    let mut checked = Vec::new();
    let date = reply.headers.get("date").and_then(|date| date.to_str().ok());
    if let Some(theirs) = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()) {
        let apart = theirs.timestamp().as_millisecond().abs_diff(now.as_millisecond());
        checked.push(
            Checked::new(
                "agrees",
                apart <= CLOCK_MS_MAX,
                format!("its clock is {} off ours (limit {})", millis(apart), millis(CLOCK_MS_MAX)),
            )
            .measured(number(apart) / 1_000.0, "seconds")
            .next("sync the clocks with NTP; no data is at risk, but TTLs and back-offs are inaccurate"),
        );
    }
    let status = connection.call(SERVER_STATUS, &[]).ask().await?;
    let from = status["commit"].as_u64().unwrap_or(0).saturating_sub(1);
    let query = ReadChanges { from: Some(FeedCursor(from)), ..ReadChanges::default() };
    let page = connection.call(CHANGES_READ, &[]).query(&query).ask().await?;
    let newest = page["changes"].as_array().and_then(|changes| changes.last()).and_then(|change| change["at"].as_str());
    let ahead = newest
        .and_then(|at| at.parse::<jiff::Timestamp>().ok())
        .map_or(0, |at| at.as_millisecond() - now.as_millisecond());
    let ahead = u64::try_from(ahead).unwrap_or(0);
    checked.push(
        Checked::new(
            "commits",
            ahead <= CLOCK_MS_MAX,
            format!("the last commit is {} ahead of now (limit {})", millis(ahead), millis(CLOCK_MS_MAX)),
        )
        .measured(number(ahead) / 1_000.0, "seconds")
        .next("a clock was set back; commit times stay at the last commit until the clock catches up"),
    );
    Ok(checked)
}

/// A whole number as a measured value.
#[allow(clippy::cast_precision_loss)] // Measured values have fewer digits than a float.
pub(crate) fn number(whole: u64) -> f64 {
    whole as f64
}
