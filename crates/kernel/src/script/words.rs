//! Words that all contracts share: things, numbers, times, values and fields.

use std::time::Duration;

use contract::time::parse_duration;
use contract::{Json, Value};

use crate::ValueRef;
use crate::names::InGroup;
use crate::records::command::FieldPatch;

/// Values longer than this are shown by their first character and their length.
const SHOWN_BYTES_MAX: usize = 40;

pub(super) fn group_and_name(thing: &str) -> (Option<&str>, &str) {
    match thing.split_once('/') {
        None => (None, thing),
        Some(("", name)) => (None, name),
        Some((group, name)) => (Some(group), name),
    }
}

/// `g/` is a group, `own/` the things without a group; anything else covers all groups.
pub(super) fn groups_and_prefix(prefix: &str) -> (InGroup<'_>, &str) {
    match group_and_name(prefix) {
        (None, prefix) => (InGroup::Any, prefix),
        (Some("own"), prefix) => (InGroup::Own, prefix),
        (Some(group), prefix) => (InGroup::Named(group), prefix),
    }
}

pub(super) fn shown_name(group: Option<&str>, name: &str) -> String {
    group.map_or(name.to_owned(), |group| format!("{group}/{name}"))
}

pub(super) fn parts(list: &str, separator: char) -> impl Iterator<Item = &str> {
    list.split(separator).map(str::trim).filter(|part| !part.is_empty())
}

pub(super) fn option<'word>(words: &[&'word str], name: &str) -> Option<&'word str> {
    let position = words.iter().position(|word| *word == name)?;
    Some(words[position + 1])
}

/// The first word, unless it is one of these options.
pub(super) fn prefix<'word>(words: &[&'word str], options: &[&str]) -> &'word str {
    words.first().filter(|word| !options.contains(word)).copied().unwrap_or_default()
}

/// A number, with or without the letter of what it counts.
pub(super) fn number(text: &str) -> u64 {
    text.trim_start_matches(['v', 'c', '#']).parse().unwrap()
}

pub(super) fn small_number(text: &str) -> usize {
    text.parse().unwrap()
}

pub(super) fn duration(text: &str) -> Duration {
    parse_duration(text).unwrap_or_else(|| panic!("{text:?} is no duration"))
}

pub(super) fn time_us(text: &str) -> u64 {
    duration(text).as_micros().try_into().unwrap()
}

/// Entries that share a time differ by a µs each, which a transcript does not show.
pub(super) fn show_time(us: u64) -> String {
    let ms = (us + 500) / 1_000;
    if ms.is_multiple_of(1_000) { format!("{}s", ms / 1_000) } else { format!("{ms}ms") }
}

pub(super) fn show_duration(duration: Duration) -> String {
    show_time(duration.as_micros().try_into().unwrap())
}

/// A value by its spelling; `x*2000` is a text of that many letters.
pub(super) fn value(text: &str) -> ValueRef<'_> {
    if let Some((letter, count)) = text.split_once('*') {
        return ValueRef::Text(letter.repeat(small_number(count)).leak());
    }
    match text {
        "null" => ValueRef::Null,
        "true" | "false" => ValueRef::Boolean(text == "true"),
        _ if text.starts_with('{') => {
            Json::new(text).unwrap();
            ValueRef::Json(text)
        }
        _ if text.starts_with("0x") => ValueRef::Bytes(&text.as_bytes()[2..]),
        _ => text.parse().map_or(ValueRef::Text(text), ValueRef::Integer),
    }
}

/// A value, or none.
pub(super) fn optional_value(text: &str) -> Option<ValueRef<'_>> {
    if text == "none" { None } else { Some(value(text)) }
}

/// Fields as `name=value`, where `none` removes one. Other words are left out.
pub(super) fn fields<'word>(words: &[&'word str]) -> Vec<FieldPatch<'word>> {
    let pairs = words.iter().filter_map(|word| word.split_once('='));
    pairs.map(|(field, text)| (field, optional_value(text))).collect()
}

pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Integer(integer) => integer.to_string(),
        Value::Text(text) if text.len() > SHOWN_BYTES_MAX => format!("{}*{}", &text[..1], text.len()),
        Value::Text(text) => text.clone(),
        Value::Json(json) => json.as_str().to_owned(),
        Value::Bytes(bytes) => format!("0x{}", String::from_utf8_lossy(bytes)),
        other => panic!("a new kind of value: {other:?}"),
    }
}

/// The parts as a list, or that there is none.
pub(super) fn joined(parts: Vec<String>) -> String {
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}
