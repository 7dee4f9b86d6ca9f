//! The routes of keyed state that write in a group, and its operations: none of them is for anybody, whatever a guard opens.

use serde_json::{Value as JsonValue, json};
use testkit::http::Request;

/// A case: its name, what makes it possible, and the request.
type Written = (&'static str, Vec<Request>, Request);

pub(super) fn routes(group: &str, map: &str) -> Vec<Written> {
    let of_map = |method: &'static str, below: &str, body: JsonValue| {
        let request = Request::new(method, format!("/v1/maps/{map}{below}")).query("group", group);
        if body.is_null() { request } else { request.body(body.to_string()) }
    };
    let put = of_map("PUT", "/keys/k", json!(1)).query("version", 1);
    let create = of_map("PUT", "", json!({}));
    let commit = json!({ "number": 1, "positions": { "i": 1 } });
    // The group of a partition is OPERATOR/NUMBER.
    let of_partition = Request::post(format!("/v1/keyed/{group}/commits")).body(commit.to_string());
    let checkpoint = Request::post(format!("/v1/keyed/{group}/checkpoints")).body(r#"{"wait":"30s"}"#);
    vec![
        ("maps.create", vec![], create.clone()),
        ("maps.delete", vec![create], of_map("DELETE", "", JsonValue::Null)),
        ("maps.update", vec![], of_map("POST", "/updates", json!({ "updates": [updated()] }))),
        ("maps.commit", vec![], of_map("POST", "/commits", commit)),
        ("maps.seal", vec![], of_map("POST", "/seal", json!({ "version": 1 }))),
        ("maps.put_key", vec![], put.clone()),
        ("maps.delete_key", vec![put], of_map("DELETE", "/keys/k", JsonValue::Null).query("version", 2)),
        ("keyed.commit", vec![], of_partition.clone()),
        ("keyed.checkpoint", vec![of_partition], checkpoint),
    ]
}

/// Operations: their names, those that make them possible, and their members besides the name of the map.
pub(super) fn operations() -> Vec<(&'static str, Option<&'static str>, JsonValue)> {
    vec![
        ("map.update", None, json!({ "updates": [updated()] })),
        ("map.commit", None, json!({ "number": 1, "updates": [{ "op": "add", "key": "k", "value": 1 }] })),
        ("map.seal", None, json!({ "version": 1 })),
        ("map.create", None, json!({ "policy": "ordered" })),
        ("map.delete", Some("map.create"), json!({})),
    ]
}

fn updated() -> JsonValue {
    json!({ "op": "put", "key": "k", "value": 1, "version": 1 })
}
