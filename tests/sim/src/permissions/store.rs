//! Requests for what is no contract's: sessions, letters, the catalogue, principals, and the server itself.

use contract::access::{Area, Verb};
use serde_json::{Value as JsonValue, json};
use statehouse::sessions::UserMachine;
use testkit::http::Request;
use testkit::session_store::Tally;

use super::needed::{Case, For, Naming, Needed, OTHER_SPACE, Target};
use super::scene::Root;
use crate::http::TallyMachine;

fn with(request: Request, body: &JsonValue) -> Request {
    request.body(body.to_string())
}

/// A session of the right principal, and its secret.
type Session = [String; 2];

/// What the client of a session does, and what is done to sessions of others.
pub(super) fn sessions(target: &Target, session: &Session, doomed: &Session) -> Vec<Case> {
    let shown = |request: Request, [_, secret]: &Session| request.header("statehouse-session-secret", secret);
    let path = |[session, _]: &Session, below: &str| format!("/v1/sessions/{session}{below}");
    let own = |name: &str, request: Request| Case::new(name, shown(request, session), For::OwnerOfSession);
    let others = || Needed::everywhere(Verb::Operate, Area::Session);
    let open = with(Request::post("/v1/sessions").query("space", "default"), &json!({}));
    let ended = shown(Request::delete(path(doomed, "")), doomed);
    vec![
        Case::granted("sessions.list", Request::get("/v1/sessions"), others()),
        Case::granted("sessions.open", open, Needed::of(Verb::Session, Area::Session, "")),
        Case::new("sessions.get", Request::get(path(session, "")), For::OwnerOfSession),
        own("sessions.keepalive", Request::post(path(session, "/keepalive"))),
        own("sessions.pushes", Request::get(path(session, "/pushes"))),
        own("sessions.pushes", Request::get(path(session, "/pushes")).query("follow", "true")).stream(),
        own("sessions.acknowledge", with(Request::post(path(session, "/acks")), &json!({ "upto": 0 }))),
        Case::new("sessions.end", ended, For::OwnerOfSession),
        Case::granted("sessions.end", Request::delete(path(doomed, "")).query("force", "true"), others()),
        Case::granted("pushes.waiting", Request::get("/v1/pushes"), others()),
        Case::granted(
            "pushes.retry",
            with(Request::post("/v1/pushes/retry"), &json!({ "sent_before_us": 1 })),
            others(),
        ),
        machine(target, session),
    ]
}

/// A command for a user's machine.
fn machine(target: &Target, [session, secret]: &Session) -> Case {
    let request = target.ask("POST", format!("/v1/sessions/{session}/requests"));
    let request = request.query("machine", TallyMachine::NUMBER).header("statehouse-session-secret", secret);
    let request = request.header("statehouse-request", 1).header("statehouse-lowest-pending", 1);
    let group = if target.naming == Naming::Alone { "default" } else { &target.group };
    let needed = vec![Needed::of(Verb::Session, Area::Session, ""), Needed::of(Verb::Write, Area::Session, group)];
    Case::new("sessions.request", request.body(Tally::Add("n".into()).encode()), For::Granted(needed)).let_in()
}

/// Messages that a group refused.
pub(super) fn letters(target: &Target) -> Vec<Case> {
    let Target { group, naming, .. } = target;
    // A record cannot be released that nobody holds.
    let refused =
        json!([{ "op": "send", "group": group, "do": [{ "op": "record.release", "name": "m", "attempt": 1 }] }]);
    let sent = with(Request::post("/v1/groups/sender/txn"), &json!({ "do": refused }));
    let listed = || {
        let prefix = if *naming == Naming::ByGroup { group.as_str() } else { "" };
        let needs = |verb| Needed::of(verb, Area::Message, prefix);
        For::Granted(vec![needs(Verb::List), needs(Verb::Read)])
    };
    let mut cases = vec![Case::new("letters.list", target.ask("GET", "/v1/letters"), listed()).after(&[&sent])];
    for verb in ["retry", "drop"] {
        let request = with(target.ask("POST", format!("/v1/letters/{verb}")), &json!({ "number": 1 }));
        let prefix = if *naming == Naming::Alone { "" } else { group };
        let needs = Needed::of(Verb::Operate, Area::Message, prefix);
        let case = Case::granted(&format!("letters.{verb}"), request, needs);
        if *naming == Naming::Alone {
            cases.push(case.let_in());
            continue;
        }
        let list = Request::get("/v1/letters").query("group", group);
        // It is refused again.
        cases.push(case.after(&[&sent]).let_in().finished(move |root: &Root, request| {
            let number = root.until("a letter", &list, |page| page["letters"][0]["number"].as_u64());
            with(request, &json!({ "number": number }))
        }));
    }
    cases
}

