//! The `statehouse` command.
//!
//! - [`serve`]: `dev`, a server with a directory of its own that goes with it; `serve`, one over a directory that stays.
//!
//! Exit codes: 0 done, 1 something failed, 2 the command line is wrong.

pub(crate) mod config;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Stores what your workers are doing.
#[derive(Parser)]
#[command(name = "statehouse", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Dev(serve::Dev),
    Serve(serve::Serve),
}

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Dev(dev) => dev.run(),
        Command::Serve(serve) => serve.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("statehouse: {error}");
            ExitCode::FAILURE
        }
    }
}
