//! Messages that their group refused: only its owner sends them again or drops them, whatever a guard opens.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::http::{Client, Request};

/// The names of the cases, what has the message refused first, and the requests, whose bodies are still to name it.
pub(super) fn routes(group: &str, thing: &str) -> Vec<(&'static str, Request, Request)> {
    // A deletion is never open.
    let deletes = json!([{ "op": "send", "group": group, "do": [{ "op": "cell.delete", "name": thing }] }]);
    let sends = Request::post("/v1/groups/sender/txn").body(json!({ "do": deletes }).to_string());
    let of_letter = |path: &str| Request::post(path).query("group", group);
    vec![
        ("letters.retry", sends.clone(), of_letter("/v1/letters/retry")),
        ("letters.drop", sends, of_letter("/v1/letters/drop")),
    ]
}

/// The number of the message that a group refuses, as soon as it has.
pub(super) fn refused_by(client: &Client, group: &str) -> u64 {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let page = client.call(Request::get("/v1/letters").query("group", group)).expect("letters").json();
        if let Some(number) = page["letters"][0]["number"].as_u64() {
            return number;
        }
        assert!(Instant::now() < until, "group {group} refuses its message");
    }
}
