//! Which store a command talks to: set by flags, the environment or a context, or else the server on this machine.
//!
//! In order of precedence: `--url` or `--data`, `STATEHOUSE_URL` or `STATEHOUSE_DATA`, `--context`, the current context, and
//! `http://127.0.0.1:7420`. Keeps: a command never talks to two stores, and names the store that it cannot reach.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use serde_json::Value as JsonValue;
use statehouse::shell::Suggested;
use statehouse::time::parse_duration;

use crate::connection::Connection;
use crate::contexts::{Contexts, Target};
use crate::exit::Failure;
use crate::group::of_owner;
use crate::scopes;

/// The default address of a server.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:7420";

/// The flags follow the program and its noun.
const NOUN_WORDS: usize = 2;

/// Flags of every command that reaches a store. They have ids of their own: clap would otherwise confuse a global flag with a
/// verb's argument of the same name.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Where")]
pub(crate) struct Reach {
    /// The server's URL; also STATEHOUSE_URL.
    #[arg(id = "where-url", long = "url", global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// A data directory to open instead of a server; also STATEHOUSE_DATA.
    #[arg(id = "where-data", long = "data", global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A context from `statehouse ctx`; also STATEHOUSE_CONTEXT.
    #[arg(id = "where-context", long = "context", global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The space. Default: `default`.
    #[arg(id = "where-space", long = "space", global = true, value_name = "NAME")]
    pub(crate) space: Option<String>,
    /// The branch. Default: `main`.
    #[arg(id = "where-branch", long = "branch", global = true, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// The group. Default: each name is its own group.
    #[arg(id = "where-group", long = "group", global = true, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// The token of the group's owner, from `statehouse group own`.
    #[arg(id = "where-owner", long = "owner", global = true, value_name = "TOKEN")]
    pub(crate) owner: Option<String>,
    /// Write without the fences that a guard requires; end a session without its secret.
    #[arg(id = "where-force", long = "force", global = true)]
    pub(crate) force: bool,
    /// How long an answer may take.
    #[arg(id = "where-timeout", long = "timeout", global = true, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// `500ms`, `30s`, `10m`, `2h` or `7d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write 500ms, 30s, 10m, 2h or 7d".to_owned())
}

impl Reach {
    /// No flags.
    pub(crate) fn new() -> Self {
        let timeout = Duration::from_secs(10);
        Self {
            url: None,
            data: None,
            context: None,
            space: None,
            branch: None,
            group: None,
            owner: None,
            force: false,
            timeout,
        }
    }

