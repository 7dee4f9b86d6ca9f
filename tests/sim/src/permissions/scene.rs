//! A server that asks for tokens, everyone who sends to it, and what they are answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contract::access::{Area, Verb};
use serde_json::{Value as JsonValue, json};
use server::{Server, Tls, TlsFiles};
use statehouse::access::{Grant, Principal};
use statehouse::keyed::Checkpoints;
use statehouse::publish::MemoryBroker;
use statehouse::{Clock, Options, Statehouse, SystemClock};
use testkit::certificates::{Authority, Pair};
use testkit::http::{Client, Request, Response};
use tokio::runtime::Runtime;

use super::Cells;
use super::needed::{Case, For, Needed, OTHER_SPACE, Right, SPACE};
use crate::directories::fast_directory;
use crate::http::TallyMachine;

/// What requests come over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Plain,
    Tls,
}

/// How a request is sent besides plainly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Plainly,
    /// With `Statehouse-Force`.
    ByForce,
    /// Numbered in a session.
    InSession,
}

const BEARER: &str = "authorization";

/// What is granted in place of what is needed.
type Grants = fn(&Needed) -> String;

/// The longest that a test waits for what the server does beside its answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// A token of a principal that may do everything, and the server.
pub(super) struct Root {
    pub(super) client: Client,
    token: String,
    /// The store's number, as tokens of attempts show it.
    pub(super) history: String,
}

impl Root {
    pub(super) fn send(&self, request: &Request) -> Response {
        send(&self.client, &self.token, request)
    }

    pub(super) fn call(&self, request: &Request) -> Response {
        let response = self.send(request);
        assert!(response.is_success(), "{} {}: {}", request.method, request.path, response.text());
        response
    }

    /// A new token of a principal.
    pub(super) fn issue(&self, principal: &str) -> String {
        let issued = self.call(&Request::post(format!("/v1/principals/{principal}/tokens")).body("{}"));
        issued.json()["token"].as_str().expect("a token").to_owned()
    }

    pub(super) fn set(&self, principal: &str, grants: &[String]) {
        let body = json!({ "grants": grants }).to_string();
        self.call(&Request::put(format!("/v1/principals/{principal}")).body(body));
    }

    /// Asks until an answer is there.
    pub(super) fn until<T>(&self, what: &str, request: &Request, found: impl Fn(&JsonValue) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found(&self.call(request).json()) {
                return found;
            }
            assert!(Instant::now() < until, "{what}, within {PATIENCE:?}");
        }
    }
}

fn send(client: &Client, token: &str, request: &Request) -> Response {
    let request = request.clone().header(BEARER, format!("Bearer {token}"));
    client.send(&request).unwrap_or_else(|error| panic!("{} {}: {error}", request.method, request.path))
}

/// A clock that is put forward, so that a token expires.
#[derive(Default)]
struct LaterClock {
    system: SystemClock,
    by_us: AtomicU64,
}

impl Clock for LaterClock {
    fn wall_us(&self) -> u64 {
        self.system.wall_us() + self.by_us.load(Ordering::SeqCst)
    }

    fn monotonic_us(&self) -> u64 {
        self.system.monotonic_us() + self.by_us.load(Ordering::SeqCst)
    }
}

/// The shortest life of a token.
const MINUTE: Duration = Duration::from_secs(60);

