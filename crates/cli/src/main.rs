//! The `statehouse` command.
//!
//! - `dev`: a server with a directory of its own that goes with it. `serve`: a server over a directory that stays.
//!
//! Exit codes: 0 done, 1 something failed, 2 the command line is wrong.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};
use statehouse::Statehouse;

/// Stores what your workers are doing.
#[derive(Parser)]
#[command(name = "statehouse", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A server to try things on: its data goes when it stops.
    ///
    /// Examples:
    ///   statehouse dev
    ///   statehouse dev --listen 127.0.0.1:4100
    #[command(verbatim_doc_comment)]
    Dev {
        /// Where to listen; only this machine can connect.
        #[arg(long, env = "STATEHOUSE_LISTEN", default_value = "127.0.0.1:4000")]
        listen: SocketAddr,
    },
    /// A server over a directory, which is made if it does not exist.
    ///
    /// Examples:
    ///   statehouse serve --data /var/lib/statehouse
    ///   statehouse serve --data ./data --listen 127.0.0.1:4100
    #[command(verbatim_doc_comment)]
    Serve {
        /// The directory.
        #[arg(long, env = "STATEHOUSE_DATA")]
        data: PathBuf,
        /// Where to listen; only this machine can connect.
        #[arg(long, env = "STATEHOUSE_LISTEN", default_value = "127.0.0.1:4000")]
        listen: SocketAddr,
    },
}

fn main() -> ExitCode {
    let served = match Arguments::parse().command {
        Command::Serve { data, listen } => serve(&data, listen),
        Command::Dev { listen } => dev(listen),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("statehouse: {error}");
            ExitCode::FAILURE
        }
    }
}

type Failed = Box<dyn std::error::Error>;

fn dev(listen: SocketAddr) -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    serve(&directory.path().join("house"), listen)
}

fn serve(data: &Path, listen: SocketAddr) -> Result<(), Failed> {
    let began = Instant::now();
    let house = Statehouse::open(data)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = server::listen(listen).await?;
        let address = listener.local_addr()?;
        println!("statehouse {} serves {} on http://{address}", env!("CARGO_PKG_VERSION"), data.display());
        println!("ready in {} ms; stop with ctrl-c", began.elapsed().as_millis());
        server::serve(listener, house, stop()).await
    })?;
    Ok(())
}

/// Waits for ctrl-c or a SIGTERM.
async fn stop() {
    let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
