//! The page `docs/measured.md`: the figures of every topic and item, as `show` last wrote them.
//!
//! Touches: that one page, and what the machine says about its cores and disks. Keeps: an item that was not run keeps its
//! lines and its date; everything else on the page stays as it is. Never: writes a figure that no program printed.
//!
//! A topic is a section `## TOPIC`. An item is a part of it, `### ITEM`, and ends at the next heading.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The page, relative to the root.
pub(crate) const PAGE: &str = "docs/measured.md";

/// An item that was run, and the lines that it ended with.
pub(super) struct Part<'a> {
    pub(super) item: &'a str,
    pub(super) lines: Vec<&'a str>,
}

/// When and where the figures were taken.
struct Occasion {
    date: String,
    machine: String,
}

/// Replaces the parts of these items in the page. `order` names all items of the topic, as the topic lists them.
pub(super) fn write(root: &Path, topic: &str, order: &[&str], parts: &[Part<'_>]) -> Result<(), String> {
    let path = root.join(PAGE);
    let mut page = fs::read_to_string(&path).map_err(|error| format!("read {PAGE}: {error}"))?;
    let occasion = Occasion { date: today()?, machine: machine(cores(), &disks()) };
    for part in parts {
        page = rewrite(&page, topic, order, part, &occasion)?;
    }
    fs::write(&path, page).map_err(|error| format!("write {PAGE}: {error}"))
}

/// The page with one part replaced; or added, before the items that follow it in the topic.
fn rewrite(page: &str, topic: &str, order: &[&str], part: &Part<'_>, occasion: &Occasion) -> Result<String, String> {
    let lines: Vec<&str> = page.lines().collect();
    let heading = |line: &str| line.strip_prefix("### ").map(str::trim).map(str::to_owned);
    let start = lines.iter().position(|line| line.strip_prefix("## ").is_some_and(|name| name.trim() == topic));
    let start = start.ok_or_else(|| format!("{PAGE} has no section `## {topic}`; add one"))? + 1;
    let end =
        lines[start..].iter().position(|line| line.starts_with("## ")).map_or(lines.len(), |length| start + length);
    let headings: Vec<(usize, String)> = (start..end).filter_map(|line| Some((line, heading(lines[line])?))).collect();

    let (from, to) = match headings.iter().position(|(_, name)| name == part.item) {
        Some(found) => (headings[found].0, headings.get(found + 1).map_or(end, |(line, _)| *line)),
        None => {
            let rank = |name: &str| order.iter().position(|each| *each == name);
            let later = headings.iter().find(|(_, name)| rank(name) > rank(part.item));
            let place = later.map_or(end, |(line, _)| *line);
            (place, place)
        }
    };
    let mut written = lines[..from].join("\n").trim_end().to_owned();
    written += &format!("\n\n{}\n", text(topic, part, occasion));
    if to < lines.len() {
        written += &format!("\n{}\n", lines[to..].join("\n"));
    }
    Ok(written)
}

fn text(topic: &str, part: &Part<'_>, occasion: &Occasion) -> String {
    let Part { item, lines } = part;
    let Occasion { date, machine } = occasion;
    format!("### {item}\n\n`cargo xtask show {topic} {item}`, {date}, {machine}:\n\n```text\n{}\n```", lines.join("\n"))
}

/// The day, in UTC.
pub(super) fn today() -> Result<String, String> {
    let date = Command::new("date").args(["-u", "+%F"]).output().map_err(|error| format!("start date: {error}"))?;
    Ok(String::from_utf8_lossy(&date.stdout).trim().to_owned())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The names of the machine's disks; none where the system does not list them.
fn disks() -> Vec<String> {
    let listed = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let names = listed.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_disk = |name: &String| ["vd", "xvd", "sd", "nvme"].iter().any(|kind| name.starts_with(kind));
    names.filter(is_disk).collect()
}

/// The kind of machine, in words.
fn machine(cores: usize, disks: &[String]) -> String {
    let is_virtual = |name: &String| name.starts_with("vd") || name.starts_with("xvd");
    let kind = if !disks.is_empty() && disks.iter().all(is_virtual) { "virtual disk" } else { "disk" };
    match disks.len() {
        0 => count(cores, "core"),
        number => format!("{}, {}", count(cores, "core"), count(number, kind)),
    }
}

/// "one disk", "two disks", "16 disks".
fn count(number: usize, noun: &str) -> String {
    let word = match number {
        1 => return format!("one {noun}"),
        2 => "two".to_owned(),
        3 => "three".to_owned(),
        4 => "four".to_owned(),
        more => more.to_string(),
    };
    format!("{word} {noun}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &[&str] = &["model", "kill", "speed"];
    const PAGE_TEXT: &str = "# Measured\n\nIntroduction.\n\n## cells\n\nAbout cells.\n\n### kill\n\nold\n\n```text\nshow cells kill 1 (goal 1) ok\n```\n\n\
                             ## records\n\n### kill\n\nother topic\n\n## Remarks\n\nLast words.\n";

    fn written(item: &str, line: &str, page: &str) -> Result<String, String> {
        let occasion = Occasion { date: "2026-11-15".into(), machine: "two cores".into() };
        rewrite(page, "cells", ORDER, &Part { item, lines: vec![line] }, &occasion)
    }

    fn part(item: &str, line: &str) -> String {
        format!("### {item}\n\n`cargo xtask show cells {item}`, 2026-11-15, two cores:\n\n```text\n{line}\n```\n")
    }

    #[test]
    fn an_item_that_was_run_is_replaced_and_all_else_stays() {
        let line = "show cells kill 2 (goal 1) ok";
        let page = written("kill", line, PAGE_TEXT).unwrap();
        let (before, after) = PAGE_TEXT.split_once("### kill").unwrap();
        let (_, after) = after.split_once("## records").unwrap();
        assert_eq!(page, format!("{before}{}\n## records{after}", part("kill", line)));
        assert_eq!(written("kill", line, &page).unwrap(), page, "written again it is the same");
    }

    #[test]
    fn a_new_item_takes_its_place_in_the_topic() {
        let page = written("model", "first", PAGE_TEXT).unwrap();
        assert!(page.contains(&format!("About cells.\n\n{}\n### kill\n\nold", part("model", "first"))), "{page}");
        let page = written("speed", "last", &page).unwrap();
        assert!(page.contains(&format!("ok\n```\n\n{}\n## records", part("speed", "last"))), "{page}");
        assert!(page.contains("### kill\n\nother topic\n\n## Remarks\n\nLast words.\n"), "{page}");
    }

    #[test]
    fn the_last_section_can_be_written_and_a_missing_one_is_named() {
        let page = written("kill", "line", "# M\n\n## cells\n").unwrap();
        assert_eq!(page, format!("# M\n\n## cells\n\n{}", part("kill", "line")));
        assert_eq!(written("speed", "more", &page).unwrap(), format!("{page}\n{}", part("speed", "more")));
        assert!(written("kill", "line", "# M\n").unwrap_err().contains("`## cells`"));
    }

    #[test]
    fn machines_are_told_in_words() {
        let disks = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(machine(2, &disks(&["vda"])), "two cores, one virtual disk");
        assert_eq!(machine(16, &disks(&["nvme0n1", "sda"])), "16 cores, two disks");
        assert_eq!(machine(1, &[]), "one core");
    }

    #[test]
    fn the_page_has_a_section_for_every_topic() {
        let root = crate::repository::root().unwrap();
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        for topic in super::super::TOPICS {
            assert!(page.lines().any(|line| line == format!("## {}", topic.name)), "{}", topic.name);
        }
    }
}
