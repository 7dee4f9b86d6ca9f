//! A store to run commands against, and a folder for the files they read and write.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use client::ClientOptions;
use contract::access::Token;
use tempfile::TempDir;
use wire::sessions::OpenSession;
use wire::values::DurationText;

use super::Format;
use super::mask::masked;
use super::step::Step;
use crate::http::{Client, Request, block_on};
use crate::server_process::{Launch, ServerProcess};

/// How a command reaches its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// By HTTP, at a `statehouse dev` process.
    Server,
    /// By opening a directory itself.
    Directory,
}

/// How a command ended.
pub(super) struct Done {
    pub(super) exit: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
    /// The verdict of `jq -e .` on the output; none if it was not asked.
    pub(super) jq: Option<bool>,
}

/// A store with a folder, to run commands against.
pub(super) struct Stage {
    statehouse: PathBuf,
    folder: TempDir,
    /// Alive as long as commands run.
    server: Option<ServerProcess>,
    /// The variable that names the store, and its value.
    target: (&'static str, String),
    /// The history of the store, which is in tokens.
    history: String,
    /// Another server, which asks for a token.
    guarded: ServerProcess,
    /// Its URL, as commands reach it.
    guarded_url: String,
}

/// The variable with the place of checkpoints: of a server, and of a command that opens a directory.
const CHECKPOINTS: &str = "STATEHOUSE_CHECKPOINTS";

/// The variable that names the file with the token to show.
const TOKEN_FILE: &str = "STATEHOUSE_TOKEN_FILE";

/// The time limit for stopping a server.
const STOP: Duration = Duration::from_secs(30);

/// The data directory of the server that asks for a token.
const GUARDED: &str = "guarded";

/// The token of its first administrator.
const ROOT: &str = "guarded/root.token";

/// The files with the tokens that the script issues. The first is that of `{token}`.
const ISSUED: [&str; 3] = ["mailer.token", "next.token", ROOT];

impl Stage {
    pub(super) fn set(statehouse: &Path, store: Store) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let inside = |name: &str| folder.path().join(name);
        // A directory that is not open, and a damaged one.
        for name in ["closed", "damaged"] {
            stop(roomy(Launch::serve(statehouse, inside(name))));
        }
        std::fs::write(inside("damaged").join("IDENTITY"), "statehouse directory\nhash 0\n").expect("written");
        write_files(folder.path());
        let guarded = roomy(Launch::serve(statehouse, inside(GUARDED)).asking_for_tokens());
        let guarded_url = format!("http://{}", guarded.address());
        let launch = match store {
            Store::Server => Launch::dev(statehouse),
            Store::Directory => Launch::serve(statehouse, inside("store")),
        };
        let checkpoints = inside("checkpoints");
        let server = roomy(launch.environment(CHECKPOINTS, &checkpoints));
        let open = OpenSession { timeout: Some(DurationText(Duration::from_secs(3_600))), ..OpenSession::default() };
        let client = Client::to(server.address());
        let answer = client.call(Request::get("/version")).expect("an answer");
        let history = answer.header("statehouse-history").expect("a history").to_owned();
        block_on(client.typed(ClientOptions::default()).sessions().open(&open)).expect("a session is opened");
        let (server, target) = match store {
            Store::Server => {
                let url = format!("http://{}", server.address());
                (Some(server), ("STATEHOUSE_URL", url))
            }
            Store::Directory => {
                stop(server);
                (None, ("STATEHOUSE_DATA", inside("store").display().to_string()))
            }
        };
        Self { statehouse: statehouse.to_owned(), folder, server, target, history, guarded, guarded_url }
    }

    /// Runs one command, with its stdin closed unless it gets something to read.
    pub(super) fn run(&self, step: &Step, format: Format) -> Done {
        self.run_words(&step.words(), step, format, self.folder.path())
    }

    /// Where the server is.
    pub(super) fn server_address(&self) -> SocketAddr {
        self.server.as_ref().expect("it is a server").address()
    }

    /// Where the server is that asks for a token.
    pub(super) fn guarded_address(&self) -> SocketAddr {
        self.guarded.address()
    }

    /// Lets commands go another way to the store, and to the server that asks for a token.
    pub(super) fn reach_at(&mut self, url: String, guarded_url: String) {
        self.target.1 = url;
        self.guarded_url = guarded_url;
    }

    /// The public part of a token in a file of the folder; none if it was not issued.
    fn token_id(&self, file: impl AsRef<Path>) -> Option<String> {
        let text = std::fs::read_to_string(self.folder.path().join(file)).ok()?;
        Token::parse(text.trim_end()).map(|token| token.id().to_owned())
    }

