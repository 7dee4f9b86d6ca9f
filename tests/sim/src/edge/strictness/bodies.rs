//! Every body with one mistake at a time.

use serde_json::Value as JsonValue;
use testkit::http::Client;

use super::{Operation, Tally};

/// How deep to look into objects: a transaction can send another.
const DEPTH_MAX: usize = 4;

/// JSON text built by hand, so that a member can occur twice.
#[derive(Clone)]
enum Node {
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    fn write(&self) -> String {
        match self {
            Node::Text(text) => text.clone(),
            Node::List(items) => format!("[{}]", items.iter().map(Node::write).collect::<Vec<_>>().join(",")),
            Node::Object(members) => {
                let members = members.iter().map(|(name, node)| format!("{name:?}:{}", node.write()));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// A body with one mistake, and the member that the refusal must name.
struct Wrong {
    kind: &'static str,
    body: Node,
    member: String,
}

pub(super) fn run(client: &Client, operation: &Operation, document: &JsonValue, tally: &mut Tally) {
    let schema = &operation.described["requestBody"]["content"]["application/json"]["schema"];
    if schema.is_null() {
        // A route without a body refuses one, except for bytes, which belong to a machine.
        if operation.described["requestBody"].is_null() {
            let needed = operation.parameters("query").into_iter().filter(|parameter| parameter["required"] == true);
            let request = needed.fold(operation.request(), |request, parameter| {
                request.query(parameter["name"].as_str().expect("a name"), "1")
            });
            let request = request.body(r#"{"unexpected":1}"#);
            // A probe does not read its body.
            let probe = ["livez", "readyz", "startupz", "metrics", "version"]
                .iter()
                .any(|probe| operation.name.ends_with(probe));
            tally.refused("body-where-none-is", client, request, if probe { "body" } else { "unexpected" });
        }
        return;
    }
    let mut wrongs = Vec::new();
    for example in examples(schema, document, 0) {
        wrong(&example, document, "", 0, &mut wrongs);
    }
    for Wrong { kind, body, member } in wrongs {
        tally.refused(kind, client, operation.request().body(body.write()), &member);
    }
}

/// A schema with a value that matches it.
struct Example {
    schema: JsonValue,
    node: Node,
}

fn resolve<'document>(schema: &'document JsonValue, document: &'document JsonValue) -> &'document JsonValue {
    match schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        Some(name) => &document["components"]["schemas"][name],
        None => schema,
    }
}

/// Values of a schema: one, or one per choice.
fn examples(schema: &JsonValue, document: &JsonValue, depth: usize) -> Vec<Example> {
    let schema = resolve(schema, document);
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[choice].as_array() {
            let choices = choices.iter().filter(|choice| choice["type"] != "null");
            return choices.flat_map(|choice| examples(choice, document, depth)).collect();
        }
    }
    vec![Example { schema: schema.clone(), node: whole(schema, document, depth) }]
}

/// A value as part of others. A guard must stay satisfiable.
fn value(schema: &JsonValue, document: &JsonValue, depth: usize) -> Node {
    match resolve(schema, document)["properties"].get("state_in") {
        None => whole(schema, document, depth),
        Some(_) => Node::Text(r#"{"cell":"strict","version":1}"#.into()),
    }
}

/// A value with all members.
fn whole(schema: &JsonValue, document: &JsonValue, depth: usize) -> Node {
    let schema = resolve(schema, document);
    for choice in ["oneOf", "anyOf"] {
        if let Some(first) = schema[choice].as_array().and_then(|choices| choices.first()) {
            return value(first, document, depth);
        }
    }
    if let Some(known) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return Node::Text(known.to_string());
    }
    let text = |text: &str| Node::Text(format!("{text:?}"));
    match kind(schema) {
        "string" => match schema["pattern"].as_str().unwrap_or_default() {
            pattern if pattern.contains("(ms|s|m|h|d)") => text("30s"),
            pattern if pattern.starts_with("^s-") => text("s-1"),
            pattern if pattern.starts_with("^[A-Za-z0-9+/]") => text("YQ=="),
            pattern if pattern.starts_with("^c-") => text("c-0"),
            pattern if pattern.contains("#h") => text("strict#1#h0000000000000000"),
            _ => text("strict"),
        },
        "integer" | "number" => Node::Text("1".into()),
        "boolean" => Node::Text("true".into()),
        "array" => match depth < DEPTH_MAX {
            true => Node::List(vec![value(&schema["items"], document, depth + 1)]),
            false => Node::List(Vec::new()),
        },
        "object" => {
            let members = schema["properties"].as_object().into_iter().flatten();
            let members = members.filter(|(name, _)| depth < DEPTH_MAX || is_required(schema, name));
            let members = members.map(|(name, of)| (name.clone(), value(of, document, depth + 1)));
            let mut members: Vec<_> = members.collect();
            if schema["additionalProperties"].is_object() {
                members.push(("field".into(), value(&schema["additionalProperties"], document, depth + 1)));
            }
            Node::Object(members)
        }
        // Any value will do.
        _ => Node::Text("1".into()),
    }
}

fn is_required(schema: &JsonValue, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|required| required == name))
}

fn kind(schema: &JsonValue) -> &str {
    schema["type"].as_str().or_else(|| schema["type"].get(0).and_then(JsonValue::as_str)).unwrap_or_default()
}

/// Values of types that a schema does not allow.
fn others(schema: &JsonValue, document: &JsonValue) -> Vec<&'static str> {
    let schema = resolve(schema, document);
    if schema["oneOf"].is_array() || schema["anyOf"].is_array() || schema.get("const").is_some() {
        return vec!["[[]]"];
    }
    match kind(schema) {
        // A duration is also a number of ms.
        "string" => vec!["true", "[]", "{}"],
        "integer" => vec!["\"one\"", "1.5", "[]", "{}", "true"],
        "boolean" => vec!["\"true\"", "1", "[]", "{}"],
        "array" => vec!["{}", "1", "\"one\"", "true"],
        "object" => vec!["[]", "1", "\"one\"", "true"],
        _ => Vec::new(),
    }
}

