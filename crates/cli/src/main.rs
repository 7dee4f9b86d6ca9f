//! The `statehouse` command.
//!
//! Noun, then verb. Every command that reaches a store uses the HTTP API (`connection.rs`), for remote servers and local directories
//! alike (`reach.rs`). It prints its results in one of four formats (`output.rs`) and ends with one of eight exit codes (`exit.rs`).
//! Never: prompts unless a person is there to answer.

mod audit;
mod backup;
mod bench;
mod branch;
mod cell;
mod cert;
mod check;
mod checks;
mod completions;
pub(crate) mod config;
mod config_command;
mod connection;
mod contexts;
mod contract;
mod ctx;
mod doctor;
mod equipment;
mod exit;
mod expect_flag;
mod explain;
mod export;
mod following;
mod given;
mod group;
mod guard;
mod keyed;
mod letter;
mod log;
mod next;
mod output;
mod own_server;
mod paint;
mod principal;
mod progress;
mod raw_json;
mod reach;
mod record;
mod reload;
mod repeating;
mod root_token;
mod run;
mod scopes;
mod serve;
mod service_manager;
mod session;
mod spaces;
mod status;
mod stop;
mod table;
mod token;
mod transport;
mod txn;
mod watch;
mod watchdog;
mod why;

/// The one list of the contracts: the folder, the noun of its commands, and what `why` explains. Expands a macro with the list.
macro_rules! with_contracts {
    ($expand:ident) => {
        $expand! {
            cell: Cell {}
            record: Rec { Job }
            run: Run { Run }
            keyed: Keyed { Operator }
        }
    };
}

pub(crate) use with_contracts;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use statehouse::terminal;

use exit::{Exit, Failure};
use output::{Format, Output};
use paint::Color;

/// A request makes many small allocations, some of them freed by another thread; with the system's allocator they took a
/// fifth of the time of a read.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Stores what your workers are doing.
///
/// Examples:
///   statehouse dev
///   statehouse rec claim jobs. --worker w1 -o json
///
/// Exit codes: 0 done, 1 other error, 2 wrong usage, 3 not found, 4 conflict, 5 unavailable or too slow, 6 denied,
/// 7 a check failed.
#[derive(Parser)]
#[command(name = "statehouse", version, verbatim_doc_comment, disable_help_subcommand = true)]
struct Arguments {
    /// Format of the results.
    #[arg(long, short, global = true, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    output: Format,
    /// When to colour tables, screens and errors.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(serve::Dev),
    Serve(serve::Serve),
    Cell(cell::Cell),
    Rec(record::Rec),
    Run(run::Run),
    Keyed(keyed::Keyed),
    Session(session::Session),
    Txn(txn::Txn),
    Watch(watch::Watch),
    Branch(branch::Branch),
    Group(group::Group),
    Guard(guard::Guard),
    Letter(letter::Letter),
    Principal(principal::Principal),
    Token(token::Token),
    Audit(audit::Audit),
    Cert(cert::Cert),
    Space(spaces::Space),
    Ctx(ctx::Ctx),
    Why(why::Why),
    Explain(explain::Explain),
    Status(status::Status),
    Config(config_command::Config),
    Doctor(doctor::Doctor),
    Check(check::Check),
    Bench(bench::Bench),
    Backup(backup::Backup),
    Export(export::Export),
    Import(export::Import),
    Completions(completions::Completions),
    Version(completions::Version),
    Info(completions::Info),
}

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    // New files are readable by their owner only, including those that libraries create.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let given: Vec<OsString> = std::env::args_os().collect();
    let parsed = Arguments::command().try_get_matches_from(&given);
    let parsed = parsed.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (arguments, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return misunderstood(&given, &error),
    };
    let output = Output { format: arguments.output, color: arguments.color };
    match scopes::check(&matches).and_then(|()| arguments.command.run(output)) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            failure.say(&output);
            failure.exit.into()
        }
    }
}

