//! Lists over HTTP cover all groups, give the group of each row, narrow to one, and go on by (name, group).

mod client;
mod running;

use client::{Served, served};
use serde_json::{Value as JsonValue, json};

const GROUPS: [Option<&str>; 3] = [None, Some("g"), Some("h#1")];
const NAMES: [&str; 3] = ["t.a", "t.a%", "t.b"];

/// A kind of thing: where it is listed, under which key, by which name, and where the next page begins.
type List = (&'static str, &'static str, &'static str, (&'static str, &'static str));

const LISTS: [List; 3] = [
    ("/v1/cells", "cells", "name", ("cursor", "cursor")),
    ("/v1/records", "records", "name", ("cursor", "cursor")),
    ("/v1/runs", "runs", "runId", ("cursor", "cursor")),
];

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn in_group(group: Option<&str>) -> String {
    group.map_or(String::new(), |group| format!("&group={}", escaped(group)))
}

fn fill(served: &Served) {
    for group in GROUPS {
        for name in NAMES {
            let place = format!("{}?{}", escaped(name), in_group(group));
            assert_eq!(served.put(&format!("/v1/cells/{place}"), "1").status, 201);
            assert_eq!(served.put(&format!("/v1/records/{place}"), r#"{"type":"task","fields":{"n":1}}"#).status, 201);
            let path = format!("/v1/runs/{}/events?{}", escaped(name), in_group(group));
            let event = json!({ "eventType": "RunStarted", "idempotencyKey": "s" }).to_string();
            assert_eq!(served.post(&path, &event).status, 200);
        }
    }
}

/// Everything that a list gives, by pages.
fn pages(served: &Served, list: &List, query: &str, limit: usize) -> Vec<(String, JsonValue)> {
    let (path, key, name, (parameter, next)) = *list;
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = served.get(&format!("{path}?prefix=t.&limit={limit}{query}{cursor}"));
        assert_eq!(page.status, 200, "{page:?}");
        let rows = page.body[key].as_array().expect("rows");
        assert!(rows.len() <= limit);
        found.extend(rows.iter().map(|row| (row[name].as_str().expect("a name").to_owned(), row["group"].clone())));
        cursor = match page.body[next].as_str() {
            Some(next) => format!("&{parameter}={}", escaped(next)),
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
                let of_group: Vec<_> = NAMES.iter().map(|name| ((*name).to_owned(), json!(group))).collect();
                assert_eq!(pages(&served, list, &in_group(Some(group)), limit), of_group, "{list:?}");
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

#[test]
fn a_cursor_that_is_not_ours_is_refused() {
    let served = served();
    fill(&served);
    let run_cursor = served.get("/v1/runs?limit=1").body["cursor"].as_str().expect("a cursor").to_owned();
    for path in [
        "/v1/cells?cursor=dC5hJQ".to_owned(),
        "/v1/cells?cursor=dC5hIw".to_owned(),
        "/v1/cells?cursor=YSNiI2M".to_owned(),
        "/v1/cells?cursor=".to_owned(),
        "/v1/records?cursor=nonsense".to_owned(),
        "/v1/records?cursor=AGFh".to_owned(),
        "/v1/records?cursor=".to_owned(),
        "/v1/runs?cursor=%21".to_owned(),
        "/v1/runs?cursor=AQ%3D%3D".to_owned(),
        format!("/v1/runs?status=RUNNING&cursor={}", escaped(&run_cursor)),
    ] {
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
    assert_eq!(changes("").len(), 27);
    assert_eq!(changes("&group=h%231"), vec![json!("h#1"); 9]);
}