/// Those who are nobody: what they show, and what that is.
struct Strangers {
    tokens: Vec<(&'static str, Option<String>)>,
}

/// One principal that is sent as again and again, with other grants.
struct Someone {
    name: &'static str,
    token: String,
}

pub(super) struct Scene {
    pub(super) root: Root,
    strangers: Strangers,
    /// Whose grants are right.
    right: Someone,
    /// Whose grants are all but right.
    wrong: Someone,
    /// A session of the right one, and its secret.
    session: [String; 2],
    pub(super) cells: Cells,
    things: usize,
    _served: Served,
}

/// The server, which stops when this is dropped.
struct Served {
    _runtime: Runtime,
    _house: Statehouse,
    _directory: tempfile::TempDir,
    /// With the files of the certificate.
    _authority: Authority,
}

impl Scene {
    pub(super) fn start(over: Over) -> Self {
        let directory = fast_directory().expect("a directory");
        let clock = Arc::new(LaterClock::default());
        let options = Options::default().machine(TallyMachine).publish_to(Arc::new(MemoryBroker::default()));
        let house = options.clock(clock.clone()).open(directory.path().join("house")).expect("a house");
        let everything = Principal::new("root").granted(Grant::everything());
        house.principals().set(&everything).expect("a root");
        let token = house.principals().issue_token("root", Duration::from_secs(3_600)).expect("a token").to_text();
        let expiring = Principal::new("expired").granted(Grant::everything());
        house.principals().set(&expiring).expect("set");
        let expired = house.principals().issue_token("expired", MINUTE).expect("a token").to_text();
        clock.by_us.store(u64::try_from(MINUTE.as_micros()).expect("short") + 1, Ordering::SeqCst);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let listener = runtime.block_on(server::listen(([127, 0, 0, 1], 0).into())).expect("a port");
        let address = listener.local_addr().expect("an address");
        let authority = Authority::new("permissions");
        let (listener, client) = match over {
            Over::Plain => (listener, Client::to(address)),
            Over::Tls => {
                let Pair { certificate, key } = authority.server("server");
                let tls = Tls::open(TlsFiles { certificate, key, client_ca: Some(authority.file()) }).expect("a pair");
                let files = client::tls::TlsFiles::default().ca_file(authority.file());
                (listener.over_tls(Arc::new(tls)), Client::over_tls(address, files))
            }
        };
        let checkpoints = directory.path().join("checkpoints");
        let place = Checkpoints::open(checkpoints.to_str().expect("text")).expect("a place for checkpoints");
        let served = Server::new(house.clone()).hosting::<TallyMachine>().keeping_checkpoints(place);
        runtime.spawn(server::serve_all(listener, served.asking_for_tokens(), std::future::pending()));
        let history = format!("{:016x}", house.id());
        let root = Root { client, token, history };
        root.call(&Request::put(format!("/v1/spaces/{OTHER_SPACE}")));
        root.set("other", &[]);
        let [right, wrong] = ["right", "wrong"].map(|name| {
            root.set(name, &["admin@*".to_owned()]);
            Someone { name, token: root.issue(name) }
        });
        let strangers = Strangers::new(&root, expired);
        let session = open_session(&root.client, &right.token);
        let _served = Served { _runtime: runtime, _house: house, _directory: directory, _authority: authority };
        Self { root, strangers, right, wrong, session, cells: Cells::default(), things: 0, _served }
    }

    /// The number of the next thing.
    pub(super) fn next(&mut self) -> usize {
        self.things += 1;
        self.things
    }

    /// A session of the right principal, and its secret.
    pub(super) fn session(&self) -> &[String; 2] {
        &self.session
    }

    /// A session for one request.
    pub(super) fn another_session(&self) -> [String; 2] {
        self.root.set(self.right.name, &["admin@*".to_owned()]);
        open_session(&self.root.client, &self.right.token)
    }

    /// Every identity sends a request, before and after it is possible; the right one last.
    pub(super) fn try_case(&mut self, case: Case, sent: Sent, how: &str) {
        let Case { name, before, mut request, finish, who, right, is_stream } = case;
        let name = &format!("{name}, {sent:?}, {how}");
        let mut needed = match &who {
            For::Granted(needed) => needed.clone(),
            For::Anybody | For::Known | For::OwnerOfSession => Vec::new(),
        };
        match sent {
            Sent::Plainly => {}
            Sent::ByForce => {
                request = request.header("statehouse-force", "true");
                needed.extend(needed.clone().into_iter().map(|needed| Needed { verb: Verb::Force, ..needed }));
            }
            Sent::InSession => {
                let [session, secret] = self.another_session();
                request = request.header("statehouse-session", session).header("statehouse-session-secret", secret);
                request = request.header("statehouse-request", 1);
                needed.push(Needed::of(Verb::Session, Area::Session, ""));
            }
        }
        let mut asked = Asked { name, request, is_stream };
        let impossible = self.refusals(&asked, &who, &needed);
        for request in &before {
            let answer = self.root.send(request);
            self.cells.compare(&|| format!("{name}: what makes it possible"), &outcome(&answer), "done");
        }
        if let Some(finish) = finish {
            asked.request = finish(&self.root, asked.request);
        }
        let possible = self.refusals(&asked, &who, &needed);
        for ((identity, of_nothing), (_, of_something)) in impossible.into_iter().zip(possible) {
            self.cells.compare(
                &|| format!("{name}: what {identity} learns of what is there"),
                &of_something,
                &of_nothing,
            );
        }
        self.try_right(&asked, &who, &needed, right);
    }

