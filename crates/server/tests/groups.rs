//! Lists over HTTP cover all groups, give the group of each row, narrow to one, and go on by (name, group).

mod client;
mod running;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use client::{Served, served};
use serde_json::{Value as JsonValue, json};

const GROUPS: [Option<&str>; 3] = [None, Some("g"), Some("h#1")];
const NAMES: [&str; 3] = ["t.a", "t.a%", "t.b"];

/// A kind of thing: where it is listed, under which key, and by which name.
type List = (&'static str, &'static str, &'static str);

const LISTS: [List; 4] = [
    ("/v1/cells", "cells", "name"),
    ("/v1/records", "records", "name"),
    ("/v1/runs", "runs", "runId"),
    ("/v1/maps", "maps", "name"),
];

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A query that narrows to a group.
fn of_group(group: Option<&str>) -> String {
    group.map_or(String::new(), |group| format!("?{}", narrowed(group)))
}

fn narrowed(group: &str) -> String {
    format!("group={}", escaped(group))
}

fn fill(served: &Served) {
    for group in GROUPS {
        for name in NAMES {
            let place = format!("{}{}", escaped(name), of_group(group));
            assert_eq!(served.put(&format!("/v1/cells/{place}"), "1").status, 201);
            assert_eq!(served.put(&format!("/v1/records/{place}"), r#"{"type":"task","fields":{"n":1}}"#).status, 201);
            assert_eq!(served.put(&format!("/v1/maps/{place}"), "{}").status, 201);
            let path = format!("/v1/runs/{}/events{}", escaped(name), of_group(group));
            let event = json!({ "eventType": "RunStarted", "idempotencyKey": "s" }).to_string();
            assert_eq!(served.post(&path, &event).status, 200);
        }
    }
}

/// Everything that a list gives, by pages.
fn pages(served: &Served, list: &List, query: &str, limit: usize) -> Vec<(String, JsonValue)> {
    let (path, key, name) = *list;
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = served.get(&format!("{path}?prefix=t.&limit={limit}{query}{cursor}"));
        assert_eq!(page.status, 200, "{page:?}");
        let rows = page.body[key].as_array().expect("rows");
        assert!(rows.len() <= limit);
        found.extend(rows.iter().map(|row| (row[name].as_str().expect("a name").to_owned(), row["group"].clone())));
        cursor = match page.body["cursor"].as_str() {
            Some(next) => format!("&cursor={next}"),
            None => return found,
        };
    }
}

#[test]
fn lists_cover_all_groups_and_narrow_to_one() {
    let served = served();
    fill(&served);
    for list in &LISTS {
        for limit in [1, 2, 100] {
            let all = NAMES.iter().flat_map(|name| GROUPS.map(|group| ((*name).to_owned(), json!(group))));
            assert_eq!(pages(&served, list, "", limit), all.collect::<Vec<_>>(), "{list:?} by {limit}");
            for group in GROUPS.into_iter().flatten() {
                let of_it: Vec<_> = NAMES.iter().map(|name| ((*name).to_owned(), json!(group))).collect();
                assert_eq!(pages(&served, list, &format!("&{}", narrowed(group)), limit), of_it, "{list:?}");
            }
            assert_eq!(pages(&served, list, "&group=none", limit), []);
        }
    }
    assert_eq!(served.get("/v1/cells/t.a?group=none").status, 404, "a read by name is exact");
}

#[test]
fn runs_by_status_and_type_have_a_cursor_too() {
    let served = served();
    fill(&served);
    for query in ["&status=RUNNING", "&type="] {
        let mut found = pages(&served, &LISTS[2], query, 2);
        found.sort_by_key(|(name, group)| (name.clone(), group.to_string()));
        let mut all: Vec<_> =
            NAMES.iter().flat_map(|name| GROUPS.map(|group| ((*name).to_owned(), json!(group)))).collect();
        all.sort_by_key(|(name, group)| (name.clone(), group.to_string()));
        assert_eq!(found, all, "{query}");
    }
}

/// Bytes as an opaque cursor spells them: base64 for URLs, without padding.
fn cursor_of(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[test]
fn a_cursor_that_is_not_ours_is_refused() {
    let served = served();
    fill(&served);
    let first =
        |list: &List| served.get(&format!("{}?limit=1", list.0)).body["cursor"].as_str().expect("one").to_owned();
    let mut paths = Vec::new();
    for list in &LISTS {
        // Not our alphabet, padded, with bits left over, not one of this list, empty, with something behind it.
        for text in ["%21", "AQ%3D%3D", "AR", "nonsense", ""] {
            paths.push(format!("{}?cursor={text}", list.0));
        }
        paths.push(format!("{}?cursor={}%3D", list.0, first(list)));
    }
    paths.push("/v1/records?cursor=AGFh".to_owned());
    for name in ["t.a%", "t.a#", "a#b#c", "#", "t.a%2", "\u{e9}%"] {
        paths.push(format!("/v1/cells?cursor={}", cursor_of(name.as_bytes())));
    }
    paths.push(format!("/v1/cells?cursor={}", cursor_of(b"\xff")));
    paths.push(format!("/v1/runs?status=RUNNING&cursor={}", first(&LISTS[2])));
    for path in paths {
        assert_eq!(served.get(&path).status, 400, "{path}");
    }
}

#[test]
fn counts_and_changes_narrow_to_a_group() {
    let served = served();
    fill(&served);
    let counted = |query: &str| served.get(&format!("/v1/counts?prefix=t.{query}")).body["counts"][0]["count"].clone();
    assert_eq!((counted(""), counted("&group=g"), counted("&group=none")), (json!(9), json!(3), JsonValue::Null));
    let changes = |query: &str| {
        let page = served.get(&format!("/v1/changes?from=c-0&prefix=t.{query}"));
        let changes = page.body["changes"].as_array().expect("changes").clone();
        changes.into_iter().map(|change| change["group"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(changes("").len(), 36);
    assert_eq!(changes("&group=h%231"), vec![json!("h#1"); 12]);
}