/// Prints the help that was asked for, or why the arguments were not understood. The message quotes the arguments, so they are escaped first.
fn misunderstood(given: &[OsString], error: &clap::Error) -> ExitCode {
    let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if asked {
        let _ = error.print();
        return Exit::Done.into();
    }
    let harmless = given.iter().map(|word| terminal::one_line(&word.to_string_lossy()));
    match Arguments::try_parse_from(harmless) {
        Err(again) if again.kind() == error.kind() => eprint!("{}", terminal::lines(&again.render().to_string())),
        _ => eprintln!("{}", terminal::one_line(&error.render().to_string())),
    }
    Exit::Usage.into()
}

impl Command {
    fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Command::Dev(dev) => dev.run(),
            Command::Serve(serve) => serve.run(),
            Command::Cell(cell) => cell.run(output),
            Command::Rec(rec) => rec.run(output),
            Command::Run(run) => run.run(output),
            Command::Keyed(keyed) => keyed.run(output),
            Command::Session(session) => session.run(output),
            Command::Txn(txn) => txn.run(output),
            Command::Watch(watch) => watch.run(output),
            Command::Branch(branch) => branch.run(output),
            Command::Group(group) => group.run(output),
            Command::Guard(guard) => guard.run(output),
            Command::Letter(letter) => letter.run(output),
            Command::Principal(principal) => principal.run(output),
            Command::Token(token) => token.run(output),
            Command::Audit(audit) => audit.run(output),
            Command::Cert(cert) => cert.run(output),
            Command::Space(space) => space.run(output),
            Command::Ctx(ctx) => ctx.run(output),
            Command::Why(why) => why.run(output),
            Command::Explain(explain) => explain.run(output),
            Command::Status(status) => status.run(output),
            Command::Config(config) => config.run(output),
            Command::Doctor(doctor) => doctor.run(output),
            Command::Check(check) => check.run(output),
            Command::Bench(bench) => bench.run(output),
            Command::Backup(backup) => backup.run(output),
            Command::Export(export) => export.run(output),
            Command::Import(import) => import.run(output),
            Command::Completions(completions) => completions.run(output),
            Command::Version(version) => version.run(output),
            Command::Info(info) => info.run(output),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::Arguments;

    fn each(command: &Command, path: &str, visit: &mut dyn FnMut(&Command, &str)) {
        visit(command, path);
        for verb in command.get_subcommands() {
            each(verb, &format!("{path} {}", verb.get_name()), visit);
        }
    }

    macro_rules! nouns {
        ($($folder:ident: $noun:ident { $($explained:ident)? })*) => {
            [$(stringify!($folder)),*]
        };
    }

    #[test]
    fn every_contract_is_listed() {
        let listed: Vec<_> = contract::CONTRACTS.iter().map(|contract| contract.trim_end_matches('s')).collect();
        assert_eq!(with_contracts!(nouns)[..], listed);
    }

    #[test]
    fn the_tree_makes_sense() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_help_has_two_examples_of_its_own_command() {
        let mut visited = 0;
        each(&Arguments::command(), "statehouse", &mut |command, path| {
            let help = command.clone().render_long_help().to_string();
            let noun = path.split(' ').nth(1).unwrap_or_default();
            let (_, after) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{path} --help has no examples"));
            let examples: Vec<_> = after.lines().take_while(|line| line.starts_with("  ")).collect();
            let with = |text: &str| examples.iter().filter(|line| line.contains(text)).count();
            // The second may be of another noun: a branch is made, then used.
            assert!(with("statehouse ") >= 2, "{path} --help has fewer than two examples");
            assert!(with(&format!("statehouse {noun}")) >= 1, "{path} --help shows other commands only");
            visited += 1;
        });
        assert!(visited > 60, "only {visited} commands were looked at");
    }

    #[test]
    fn a_flag_for_all_verbs_shares_its_id_with_no_argument() {
        let tree = Arguments::command();
        let mut global = Vec::new();
        each(&tree, "statehouse", &mut |command, _| {
            global.extend(
                command
                    .get_arguments()
                    .filter(|argument| argument.is_global_set())
                    .map(|argument| argument.get_id().clone()),
            );
        });
        each(&tree, "statehouse", &mut |command, path| {
            for argument in command.get_arguments().filter(|argument| !argument.is_global_set()) {
                assert!(
                    !global.contains(argument.get_id()),
                    "{path}: {} is also a flag for all verbs",
                    argument.get_id()
                );
            }
        });
    }
}