    /// Those who must not, and what they are told.
    fn refusals(&mut self, asked: &Asked<'_>, who: &For, needed: &[Needed]) -> Vec<(String, String)> {
        let mut told = Vec::new();
        let name = asked.name;
        if matches!(who, For::Anybody) {
            return told;
        }
        for (identity, token) in &self.strangers.tokens {
            let answer = asked.sent_with(&self.root.client, token.as_deref());
            self.cells.compare(
                &|| format!("{name}, sent by {identity}"),
                &asked.outcome(&answer),
                asked.refused("401 SH-6001"),
            );
            told.push(((*identity).to_owned(), said(&answer)));
        }
        if matches!(who, For::OwnerOfSession) {
            // Only operators may deal with the sessions of others.
            self.root.set(self.wrong.name, &["worker@*".to_owned()]);
            let answer = asked.sent_with(&self.root.client, Some(&self.wrong.token));
            self.cells.compare(&|| format!("{name}, sent by another worker"), &outcome(&answer), "410 SH-5004");
            return told;
        }
        let changes: [(&str, Grants); 3] = [
            ("another space", Needed::in_other_space),
            ("another prefix", Needed::under_other_prefix),
            ("other verbs", Needed::other_verbs),
        ];
        for place in 0..needed.len() {
            for (change, wrong) in changes {
                let grants: Vec<_> = needed
                    .iter()
                    .enumerate()
                    .filter(|(at, other)| *at != place && !needed[place].is_covered_with(other))
                    .map(|(_, needed)| needed.exactly())
                    .chain([wrong(&needed[place])])
                    .collect();
                self.root.set(self.wrong.name, &grants);
                let answer = asked.sent_with(&self.root.client, Some(&self.wrong.token));
                let identity = format!("who has {change} instead of {}", needed[place].exactly());
                self.cells.compare(
                    &|| format!("{name}, sent by {identity}"),
                    &asked.outcome(&answer),
                    asked.refused("403 SH-6002"),
                );
                told.push((identity, said(&answer)));
            }
        }
        told
    }

    fn try_right(&mut self, asked: &Asked<'_>, who: &For, needed: &[Needed], right: Right) {
        let mut grants: Vec<_> = needed.iter().map(Needed::exactly).collect();
        grants.dedup();
        self.root.set(self.right.name, &grants);
        let token = (!matches!(who, For::Anybody)).then_some(self.right.token.as_str());
        let answer = asked.sent_with(&self.root.client, token);
        let found = match (outcome(&answer), right) {
            (found, Right::Done) => found,
            (found, Right::LetIn) if !found.starts_with("401") && !found.starts_with("403") => "done".to_owned(),
            (found, Right::LetIn) => found,
        };
        self.cells.compare(&|| format!("{}, sent by who may", asked.name), &found, "done");
    }
}

/// A request, and what it is called.
struct Asked<'case> {
    name: &'case str,
    request: Request,
    /// Whether its answer has no end.
    is_stream: bool,
}

impl Asked<'_> {
    fn sent_with(&self, client: &Client, token: Option<&str>) -> Response {
        let request = match token {
            None => self.request.clone(),
            Some(token) => self.request.clone().header(BEARER, format!("Bearer {token}")),
        };
        let answer = match self.is_stream {
            true => client.follow(&request).map(|events| events.head().clone()),
            false => client.send(&request),
        };
        answer.unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// What is expected of it: an answer to `HEAD` has no code.
    fn refused(&self, expected: &'static str) -> &'static str {
        if self.request.method == "HEAD" { &expected[..3] } else { expected }
    }

    fn outcome(&self, answer: &Response) -> String {
        let outcome = outcome(answer);
        if self.request.method == "HEAD" && outcome != "done" { answer.status.to_string() } else { outcome }
    }
}

impl Strangers {
    fn new(root: &Root, expired: String) -> Self {
        root.set("revoked", &["admin@*".to_owned()]);
        let revoked = root.issue("revoked");
        root.call(&Request::delete(format!("/v1/tokens/{}", &revoked[4..14])));
        // Its checksum is right: it is only nobody's.
        let garbage = statehouse::draw_token().expect("a token").to_text();
        let tokens = vec![
            ("nobody", None),
            ("nobody, with a token that is nobody's", Some(garbage)),
            ("nobody, with text that is no token", Some("x".repeat(64))),
            ("nobody, with a token that has expired", Some(expired)),
            ("nobody, with a token that was revoked", Some(revoked)),
        ];
        Self { tokens }
    }
}

/// A new session and its secret.
fn open_session(client: &Client, token: &str) -> [String; 2] {
    let opened = Request::post("/v1/sessions").query("space", SPACE).body(r#"{"timeout":"10m"}"#);
    let opened = send(client, token, &opened);
    assert!(opened.is_success(), "a session: {}", opened.text());
    let opened = opened.json();
    ["session", "secret"].map(|member| opened[member].as_str().expect("text").to_owned())
}

/// The status and the code of a refusal, or that it was done.
fn outcome(response: &Response) -> String {
    if response.is_success() {
        // To whom it does not exist, a session has ended.
        return if response.text().contains(r#""ended":false"#) { "410 SH-5004" } else { "done" }.to_owned();
    }
    let problem: JsonValue = serde_json::from_slice(&response.body).unwrap_or_default();
    format!("{} {}", response.status, problem["code"].as_str().unwrap_or("without a code"))
}

/// Everything that a refusal tells, but which request it was.
fn said(response: &Response) -> String {
    let mut problem: JsonValue = serde_json::from_slice(&response.body).unwrap_or_default();
    if let Some(members) = problem.as_object_mut() {
        members.remove("request_id");
        members.remove("instance");
    }
    format!("{} {problem}", response.status)
}
