//! `sim audited`: administrative acts on a server that is killed again and again. Nothing that was done is missing from the audit, and
//! nothing that was changed in it is overlooked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use contract::access::audit::AuditHead;
use serde_json::{Value as JsonValue, json};
use testkit::arguments::Arguments;
use testkit::http::{Client, Request};
use testkit::random::Random;
use testkit::report::Report;
use testkit::server_process::{Launch, ServerProcess, binary};

use crate::directories::fast_directory;

/// Files of a changed audit that the real command checks; the library checks every one.
const BY_COMMAND: usize = 12;

/// Kills a server under administrative acts, and then changes what was recorded of them.
pub(crate) fn run(arguments: &Arguments) -> Report {
    let (acts, kills) = (arguments.number("acts", 200), arguments.number("kills", 5));
    let mut random = Random::new(arguments.seed());
    let directory = fast_directory().expect("a directory");
    let data = directory.path().join("house");
    let launch = Launch::serve(binary(), &data).asking_for_tokens();
    let mut administration = Administration::begin(launch, &data);
    let each = (acts / (kills + 1)).max(1);
    for act in 0..acts {
        administration.act(act);
        if (act + 1) % each == 0 && administration.kills < kills {
            administration.kill_in_an_act(&mut random, act);
        }
    }
    let found = administration.compare();
    found.wrong.iter().take(20).for_each(|wrong| println!("audited: {wrong}"));
    let mut report = Report::new("secure");
    let figure =
        format!("{}-acts-{}-kills-{}-events-{}-wrong", acts, administration.kills, found.events, found.wrong.len());
    let goal = "every act that was done is recorded once, and nothing else: 0 wrong";
    report.add("audit.acts", figure, goal, found.wrong.is_empty() && administration.kills == kills);
    let file = directory.path().join("audit.jsonl");
    administration.export(&file);
    let text = std::fs::read_to_string(&file).expect("the exported audit");
    let (changed, overlooked) = change_every_line(&text, &mut random, directory.path());
    overlooked.iter().take(20).for_each(|one| println!("audited: {one} is overlooked"));
    let figure = format!("{changed}-changes-{}-overlooked", overlooked.len());
    report.add(
        "audit.changes",
        figure,
        "every flipped, removed or inserted line is found",
        overlooked.is_empty() && changed > 0,
    );
    report
}

/// Somebody who administers a server.
struct Administration {
    launch: Launch,
    server: Option<ServerProcess>,
    client: Client,
    root: String,
    kills: u64,
    /// The principals whose setting was answered, and those whose was not.
    done: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

/// What became of an administration.
struct Found {
    events: usize,
    wrong: Vec<String>,
}

impl Administration {
    fn begin(launch: Launch, data: &Path) -> Self {
        let server = launch.start().expect("a server");
        let client = Client::to(server.address());
        let root = std::fs::read_to_string(data.join("root.token")).expect("the token of the first administrator");
        let (done, unknown) = (BTreeSet::new(), BTreeSet::new());
        Self { launch, server: Some(server), client, root: root.trim().to_owned(), kills: 0, done, unknown }
    }

    fn by_root(&self, request: Request) -> Request {
        request.header("authorization", format!("Bearer {}", self.root))
    }

    fn setting(&self, principal: &str) -> Request {
        let body = json!({ "grants": [format!("worker@default/records/{principal}.")] });
        self.by_root(Request::put(format!("/v1/principals/{principal}")).body(body.to_string()))
    }

    /// One act that nothing disturbs.
    fn act(&mut self, number: u64) {
        let principal = format!("p{number}");
        self.client.call(self.setting(&principal)).expect("it is done");
        self.done.insert(principal);
    }

    /// Kills the server while acts are under way, and starts it again.
    fn kill_in_an_act(&mut self, random: &mut Random, number: u64) {
        let server = self.server.take().expect("a server");
        let after = Duration::from_micros(random.below(20_000));
        let (done, unknown) = std::thread::scope(|scope| {
            let acts = scope.spawn(|| {
                let mut done = Vec::new();
                for again in 0.. {
                    let principal = format!("p{number}-{again}");
                    match self.client.send(self.setting(&principal)) {
                        Ok(answer) if answer.is_success() => done.push(principal),
                        _ => return (done, principal),
                    }
                }
                unreachable!("the server is killed")
            });
            std::thread::sleep(after);
            server.kill();
            acts.join().expect("acts until it was killed")
        });
        self.done.extend(done);
        self.unknown.insert(unknown);
        let server = self.launch.start().expect("the server again");
        self.client.moved_to(server.address());
        self.server = Some(server);
        self.kills += 1;
    }

