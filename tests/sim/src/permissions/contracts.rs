//! Requests for cells, records and runs, alone and in groups.

use contract::access::{Area, Verb};
use serde_json::{Value as JsonValue, json};
use testkit::http::Request;

use super::needed::{Case, For, Naming, Needed, Target};

/// A request with a body.
fn with(request: Request, body: &JsonValue) -> Request {
    request.body(body.to_string())
}

pub(super) fn cells(target: &Target) -> Vec<Case> {
    let Target { thing, .. } = target;
    let path = format!("/v1/cells/{thing}");
    let needs = |verb| target.needs(verb, Area::Cell, thing);
    let set = target.ask("PUT", &path).body("1");
    let read = target.ask("GET", &path);
    let if_first = |request: Request| request.header("if-match", "\"1\"");
    let listed = For::Granted(vec![needs(Verb::List), needs(Verb::Read)]);
    vec![
        Case::new("cells.list", target.ask("GET", "/v1/cells").query("prefix", thing), listed).after(&[&set]),
        Case::granted("cells.get", read.clone(), needs(Verb::Read)).after(&[&set]),
        Case::granted("cells.get", Request { method: "HEAD", ..read }, needs(Verb::Read)).after(&[&set]),
        Case::granted("cells.get", target.ask("GET", &path).query("view", "history"), needs(Verb::Read)).after(&[&set]),
        Case::granted("cells.put", set.clone(), needs(Verb::Write)),
        Case::granted("cells.put", if_first(set.clone()), needs(Verb::Cas)).after(&[&set]),
        Case::granted("cells.put", set.clone().header("if-none-match", "*"), needs(Verb::Cas)),
        Case::granted("cells.init", target.ask("POST", &path).body("1"), needs(Verb::Cas)),
        Case::granted("cells.delete", target.ask("DELETE", &path), needs(Verb::Write)).after(&[&set]),
        Case::granted("cells.delete", if_first(target.ask("DELETE", &path)), needs(Verb::Cas)).after(&[&set]),
    ]
}

pub(super) fn records(target: &Target, history: &str) -> Vec<Case> {
    let Target { thing, .. } = target;
    let path = format!("/v1/records/{thing}");
    let needs = |verb| target.needs(verb, Area::Record, thing);
    let both = |one, other| For::Granted(vec![needs(one), needs(other)]);
    let put = with(target.ask("PUT", &path), &json!({ "type": "task", "fields": { "n": 1 } }));
    let patch = |body: JsonValue| with(target.ask("PATCH", &path), &body);
    let set = json!({ "set": { "f": 1 } });
    let if_first = |request: Request| request.header("if-match", "\"1\"");
    let queue = format!("{thing}.");
    let of_queue = |verb| target.needs(verb, Area::Record, &queue);
    let (scan, count) = (target.ask("GET", "/v1/records"), target.ask("GET", "/v1/counts"));
    let claim = |body: JsonValue| with(target.ask("POST", "/v1/claims"), &body);
    let claim_it = claim(json!({ "name": thing, "worker": "w" }));
    let mut cases = vec![
        Case::new("records.scan", scan.query("prefix", thing), both(Verb::List, Verb::Read)).after(&[&put]),
        Case::granted("records.counts", count.query("prefix", &queue), of_queue(Verb::List)).after(&[&put]),
        Case::granted("records.get", target.ask("GET", &path), needs(Verb::Read)).after(&[&put]),
        Case::granted("records.get", target.ask("HEAD", &path), needs(Verb::Read)).after(&[&put]),
        Case::granted("records.put", put.clone(), needs(Verb::Write)),
        Case::granted("records.put", if_first(put.clone()), needs(Verb::Cas)).after(&[&put]),
        Case::granted("records.patch", patch(set.clone()), needs(Verb::Write)).after(&[&put]),
        Case::granted("records.patch", if_first(patch(set)), needs(Verb::Cas)).after(&[&put]),
        Case::new("records.patch", patch(json!({ "incr": { "n": 1 } })), both(Verb::Write, Verb::Read)).after(&[&put]),
        Case::new(
            "records.patch",
            patch(json!({ "set": { "f": 1 }, "expect": { "n": 1 } })),
            both(Verb::Cas, Verb::Read),
        )
        .after(&[&put]),
        Case::granted("records.delete", target.ask("DELETE", &path), needs(Verb::Write)).after(&[&put]),
        Case::granted("records.delete", if_first(target.ask("DELETE", &path)), needs(Verb::Cas)).after(&[&put]),
        Case::granted("records.claim", claim_it.clone(), needs(Verb::Claim)).after(&[&put]),
    ];
    if target.naming == Naming::Alone {
        // Of all groups.
        let claim_next = claim(json!({ "prefix": queue }));
        cases.push(Case::granted("records.claim", claim_next, of_queue(Verb::Claim)).after(&[&put]));
    }
    // A record that is alone is in a group of its own name.
    let group = if target.naming == Naming::Alone { thing } else { &target.group };
    let token = format!("{group}#{thing}#1#h{history}");
    for (verb, more) in [
        ("step", json!({ "fields": { "f": 1 } })),
        ("extend", json!({})),
        ("release", json!({})),
        ("complete", json!({})),
        ("fail", json!({ "error": "e" })),
    ] {
        let (mut by_number, mut by_token) = (more.clone(), more);
        by_number["attempt"] = 1.into();
        by_token["token"] = token.as_str().into();
        let numbered = with(target.ask("POST", format!("{path}/{verb}")), &by_number);
        let shown = with(Request::post(format!("/v1/attempts/{verb}")), &by_token);
        for (name, request) in [(format!("records.{verb}"), numbered), (format!("attempts.{verb}"), shown)] {
            cases.push(Case::granted(&name, request, needs(Verb::Claim)).after(&[&put, &claim_it]));
        }
    }
    cases
}