    /// Runs other words with what the step has besides, in a folder.
    pub(super) fn run_words(&self, words: &[String], step: &Step, format: Format, folder: &Path) -> Done {
        let token = self.token_id(ISSUED[0]).unwrap_or_default();
        let words = words.iter().map(|word| {
            let word = word.replace("{target}", &self.target.1).replace("{history}", &self.history);
            word.replace("{guarded}", &self.guarded_url).replace("{token}", &token)
        });
        // The shell closes the descriptor; a child's stdin can otherwise only be an empty one.
        let mut command = match step.stdin {
            Some(_) => Command::new(&self.statehouse),
            None => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", "exec \"$0\" \"$@\" <&-"]).arg(&self.statehouse);
                shell
            }
        };
        command.args(words).args(["-o", format.name()]).current_dir(folder).env_clear();
        command.env("XDG_CONFIG_HOME", self.folder.path().join("config"));
        if step.guarded {
            command.env("STATEHOUSE_URL", &self.guarded_url).env(TOKEN_FILE, self.folder.path().join(ROOT));
        } else if !step.alone {
            command.env(self.target.0, &self.target.1).env(CHECKPOINTS, self.folder.path().join("checkpoints"));
        }
        let (exit, stdout, stderr) = output_of(command, step.stdin.unwrap_or_default().as_bytes());
        let jq = (format == Format::Json && step.exit == 0).then(|| {
            let mut jq = Command::new("jq");
            jq.args(["-e", "."]);
            output_of(jq, &stdout).0 == Some(0)
        });
        Done { exit, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned(), jq }
    }

    /// A command, its output and its exit.
    pub(super) fn transcript(&self, step: &Step, done: &Done) -> String {
        let folder = self.folder.path().display().to_string();
        let issued = ISSUED.iter().filter_map(|file| Some((self.token_id(file)?, "TOKEN-ID")));
        let fixed = [
            (self.target.1.clone(), "STORE"),
            (self.guarded_url.clone(), "GUARDED"),
            ("a directory on this machine".to_owned(), "STORE"),
            (folder, "FOLDER"),
            (self.history.clone(), "HISTORY"),
            (env!("CARGO_PKG_VERSION").to_owned(), "VERSION"),
        ];
        let places: Vec<_> = issued.chain(fixed).collect();
        let stdout = masked(&String::from_utf8_lossy(&done.stdout), &places, step.loose);
        let stderr = masked(&done.stderr, &places, step.loose);
        let stderr: String = stderr.lines().map(|line| format!("! {line}\n")).collect();
        format!("$ statehouse {}\n{stdout}{stderr}[exit {}]\n\n", step.line, step.exit)
    }
}

/// Starts a server that writes however full the disk of this machine is.
fn roomy(launch: Launch) -> ServerProcess {
    launch.environment("STATEHOUSE_DISK__LOW_BYTES", "1MiB").start().expect("a server")
}

/// Asks a server to stop, once it serves: before that, it may not be listening for signals yet.
fn stop(server: ServerProcess) {
    let client = Client::to(server.address()).typed(ClientOptions::default());
    block_on(client.is_ready()).expect("an answer");
    let ended = server.terminate(STOP);
    assert!(ended.status.success(), "a server stops when it is asked to: {ended:?}");
}

/// A folder with the files that commands read.
pub(super) fn folder_with_files() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write_files(folder.path());
    folder
}

fn write_files(folder: &Path) {
    for (name, text) in super::script::FILES {
        std::fs::write(folder.join(name), text).expect("written");
    }
}

/// Every command by its words, with its long help.
pub(super) fn tree(statehouse: &Path) -> Vec<(Vec<String>, String)> {
    let (mut found, mut left) = (Vec::new(), vec![Vec::<String>::new()]);
    while let Some(path) = left.pop() {
        let help = help(statehouse, &path);
        left.extend(verbs(&help).map(|verb| [&path[..], &[verb.to_owned()]].concat()));
        found.push((path, help));
    }
    found
}

/// The commands that have no commands below them.
pub(super) fn leaves(statehouse: &Path) -> Vec<String> {
    let tree = tree(statehouse).into_iter();
    tree.filter(|(_, help)| verbs(help).next().is_none()).map(|(path, _)| path.join(" ")).collect()
}

/// The commands that a help lists.
fn verbs(help: &str) -> impl Iterator<Item = &str> {
    let commands = help.split_once("Commands:\n").map_or("", |(_, commands)| commands);
    let commands = commands.lines().take_while(|line| line.starts_with("  "));
    commands.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next())
}

/// The long help of a command.
pub fn help(statehouse: &Path, path: &[String]) -> String {
    let mut command = Command::new(statehouse);
    command.args(path).arg("--help").env_clear();
    let (exit, stdout, _) = output_of(command, b"");
    assert_eq!(exit, Some(0), "{path:?} --help");
    String::from_utf8_lossy(&stdout).into_owned()
}

fn output_of(mut command: Command, stdin: &[u8]) -> (Option<i32>, Vec<u8>, Vec<u8>) {
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut input = child.stdin.take().expect("it was asked for");
    // A command that ignores its stdin may end before it is written.
    let _ = input.write_all(stdin);
    drop(input);
    let ended = child.wait_with_output().expect("the child is ours");
    (ended.status.code(), ended.stdout, ended.stderr)
}