    /// Everything that is recorded, as it is.
    fn events(&self) -> Vec<String> {
        let (mut after, mut events) = (0, Vec::new());
        loop {
            let read = self.by_root(Request::get("/v1/audit").query("after", after).query("limit", 1_000));
            let page = self.client.call(read).expect("a page of the audit").members();
            let of_page: Vec<Box<serde_json::value::RawValue>> =
                serde_json::from_str(page["events"].get()).expect("events");
            if of_page.is_empty() {
                return events;
            }
            events.extend(of_page.iter().map(|event| event.get().to_owned()));
            after = events.len();
        }
    }

    /// All principals but the first administrator.
    fn principals(&self) -> BTreeSet<String> {
        let (mut after, mut found) = (String::new(), BTreeSet::new());
        loop {
            let page = self.by_root(Request::get("/v1/principals").query("after", &after).query("limit", 500));
            let page = self.client.call(page).expect("principals").json();
            let of_page = page["principals"].as_array().expect("principals").iter();
            found.extend(of_page.map(|one| one["principal"].as_str().expect("a name").to_owned()));
            match page["next_after"].as_str() {
                Some(next) => after = next.to_owned(),
                None => break,
            }
        }
        found.remove("root");
        found
    }

    /// Whether what was done, what is there, and what is recorded is the same.
    fn compare(&self) -> Found {
        let mut wrong = Vec::new();
        let (mut head, mut recorded) = (AuditHead::default(), BTreeMap::<String, u64>::new());
        let events = self.events();
        for event in &events {
            if let Err(fault) = head.check(event) {
                wrong.push(format!("the chain: {fault}"));
            }
            let read: JsonValue = serde_json::from_str(event).expect("an event");
            if read["act"] == "principals.set" && read["principal"] == "root" {
                let principal = read["on"]["principal"].as_str().expect("a name").to_owned();
                *recorded.entry(principal).or_default() += 1;
            }
        }
        let listed = self.principals();
        for principal in &self.done {
            if !listed.contains(principal) {
                wrong.push(format!("{principal} was set and is not there"));
            }
        }
        for principal in &listed {
            if !self.done.contains(principal) && !self.unknown.contains(principal) {
                wrong.push(format!("{principal} is there and was never set"));
            }
            if recorded.get(principal) != Some(&1) {
                wrong.push(format!("{principal} is recorded {:?} times", recorded.get(principal)));
            }
        }
        wrong.extend(
            recorded.keys().filter(|one| !listed.contains(*one)).map(|one| format!("{one} is recorded and not there")),
        );
        Found { events: events.len(), wrong }
    }

    /// By the real command.
    fn export(&self, file: &Path) {
        let server = self.server.as_ref().expect("a server");
        let mut command = Command::new(binary());
        command.env("STATEHOUSE_TOKEN", &self.root).args(["audit", "export", "--url"]);
        let output = command.arg(format!("http://{}", server.address())).arg(file).output().expect("the command");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Flips a bit of every line, removes it, and puts another one before it. Says how many changes there were, and which are overlooked.
fn change_every_line(text: &str, random: &mut Random, folder: &Path) -> (usize, Vec<String>) {
    let lines: Vec<&str> = text.lines().collect();
    let (mut changes, mut overlooked) = (0, Vec::new());
    let by_command: BTreeSet<usize> = (0..BY_COMMAND).map(|_| random.index(lines.len())).collect();
    for (place, line) in lines.iter().enumerate() {
        let mut flipped = line.as_bytes().to_vec();
        let at = random.index(flipped.len());
        flipped[at] ^= 1 << random.below(7);
        let flipped = String::from_utf8_lossy(&flipped).into_owned();
        let other = lines[random.index(lines.len())];
        let with = |replaced: &[&str]| [&lines[..place], replaced, &lines[place + 1..]].concat().join("\n");
        for (what, changed) in
            [("flipped", with(&[&flipped])), ("removed", with(&[])), ("inserted", with(&[other, line]))]
        {
            changes += 1;
            let mut is_found = is_refused(&changed);
            if by_command.contains(&place) {
                is_found &= is_refused_by_command(&changed, folder);
            }
            if !is_found {
                overlooked.push(format!("line {}, {what}", place + 1));
            }
        }
    }
    assert!(!is_refused(text) && !is_refused_by_command(text, folder), "what nobody has changed is whole");
    (changes, overlooked)
}

/// Whether lines that end with the end of the audit are not what was recorded.
fn is_refused(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let Some((last, events)) = lines.split_last() else { return true };
    let mut head = AuditHead::default();
    let is_whole = events.iter().all(|event| head.check(event).is_ok());
    let end: JsonValue = serde_json::from_str(last).unwrap_or_default();
    let digest = end["end"]["digest"].as_str().map(str::to_owned);
    let fits = digest == Some(contract::access::audit::hex(&head.digest));
    !is_whole || !fits || end["end"]["number"].as_u64() != Some(head.number)
}

fn is_refused_by_command(text: &str, folder: &Path) -> bool {
    let file = folder.join("changed.jsonl");
    std::fs::write(&file, text).expect("written");
    let output = Command::new(binary()).args(["audit", "verify"]).arg(&file).output().expect("the command");
    !output.status.success()
}
