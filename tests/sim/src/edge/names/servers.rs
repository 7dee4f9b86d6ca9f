//! Hostile names in the flags of servers, and in the changes that `watch --exec` runs a command for.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use testkit::http::Client;
use testkit::http::message::{Request, path_of};

use super::hostile::CANARY;
use super::{NAMES_PER_FLAG, Stage};

/// The flags of `serve` and `dev` that take a value, except those of every command.
const FLAGS: &[(&str, &[&str])] = &[("serve", &["--data"]), ("serve", OF_BOTH), ("dev", OF_BOTH)];
const OF_BOTH: &[&str] = &[
    "--config",
    "--listen",
    "--socket",
    "--tls-certificate",
    "--tls-key",
    "--tls-client-ca",
    "--tokens",
    "--checkpoints",
    "--memory",
    "--log",
];

/// The exit code of `timeout` when it had to end the server.
const ENDED_BY_TIMEOUT: i32 = 124;

/// Names to run `watch --exec` for.
const EXECUTED: usize = 64;

/// Starts servers with a name as the value of each flag. Most names are refused; a server that starts is ended.
pub(super) fn start_with(stage: &Stage<'_>, names: &[String]) {
    let mut started = 0;
    for (verb, flags) in FLAGS {
        for (number, flag) in flags.iter().enumerate() {
            for name in names.iter().cycle().skip(number * 7).take(NAMES_PER_FLAG) {
                started += 1;
                let mut command = Command::new("timeout");
                command.args(["--signal=TERM", "1"]).arg(stage.statehouse).arg(verb).arg(format!("{flag}={name}"));
                if *flag != "--listen" {
                    command.arg("--listen=127.0.0.1:0");
                }
                if *verb == "serve" && *flag != "--data" {
                    command.arg(format!("--data=server-{started}"));
                }
                command.current_dir(stage.folder).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
                let done = command.output().expect("timeout, of coreutils, is there");
                stage.count();
                let what = format!("{verb} {flag}={name:?}");
                if done.status.code().is_none_or(|code| !(0..=7).contains(&code) && code != ENDED_BY_TIMEOUT) {
                    stage.complain(format!("{what}: ended with {}", done.status));
                }
                for (stream, bytes) in [("stdout", &done.stdout), ("stderr", &done.stderr)] {
                    stage.judge(&format!("{stream} of {what}"), &String::from_utf8_lossy(bytes));
                }
            }
        }
    }
}

/// A command run for a change gets the name as one word, and the shell interprets nothing in it.
pub(super) fn execute_for_changes(stage: &Stage<'_>, client: &Client, names: &[String]) {
    let names: BTreeSet<String> = names.iter().take(EXECUTED).map(|name| format!("exec/{name}")).collect();
    let names: BTreeSet<String> = names.into_iter().filter(|name| name.len() <= 1_024).collect();
    for name in &names {
        let made = client.send(Request::put(format!("/v1/cells/{}", path_of(name))).body("1")).expect("an answer");
        assert!(made.is_success(), "{name:?}: {}", made.text());
    }
    let place = stage.folder.join("executed");
    std::fs::create_dir(&place).expect("a folder");
    let mut command = Command::new(stage.statehouse);
    command.args([
        "watch",
        "--from",
        "0",
        "--for",
        "10s",
        "--exec",
        "printf '%s\\0' \"$CHANGE_NAME\" >> names",
        "exec/",
    ]);
    command.current_dir(&place).env_clear().env("PATH", "/usr/bin:/bin").env("STATEHOUSE_URL", &stage.url);
    let done = command.stdin(Stdio::null()).output().expect("it starts");
    stage.count();
    stage.judge("stdout of watch --exec", &String::from_utf8_lossy(&done.stdout));
    stage.judge("stderr of watch --exec", &String::from_utf8_lossy(&done.stderr));
    let written = std::fs::read(place.join("names")).unwrap_or_default();
    let written = String::from_utf8_lossy(&written).into_owned();
    let seen: BTreeSet<String> = written.split_terminator('\0').map(str::to_owned).collect();
    if seen != names {
        let missing: Vec<_> = names.symmetric_difference(&seen).take(3).collect();
        stage.complain(format!("watch --exec saw {} of {} names, not {missing:?}", seen.len(), names.len()));
    }
    if place.join(CANARY).exists() {
        stage.complain("watch --exec made the canary".to_owned());
    }
}
