//! The safe next step after a refusal: one for each code that has its own, and its page for all others.
//!
//! Keeps: one table; each contract adds the codes that are its own.

use serde_json::Value as JsonValue;
use statehouse::shell::Suggested;

use crate::contract::Contract;
use crate::with_contracts;

/// The safe next step after a refusal.
pub(crate) enum Next {
    /// In words.
    Say(&'static str),
    /// A command.
    Command(&'static str, &'static [&'static str]),
    /// A command with a name, taken from this member of the problem.
    CommandWith(&'static str, &'static [&'static str], &'static str),
}

/// The next step of each code that has its own and is of no contract. All others have a page that explains them.
const NEXT: &[(&str, Next)] = &[
    ("SH-1005", Next::Command("list the spaces", &["space", "ls"])),
    ("SH-1006", Next::Command("list the branches", &["branch", "ls"])),
    ("SH-1032", Next::Command("check whether the server runs another version", &["version"])),
    ("SH-1060", Next::Say("use the server's address or localhost, or add the name to its setting server.hosts")),
    ("SH-2001", Next::Say("try again in a second")),
    ("SH-2020", Next::Say("talk to the process that has it open (--url), or stop it first")),
    ("SH-2022", Next::Say("the server is starting; try again in a moment")),
    ("SH-2023", Next::Command("see what is damaged", &["status"])),
    (
        "SH-4003",
        Next::Say("own it first (statehouse group own, or rec claim) and show that, or repair it with --force"),
    ),
    ("SH-5004", Next::Command("list the sessions", &["session", "ls"])),
    ("SH-5007", Next::Say("only the client of a session knows its secret; an operator ends it without, with --force")),
    ("SH-6001", Next::Say("set STATEHOUSE_TOKEN_FILE to the file with your token")),
    ("SH-6002", Next::Command("see who you are, and what you may do", &["token", "whoami"])),
    ("SH-6003", Next::Command("list the principals", &["principal", "ls"])),
    ("SH-6004", Next::Command("list the tokens", &["token", "ls"])),
    ("SH-6005", Next::CommandWith("see which tokens it has", &["token", "ls"], "principal")),
    ("SH-6006", Next::CommandWith("see how the other one is known", &["principal", "show"], "principal")),
    ("SH-6007", Next::Say("wait a second; an administrator can raise the rate, with principal set --rate")),
];

macro_rules! next_steps {
    ($($folder:ident: $noun:ident { $($explained:ident)? })*) => {
        /// The next step of each code that has its own.
        pub(crate) fn next_steps() -> impl Iterator<Item = &'static (&'static str, Next)> {
            [NEXT, $(<crate::$folder::$noun as Contract>::NEXT),*].into_iter().flatten()
        }
    };
}

with_contracts!(next_steps);

/// The next step after a refusal, and its command.
pub(crate) fn next_of(code: &str, problem: &JsonValue) -> (String, Option<Suggested>) {
    let command = |words: &[&str]| Suggested::new(["statehouse"].iter().chain(words).copied());
    let found = next_steps().find(|(known, _)| *known == code).map(|(_, next)| next);
    match found {
        Some(Next::Say(next)) => return ((*next).to_owned(), None),
        Some(Next::Command(next, words)) => return ((*next).to_owned(), Some(command(words))),
        Some(Next::CommandWith(next, words, member)) => {
            if let Some(name) = problem[*member].as_str() {
                return ((*next).to_owned(), Some(command(words).name(name)));
            }
        }
        None => {}
    }
    ("see what it means".to_owned(), Some(command(&["explain", code])))
}
