//! The `statehouse` command.
//!
//! Noun, then verb. Every command that reaches a store is written against the HTTP API (`connection.rs`), whichever store that is
//! (`reach.rs`); what it found is written in one of four formats (`output.rs`), and how it ended is one of eight exit codes (`exit.rs`).
//! Never: asks a question unless a person is there to answer it.

mod attempt;
mod branch;
mod cell;
mod completions;
pub(crate) mod config;
mod connection;
mod contexts;
mod ctx;
mod exit;
mod expecting;
mod following;
mod given;
mod output;
mod reach;
mod rec;
mod record_type;
mod repeating;
mod run;
mod serve;
mod session;
mod spaces;
mod table;
mod txn;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::{Exit, Failure};
use output::{Format, Output};

/// Stores what your workers are doing.
///
/// Examples:
///   statehouse dev
///   statehouse rec claim jobs. --worker w1 -o json
///
/// Exit codes: 0 done, 1 something else, 2 wrong usage, 3 not found, 4 conflict, 5 unavailable or too slow, 6 denied,
/// 7 a check failed.
#[derive(Parser)]
#[command(name = "statehouse", version, verbatim_doc_comment, disable_help_subcommand = true)]
struct Arguments {
    /// How results are written.
    #[arg(long, short, global = true, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    output: Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(serve::Dev),
    Serve(serve::Serve),
    Cell(cell::Cell),
    Rec(rec::Rec),
    Run(run::Run),
    Session(session::Session),
    Txn(txn::Txn),
    Watch(watch::Watch),
    Branch(branch::Branch),
    Space(spaces::Space),
    Ctx(ctx::Ctx),
    Completions(completions::Completions),
    Version(completions::Version),
    Info(completions::Info),
}

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let output = Output { format: arguments.output };
    match arguments.command.run(output) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            failure.say(output.format);
            failure.exit.into()
        }
    }
}

impl Command {
    fn run(self, output: Output) -> Result<(), Failure> {
        match self {
            Command::Dev(dev) => Ok(dev.run()?),
            Command::Serve(serve) => Ok(serve.run()?),
            Command::Cell(cell) => cell.run(output),
            Command::Rec(rec) => rec.run(output),
            Command::Run(run) => run.run(output),
            Command::Session(session) => session.run(output),
            Command::Txn(txn) => txn.run(output),
            Command::Watch(watch) => watch.run(output),
            Command::Branch(branch) => branch.run(output),
            Command::Space(space) => space.run(output),
            Command::Ctx(ctx) => ctx.run(output),
            Command::Completions(completions) => completions.run(output),
            Command::Version(version) => version.run(output),
            Command::Info(info) => info.run(output),
        }
    }
}
