//! Which of `--space`, `--branch`, `--group`, `--owner` and `--force` a command honours: those that its route honours. The others
//! are refused up front, because a command that ignored one would act on another place than the one meant, or in another way.
//!
//! Keeps: every command with these flags is in the table, or in that of its contract, `scopes.rs` in the folder.

use clap::ArgMatches;
use clap::parser::ValueSource;
use statehouse::shell::Suggested;
use wire::routes::{
    BACKUP_CREATE, BRANCHES_CREATE, BRANCHES_DELETE, BRANCHES_LIST, CELLS_WRITE, CHANGES_READ, EXPORT_CREATE,
    GROUPS_EXTEND, GROUPS_OWN, GROUPS_OWNER, GROUPS_RELEASE, GUARDS_LIST, GUARDS_REMOVE, GUARDS_SET, LETTERS_DROP,
    LETTERS_LIST, LETTERS_RETRY, LIMITS_READ, RECORDS_READ, RECORDS_SCAN, Route, SERVER_READY, SERVER_STATUS,
    SERVER_VERSION, SESSIONS_END, SESSIONS_LIST, SESSIONS_READ, SPACES_CREATE, SPACES_LIST, SPACES_RETENTION,
    SPACES_USAGE, Scope, TRANSACTIONS_COMMIT,
};

use crate::exit::Failure;
use crate::with_contracts;

/// Commands that belong to no contract, each with the narrowest of the routes that it calls.
const COMMANDS: &[(&str, Route)] = &[
    ("backup create", BACKUP_CREATE),
    ("bench", CELLS_WRITE),
    ("branch create", BRANCHES_CREATE),
    ("branch ls", BRANCHES_LIST),
    ("branch rm", BRANCHES_DELETE),
    ("check all", CHANGES_READ),
    ("check clock", CHANGES_READ),
    ("check disk", SERVER_STATUS),
    ("check health", SERVER_READY),
    ("check perf", CELLS_WRITE),
    ("export", EXPORT_CREATE),
    ("group extend", GROUPS_EXTEND),
    ("group own", GROUPS_OWN),
    ("group owner", GROUPS_OWNER),
    ("group release", GROUPS_RELEASE),
    ("guard ls", GUARDS_LIST),
    ("guard rm", GUARDS_REMOVE),
    ("guard set", GUARDS_SET),
    ("info", LIMITS_READ),
    ("letter drop", LETTERS_DROP),
    ("letter ls", LETTERS_LIST),
    ("letter retry", LETTERS_RETRY),
    ("session kill", SESSIONS_END),
    ("session ls", SESSIONS_LIST),
    ("session show", SESSIONS_READ),
    ("space create", SPACES_CREATE),
    ("space ls", SPACES_LIST),
    ("space retention", SPACES_RETENTION),
    ("space usage", SPACES_USAGE),
    ("status", SERVER_STATUS),
    ("txn", TRANSACTIONS_COMMIT),
    ("version", SERVER_VERSION),
    ("watch", CHANGES_READ),
    ("why session", RECORDS_SCAN),
];

/// Generates the list of all commands.
macro_rules! commands {
    ($($folder:ident: $noun:ident { $($explained:ident)? })*) => {
        fn commands() -> impl Iterator<Item = &'static (&'static str, Route)> {
            [COMMANDS, $(crate::$folder::scopes::SCOPES),*].into_iter().flatten()
        }
    };
}

with_contracts!(commands);

/// A command that only reads without one of its arguments, which writes: the command, the argument, and the route that reads.
const READS_WITHOUT: &[(&str, &str, Route)] = &[("rec ttl", "time", RECORDS_READ)];

/// A flag, its id, and whether a route honours it.
struct Flag {
    name: &'static str,
    id: &'static str,
    is_honoured: fn(Route) -> bool,
}

const FLAGS: [Flag; 5] = [
    Flag { name: "--space", id: "where-space", is_honoured: |route| route.scope >= Scope::Space },
    Flag { name: "--branch", id: "where-branch", is_honoured: |route| route.scope >= Scope::Branch },
    // A transaction has its group in its path.
    Flag {
        name: "--group",
        id: "where-group",
        is_honoured: |route| route.scope >= Scope::Group || route == TRANSACTIONS_COMMIT,
    },
    Flag { name: "--owner", id: "where-owner", is_honoured: |route| route.is_fenced() },
    Flag { name: "--force", id: "where-force", is_honoured: |route| route.can_be_forced() || route == SESSIONS_END },
];