/// What is declared in a space, and the spaces.
pub(super) fn catalogue(target: &Target) -> Vec<Case> {
    let Target { thing, .. } = target;
    let needs = |verb, prefix: &str| Needed::of(verb, Area::Catalogue, prefix);
    let of_space = |verb| needs(verb, "");
    let branch = Request::put(format!("/v1/branches/{thing}"));
    let of_type = |method| Request::new(method, format!("/v1/types/{thing}"));
    let of_guard = |method| Request::new(method, format!("/v1/guards/{thing}"));
    let declared = with(of_type("PUT"), &json!({ "name": thing }));
    let rescued = json!({ "name": thing, "rescued_to": "t1", "exhausted_to": "t2" });
    let to_topic = |topic: &str| Needed::of(Verb::Write, Area::Message, topic);
    let sending = vec![needs(Verb::Operate, thing), to_topic("t1"), to_topic("t2")];
    let guarded = with(of_guard("PUT"), &json!({}));
    let retention = "/v1/spaces/default/retention";
    let of_other = |verb| Needed { space: Some(OTHER_SPACE), ..of_space(verb) };
    let other_retention = format!("/v1/spaces/{OTHER_SPACE}/retention");
    vec![
        Case::granted("spaces.list", Request::get("/v1/spaces"), Needed::store(Verb::Read)),
        Case::granted("spaces.create", Request::put(format!("/v1/spaces/{thing}")), Needed::store(Verb::Administer)),
        Case::granted("spaces.retention", Request::get(retention), of_space(Verb::Read)),
        Case::granted(
            "spaces.set_retention",
            with(Request::put(retention), &json!({ "versions": 3 })),
            of_space(Verb::Operate),
        ),
        Case::granted("spaces.retention", Request::get(&other_retention), of_other(Verb::Read)),
        Case::granted(
            "spaces.set_retention",
            with(Request::put(&other_retention), &json!({ "versions": 3 })),
            of_other(Verb::Operate),
        ),
        Case::granted("spaces.usage", Request::get("/v1/spaces/default/usage"), of_space(Verb::Read)),
        Case::granted("branches.list", Request::get("/v1/branches"), of_space(Verb::Read)),
        Case::granted("branches.create", branch.clone(), of_space(Verb::Operate)),
        Case::granted("branches.delete", Request { method: "DELETE", ..branch.clone() }, of_space(Verb::Operate))
            .after(&[&branch]),
        Case::granted("types.list", Request::get("/v1/types"), of_space(Verb::Read)),
        Case::granted("types.declare", declared, needs(Verb::Operate, thing)),
        Case::new("types.declare", with(of_type("PUT"), &rescued), For::Granted(sending)),
        Case::granted("guards.list", Request::get("/v1/guards"), of_space(Verb::Read)),
        Case::granted("guards.set", guarded.clone(), needs(Verb::Operate, thing)),
        Case::granted("guards.remove", of_guard("DELETE"), needs(Verb::Operate, thing)).after(&[&guarded]),
        Case::granted("limits.get", Request::get("/v1/limits"), Needed::store(Verb::Read)),
    ]
}

/// Who may do what.
pub(super) fn principals(target: &Target) -> Vec<Case> {
    let administer = || Needed::store(Verb::Administer);
    let who = format!("/v1/principals/{}", target.thing);
    let set = with(Request::put(&who), &json!({ "grants": [] }));
    let ask = |principal: Option<&str>| {
        let mut body = json!({ "verb": "read", "area": "cells" });
        if let Some(principal) = principal {
            body["principal"] = principal.into();
        }
        with(Request::post("/v1/access"), &body)
    };
    let issue = with(Request::post(format!("{who}/tokens")), &json!({}));
    let name = target.thing.clone();
    let revoke = Case::granted("tokens.revoke", Request::delete("/v1/tokens/0000000000"), administer());
    vec![
        Case::granted("principals.list", Request::get("/v1/principals"), administer()),
        Case::granted("principals.get", Request::get(&who), administer()).after(&[&set]),
        Case::granted("principals.set", set.clone(), administer()),
        Case::granted("principals.remove", Request::delete(&who), administer()).after(&[&set]),
        Case::granted("tokens.issue", issue, administer()).after(&[&set]),
        revoke.after(&[&set]).finished(move |root: &Root, request| {
            let token = root.issue(&name);
            Request { path: format!("/v1/tokens/{}", &token[4..14]), ..request }
        }),
        Case::new("access.whoami", Request::get("/v1/whoami"), For::Known),
        Case::new("access.check", ask(None), For::Known),
        Case::granted("access.check", ask(Some("root")), administer()),
        Case::granted("audit.get", Request::get("/v1/audit"), Needed::store(Verb::Audit)),
    ]
}

/// What the server shows of itself, and copies of everything.
pub(super) fn server(history: &str) -> Vec<Case> {
    let read = || Needed::store(Verb::Read);
    let known = |name: &str, path: &str| Case::new(name, Request::get(path), For::Known);
    let open = |name: &str, path: &str| Case::new(name, Request::get(path), For::Anybody);
    let verified = with(Request::post("/v1/backup/verified"), &json!({ "store": history }));
    let export = |request| Case::granted("export.create", request, Needed::store(Verb::Snapshot));
    let mut cases = vec![
        Case::granted("backup.create", Request::get("/v1/backup"), Needed::store(Verb::Snapshot)),
        Case::granted("backup.verified", verified, Needed::store(Verb::Snapshot)),
        export(Request::get("/v1/export")),
        Case::granted(
            "export.create",
            Request::get("/v1/export").query("space", "default"),
            Needed::of(Verb::Snapshot, Area::Store, ""),
        ),
        open("errors.list", "/v1/errors"),
        open("errors.page", "/v1/errors/SH-1003"),
        known("server.root", "/"),
        Case::granted("server.status", Request::get("/status"), read()),
        Case::granted("server.metrics", Request::get("/metrics"), read()),
        known("server.version", "/version"),
        known("server.openapi", "/openapi.json"),
        known("server.docs", "/docs"),
    ];
    for (name, path) in [("server.livez", "/livez"), ("server.readyz", "/readyz"), ("server.startupz", "/startupz")] {
        cases.push(open(name, path));
        cases.push(Case::granted(name, Request::get(path).query("verbose", "true"), read()));
    }
    cases
}
