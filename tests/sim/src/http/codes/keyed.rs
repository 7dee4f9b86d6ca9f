//! Codes of keyed state, its checkpoints included.

use std::path::{Path, PathBuf};

use serde_json::{Value as JsonValue, json};
use testkit::http::Request;

use super::Codes;

impl Codes<'_> {
    /// Provokes the codes of maps, of numbered commits and of checkpoints, which lie in this folder.
    pub(super) fn keyed(&mut self, checkpoints: &Path) {
        self.maps();
        self.numbered_commits();
        self.checkpoints(checkpoints);
    }

    fn maps(&mut self) {
        let updates = |map: &str, update: JsonValue| {
            Request::post(format!("/v1/maps/{map}/updates")).body(json!({ "updates": [update] }).to_string())
        };
        let put = |key: &str| json!({ "op": "put", "key": key, "value": 1, "version": 1 });
        self.refused("SH-8001", 404, Request::get("/v1/maps/codes.none"));
        self.sent(updates("codes", put("put")));
        self.refused("SH-8004", 422, updates("codes", json!({ "op": "add", "key": "n", "value": 1 })));
        let merge_at = json!({ "op": "add", "key": "n", "value": 1, "version": 1 });
        self.refused("SH-8010", 422, updates("codes", merge_at));
        self.refused("SH-8011", 409, Request::put("/v1/maps/codes").body(r#"{"policy":"ordered"}"#));
        for (code, condition) in [
            ("SH-8008", json!({ "key": { "map": "codes", "key": "put" }, "absent": true })),
            ("SH-8009", json!({ "input": { "map": "codes", "input": "in" }, "position": 7 })),
        ] {
            let seal = json!({ "op": "map.seal", "name": "codes", "version": 1 });
            let body = json!({ "if": [condition], "do": [seal] }).to_string();
            self.refused(code, 409, Request::post("/v1/groups/codes/txn").body(body));
        }
    }

    fn numbered_commits(&mut self) {
        let commit = |number: u64, update: JsonValue, position: u64| {
            let body = json!({ "number": number, "updates": [update], "positions": { "in": position } });
            Request::post("/v1/maps/codes/commits").body(body.to_string())
        };
        let add = |value: i64| json!({ "op": "add", "key": "n", "value": value });
        self.sent(commit(1, add(i64::MAX), 7));
        self.refused("SH-8005", 422, commit(1, add(2), 7));
        self.refused("SH-8006", 409, commit(9, add(1), 8));
        self.refused("SH-8003", 422, commit(2, add(1), 8));
        self.refused("SH-8007", 409, commit(2, add(-1), 6));
        self.refused("SH-8002", 422, commit(2, json!({ "op": "add", "key": "put", "value": 1 }), 8));
    }

    fn checkpoints(&mut self, checkpoints: &Path) {
        let forced = |path: &str, body: JsonValue| {
            Request::post(format!("/v1/keyed/codes/0/{path}")).header("statehouse-force", "true").body(body.to_string())
        };
        let restore = || forced("restore", json!({ "worker": "w", "wait": "30s" }));
        self.refused("SH-8016", 404, restore());
        self.sent(forced("commits", json!({ "number": 1, "positions": { "in": 1 } })));
        self.sent(forced("checkpoints", json!({ "wait": "30s" })));
        for rows in rows_in(&checkpoints.join("default/main/codes")) {
            std::fs::write(rows, "no rows").expect("written");
        }
        self.refused("SH-8015", 422, restore());
    }
}

/// The files with rows in a folder and below it.
fn rows_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let is_rows = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rows");
    entries.flat_map(|path| if path.is_dir() { rows_in(&path) } else { vec![path] }).filter(is_rows).collect()
}