/// The flags that a suggested command must not have; none if the command does not reach a store.
pub(crate) fn not_honoured(command: &Suggested) -> Option<Vec<&'static str>> {
    let [program, words @ ..] = command.argv() else { return None };
    let of = |words: &[String]| commands().find(|(name, _)| *name == words.join(" "));
    let found = (1..=words.len().min(2)).find_map(|count| of(&words[..count]))?;
    let (_, route) = Some(found).filter(|_| program == "statehouse")?;
    Some(FLAGS.iter().filter(|flag| !(flag.is_honoured)(*route)).map(|flag| flag.name).collect())
}

/// Refuses a flag that the command does not honour.
pub(crate) fn check(matches: &ArgMatches) -> Result<(), Failure> {
    let (mut words, mut leaf) = (Vec::new(), matches);
    while let Some((word, inner)) = leaf.subcommand() {
        words.push(word);
        leaf = inner;
    }
    let command = words.join(" ");
    let Some((_, route)) = commands().find(|(name, _)| *name == command) else {
        return Ok(());
    };
    let is_given = |id: &str| leaf.value_source(id) == Some(ValueSource::CommandLine);
    let reads = READS_WITHOUT.iter().find(|(name, argument, _)| *name == command && !is_given(argument));
    let route = reads.map_or(route, |(.., route)| route);
    match FLAGS.iter().find(|flag| is_given(flag.id) && !(flag.is_honoured)(*route)) {
        None => Ok(()),
        Some(Flag { name: flag @ ("--owner" | "--force"), .. }) => {
            Err(Failure::usage(format!("`statehouse {command}` writes nothing in a group and does not take {flag}"))
                .next(format!("remove {flag}")))
        }
        Some(Flag { name: flag, .. }) => {
            let whole = match route.scope {
                Scope::Store => "the whole store",
                Scope::Space => "a whole space",
                Scope::Branch | Scope::Group => "a whole branch",
            };
            Err(Failure::usage(format!("`statehouse {command}` applies to {whole} and does not take {flag}"))
                .next(format!("remove {flag}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;
    use crate::Arguments;

    /// The names of the leaf commands with these flags.
    fn leaves(command: &Command, path: &str, global: bool, found: &mut Vec<String>) {
        let has = command.get_arguments().any(|argument| argument.get_id() == "where-space");
        let mut verbs = command.get_subcommands().peekable();
        if verbs.peek().is_none() && (has || global) {
            found.push(path.to_owned());
        }
        for verb in verbs {
            let path = format!("{path} {}", verb.get_name()).trim_start().to_owned();
            leaves(verb, &path, has || global, found);
        }
    }

    #[test]
    fn every_command_with_the_flags_is_in_the_table() {
        let mut found = Vec::new();
        leaves(&Arguments::command(), "", false, &mut found);
        found.sort();
        let mut listed: Vec<_> = commands().map(|(name, _)| (*name).to_owned()).collect();
        listed.sort();
        assert_eq!(found, listed);
    }

    #[test]
    fn every_suggested_command_gets_the_flags_that_it_takes() {
        let of = |words: &[&str]| not_honoured(&Suggested::new(words.iter().copied()));
        let reads = ["--owner", "--force"];
        assert_eq!(of(&["statehouse", "why", "job", "a"]), Some(reads.to_vec()));
        assert_eq!(
            of(&["statehouse", "space", "ls"]),
            Some([&["--space", "--branch", "--group"][..], &reads].concat())
        );
        assert_eq!(of(&["statehouse", "branch", "ls"]), Some([&["--branch", "--group"][..], &reads].concat()));
        assert_eq!(of(&["statehouse", "rec", "type"]), Some([&["--branch", "--group"][..], &reads].concat()));
        assert_eq!(of(&["statehouse", "group", "own"]), Some(vec!["--group", "--owner"]));
        assert_eq!(of(&["statehouse", "txn"]), Some(vec![]));
        assert_eq!((of(&["statehouse", "dev"]), of(&["ls"])), (None, None));
    }
}
