//! The examples of `docs/formats/tables.md`, byte for byte.

use std::fmt::Write;

use super::directory;
use super::tables::{Rows, open, shared, write};
use crate::manifest::Manifest;
use crate::table_writer::file_name;
use crate::version::Version;

/// The hexadecimal text of the bytes, without the page's spaces.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("text");
        text
    })
}

/// The lines of the page's example with this number.
fn example(number: usize) -> String {
    let page = include_str!("../../../../docs/formats/tables.md");
    let part = page.split(&format!("Example {number}:")).nth(1).expect("the example is there");
    let block = part.split("```").nth(1).expect("a block");
    block.lines().map(|line| line.split('#').next().expect("a line")).flat_map(str::split_whitespace).collect()
}

fn rows() -> Rows {
    let row = |key: &str, value: Option<&str>| (key.into(), value.map(Into::into));
    [row("apple", Some("red")), row("apricot", None), row("plum", Some(""))].into()
}

#[test]
fn a_table_has_the_bytes_of_the_page() {
    let directory = directory();
    let shared = shared(&directory);
    write(&shared, 7, &rows());
    let bytes = std::fs::read(shared.files.path(&file_name(7))).expect("read");
    assert_eq!(hex(&bytes), example(1));
}

#[test]
fn a_manifest_has_the_bytes_of_the_page() {
    let directory = directory();
    let shared = shared(&directory);
    let facts = write(&shared, 7, &rows());
    let table = open(&shared, &facts);
    let version = Version::empty().with_flush(&table, &[facts.rows]);
    let version = version.with_cut(0, &b"b".as_slice().into());
    assert_eq!(hex(&Manifest::of(&version, super::tables::STORE, 8).encode()), example(2));
}
