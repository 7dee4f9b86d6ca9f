//! `sim edge-names [--names N] [--seed S]`: hostile names through every command, as arguments and as what is stored, on both streams.
//!
//! Names hold escape sequences, line ends, directions of reading, separators, quotes, substitutions for a shell, leading dashes, a
//! kilobyte. They are stored as cells, records, runs, workers, errors and values; then every leaf of the tree of commands gets each name in
//! each place where it takes one, as tables and as JSON. Would see broken: a control character that reaches either stream, a line that a name
//! forges, a command that ends by a panic, and a suggested command that a shell reads as something else or that makes a file.

mod hostile;
mod leaves;
mod servers;
mod suggested;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::terminal::is_control;
use serde_json::{Value as JsonValue, json};
use testkit::arguments::Arguments;
use testkit::http::Client;
use testkit::http::message::{Request, path_of};
use testkit::random::Random;
use testkit::report::Report;
use testkit::server_process::{Launch, binary};

use hostile::FORGED;
use leaves::Leaf;

/// Names that each flag gets: what it does with a name does not depend on which of many it is.
const NAMES_PER_FLAG: usize = 8;
/// Threads that run commands.
const THREADS: usize = 4;
/// Complaints that are printed.
const SAID_MAX: usize = 20;

pub(crate) fn run(arguments: &Arguments) -> Report {
    let seed = arguments.seed();
    let count = usize::try_from(arguments.number("names", 1_000)).unwrap_or(usize::MAX);
    println!("edge-names: seed {seed}, {count} names");
    let names = hostile::names(count, &mut Random::new(seed));
    let folder = tempfile::tempdir().expect("a folder");
    let statehouse = binary();
    let launch = Launch::serve(&statehouse, folder.path().join("house"));
    let server = launch.environment("STATEHOUSE_DISK__LOW_BYTES", "1MiB").start().expect("a server");
    let client = Client::to(server.address());
    names.iter().for_each(|name| store(&client, name));

    let stage = Stage {
        statehouse: &statehouse,
        folder: folder.path(),
        url: format!("http://{}", server.address()),
        complaints: Mutex::new(Vec::new()),
        suggested: Mutex::new(Vec::new()),
        ran: AtomicUsize::new(0),
    };
    let leaves = leaves::all(&statehouse);
    let cases = cases(&leaves, &names);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(words) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    stage.try_both(words);
                }
            });
        }
    });
    stage.at_a_terminal(&names);
    servers::start_with(&stage, &names);
    servers::execute_for_changes(&stage, &Client::to(server.address()), &names);
    // Whatever else the server has to say of what waits, its text is for people too.
    let client = Client::to(server.address());
    let status = client.send(Request::get("/status").header("accept", "text/plain")).expect("an answer").text();
    stage.judge("GET /status as text", &status);
    stage.collect(&client.send(Request::get("/status")).expect("an answer").json());

    let stderr = server.stderr();
    stage.judge("the server's log", &stderr);
    let run_by_sh = suggested::check(folder.path(), &names, &stage);
    let complaints = stage.complaints.into_inner().unwrap_or_default();
    complaints.iter().take(SAID_MAX).for_each(|complaint| println!("edge-names: {complaint}"));
    let (ran, wrong) = (stage.ran.load(Ordering::Relaxed), complaints.len());
    let mut report = Report::new("edge");
    let goal =
        format!("{count} names through {} commands: no control character, no forged line, no panic", leaves.len());
    report.add("names.streams", format!("{ran}-run {wrong}-complaints"), &goal, wrong == 0 && ran > leaves.len());
    let goal = format!("at least {count} suggested commands, read by sh as their words, no canary made");
    let (lines, misread) = run_by_sh;
    report.add("names.shell", format!("{lines}-run {misread}-misread"), &goal, misread == 0 && lines >= count);
    report
}

/// Stores a name as whatever can have one.
fn store(client: &Client, name: &str) {
    let path = path_of(name);
    let value = json!(name).to_string();
    let sent = |request: Request| {
        let answer = client.send(request).expect("an answer");
        assert!(answer.is_success(), "{name:?}: {}", answer.text());
    };
    sent(Request::put(format!("/v1/cells/{path}")).body(value));
    // Fields, events and workers take fewer bytes than names.
    let short: String = name.chars().take(60).collect();
    let fields = json!({ &short: name, "error": name });
    sent(Request::put(format!("/v1/records/{path}")).body(json!({ "type": "task", "fields": fields }).to_string()));
    let event = json!({ "eventType": short, "idempotencyKey": short, "stepId": short, "eventData": { "why": name } });
    sent(Request::post(format!("/v1/runs/{path}/events")).body(event.to_string()));
    // Some are held by a worker of this name.
    if name.len().is_multiple_of(3) {
        sent(Request::post("/v1/claims").body(json!({ "name": name, "worker": short, "lease": "1h" }).to_string()));
    }
}

