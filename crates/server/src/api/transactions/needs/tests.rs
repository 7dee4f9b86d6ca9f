//! Every operation and every guard has its needs, and so has what is sent on or forced.

use std::cell::OnceCell;

use super::*;
use crate::access::{Asking, Caller};
use crate::api::scope::RequestScope;

/// What a transaction in group `g` needs, as text without the space.
fn needs_of(body: &str) -> Vec<String> {
    let transaction: Transaction = wire::from_json(body.as_bytes()).expect(body);
    needs_in(&RequestScope::default(), &transaction)
}

fn needs_in(scope: &RequestScope, transaction: &Transaction) -> Vec<String> {
    let text = OnceCell::new();
    let needs = permission().needs(&Asking {
        caller: &Caller::Anybody,
        scope,
        group: Some("g"),
        name: "g",
        query: &NoQuery {},
        body: transaction,
        is_conditional: false,
        follows: false,
        text: &text,
    });
    let without_space = |need: String| need.strip_suffix(r#" of space "default""#).expect("in the space").to_owned();
    needs.iter().map(|need| without_space(need.to_string())).collect()
}

/// Every operation, and what it needs.
const OPERATIONS: &[(&str, &[&str])] = &[
    (r#"{"op":"cell.set","name":"c","value":1}"#, &[r#"write cells "c" in group "g""#]),
    (r#"{"op":"cell.init","name":"c","value":1}"#, &[r#"cas cells "c" in group "g""#]),
    (r#"{"op":"cell.delete","name":"c"}"#, &[r#"write cells "c" in group "g""#]),
    (r#"{"op":"record.put","name":"r","fields":{}}"#, &[r#"write records "r" in group "g""#]),
    (r#"{"op":"record.patch","name":"r","set":{"a":1}}"#, &[r#"write records "r" in group "g""#]),
    (r#"{"op":"record.patch","name":"r","set":{"a":1},"expect":{},"incr":{}}"#, &[r#"write records "r" in group "g""#]),
    (
        r#"{"op":"record.patch","name":"r","set":{"a":1},"expect":{"a":0}}"#,
        &[r#"cas records "r" in group "g""#, r#"read records "r" in group "g""#],
    ),
    (
        r#"{"op":"record.patch","name":"r","incr":{"n":1}}"#,
        &[r#"write records "r" in group "g""#, r#"read records "r" in group "g""#],
    ),
    (
        r#"{"op":"record.incr","name":"r","field":"n"}"#,
        &[r#"write records "r" in group "g""#, r#"read records "r" in group "g""#],
    ),
    (r#"{"op":"record.step","name":"r","attempt":1,"fields":{"a":1}}"#, &[r#"claim records "r" in group "g""#]),
    (r#"{"op":"record.release","name":"r","attempt":1}"#, &[r#"claim records "r" in group "g""#]),
    (r#"{"op":"record.complete","name":"r","attempt":1}"#, &[r#"claim records "r" in group "g""#]),
    (r#"{"op":"record.fail","name":"r","attempt":1}"#, &[r#"claim records "r" in group "g""#]),
    (r#"{"op":"record.delete","name":"r"}"#, &[r#"write records "r" in group "g""#]),
    (r#"{"op":"run.append","run":"r","event":{},"expect":1}"#, &[r#"append runs "r" in group "g""#]),
    (
        r#"{"op":"map.update","name":"m","updates":[{"op":"add","key":"k","value":1}]}"#,
        &[r#"write keyed "m" in group "g""#],
    ),
    (r#"{"op":"map.commit","name":"m","number":1}"#, &[r#"write keyed "m" in group "g""#]),
    (r#"{"op":"map.seal","name":"m","version":1}"#, &[r#"write keyed "m" in group "g""#]),
    (r#"{"op":"map.create","name":"m"}"#, &[r#"write keyed "m" in group "g""#]),
    (r#"{"op":"map.delete","name":"m"}"#, &[r#"write keyed "m" in group "g""#]),
    (r#"{"op":"publish","topic":"t","payload":""}"#, &[r#"write messages "t""#]),
    (r#"{"op":"push","session":"SESSION","payload":""}"#, &["write sessions"]),
    (
        r#"{"op":"send","group":"h","do":[{"op":"cell.set","name":"c","value":1}]}"#,
        &[r#"write cells "c" in group "h""#],
    ),
];

/// Every thing that a guard can be about, and what the guard needs.
const GUARDS: &[(&str, &[&str])] = &[
    (r#"{"cell":"c","version":1}"#, &[r#"read cells "c" in group "g""#]),
    (r#"{"cell":"c","absent":true}"#, &[r#"read cells "c" in group "g""#]),
    (
        r#"{"cells":{"from":"items.","before":"items/"},"unchanged_since":1}"#,
        &[r#"read cells that begin with "items." in group "g""#],
    ),
    (r#"{"cells":{"from":"items."},"unchanged_since":1}"#, &[r#"read cells in group "g""#]),
    (r#"{"record":"r","attempt":1}"#, &[r#"read records "r" in group "g""#]),
    (r#"{"record":"r","field":"f","is":null}"#, &[r#"read records "r" in group "g""#]),
    (r#"{"run":"r","last":1}"#, &[r#"read runs "r" in group "g""#]),
    (r#"{"key":{"map":"m","key":"k"},"exists":true}"#, &[r#"read keyed "m" in group "g""#]),
    (r#"{"keys":{"map":"m","from":"k"},"unchanged_since":1}"#, &[r#"read keyed "m" in group "g""#]),
    (r#"{"input":{"map":"m","input":"i"},"position":1}"#, &[r#"read keyed "m" in group "g""#]),
];

#[test]
fn every_operation_needs_what_it_does() {
    let session = wire::values::SessionId(1).to_string();
    for (operation, needs) in OPERATIONS {
        let body = format!(r#"{{"do":[{}]}}"#, operation.replace("SESSION", &session));
        assert_eq!(needs_of(&body), *needs, "{operation}");
    }
    for name in Operation::names() {
        assert!(OPERATIONS.iter().any(|(text, _)| text.contains(&format!(r#""op":"{name}""#))), "{name} is missing");
    }
}

#[test]
fn every_guard_needs_to_read_what_it_names() {
    for (guard, needs) in GUARDS {
        let body = format!(r#"{{"if":[{guard}],"do":[]}}"#);
        assert_eq!(needs_of(&body), *needs, "{guard}");
    }
}

#[test]
fn all_of_a_transaction_is_needed_with_what_it_sends_on() {
    let body = r#"{
        "if": [{"cell": "a", "exists": true}],
        "fence": {"record": "job", "attempt": 1},
        "do": [
            {"op": "cell.set", "name": "a", "value": 1},
            {"op": "send", "group": "h", "if": [{"run": "r", "last": 1}], "fence": {"record": "job", "attempt": 2}, "do": [
                {"op": "record.incr", "name": "n", "field": "f"},
                {"op": "send", "group": "i", "do": [{"op": "publish", "topic": "t", "payload": ""}]}
            ]},
            {"op": "cell.delete", "name": "b"}
        ]
    }"#;
    let needs = [
        r#"claim records "job" in group "g""#,
        r#"read cells "a" in group "g""#,
        r#"write cells "a" in group "g""#,
        r#"claim records "job" in group "h""#,
        r#"read runs "r" in group "h""#,
        r#"write records "n" in group "h""#,
        r#"read records "n" in group "h""#,
        r#"write messages "t""#,
        r#"write cells "b" in group "g""#,
    ];
    assert_eq!(needs_of(body), needs);
}

#[test]
fn what_is_forced_needs_force_and_nothing_else_does() {
    let forced =
        r#"{"force": true, "if": [{"cell": "a", "exists": true}], "do": [{"op": "cell.delete", "name": "b"}]}"#;
    let needs = [
        r#"read cells "a" in group "g""#,
        r#"write cells "b" in group "g""#,
        r#"force cells "a" in group "g""#,
        r#"force cells "b" in group "g""#,
    ];
    assert_eq!(needs_of(forced), needs);
    let sent = r#"{"do": [
        {"op": "cell.delete", "name": "a"},
        {"op": "send", "group": "h", "force": true, "do": [{"op": "cell.delete", "name": "b"}]}
    ]}"#;
    let needs =
        [r#"write cells "a" in group "g""#, r#"write cells "b" in group "h""#, r#"force cells "b" in group "h""#];
    assert_eq!(needs_of(sent), needs);
    let plain: Transaction =
        wire::from_json(br#"{"do": [{"op": "cell.delete", "name": "a"}]}"#).expect("a transaction");
    let needs = [r#"write cells "a" in group "g""#, r#"force cells "a" in group "g""#];
    assert_eq!(needs_in(&RequestScope { force: true, ..RequestScope::default() }, &plain), needs, "by the header");
}
