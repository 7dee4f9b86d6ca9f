//! Tables for people: columns that say where they find what they show, and how.
//!
//! Keeps: what a row shows takes one line and has no control characters, whatever it holds. Never: is read by programs; that is what
//! `-o json` is for.

use comfy_table::{CellAlignment, Table, presets};
use jiff::Timestamp;
use serde_json::Value as JsonValue;

use crate::raw_json::value_text;

/// Characters of a value that a table shows.
const VALUE_CHARACTERS_MAX: usize = 60;

/// How something is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it is.
    Plain,
    /// A value: text as text, everything else as JSON, cut where it is long.
    Value,
    /// A time in RFC 3339, as how long ago that is.
    Ago,
    /// A number of ms.
    Millis,
}

/// A column.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Names of members, from the outside in, with dots between.
    path: &'static str,
    style: Style,
    /// Whether it is what `-o raw` gives.
    pub(crate) raw: bool,
}

/// A column that shows what is under `path` as it is.
pub(crate) const fn plain(title: &'static str, path: &'static str) -> Column {
    column(title, path, Style::Plain)
}

/// A column in a style.
pub(crate) const fn column(title: &'static str, path: &'static str, style: Style) -> Column {
    Column { title, path, style, raw: false }
}

impl Column {
    /// The same column, as what `-o raw` gives.
    pub(crate) const fn raw(mut self) -> Self {
        self.raw = true;
        self
    }

    pub(crate) fn find<'json>(&self, row: &'json JsonValue) -> &'json JsonValue {
        self.path.split('.').fold(row, |found, part| &found[part])
    }

    fn text(&self, row: &JsonValue) -> String {
        let found = self.find(row);
        let text = match (self.style, found) {
            (_, JsonValue::Null) => "-".to_owned(),
            (Style::Plain, JsonValue::String(text)) if text.is_empty() => "-".to_owned(),
            (Style::Ago, JsonValue::String(time)) => ago(time),
            (Style::Millis, JsonValue::Number(ms)) => millis(ms.as_u64().unwrap_or(0)),
            (Style::Value, found) => return shortened(&one_line(&value_text(found))),
            (_, JsonValue::String(text)) => text.clone(),
            (_, other) => value_text(other),
        };
        one_line(&text)
    }
}

/// Rows under a line of titles.
pub(crate) fn rows(rows: &[JsonValue], columns: &[Column]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.iter().map(|column| column.title));
    for row in rows {
        table.add_row(columns.iter().map(|column| column.text(row)));
    }
    for (place, column) in columns.iter().enumerate() {
        let numbers = rows.iter().all(|row| column.style == Style::Plain && column.find(row).is_number());
        if let Some(shown) = table.column_mut(place) {
            shown.set_padding((0, 2));
            if numbers {
                shown.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    table.trim_fmt()
}

/// One object, with one line for each part.
pub(crate) fn card(found: &JsonValue, columns: &[Column]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for column in columns {
        table.add_row([column.title.to_owned(), column.text(found)]);
    }
    for shown in table.column_iter_mut() {
        shown.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// A row without titles, for what goes on without an end.
pub(crate) fn line(row: &JsonValue, columns: &[Column]) -> String {
    let parts: Vec<_> = columns.iter().map(|column| column.text(row)).collect();
    parts.join("  ")
}

/// Control characters are spelled out: what somebody stored must not move a cursor or hide a line.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// Lines that somebody else made, without control characters.
pub(crate) fn screen(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", one_line(line))).collect()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// How long ago a time is, or how far ahead.
pub(crate) fn ago(time: &str) -> String {
    let Ok(time) = time.parse::<Timestamp>() else {
        return time.to_owned();
    };
    let ms = Timestamp::now().as_millisecond() - time.as_millisecond();
    match ms {
        -999..=999 => "now".to_owned(),
        1_000.. => format!("{} ago", millis(ms.unsigned_abs())),
        _ => format!("in {}", millis(ms.unsigned_abs())),
    }
}

/// A duration with one unit, cut down.
pub(crate) fn millis(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / 86_400_000),
    }
}

/// Bytes with one unit.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1_024 {
        return format!("{bytes} B");
    }
    let power = (bytes.ilog2() / 10).min(4);
    let whole = bytes >> (10 * power);
    let tenth = ((bytes >> (10 * (power - 1))) & 1_023) * 10 / 1_024;
    format!("{whole}.{tenth} {}", units[power as usize - 1])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_stored_cannot_move_the_cursor() {
        assert_eq!(one_line("a\x1b[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(shortened(&"x".repeat(61)).chars().count(), 61);
        assert_eq!(shortened(&"é".repeat(60)), "é".repeat(60));
    }

    #[test]
    fn sizes_and_durations_have_one_unit() {
        assert_eq!((size(1_023), size(1_024), size(1_536)), ("1023 B".into(), "1.0 KiB".into(), "1.5 KiB".into()));
        assert_eq!(size(5 << 40), "5.0 TiB");
        assert_eq!((millis(999), millis(90_000), millis(7_200_000)), ("999 ms".into(), "90 s".into(), "2 h".into()));
        let past = (Timestamp::now() - jiff::SignedDuration::from_secs(300)).to_string();
        assert_eq!(ago(&past), "5 min ago");
    }

    #[test]
    fn a_column_follows_its_path() {
        let columns = [plain("NAME", "name"), column("LEASE", "holder.lease_ms", Style::Millis)];
        let found = json!({ "name": "a", "holder": { "lease_ms": 1500 } });
        assert_eq!(rows(&[found.clone(), json!({ "name": "b" })], &columns), "NAME  LEASE\na     1 s\nb     -");
        assert_eq!(line(&found, &columns), "a  1 s");
    }
}