/// Every command line: names in all places for names, then in each flag.
fn cases(leaves: &[Leaf], names: &[String]) -> Vec<Vec<String>> {
    let mut cases = Vec::new();
    for (place, leaf) in leaves.iter().enumerate() {
        match leaf.places {
            0 => cases.push(leaf.line(&[], None)),
            _ => cases.extend(names.iter().map(|name| leaf.line(&vec![name.clone(); leaf.places], None))),
        }
        for (number, flag) in leaf.flags.iter().enumerate() {
            // Other names for each flag, so that all are seen in some.
            let begin = (place * 31 + number * 17) % names.len();
            for name in names.iter().cycle().skip(begin).take((names.len() / 8).clamp(1, NAMES_PER_FLAG)) {
                cases.push(leaf.line(&vec!["x".to_owned(); leaf.places], Some((flag, name))));
            }
        }
    }
    cases
}

/// Where commands are run, and what was found.
struct Stage<'a> {
    statehouse: &'a Path,
    folder: &'a Path,
    url: String,
    complaints: Mutex<Vec<String>>,
    /// Commands that were suggested: their words, and the line for a shell.
    suggested: Mutex<Vec<(Vec<String>, String)>>,
    ran: AtomicUsize,
}

impl Stage<'_> {
    fn complain(&self, complaint: String) {
        self.complaints.lock().expect("nobody panics with it").push(complaint);
    }

    fn count(&self) {
        self.ran.fetch_add(1, Ordering::Relaxed);
    }

    fn command(&self, words: &[String], format: &str) -> Output {
        let mut command = Command::new(self.statehouse);
        command.args(["-o", format]).args(words).current_dir(self.folder).env_clear().stdin(Stdio::null());
        command.env("STATEHOUSE_URL", &self.url).env("XDG_CONFIG_HOME", self.folder.join("config"));
        self.count();
        command.output().expect("it starts")
    }

    /// As a table and as JSON.
    fn try_both(&self, words: &[String]) {
        for format in ["table", "json"] {
            let done = self.command(words, format);
            let what = format!("{format} {words:?}");
            if done.status.code().is_none_or(|code| !(0..=7).contains(&code)) {
                self.complain(format!("{what}: ended with {}", done.status));
            }
            for (stream, bytes) in [("stdout", &done.stdout), ("stderr", &done.stderr)] {
                // An export is the data itself; a terminal gets it escaped, and that is looked at apart.
                if stream == "stdout" && words.first().is_some_and(|word| word == "export") {
                    continue;
                }
                match std::str::from_utf8(bytes) {
                    Ok(text) => self.judge(&format!("{stream} of {what}"), text),
                    Err(_) => self.complain(format!("{stream} of {what} is not UTF-8")),
                }
            }
            if let Ok(said) = serde_json::from_slice::<JsonValue>(&done.stderr) {
                self.collect(&said);
            }
            if let Ok(said) = serde_json::from_slice::<JsonValue>(&done.stdout) {
                self.collect(&said);
            }
        }
    }

    /// Complains about what must not be in a text for people.
    fn judge(&self, what: &str, text: &str) {
        if let Some(control) = text.chars().find(|letter| *letter != '\n' && is_control(*letter)) {
            self.complain(format!("{what} has the control character {control:?}"));
        }
        if let Some(line) = text.lines().find(|line| line.starts_with(FORGED)) {
            self.complain(format!("{what} has a line that a name forged: {line:?}"));
        }
    }

    /// Collects every suggested command in a document.
    fn collect(&self, found: &JsonValue) {
        match found {
            JsonValue::Object(members) => {
                if let (Some(argv), Some(shell)) = (members.get("argv"), members.get("shell")) {
                    let argv = argv.as_array().into_iter().flatten().filter_map(JsonValue::as_str);
                    let line = (argv.map(str::to_owned).collect(), shell.as_str().unwrap_or_default().to_owned());
                    self.suggested.lock().expect("nobody panics with it").push(line);
                }
                members.values().for_each(|member| self.collect(member));
            }
            JsonValue::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }

    /// At a terminal, which `script` makes: lists, raw values and an export. There, line ends are CR and LF.
    fn at_a_terminal(&self, names: &[String]) {
        let run = |words: &[&str]| {
            let mut line = vec![self.statehouse.display().to_string()];
            line.extend(words.iter().map(|word| (*word).to_owned()));
            let line = contract::shell::Suggested::new(line).shell();
            let mut script = Command::new("script");
            script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(self.folder).env_clear();
            script
                .env("PATH", "/usr/bin:/bin")
                .env("NO_COLOR", "1")
                .env("STATEHOUSE_URL", &self.url)
                .stdin(Stdio::null());
            let said = script.output().expect("script, of util-linux, is there").stdout;
            self.count();
            self.judge(&format!("a terminal for {words:?}"), &String::from_utf8_lossy(&said).replace("\r\n", "\n"));
        };
        for words in [&["cell", "ls"][..], &["rec", "ls"], &["status"], &["cell", "ls", "-o", "raw"], &["export"]] {
            run(words);
        }
        for name in names.iter().take(NAMES_PER_FLAG * 2) {
            // A value of a cell may have lines of its own.
            if !name.contains('\n') {
                run(&["cell", "get", "-o", "raw", "--", name]);
            }
            run(&["cell", "get", "--", &format!("{name}-none")]);
        }
    }
}
