//! Tables for people: each column knows where to find its value and how to show it.
//!
//! Keeps: a row takes one line without control characters, whatever it holds. Never: is meant for programs; they use `-o json`.

use comfy_table::{CellAlignment as Alignment, Table, presets};
use jiff::Timestamp;
use serde_json::Value as JsonValue;
pub(crate) use statehouse::terminal::one_line;
use statehouse::terminal::{shortened, wrapped};

use crate::raw_json::value_text;

/// Longest value that a table shows, in characters.
const VALUE_CHARACTERS_MAX: usize = 60;

/// Spaces between two columns.
const GAP: u16 = 2;

/// A column is never cut to less than this.
const CUT_MIN: usize = 8;

/// How a value is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// As it is.
    Plain,
    /// A value: text as text, everything else as JSON, cut if it is long.
    Value,
    /// A time in RFC 3339, shown as how long ago it was.
    Ago,
    /// A creation time in RFC 3339, shown as an age.
    Age,
    /// A number of ms.
    Millis,
}

/// A column.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// Member names from the outside in, separated by dots.
    path: &'static str,
    style: Style,
    /// Whether `-o raw` prints this column.
    pub(crate) raw: bool,
    /// Whether the column is omitted if no row has a value for it.
    optional: bool,
    /// Whether the column is omitted if names would be cut otherwise.
    spare: bool,
}

/// A column that shows the value at `path` as it is.
pub(crate) const fn plain(title: &'static str, path: &'static str) -> Column {
    column(title, path, Style::Plain)
}

/// A column in a style.
pub(crate) const fn column(title: &'static str, path: &'static str, style: Style) -> Column {
    Column { title, path, style, raw: false, optional: false, spare: false }
}

impl Column {
    /// The same column, printed by `-o raw`.
    pub(crate) const fn raw(mut self) -> Self {
        self.raw = true;
        self
    }

    /// The same column, omitted if no row has a value for it.
    pub(crate) const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Omits the column where a terminal is too narrow for all of them.
    pub(crate) const fn spare(mut self) -> Self {
        self.spare = true;
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
            (Style::Age, JsonValue::String(time)) => age(time),
            (Style::Millis, JsonValue::Number(ms)) => millis(ms.as_u64().unwrap_or(0)),
            (Style::Value, found) => return shortened(&one_line(&value_text(found)), VALUE_CHARACTERS_MAX),
            (_, JsonValue::String(text)) => text.clone(),
            (_, other) => value_text(other),
        };
        one_line(&text)
    }
}

/// Rows under a line of titles. They fit into `columns_max` columns of a terminal, if given: values are cut
/// first, then spare columns are omitted from the right, then the widest column is cut.
pub(crate) fn rows(rows: &[JsonValue], columns: &[Column], columns_max: Option<usize>) -> String {
    let is_shown = |column: &&Column| !column.optional || rows.iter().any(|row| !column.find(row).is_null());
    let mut columns: Vec<Column> = columns.iter().filter(is_shown).copied().collect();
    let mut cells: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|column| column.text(row)).collect()).collect();
    if let Some(columns_max) = columns_max {
        let mut widths = natural_widths(&cells, &columns);
        while narrowest(&widths, &columns) > columns_max
            && let Some(place) = columns.iter().rposition(|column| column.spare)
        {
            columns.remove(place);
            widths.remove(place);
            cells.iter_mut().for_each(|row| drop(row.remove(place)));
        }
        for (place, width) in fitting(&widths, &columns, columns_max) {
            cells.iter_mut().for_each(|row| row[place] = shortened(&row[place], width));
        }
    }
    let columns = columns.as_slice();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.iter().map(|column| column.title));
    table.add_rows(cells);
    for (place, column) in columns.iter().enumerate() {
        let numbers = rows.iter().all(|row| column.style == Style::Plain && column.find(row).is_number());
        if let Some(shown) = table.column_mut(place) {
            shown.set_padding((0, GAP));
            if numbers {
                shown.set_cell_alignment(Alignment::Right);
            }
        }
    }
    table.trim_fmt()
}

/// The widths of columns that are not cut.
fn natural_widths(cells: &[Vec<String>], columns: &[Column]) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.title.len()).collect();
    for row in cells {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(cell.chars().count());
        }
    }
    widths
}

/// The least width that a column is cut to.
fn cut_min(column: &Column) -> usize {
    column.title.len().max(CUT_MIN)
}

fn gaps(columns: &[Column]) -> usize {
    usize::from(GAP) * columns.len().saturating_sub(1)
}

/// The width of a table whose values are cut as far as they may be, and nothing else is.
fn narrowest(natural: &[usize], columns: &[Column]) -> usize {
    let cut = natural.iter().zip(columns).map(|(natural, column)| match column.style {
        Style::Value => (*natural).min(cut_min(column)),
        _ => *natural,
    });
    cut.sum::<usize>() + gaps(columns)
}

