//! Settings from a TOML file. An error shows its line, with carets under the mistake.

use std::ops::Range;
use std::path::Path;

use statehouse::terminal::one_line;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ConfigError;
use contract::suggest::nearest;

use super::settings::{Kind, SETTINGS, Setting, named};

/// The settings in a file's text, each with its value and line.
pub(super) fn read(path: &Path, text: &str) -> Result<Vec<(&'static Setting, String, usize)>, ConfigError> {
    let mut reading = Reading { path, text, found: Vec::new() };
    let table = DeTable::parse(text)
        .map_err(|error| reading.complain(error.span().unwrap_or(0..0), error.message().to_owned()))?;
    reading.table("", table.get_ref())?;
    Ok(reading.found)
}

struct Reading<'file> {
    path: &'file Path,
    text: &'file str,
    found: Vec<(&'static Setting, String, usize)>,
}

impl Reading<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            match (named(&key), value.get_ref()) {
                (Some(setting), _) => self.value(setting, value)?,
                (None, DeValue::Table(inner)) if is_table(&key) => self.table(&format!("{key}."), inner)?,
                (None, _) => {
                    let hint = match nearest(&key, SETTINGS.iter().map(|setting| setting.key)) {
                        Some(near) => format!("did you mean {near}?"),
                        None => "`statehouse config init` prints all settings".to_owned(),
                    };
                    return Err(self.complain(name.span(), format!("{key} is not a setting; {hint}")));
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, setting: &'static Setting, value: &Spanned<DeValue<'_>>) -> Result<(), ConfigError> {
        let text = match (value.get_ref(), setting.kind) {
            (DeValue::String(text), Kind::Count | Kind::Percent) => {
                return Err(
                    self.complain(value.span(), format!("{} takes a number, not the text {text:?}", setting.key))
                );
            }
            (DeValue::String(text), _) => text.to_string(),
            (DeValue::Array(items), Kind::Hosts | Kind::Origins) => {
                let names: Option<Vec<_>> = items.iter().map(|item| item.get_ref().as_str()).collect();
                let wrong = || self.complain(value.span(), format!("{} takes a list of quoted names", setting.key));
                names.ok_or_else(wrong)?.join(",")
            }
            (DeValue::Integer(number), Kind::Count | Kind::Percent | Kind::Bytes) if number.radix() == 10 => {
                number.as_str().to_owned()
            }
            (DeValue::Boolean(set), Kind::Switch) => set.to_string(),
            (other, _) => {
                let complaint = format!("{} cannot be of type {}", setting.key, other.type_str());
                return Err(self.complain(value.span(), complaint));
            }
        };
        let wrong = |complaint| self.complain(value.span(), format!("{}: {complaint}", setting.key));
        setting.check(&text).map_err(wrong)?;
        let line = self.line_of(value.span().start).0;
        self.found.push((setting, text, line));
        Ok(())
    }

    /// The line number of a byte, and the offset where that line starts.
    fn line_of(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..at.min(self.text.len())];
        (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |end| end + 1))
    }

    fn complain(&self, span: Range<usize>, complaint: String) -> ConfigError {
        let (number, begin) = self.line_of(span.start);
        let line = one_line(self.text[begin..].lines().next().unwrap_or_default());
        // Columns as displayed: escaped characters take more than one.
        let shown = |from: usize, to: usize| one_line(&self.text[from..to.min(self.text.len())]).chars().count();
        let column = shown(begin, span.start);
        let carets = shown(span.start.min(self.text.len()), span.end);
        let carets = carets.clamp(1, line.chars().count().saturating_sub(column).max(1));
        let gutter = " ".repeat(number.to_string().len());
        ConfigError(format!(
            "{}:{number}:{}: {}\n{gutter} |\n{number} | {line}\n{gutter} | {}{}",
            one_line(&self.path.display().to_string()),
            column + 1,
            one_line(&complaint),
            " ".repeat(column),
            "^".repeat(carets),
        ))
    }
}

/// Whether a table of this name holds settings.
fn is_table(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.key.rsplit_once('.').is_some_and(|(table, _)| table == name))
}