    /// Connects, does the work, and closes the store.
    pub(crate) fn run<Work>(&self, work: Work) -> Result<(), Failure>
    where
        Work: AsyncFnOnce(&Connection) -> Result<(), Failure>,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|error| Failure::other(format!("cannot start threads: {error}")))?;
        runtime
            .block_on(async {
                let connection = self.connect()?;
                let done = work(&connection).await;
                let closed = connection.close().await;
                done.and(closed)
            })
            // A suggested command must reach the same store.
            .map_err(|failure| {
                let mut failure = of_owner(failure);
                failure.command = failure.command.map(|command| self.in_command(command));
                failure
            })
    }

    /// Adds the flags that name the store, as given here, to a suggested command.
    pub(crate) fn in_command(&self, command: Suggested) -> Suggested {
        let Some(outside) = scopes::not_honoured(&command) else {
            return command;
        };
        let data = self.data.as_ref().map(|data| data.to_string_lossy().into_owned());
        let given = [
            ("--url", &self.url),
            ("--data", &data),
            ("--context", &self.context),
            ("--space", &self.space),
            ("--branch", &self.branch),
            ("--group", &self.group),
        ];
        let said = |flag: &str| command.argv().iter().any(|word| word.starts_with(&format!("{flag}=")));
        let flags = given.into_iter().filter(|(flag, _)| !said(flag) && !outside.contains(flag));
        let flags = flags.filter_map(|(flag, value)| Some(format!("{flag}={}", value.as_ref()?))).collect();
        command.with_flags(NOUN_WORDS, flags)
    }

    /// Adds the same flags to the commands that a page of `/status` suggests.
    pub(crate) fn in_text(&self, page: &str, status: &JsonValue) -> String {
        let mut page = page.to_owned();
        let found = ["problems", "notes"].iter().flat_map(|list| status[*list].as_array().into_iter().flatten());
        for one in found {
            let argv = one["command"]["argv"].as_array().into_iter().flatten();
            let command = Suggested::new(argv.filter_map(JsonValue::as_str));
            let here = format!("$ {}\n", command.shell());
            page = page.replace(&here, &format!("$ {}\n", self.in_command(command).shell()));
        }
        page
    }

    /// Connects to the selected store.
    pub(crate) fn connect(&self) -> Result<Connection, Failure> {
        let target = self.target(&|name| std::env::var(name).ok())?;
        let connection = match &target {
            Target::Url(url) => Connection::remote(url, self.timeout)?,
            Target::Data(directory) => Connection::directory(directory, self.timeout)?,
        };
        let connection = connection.in_place(self.space.clone(), self.branch.clone(), self.group.clone());
        connection.with_authority(self.owner.as_deref(), self.force)
    }

    /// The selected store.
    pub(crate) fn target(&self, environment: &dyn Fn(&str) -> Option<String>) -> Result<Target, Failure> {
        let said = |name: &str| environment(name).filter(|value| !value.is_empty());
        match (&self.url, &self.data) {
            (Some(_), Some(_)) => return Err(Failure::usage("--url and --data name two stores; give only one")),
            (Some(url), None) => return Ok(Target::Url(url.clone())),
            (None, Some(directory)) => return Ok(Target::Data(directory.clone())),
            (None, None) => {}
        }
        match (said("STATEHOUSE_URL"), said("STATEHOUSE_DATA")) {
            (Some(_), Some(_)) => {
                return Err(Failure::usage("STATEHOUSE_URL and STATEHOUSE_DATA are both set; unset one, or use --url"));
            }
            (Some(url), None) => return Ok(Target::Url(url)),
            (None, Some(directory)) => return Ok(Target::Data(directory.into())),
            (None, None) => {}
        }
        let contexts = Contexts::read(environment)?;
        let target = match self.context.clone().or_else(|| said("STATEHOUSE_CONTEXT")) {
            Some(name) => Some(contexts.find(&name)?),
            None => contexts.current()?,
        };
        Ok(target.unwrap_or_else(|| Target::Url(DEFAULT_URL.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_go_before_the_environment_and_that_before_contexts() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("statehouse")).expect("made");
        let contexts = "current = \"b\"\n[contexts.a]\nurl = \"http://a\"\n[contexts.b]\ndata = \"/b\"\n";
        std::fs::write(folder.path().join("statehouse/contexts.toml"), contexts).expect("written");
        let config = folder.path().to_str().expect("UTF-8").to_owned();
        let alone = move |name: &str| (name == "XDG_CONFIG_HOME").then(|| config.clone());
        let with_url = |name: &str| if name == "STATEHOUSE_URL" { Some("http://e".into()) } else { alone(name) };
        let with_both = |name: &str| if name == "STATEHOUSE_DATA" { Some("/e".into()) } else { with_url(name) };

        let current = Reach::new();
        let named = Reach { context: Some("a".into()), ..Reach::new() };
        let flag = Reach { url: Some("http://f".into()), ..Reach::new() };
        assert_eq!(current.target(&alone).expect("a target"), Target::Data("/b".into()));
        assert_eq!(named.target(&alone).expect("a target"), Target::Url("http://a".into()));
        assert_eq!(named.target(&with_url).expect("a target"), Target::Url("http://e".into()));
        assert_eq!(flag.target(&with_both).expect("a target"), Target::Url("http://f".into()));
        assert!(current.target(&with_both).is_err());
        assert!(Reach { data: Some("/f".into()), ..flag }.target(&alone).is_err());
        assert_eq!(current.target(&|_| None).expect("a target"), Target::Url(DEFAULT_URL.into()));
        assert!(Reach { context: Some("c".into()), ..Reach::new() }.target(&alone).is_err());
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7_200)));
        assert!(duration("1y").is_err() && duration("99999999999999999999d").is_err() && duration("").is_err());
    }
}
