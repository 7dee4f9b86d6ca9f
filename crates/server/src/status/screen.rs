//! The status as text: the overall word, the problems with what to do, then the figures.
//!
//! Keeps: at most 80 columns, wrapped between words; only a command may be longer, so that it can be copied whole.
//! Stored data never reaches a terminal as control characters.

use std::fmt::Write;

use contract::terminal::{COLUMNS, one_line, wrapped};
use statehouse::MessageCounts;

use super::Now;
use super::trouble::{Severity, Trouble};
use crate::api::contract_lines;

/// The number of types of each contract shown.
const TYPES_SHOWN_MAX: usize = 8;

/// The width of the labels.
const INDENT: usize = 18;

pub(super) fn write(now: &Now) -> String {
    let mut screen = String::new();
    // Writing to a string does not fail.
    let _ = put(&mut screen, now);
    screen
}

fn put(screen: &mut String, now: &Now) -> std::fmt::Result {
    let Now { counters, overview, .. } = now;
    let problems = counted(now.troubles.len(), "problem").unwrap_or_else(|| "no problems".to_owned());
    let notes = counted(now.notes.len(), "note").map_or(String::new(), |notes| format!(", {notes}"));
    let ready = if now.ready { "ready" } else { "not ready" };
    let word = now.word().to_uppercase();
    writeln!(screen, "statehouse {}  {word}  {ready}  {problems}{notes}", env!("CARGO_PKG_VERSION"))?;
    now.troubles.iter().chain(&now.notes).try_for_each(|trouble| say(screen, trouble))?;
    let mut line = |name: &str, text: String| {
        let text = wrapped(&text, &" ".repeat(INDENT), COLUMNS);
        writeln!(screen, "   {name:<14} {}", text.trim())
    };
    line("up", format!("{} s", now.uptime.as_secs()))?;
    if let Some(status) = &now.status {
        line("commit", format!("{}, entry {}", status.commit, counters.applied_index))?;
        line("disk", format!("journal {}, store {}", bytes(status.journal_bytes), bytes(status.store_bytes)))?;
        line("memory", format!("{} wait for the store", bytes(status.memory_bytes as u64)))?;
    }
    let journal = &counters.journal;
    let slowest_ms = journal.slowest_recent_sync.as_secs_f64() * 1e3;
    line("journal", format!("{} wait, slowest sync lately {slowest_ms:.1} ms", bytes(journal.queue_bytes as u64)))?;
    for (contract, lines) in contract_lines(overview) {
        for text in lines.into_iter().take(TYPES_SHOWN_MAX) {
            line(contract, text)?;
        }
    }
    line("claimers", format!("{} wait for work", overview.claimers_waiting))?;
    let sessions = overview.sessions;
    let count = sessions.pending + sessions.connected + sessions.disconnected;
    line("sessions", format!("{count}, {} pushes wait", sessions.pushes_waiting))?;
    let MessageCounts { due, publish, outgoing, dead } = overview.messages;
    let outgoing = if outgoing > 0 { format!(", {outgoing} for other shards") } else { String::new() };
    let dead = if dead > 0 { format!(", {dead} refused") } else { String::new() };
    line("messages", format!("{due} for groups, {publish} to publish{outgoing}{dead}"))
}

/// A problem: the object, the finding, the numbers, and the command on its own line.
fn say(screen: &mut String, trouble: &Trouble) -> std::fmt::Result {
    let mark = match trouble.severity {
        Severity::Critical => "x",
        Severity::Warning => "!",
        Severity::Note => "-",
    };
    let (number, threshold, unit) = (trouble.number.floor(), trouble.threshold, trouble.unit);
    let said = wrapped(&format!("{}: {}", trouble.object, trouble.text), "   ", COLUMNS);
    write!(screen, " {mark} {}", said.trim_start())?;
    writeln!(screen, "   {number:.0} {unit}, threshold {threshold:.0} {unit}; look closer:")?;
    writeln!(screen, "   $ {}", one_line(&trouble.command.shell()))
}

fn counted(count: usize, what: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{count} {what}s")),
    }
}

fn bytes(count: u64) -> String {
    const UNITS: [(&str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = UNITS.iter().find(|(_, shift)| count >> shift > 0);
    match unit {
        Some((unit, shift)) => format!("{}.{} {unit}", count >> shift, ((count >> (shift - 10)) % 1024) * 10 / 1024),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_shown_in_the_unit_that_fits() {
        let shown: Vec<_> =
            [0, 1023, 1024, 1536, 5 << 20, (3 << 30) + (1 << 29)].into_iter().map(super::bytes).collect();
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "5.0 MiB", "3.5 GiB"]);
    }
}
