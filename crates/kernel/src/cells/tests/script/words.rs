//! The words of a script: cells, versions, times, values, guards and operations.

use contract::{Json, Value};

use crate::ValueRef;
use crate::command::{Guard, Op};

const SECOND_US: u64 = 1_000_000;

pub(super) fn group_and_name(cell: &str) -> (Option<&str>, &str) {
    cell.split_once('/').map_or((None, cell), |(group, name)| (Some(group), name))
}

pub(super) fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty())
}

pub(super) fn option<'word>(words: &[&'word str], name: &str) -> Option<&'word str> {
    let position = words.iter().position(|word| *word == name)?;
    Some(words[position + 1])
}

/// A number, with or without the letter of what it counts.
pub(super) fn number(text: &str) -> u64 {
    text.trim_start_matches(['v', 'c']).parse().unwrap()
}

pub(super) fn seconds(text: &str) -> u64 {
    number(text.strip_suffix('s').unwrap()) * SECOND_US
}

pub(super) fn op<'text>(words: &[&'text str], value: &'text Value) -> Op<'text> {
    let value = ValueRef::from(value);
    match words {
        ["set", name, _] => Op::CellSet(name, value),
        ["init", name, _] => Op::CellInit(name, value),
        ["cas", name, "absent", _] => Op::CellCas(name, None, value),
        ["cas", name, version, _] => Op::CellCas(name, Some(number(version)), value),
        ["delete", name] => Op::CellDelete(name),
        other => panic!("no such operation: {other:?}"),
    }
}

pub(super) fn guard(text: &str) -> Guard<'_> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [name, "absent"] => Guard::CellAbsent(name),
        [name, "exists"] => Guard::CellExists(name),
        [name, "is", version] => Guard::CellVersionIs(name, number(version)),
        [name, "below", version] => Guard::CellVersionBelow(name, number(version)),
        [name, "unchanged", "since", commit] => match name.split_once("..") {
            None => Guard::CellUnchangedSince(name, number(commit)),
            Some((from, to)) => {
                let to = Some(to).filter(|to| !to.is_empty());
                Guard::CellsUnchangedSince(from, to, number(commit))
            }
        },
        other => panic!("no such guard: {other:?}"),
    }
}

pub(super) fn value(text: &str) -> Value {
    match text {
        "null" => Value::Null,
        "true" | "false" => Value::Boolean(text == "true"),
        _ if text.starts_with('{') => Value::Json(Json::new(text).unwrap()),
        _ if text.starts_with("0x") => Value::Bytes(text.as_bytes()[2..].to_vec()),
        _ => text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Integer),
    }
}

pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Integer(integer) => integer.to_string(),
        Value::Text(text) => text.clone(),
        Value::Json(json) => json.as_str().to_owned(),
        Value::Bytes(bytes) => format!("0x{}", String::from_utf8_lossy(bytes)),
        other => panic!("a new kind of value: {other:?}"),
    }
}