/// The columns to cut, with their maximum widths.
fn fitting(natural: &[usize], columns: &[Column], columns_max: usize) -> Vec<(usize, usize)> {
    let mut widths = natural.to_vec();
    let gaps = gaps(columns);
    while widths.iter().sum::<usize>() + gaps > columns_max {
        let can_be_cut = |place: &usize| widths[*place] > cut_min(&columns[*place]);
        let of_values = |place: &usize| columns[*place].style == Style::Value;
        let widest = |places: Vec<usize>| places.into_iter().max_by_key(|place| widths[*place]);
        let all: Vec<usize> = (0..columns.len()).filter(can_be_cut).collect();
        let values = all.iter().copied().filter(of_values).collect();
        match widest(values).or_else(|| widest(all)) {
            Some(place) => widths[place] -= 1,
            None => break,
        }
    }
    (0..columns.len()).filter(|place| widths[*place] < natural[*place]).map(|place| (place, widths[place])).collect()
}

/// One object, one line per part.
pub(crate) fn card(found: &JsonValue, columns: &[Column]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for column in columns {
        table.add_row([column.title.to_owned(), column.text(found)]);
    }
    for shown in table.column_iter_mut() {
        shown.set_padding((0, GAP));
    }
    table.trim_fmt()
}

/// A row without titles, for lists without an end.
pub(crate) fn line(row: &JsonValue, columns: &[Column]) -> String {
    let parts: Vec<_> = columns.iter().map(|column| column.text(row)).collect();
    parts.join("  ")
}

/// A paragraph after a first word. On a terminal its lines wrap between words and are aligned.
pub(crate) fn paragraph(first: &str, text: &str, columns_max: Option<usize>) -> String {
    match columns_max {
        None => format!("{first}{}\n", one_line(text)),
        Some(columns) => {
            let indent = " ".repeat(first.chars().count());
            format!("{first}{}", wrapped(text, &indent, columns).trim_start_matches(' '))
        }
    }
}

/// How long ago a time was, or how far ahead it is.
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

/// How old something is.
pub(crate) fn age(time: &str) -> String {
    let Ok(time) = time.parse::<Timestamp>() else {
        return time.to_owned();
    };
    let ms = Timestamp::now().as_millisecond() - time.as_millisecond();
    millis(u64::try_from(ms).unwrap_or(0))
}

/// A duration in one unit, rounded down.
pub(crate) fn millis(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        7_200_000..172_800_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / 86_400_000),
    }
}

/// Bytes in one unit.
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
        let columns = [plain("NAME", "name"), column("VALUE", "value", Style::Value)];
        let found = json!({ "name": "a\x1b[2Jb\nc", "value": ["\u{9b}\u{202e}"] });
        assert_eq!(line(&found, &columns), r#"a\u{1b}[2Jb\nc  ["\u{9b}\u{202e}"]"#);
        let found = json!({ "name": "a", "value": "é".repeat(61) });
        assert_eq!(line(&found, &columns).chars().count(), 3 + 60);
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
        assert_eq!(rows(&[found.clone(), json!({ "name": "b" })], &columns, None), "NAME  LEASE\na     1 s\nb     -");
        assert_eq!(line(&found, &columns), "a  1 s");
    }

    #[test]
    fn an_optional_column_is_there_if_any_row_needs_it() {
        let columns = [plain("NAME", "name"), plain("GROUP", "group").optional()];
        let (alone, grouped) = (json!({ "name": "a", "group": null }), json!({ "name": "b", "group": "g" }));
        assert_eq!(rows(&[alone.clone(), alone.clone()], &columns, None), "NAME\na\na");
        assert_eq!(rows(&[alone, grouped], &columns, None), "NAME  GROUP\na     -\nb     g");
    }

    #[test]
    fn spare_columns_make_room_for_names() {
        let columns = [plain("NAME", "name"), plain("STATE", "state"), plain("VERSION", "version").spare()];
        let found = [json!({ "name": "jobs.export.monthly", "state": "completed", "version": 7 })];
        let at = |columns_max| rows(&found, &columns, Some(columns_max));
        assert!(at(40).contains("VERSION") && at(40).contains("jobs.export.monthly"), "{}", at(40));
        assert!(!at(34).contains("VERSION") && at(34).contains("jobs.export.monthly  completed"), "{}", at(34));
    }

    #[test]
    fn a_table_fits_its_terminal_and_cuts_values_before_names() {
        let columns = [plain("NAME", "name"), plain("N", "n"), column("VALUE", "value", Style::Value)];
        let found = [json!({ "name": "jobs.mail.1", "n": 7, "value": "x".repeat(60) })];
        for columns_max in [30, 40, 60, 80] {
            let table = rows(&found, &columns, Some(columns_max));
            assert!(table.lines().all(|line| line.chars().count() <= columns_max), "{table}");
            assert!(table.contains("jobs.mail.1 ") || columns_max < 25, "{table}");
        }
        let long = [json!({ "name": "x".repeat(1_024), "n": 7, "value": "" })];
        assert!(rows(&long, &columns, Some(80)).lines().all(|line| line.chars().count() <= 80));
        assert!(rows(&long, &columns, None).contains(&"x".repeat(1_024)), "programs get the whole name");
    }

    #[test]
    fn a_paragraph_stands_behind_its_first_word() {
        assert_eq!(paragraph("next: ", "one two three", Some(14)), "next: one two\n      three\n");
        assert_eq!(paragraph("next: ", "one two three", None), "next: one two three\n");
    }
}
