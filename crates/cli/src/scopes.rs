//! Which of `--space`, `--branch`, `--group`, `--owner` and `--force` a command honours: those that its route honours. The others
//! are refused up front, because a command that ignored one would act on another place than the one meant, or in another way.
//!
//! Keeps: every command with these flags is in the table.

use clap::ArgMatches;
use clap::parser::ValueSource;
use statehouse::shell::Suggested;
use wire::routes::{
    BACKUP_CREATE, BRANCHES_CREATE, BRANCHES_DELETE, BRANCHES_LIST, CELLS_DELETE, CELLS_INIT, CELLS_LIST, CELLS_READ,
    CELLS_WRITE, CHANGES_READ, EXPORT_CREATE, GROUPS_EXTEND, GROUPS_OWN, GROUPS_OWNER, GROUPS_RELEASE, GUARDS_LIST,
    GUARDS_REMOVE, GUARDS_SET, KEYED_ACQUIRE, KEYED_CHECKPOINT, KEYED_CHECKPOINTS, KEYED_LIST, KEYED_PARTITIONS,
    KEYED_RESTORE, LETTERS_DROP, LETTERS_LIST, LETTERS_RETRY, LIMITS_READ, MAPS_CREATE, MAPS_DELETE, MAPS_DELETE_KEY,
    MAPS_KEY, MAPS_LIST, MAPS_POSITIONS, MAPS_PUT_KEY, MAPS_READ, MAPS_SCAN, MAPS_SEAL, RECORDS_CLAIM,
    RECORDS_COMPLETE, RECORDS_COUNTS, RECORDS_DELETE, RECORDS_EXTEND, RECORDS_FAIL, RECORDS_PATCH, RECORDS_PUT,
    RECORDS_READ, RECORDS_RELEASE, RECORDS_SCAN, RECORDS_STEP, RUNS_APPEND, RUNS_CLOSE, RUNS_DELETE, RUNS_EVENTS,
    RUNS_FORK, RUNS_LIST, RUNS_SNAPSHOT, Route, SERVER_READY, SERVER_STATUS, SERVER_VERSION, SESSIONS_END,
    SESSIONS_LIST, SESSIONS_READ, SPACES_CREATE, SPACES_LIST, SPACES_RETENTION, SPACES_USAGE, Scope,
    TRANSACTIONS_COMMIT, TYPES_DECLARE,
};

use crate::exit::Failure;

/// Commands, each with the narrowest of the routes that it calls.
const COMMANDS: &[(&str, Route)] = &[
    ("backup create", BACKUP_CREATE),
    ("bench", CELLS_WRITE),
    ("branch create", BRANCHES_CREATE),
    ("branch ls", BRANCHES_LIST),
    ("branch rm", BRANCHES_DELETE),
    ("cell at", CELLS_READ),
    ("cell cas", CELLS_WRITE),
    ("cell del", CELLS_DELETE),
    ("cell get", CELLS_READ),
    ("cell history", CELLS_READ),
    ("cell init", CELLS_INIT),
    ("cell ls", CELLS_LIST),
    ("cell set", CELLS_WRITE),
    ("cell watch", CHANGES_READ),
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
    ("keyed checkpoint", KEYED_CHECKPOINT),
    ("keyed checkpoints", KEYED_CHECKPOINTS),
    ("keyed create", MAPS_CREATE),
    ("keyed del", MAPS_DELETE_KEY),
    ("keyed fence", KEYED_ACQUIRE),
    ("keyed get", MAPS_KEY),
    ("keyed ls", MAPS_LIST),
    ("keyed operators", KEYED_LIST),
    ("keyed partitions", KEYED_PARTITIONS),
    ("keyed positions", MAPS_POSITIONS),
    ("keyed restore", KEYED_RESTORE),
    ("keyed rm", MAPS_DELETE),
    ("keyed scan", MAPS_SCAN),
    ("keyed seal", MAPS_SEAL),
    ("keyed set", MAPS_PUT_KEY),
    ("keyed show", MAPS_READ),
    ("letter drop", LETTERS_DROP),
    ("letter ls", LETTERS_LIST),
    ("letter retry", LETTERS_RETRY),
    ("rec claim", RECORDS_CLAIM),
    ("rec complete", RECORDS_COMPLETE),
    ("rec count", RECORDS_COUNTS),
    ("rec del", RECORDS_DELETE),
    ("rec extend", RECORDS_EXTEND),
    ("rec fail", RECORDS_FAIL),
    ("rec get", RECORDS_READ),
    ("rec incr", RECORDS_PATCH),
    ("rec patch", RECORDS_PATCH),
    ("rec release", RECORDS_RELEASE),
    ("rec scan", RECORDS_SCAN),
    ("rec set", RECORDS_PUT),
    ("rec step", RECORDS_STEP),
    ("rec ttl", RECORDS_PATCH),
    ("rec type", TYPES_DECLARE),
    ("rec watch", CHANGES_READ),
    ("run append", RUNS_APPEND),
    ("run close", RUNS_CLOSE),
    ("run del", RUNS_DELETE),
    ("run fork", RUNS_FORK),
    ("run ls", RUNS_LIST),
    ("run show", RUNS_SNAPSHOT),
    ("run tail", RUNS_EVENTS),
    ("run verify", RUNS_SNAPSHOT),
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
    ("why job", RECORDS_SCAN),
    ("why operator", MAPS_LIST),
    ("why run", RUNS_LIST),
    ("why session", RECORDS_SCAN),
];

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
    let of = |words: &[String]| COMMANDS.iter().find(|(name, _)| *name == words.join(" "));
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
    let Some((_, route)) = COMMANDS.iter().find(|(name, _)| *name == command) else {
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
        assert_eq!(found, COMMANDS.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>());
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
