//! Which of `--space`, `--branch`, `--group`, `--owner` and `--force` a command honours: those that its route honours. The others
//! are refused up front, because a command that ignored one would act on another place than the one meant, or in another way.
//!
//! Keeps: every command with these flags is in the table, or in that of its contract, `scopes.rs` in the folder.

use clap::ArgMatches;
use clap::parser::ValueSource;
use statehouse::shell::Suggested;
use wire::routes::{
    ACCESS_CHECK, ACCESS_WHOAMI, AUDIT_READ, BACKUP_CREATE, BRANCHES_CREATE, BRANCHES_DELETE, BRANCHES_LIST,
    CELLS_WRITE, CHANGES_READ, EXPORT_CREATE, GROUPS_EXTEND, GROUPS_OWN, GROUPS_OWNER, GROUPS_RELEASE, GUARDS_LIST,
    GUARDS_REMOVE, GUARDS_SET, LETTERS_DROP, LETTERS_LIST, LETTERS_RETRY, LIMITS_READ, PRINCIPALS_LIST,
    PRINCIPALS_READ, PRINCIPALS_REMOVE, PRINCIPALS_SET, RECORDS_READ, RECORDS_SCAN, Route, SERVER_READY, SERVER_STATUS,
    SERVER_VERSION, SESSIONS_END, SESSIONS_LIST, SESSIONS_READ, SPACES_CREATE, SPACES_LIST, SPACES_RETENTION,
    SPACES_USAGE, Scope, TOKENS_ISSUE, TOKENS_REVOKE, TRANSACTIONS_COMMIT,
};

use crate::exit::Failure;
use crate::with_contracts;

/// Commands that belong to no contract, each with the narrowest of the routes that it calls.
const COMMANDS: &[(&str, Route)] = &[
    ("audit export", AUDIT_READ),
    ("audit tail", AUDIT_READ),
    ("audit verify", AUDIT_READ),
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
    ("principal ls", PRINCIPALS_LIST),
    ("principal rm", PRINCIPALS_REMOVE),
    ("principal set", PRINCIPALS_SET),
    ("principal show", PRINCIPALS_READ),
    ("session kill", SESSIONS_END),
    ("session ls", SESSIONS_LIST),
    ("session show", SESSIONS_READ),
    ("space create", SPACES_CREATE),
    ("space ls", SPACES_LIST),
    ("space retention", SPACES_RETENTION),
    ("space usage", SPACES_USAGE),
    ("status", SERVER_STATUS),
    ("token create", TOKENS_ISSUE),
    ("token ls", PRINCIPALS_LIST),
    ("token revoke", TOKENS_REVOKE),
    ("token rotate", TOKENS_ISSUE),
    ("token whoami", ACCESS_WHOAMI),
    ("token why", ACCESS_CHECK),
    ("txn", TRANSACTIONS_COMMIT),
    ("version", SERVER_VERSION),
    ("watch", CHANGES_READ),
    ("why session", RECORDS_SCAN),
];

/// Commands beside these that reach no store: they work on a directory that they are given.
const OF_A_DIRECTORY: &[&str] = &["token reset-root"];

/// The flags that name a store, and their ids.
const STORES: [(&str, &str); 3] = [("--url", "where-url"), ("--data", "where-data"), ("--context", "where-context")];

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
    // A question about permissions has the place that it asks about in its body. A branch makes no difference there.
    Flag {
        name: "--space",
        id: "where-space",
        is_honoured: |route| route.scope >= Scope::Space || route == ACCESS_CHECK,
    },
    Flag { name: "--branch", id: "where-branch", is_honoured: |route| route.scope >= Scope::Branch },
    // A transaction has its group in its path.
    Flag {
        name: "--group",
        id: "where-group",
        is_honoured: |route| route.scope >= Scope::Group || [TRANSACTIONS_COMMIT, ACCESS_CHECK].contains(&route),
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
    let is_given = |id: &str| leaf.value_source(id) == Some(ValueSource::CommandLine);
    if OF_A_DIRECTORY.contains(&command.as_str()) {
        let flags = STORES.into_iter().chain(FLAGS.iter().map(|flag| (flag.name, flag.id)));
        return match flags.into_iter().find(|(_, id)| is_given(id)) {
            None => Ok(()),
            Some((flag, _)) => {
                let detail = format!("`statehouse {command}` works on the directory itself and does not take {flag}");
                Err(Failure::usage(detail).next(format!("remove {flag}")))
            }
        };
    }
    let Some((_, route)) = commands().find(|(name, _)| *name == command) else {
        return Ok(());
    };
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
        let of_a_directory = OF_A_DIRECTORY.iter().map(|name| (*name).to_owned());
        let mut listed: Vec<_> = commands().map(|(name, _)| (*name).to_owned()).chain(of_a_directory).collect();
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
