//! Every command with each flag that says where it acts, or by which right: it is honoured, or refused by name before anything is
//! sent.
//!
//! What a command honours is not taken from the command: it is run once through a line that listens, and the routes that it calls say it.
//! Would see broken: a flag that is dropped without a word, a flag that is refused although a route honours it, and a command of which
//! nobody knows.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use wire::routes::{ACCESS_CHECK, ALL, Found, Route, SESSIONS_END, Scope, TRANSACTIONS_COMMIT, find};

use super::stage::{self, Done, Stage, Store};
use super::step::Step;
use super::{Format, script};

/// A flag.
struct Flag {
    name: &'static str,
    /// What is given to it; none for one that takes nothing. No such space exists, so nothing is changed.
    value: Option<&'static str>,
    /// What is sent then.
    sent: &'static str,
    is_honoured: fn(&Route) -> bool,
}

const FLAGS: [Flag; 5] = [
    Flag {
        name: "--space",
        value: Some("no-such-space"),
        sent: "no-such-space",
        // A question about permissions has its place in its body.
        is_honoured: |route| route.scope >= Scope::Space || *route == ACCESS_CHECK,
    },
    Flag {
        name: "--branch",
        value: Some("no-such-branch"),
        sent: "no-such-branch",
        is_honoured: |route| route.scope >= Scope::Branch,
    },
    Flag {
        name: "--group",
        value: Some("some-group"),
        sent: "some-group",
        // A transaction has its group in its path.
        is_honoured: |route| route.scope >= Scope::Group || [TRANSACTIONS_COMMIT, ACCESS_CHECK].contains(route),
    },
    Flag {
        name: "--owner",
        value: Some("some-group#1#h0000000000000000"),
        sent: "statehouse-owner: some-group#1#h0000000000000000",
        is_honoured: Route::is_fenced,
    },
    Flag {
        name: "--force",
        value: None,
        sent: "force",
        is_honoured: |route| route.can_be_forced() || *route == SESSIONS_END,
    },
];

/// Tries every command with every flag. Gives how many pairs there were, and what was not as it should be.
pub fn check_flags(statehouse: &Path) -> (usize, Vec<String>) {
    let mut stage = Stage::set(statehouse, Store::Server);
    let line = Line::default();
    let before = |server: SocketAddr| format!("http://{}", line.stand_before(server));
    let urls = [stage.server_address(), stage.guarded_address()].map(before);
    let [url, guarded_url] = urls;
    stage.reach_at(url, guarded_url);
    let mut left: BTreeMap<String, bool> = stage::leaves(statehouse).into_iter().map(|leaf| (leaf, false)).collect();
    left.retain(|leaf, _| stage::help(statehouse, &words_of(leaf)).contains("--group"));
    let (mut pairs, mut complaints) = (0, Vec::new());
    for step in script::steps() {
        line.clear();
        let done = stage.run(step, Format::Table);
        let called = line.routes();
        let leaf = left.keys().find(|leaf| step.words().starts_with(&words_of(leaf))).cloned();
        // Some say that the machine is slow, and have called their routes all the same.
        let succeeds = done.exit == Some(0) || (step.exit == 0 && done.exit.is_some() && done.exit == step.or_exit);
        // One that reaches no store honours none of the flags.
        let usable = succeeds && step.alone == called.is_empty();
        let Some(leaf) = leaf.filter(|leaf| usable && !left[leaf]) else { continue };
        left.insert(leaf.clone(), true);
        let mut case = Case { stage: &stage, line: &line, step, leaf, complaints: &mut complaints };
        case.check(&called);
        pairs += FLAGS.len();
    }
    complaints.extend(left.iter().filter(|(_, tried)| !**tried).map(|(leaf, _)| format!("`{leaf}` was not tried")));
    (pairs, complaints)
}

fn words_of(leaf: &str) -> Vec<String> {
    leaf.split(' ').map(str::to_owned).collect()
}

struct Case<'case> {
    stage: &'case Stage,
    line: &'case Line,
    step: &'case Step,
    leaf: String,
    complaints: &'case mut Vec<String>,
}