pub(super) fn runs(target: &Target) -> Vec<Case> {
    let Target { thing, .. } = target;
    let path = format!("/v1/runs/{thing}");
    let needs = |verb| target.needs(verb, Area::Run, thing);
    let both = |one, other| For::Granted(vec![needs(one), needs(other)]);
    let event = json!({ "eventType": "Progress", "idempotencyKey": "k" });
    let append = with(target.ask("POST", format!("{path}/events")), &event);
    let events = target.ask("GET", format!("{path}/events"));
    // Not with the prefix of its origin, whose grants would cover it.
    let fork = format!("f{thing}");
    // A fork is in the group of its origin.
    let group = if target.naming == Naming::Alone { thing } else { &target.group };
    let of_fork = Needed::of(Verb::Write, Area::Run, target.prefix(&fork)).in_group(group);
    let forked = with(target.ask("POST", format!("{path}/fork")), &json!({ "at": 1, "as": fork }));
    let listed = target.ask("GET", "/v1/runs").query("prefix", thing);
    let snapshot = target.ask("GET", format!("{path}/snapshot"));
    vec![
        Case::new("runs.list", listed, both(Verb::List, Verb::Read)).after(&[&append]),
        Case::granted("runs.events", events.clone(), needs(Verb::Read)).after(&[&append]),
        Case::new("runs.events", events.query("follow", "true"), both(Verb::Read, Verb::Watch))
            .after(&[&append])
            .stream(),
        Case::new("runs.append", append.clone(), both(Verb::Append, Verb::Read)),
        Case::granted("runs.append", append.clone().query("strict", "true"), needs(Verb::Append)),
        Case::granted("runs.snapshot", snapshot, needs(Verb::Read)).after(&[&append]),
        Case::granted("runs.close", target.ask("POST", format!("{path}/close")), needs(Verb::Write)).after(&[&append]),
        Case::new("runs.fork", forked, For::Granted(vec![needs(Verb::Read), of_fork])).after(&[&append]),
        Case::granted("runs.delete", target.ask("DELETE", &path), needs(Verb::Write)).after(&[&append]),
    ]
}

/// Things that only a group has.
pub(super) fn groups(target: &Target, history: &str) -> Vec<Case> {
    let group = &target.group;
    let needs = |verb| Needed::of(verb, Area::Record, group.as_str());
    let own = with(Request::post(format!("/v1/groups/{}/own", group.replace('/', "%2F"))), &json!({ "worker": "w" }));
    let of_owner = |method, last: &str| Request::new(method, own.path.replace("/own", last));
    let token = json!({ "token": format!("{group}#1#h{history}") });
    vec![
        Case::granted("groups.own", own.clone(), needs(Verb::Claim)),
        Case::granted("groups.owner", of_owner("GET", "/owner"), needs(Verb::Read)).after(&[&own]),
        Case::granted("groups.extend", with(of_owner("POST", "/extend"), &token), needs(Verb::Claim)).after(&[&own]),
        Case::granted("groups.release", with(of_owner("POST", "/release"), &token), needs(Verb::Claim)).after(&[&own]),
    ]
}

/// The changes of everything, which need to watch every area that has some.
pub(super) fn changes(target: &Target) -> Vec<Case> {
    let areas = [Area::Cell, Area::Record, Area::Run, Area::Map, Area::Message];
    let watched = For::Granted(areas.map(|area| target.needs(Verb::Watch, area, &target.thing)).to_vec());
    let changes = target.ask("GET", "/v1/changes").query("prefix", &target.thing);
    let command = |command: JsonValue| with(Request::post("/v1/state/command"), &command);
    let of = |more: JsonValue| {
        let mut of = json!({ "branch": "main", "cell": target.thing });
        of.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        of
    };
    let cell = |verb| Needed::of(verb, Area::Cell, target.thing.as_str());
    let (init, value) = (json!({ "StateInit": of(json!({ "value": 1 })) }), json!({ "value": 2 }));
    let swap = json!({ "value": 2, "expected_counter": 1 });
    let init = command(init);
    let state = "state.command";
    vec![
        Case::new("changes.get", changes.clone(), watched.clone()),
        Case::new("changes.get", changes.query("follow", "true"), watched).stream(),
        Case::granted(state, init.clone(), cell(Verb::Cas)),
        Case::granted(state, command(json!({ "StateGet": of(json!({})) })), cell(Verb::Read)).after(&[&init]),
        Case::granted(state, command(json!({ "StateGetv": of(json!({})) })), cell(Verb::Read)).after(&[&init]),
        Case::granted(state, command(json!({ "StateSet": of(value) })), cell(Verb::Write)).after(&[&init]),
        Case::granted(state, command(json!({ "StateCas": of(swap) })), cell(Verb::Cas)).after(&[&init]),
    ]
}