/// The value with one mistake at a time, in itself or in its parts.
fn wrong(example: &Example, document: &JsonValue, path: &str, depth: usize, wrongs: &mut Vec<Wrong>) {
    let schema = resolve(&example.schema, document);
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match &example.node {
        Node::Object(members) => {
            let strict = schema["additionalProperties"] == false;
            if strict {
                let mut added = members.clone();
                added.push(("unexpected".into(), Node::Text("1".into())));
                wrongs.push(Wrong { kind: "added", body: Node::Object(added), member: below("unexpected") });
            }
            for (place, (name, node)) in members.iter().enumerate() {
                let mut push = |kind, name: String, node: Node, member: &str| {
                    let mut changed = members.clone();
                    changed[place] = (name, node);
                    wrongs.push(Wrong { kind, body: Node::Object(changed), member: below(member) });
                };
                if strict && name != "op" {
                    for misspelt in [format!("{name}x"), name.to_uppercase(), format!("_{name}")] {
                        push("misspelt", misspelt.clone(), node.clone(), &misspelt);
                    }
                }
                let of = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                for other in others(of, document) {
                    push("other-type", name.clone(), Node::Text(other.into()), name);
                }
                if strict || schema["additionalProperties"].is_object() {
                    let mut twice = members.clone();
                    twice.push((name.clone(), node.clone()));
                    wrongs.push(Wrong { kind: "repeated", body: Node::Object(twice), member: below(name) });
                }
                if depth >= DEPTH_MAX {
                    continue;
                }
                for inner in examples(of, document, depth + 1) {
                    let mut within = Vec::new();
                    wrong(&inner, document, &below(name), depth + 1, &mut within);
                    for Wrong { kind, body, member } in within {
                        let mut changed = members.clone();
                        changed[place] = (name.clone(), body);
                        wrongs.push(Wrong { kind, body: Node::Object(changed), member });
                    }
                }
            }
        }
        Node::List(items) if !items.is_empty() && depth < DEPTH_MAX => {
            for inner in examples(&schema["items"], document, depth + 1) {
                let mut within = Vec::new();
                wrong(&inner, document, &format!("{path}[0]"), depth + 1, &mut within);
                wrongs.extend(within.into_iter().map(|Wrong { kind, body, member }| Wrong {
                    kind,
                    body: Node::List(vec![body]),
                    member,
                }));
            }
            for other in others(&schema["items"], document) {
                let body = Node::List(vec![Node::Text(other.into())]);
                wrongs.push(Wrong { kind: "other-type", body, member: format!("{path}[0]") });
            }
        }
        _ => {}
    }
}