impl Case<'_> {
    /// Every flag that no route honours is refused; the others are all sent, together.
    fn check(&mut self, called: &[Route]) {
        let is_honoured = |flag: &&Flag| called.iter().any(flag.is_honoured);
        let (honoured, refused): (Vec<_>, Vec<_>) = FLAGS.iter().partition(is_honoured);
        for flag in refused {
            let done = self.run(&[flag]);
            let named = done.stderr.contains(flag.name) && done.stderr.contains(&format!("`statehouse {}`", self.leaf));
            let sent = self.line.sent();
            if done.exit != Some(2) || !named || !sent.is_empty() {
                self.complain(&format!("{} is not refused by name, sent {sent:?}", flag.name), &done);
            }
        }
        if honoured.is_empty() {
            return;
        }
        let done = self.run(&honoured);
        let sent = self.line.sent();
        for flag in honoured {
            if !sent.iter().any(|line| line.contains(flag.sent)) {
                self.complain(&format!("{} {:?} is not sent: {sent:?}", flag.name, flag.value), &done);
            }
        }
    }

    /// Runs it with flags, in a folder where nothing was written yet.
    fn run(&self, flags: &[&Flag]) -> Done {
        self.line.clear();
        let mut words = self.step.words();
        for flag in &FLAGS {
            if let Some(place) = words.iter().position(|word| word == flag.name) {
                words.drain(place..=place + usize::from(flag.value.is_some()));
            }
        }
        words.extend(flags.iter().flat_map(|flag| [Some(flag.name), flag.value]).flatten().map(str::to_owned));
        let folder = stage::folder_with_files();
        self.stage.run_words(&words, self.step, Format::Table, folder.path())
    }

    fn complain(&mut self, wrong: &str, done: &Done) {
        let stderr = done.stderr.trim_end();
        self.complaints.push(format!("`{}`: {wrong}; it exits with {:?}: {stderr}", self.leaf, done.exit));
    }
}

/// Lines to servers that keep what is asked on them.
#[derive(Default)]
struct Line {
    asked: Arc<Mutex<Asked>>,
}

/// What was asked, in its order.
#[derive(Default)]
struct Asked {
    /// Methods and targets.
    requests: Vec<(String, String)>,
    /// Our own headers.
    headers: Vec<String>,
    /// The last body so far.
    body: String,
}

impl Line {
    /// Listens as long as the process lives, and passes on what is asked.
    fn stand_before(&self, server: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let kept = Arc::clone(&self.asked);
        std::thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let Ok(called) = TcpStream::connect(server) else { continue };
                let kept = Arc::clone(&kept);
                let (Ok(back_from), Ok(back_to)) = (called.try_clone(), caller.try_clone()) else { continue };
                std::thread::spawn(move || pass(back_from, back_to, |_| {}));
                std::thread::spawn(move || {
                    let mut begun = Vec::new();
                    pass(caller, called, |bytes| keep_requests(&mut begun, bytes, &kept));
                });
            }
        });
        address
    }

    fn clear(&self) {
        *self.asked.lock().expect("no panic") = Asked::default();
    }

    /// Targets, our own headers, and the last body.
    fn sent(&self) -> Vec<String> {
        let asked = self.asked.lock().expect("no panic");
        let heads = asked.requests.iter().map(|(_, target)| target).chain(&asked.headers);
        heads.chain(Some(&asked.body).filter(|body| !body.is_empty())).cloned().collect()
    }

    fn routes(&self) -> Vec<Route> {
        let asked = self.asked.lock().expect("no panic");
        let found = asked.requests.iter().map(|(method, target)| {
            let path = target.split_once('?').map_or(target.as_str(), |(path, _)| path);
            match find(method, path) {
                Found::Route(place, _) => ALL[place],
                other => panic!("{method} {target} is {other:?}"),
            }
        });
        found.collect()
    }
}

/// Passes bytes on until one side ends.
fn pass(mut from: TcpStream, mut to: TcpStream, mut see: impl FnMut(&[u8])) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        see(&bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// Keeps the first line of each request, and our own headers. Bodies of commands hold no line that looks like one.
fn keep_requests(begun: &mut Vec<u8>, bytes: &[u8], kept: &Mutex<Asked>) {
    begun.extend_from_slice(bytes);
    let end = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let lines: Vec<u8> = begun.drain(..end).collect();
    kept.lock().expect("no panic").body = String::from_utf8_lossy(begun).into_owned();
    for line in String::from_utf8_lossy(&lines).lines() {
        // The body of the request before may stand in front, without an end of its own.
        if let Some(request) = line.strip_suffix(" HTTP/1.1")
            && let Some((before, target)) = request.rsplit_once(' ')
        {
            let method: String = before.chars().rev().take_while(char::is_ascii_uppercase).collect();
            let method = method.chars().rev().collect();
            kept.lock().expect("no panic").requests.push((method, target.to_owned()));
        } else if line.starts_with("statehouse-") {
            kept.lock().expect("no panic").headers.push(line.to_owned());
        }
    }
}
