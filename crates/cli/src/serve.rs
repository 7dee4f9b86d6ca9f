//! `dev` and `serve`: a server on this machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use statehouse::Statehouse;

use crate::Failed;
use crate::config::{Effective, Flag};

/// A server to try things on: its data goes when it stops.
///
/// Examples:
///   statehouse dev
///   statehouse dev --keep ./data --random-ports
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Dev {
    /// Keep the data in a directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Listen on a port that is free.
    #[arg(long, conflicts_with = "listen")]
    random_ports: bool,
    #[command(flatten)]
    settings: Settings,
}

/// A server over a directory, which is made if it does not exist.
///
/// Examples:
///   statehouse serve --data /var/lib/statehouse
///   statehouse serve --config /etc/statehouse.toml --memory 512MiB
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Serve {
    /// The directory [setting data].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// Where settings are from, and the flags that both commands have.
#[derive(Args)]
pub(crate) struct Settings {
    /// A TOML file with settings; `statehouse config init` prints one with all of them.
    #[arg(long, env = "STATEHOUSE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen; only this machine can connect [setting server.listen].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Memory of the whole process, as 512MiB [setting memory].
    #[arg(long, value_name = "BYTES")]
    memory: Option<String>,
    /// What is logged: error, warn, info, debug, trace or a filter [setting log].
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

impl Settings {
    /// What holds, with flags of one command more.
    fn gather(&self, more: impl IntoIterator<Item = Flag>) -> Result<Effective, Failed> {
        let listen = self.listen.map(|address| ("--listen", "server.listen", address.to_string()));
        let memory = self.memory.clone().map(|memory| ("--memory", "memory", memory));
        let log = self.log.clone().map(|log| ("--log", "log", log));
        let flags = [listen, memory, log].into_iter().flatten().chain(more);
        let environment = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let environment = environment.map(|(name, value)| (name, value.to_string_lossy().into_owned()));
        Ok(Effective::gather(self.config.as_deref(), environment, flags)?)
    }
}

impl Dev {
    pub(crate) fn run(self) -> Result<(), Failed> {
        let any_port = self.random_ports.then(|| ("--random-ports", "server.listen", "127.0.0.1:0".to_owned()));
        let effective = self.settings.gather(any_port)?;
        match &self.keep {
            Some(directory) => serve(directory, &effective),
            None => {
                let directory = tempfile::tempdir()?;
                serve(&directory.path().join("house"), &effective)
            }
        }
    }
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failed> {
        let data = self.data.as_ref().map(|path| ("--data", "data", path.to_string_lossy().into_owned()));
        let effective = self.settings.gather(data)?;
        let data = effective.data().ok_or("no directory is named; say it by --data DIR or STATEHOUSE_DATA")?;
        serve(&data, &effective)
    }
}

fn serve(data: &Path, effective: &Effective) -> Result<(), Failed> {
    let began = Instant::now();
    let house = Statehouse::open(data)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = server::listen(effective.listen()).await?;
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
